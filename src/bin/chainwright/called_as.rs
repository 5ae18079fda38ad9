//! Links to this program under other programs' names, and the verbs of the same names.

use std::ffi::OsString;
use std::io::{BufWriter, stderr, stdin, stdout};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use chainwright::iptables::program::{Program, Streams};

/// The exit code, if the words of this process, or those behind its own name, start with the name of a
/// program of iptables'.
pub(crate) fn iptables(words: &[OsString]) -> Option<ExitCode> {
    let first = Path::new(words.first()?).file_name()?;
    let (name, rest) = match Program::named(first.to_str()?) {
        Some(program) => (program, &words[1..]),
        None => (Program::named(words.get(1)?.to_str()?)?, words.get(2..)?),
    };
    let rest: Vec<&[u8]> = rest.iter().map(|word| word.as_bytes()).collect();
    let streams = Streams {
        input: &mut stdin().lock(),
        output: &mut BufWriter::new(stdout().lock()),
        errors: &mut stderr().lock(),
    };
    Some(name.run(&rest, streams).into())
}
