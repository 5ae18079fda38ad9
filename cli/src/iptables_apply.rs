//! `iptables-apply`: restores tables from a text, and reverts them unless the user confirms in time.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use bstr::ByteSlice;
use chainwright::iptables::program::{Program, Streams};
use chainwright::iptables::text;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::SignalFd;

use crate::confirm::{PendingChange, Reach, State};
use crate::output::{Error, causes, eprint_line};

/// The default timeout, in seconds.
const TIMEOUT: u64 = 10;

/// The reason why a command is not run.
const NO_COMMAND: &str = "-c COMMAND is not supported: chainwright runs no other program. Pass the rules as a file in \
                          the format of iptables-save";

/// Exit codes.
const DONE: u8 = 0;
const FAILED: u8 = 1;
const REVERTED: u8 = 255;

/// The parsed arguments.
struct Arguments {
    /// The time for the answer.
    seconds: u64,
    /// Where to save the rules after confirmation.
    save: Option<PathBuf>,
    rules: PathBuf,
}

/// Runs `iptables-apply` or `ip6tables-apply`; returns the exit code.
pub(crate) fn run(name: &str, words: &[OsString]) -> u8 {
    let plain = name.strip_suffix("-apply").unwrap_or("iptables");
    let parsed = match parse(name, plain, words) {
        Ok(Some(parsed)) => parsed,
        Ok(None) => return DONE,
        Err(message) => {
            eprint_line(&format!("{name}: {message}"));
            return FAILED;
        }
    };
    match apply(plain, &parsed) {
        Ok(code) => code,
        Err(message) => {
            eprint_line(&format!("{name}: {message}"));
            FAILED
        }
    }
}

fn parse(name: &str, plain: &str, words: &[OsString]) -> Result<Option<Arguments>, String> {
    let default = match plain {
        "ip6tables" => "/etc/network/ip6tables.up.rules",
        _ => "/etc/network/iptables.up.rules",
    };
    let (mut timeout, mut save, mut rules) = (TIMEOUT, None, None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let bytes = word.as_bytes();
        let (option, attached) = match bytes {
            [b'-', b'-', long @ ..] => match long.split_once_str("=") {
                Some((long, value)) => (long, Some(value)),
                None => (long, None),
            },
            [b'-', letter, value @ ..] => (
                std::slice::from_ref(letter),
                (!value.is_empty()).then_some(value),
            ),
            _ if rules.is_some() => return Err("only one file can be applied".to_owned()),
            _ => {
                rules = Some(PathBuf::from(word));
                continue;
            }
        };
        let mut value = || {
            let value = attached.map(<[u8]>::to_vec);
            let value = value.or_else(|| words.next().map(|word| word.as_bytes().to_vec()));
            value.ok_or_else(|| format!("option {} requires a value", word.display()))
        };
        match option {
            b"t" | b"timeout" => {
                let value = value()?;
                let seconds = value.to_str().ok().and_then(|text| text.parse().ok());
                timeout = seconds.ok_or("the timeout must be a number of seconds")?;
            }
            b"w" | b"write" => {
                let value = value()?;
                save = Some(
                    value
                        .to_path()
                        .map_err(|error| error.to_string())?
                        .to_owned(),
                );
            }
            b"c" | b"command" => return Err(NO_COMMAND.to_owned()),
            b"h" | b"help" => {
                print(&format!(
                    "Usage: {name} [-hV] [-t timeout] [-w savefile] [rulesfile]\n\n\
                     Applies the tables in rulesfile ({default} if none is given), in the format of {plain}-save,\n\
                     and asks whether to keep them. Without a `y` before the timeout ({TIMEOUT} seconds if none is\n\
                     given), the previous rules are restored. Exit codes: {DONE} kept, {FAILED} failed, {REVERTED} restored.\n\n\
                     -t, --timeout seconds    how long to wait for the answer\n\
                     -w, --write savefile     save the tables to this file after confirmation\n\
                     -c, --command            not supported: chainwright runs no other program\n\
                     -h, --help; -V, --version\n"
                ));
                return Ok(None);
            }
            b"V" | b"version" => {
                print(&format!(
                    "{name} v{}\n",
                    chainwright::iptables::program::VERSION
                ));
                return Ok(None);
            }
            _ => return Err(format!("unknown option {}", word.display())),
        }
    }
    Ok(Some(Arguments {
        seconds: timeout,
        save,
        rules: rules.unwrap_or_else(|| default.into()),
    }))
}

fn apply(plain: &str, parsed: &Arguments) -> Result<u8, String> {
    let shown = parsed.rules.display();
    let file = fs::File::open(&parsed.rules);
    let rules = file
        .and_then(text::read)
        .map_err(|error| format!("cannot read {shown}: {error}"))?;
    // From here on, a signal reverts the rules instead of ending the process; a broken connection sends one, too.
    let signals: SigSet = [
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGQUIT,
    ]
    .into_iter()
    .collect();
    signals.thread_block().map_err(|error| error.to_string())?;
    let signals = SignalFd::new(&signals).map_err(|error| error.to_string())?;
    let reason = |error: Error| causes(&error);
    let what = format!("{plain}-apply {shown}");
    let mut kept =
        PendingChange::before(what.into(), parsed.seconds, Reach::NFT, None).map_err(reason)?;

    print(&format!("Applying {plain} rules from '{shown}'... "));
    if restored(plain, &rules) != DONE {
        print("failed.\n");
        kept.undo().map_err(reason)?;
        return Ok(FAILED);
    }
    print("done.\n");
    if kept.applied().map_err(reason)? {
        print("Can you establish NEW connections to the machine? (y/N) ");
        let ended = match confirmed(&signals, &kept) {
            Some(true) => kept.confirm(),
            Some(false) => kept.undo(),
            None => kept.end(),
        };
        if ended.map_err(reason)? != State::Kept {
            print("\nNo confirmation. The previous rules are restored.\n");
            return Ok(REVERTED);
        }
        print("\n");
    }
    print("The rules are kept.\n");
    if let Some(path) = &parsed.save {
        fs::write(path, saved(plain)?)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(DONE)
}

/// Waits for an answer on standard input; returns whether it is a `y`, or `None` if the time is over.
fn confirmed(signals: &SignalFd, kept: &PendingChange) -> Option<bool> {
    let stdin = io::stdin();
    let mut watched = [
        PollFd::new(kept.as_fd(), PollFlags::POLLIN),
        PollFd::new(stdin.as_fd(), PollFlags::POLLIN),
        PollFd::new(signals.as_fd(), PollFlags::POLLIN),
    ];
    while poll(&mut watched, PollTimeout::NONE).is_err() {}
    let [over, answered, signalled] = watched.map(|fd| fd.any().unwrap_or(true));
    if over {
        return None;
    }
    let mut answer = [0];
    Some(
        !signalled
            && answered
            && matches!(
                (stdin.lock().read(&mut answer), answer),
                (Ok(1), [b'y' | b'Y'])
            ),
    )
}

/// Returns the output of `iptables-save -c`.
fn saved(plain: &str) -> Result<Vec<u8>, String> {
    let mut output = Vec::new();
    match program(plain, "save", &["-c"], &[], &mut output) {
        DONE => Ok(output),
        _ => Err("cannot read the tables".to_owned()),
    }
}

fn restored(plain: &str, text: &[u8]) -> u8 {
    program(plain, "restore", &["-c"], text, &mut Vec::new())
}

fn program(plain: &str, tool: &str, words: &[&str], input: &[u8], output: &mut Vec<u8>) -> u8 {
    let Some(program) = Program::named(&format!("{plain}-{tool}")) else {
        return FAILED;
    };
    let streams = Streams {
        input: &mut &*input,
        output,
        errors: &mut io::stderr().lock(),
    };
    program.run(words, streams, chainwright_lang::translate::for_program)
}

/// Prints a text. Ignores errors: the exit code reports the result.
fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
