//! Captures how a version of iptables-nft reads rules written by other versions and by `nft`: the rules of
//! `tests/data/encodings`. Writes the file `read-VERSION.txt` there: see its `README.md`.
//!
//! ```sh
//! cargo run --example capture_readings -- 1.8.11 /path/to/xtables-nft-multi
//! ```
//!
//! The second argument is the command that runs this version: words to which `iptables-save` and its arguments are
//! appended. With `nft` in place of a version, and no second argument, it captures what the installed `nft` writes
//! for the statements of `native.txt`. Everything happens in private network namespaces.

mod capture;
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/common/encodings.rs"]
mod encodings;

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::process::ExitCode;

use chainwright::iptables::{self, Rule};
use chainwright::nft::expr::Expressions;
use chainwright::nft::{
    self, Chain, Connection, Family, Scope, Table, Transaction, UnknownAttributes,
};
use chainwright::xt;
use chainwright_testing::Sandbox;

use capture::{BUILT_IN, clear, run};
use encodings::{Corpus, Key, Line, NATIVE, Put, directory, key, pack, parse_native};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [what] if what == "nft" => natives(),
        [version, reader] => readings(version, reader),
        _ => {
            eprintln!("usage: capture_readings VERSION COMMAND\n       capture_readings nft");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Records what `nft` writes for each statement.
fn natives() -> Result<(), Box<dyn Error>> {
    let version = run("nft", &["--version"], "")?;
    let mut text = format!("# {}\n", String::from_utf8(version.stdout)?.trim());
    let sandbox = Sandbox::new()?;
    for line in parse_native(&fs::read_to_string(directory().join(NATIVE))?)? {
        let written = sandbox.run(|| native(&line).map_err(|error| error.to_string()))??;
        let (number, family) = key(&line);
        let _ = write!(text, "{number} {family} {}", pack(&written.0));
        if !written.1.is_empty() {
            let _ = write!(text, " {}", pack(&written.1));
        }
        text += "\n";
    }
    fs::write(directory().join("written-by-nft.txt"), text)?;
    Ok(())
}

/// Captures what `nft` writes: expressions and user data.
fn native(line: &Line) -> Result<(Vec<u8>, Vec<u8>), Box<dyn Error>> {
    clear()?;
    make(line)?;
    add(line)?;
    let mut nft = Connection::open()?;
    let mut rules = nft.rules(Scope::table(line.family, line.table.as_str()))?;
    let rule = rules.try_next()?.ok_or("no rule")?;
    let expressions = rule.to_builder().expressions.unwrap_or_default();
    let userdata = rule.userdata().unwrap_or_default().to_vec();
    Ok((expressions.as_bytes().to_vec(), userdata))
}

/// Creates the table and chain of a line, and the chains that it jumps to.
fn make(line: &Line) -> Result<(), Box<dyn Error>> {
    let family = of(line);
    let mut transaction = Transaction::new();
    transaction.add(&Table::new(line.family, line.table.as_str()))?;
    let words: Vec<&str> = line.rule.split(' ').collect();
    let mut chains = vec![line.chain()];
    for pair in words.windows(2) {
        let is_chain = |name: &str| {
            let verdict = matches!(name, "ACCEPT" | "DROP" | "RETURN" | "QUEUE");
            !verdict && xt::Target::named(family, name.as_bytes()).is_none()
        };
        if matches!(pair[0], "-g" | "-j" | "jump" | "goto") && is_chain(pair[1]) {
            chains.push(pair[1]);
        }
    }
    for chain in chains {
        if BUILT_IN.contains(&chain) {
            transaction.add(&iptables::nft::chain(family, &line.table, chain))?;
        } else {
            transaction.add(&Chain::new(line.family, line.table.as_str(), chain))?;
        }
    }
    Connection::open()?.commit(&transaction)?;
    Ok(())
}

/// Adds the statement with `nft`.
fn add(line: &Line) -> Result<(), Box<dyn Error>> {
    let family = if line.family == Family::IP6 {
        "ip6"
    } else {
        "ip"
    };
    let (_, rest) = line.rule.split_once(' ').ok_or("no rule")?;
    let command = format!("add rule {family} {} {rest}", line.table);
    let output = run("nft", &["-f", "-"], &command)?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command}: {}", String::from_utf8_lossy(&output.stderr)).into())
}

fn of(line: &Line) -> xt::Family {
    if line.family == Family::IP6 {
        xt::Family::Ipv6
    } else {
        xt::Family::Ipv4
    }
}

/// The bytes of one rule, and the versions that wrote them.
struct Bytes {
    expressions: Vec<u8>,
    userdata: Vec<u8>,
    /// How the corpus's reader version reads them.
    read: Option<String>,
    writers: Vec<String>,
}

/// Records what a version reads.
fn readings(version: &str, reader: &str) -> Result<(), Box<dyn Error>> {
    let says = run(reader, &["iptables", "-V"], "")?;
    let says = String::from_utf8(says.stdout)?.trim().to_owned();
    if says != format!("iptables v{version} (nf_tables)") {
        return Err(format!("not {version}: {says}").into());
    }
    let corpus = Corpus::load(&directory())?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let mut text = format!("# {says}, Linux {}\n", kernel.trim());
    for family in [Family::IP, Family::IP6] {
        let sandbox = Sandbox::new()?;
        let setup = fs::read_to_string(directory().join("setup.sh"))?;
        let output = sandbox.run(|| run("sh", &[], &setup))??;
        if !output.status.success() {
            return Err(format!("setup.sh: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        for line in corpus.lines.iter().filter(|line| line.family == family) {
            let mut all: Vec<Bytes> = Vec::new();
            for (writer, _, written) in corpus.written().filter(|(_, other, _)| *other == line) {
                let same = all.iter_mut().find(|bytes| {
                    bytes.expressions == written.expressions && bytes.userdata == written.userdata
                });
                match same {
                    Some(bytes) => bytes.writers.push(writer.to_owned()),
                    None => all.push(Bytes {
                        expressions: written.expressions.clone(),
                        userdata: written.userdata.clone(),
                        read: written.read.clone(),
                        writers: vec![writer.to_owned()],
                    }),
                }
            }
            // What this version reads, if that differs from 1.8.9.
            let mut outcomes: Vec<(Put, Vec<&str>)> = Vec::new();
            for bytes in &all {
                let read = sandbox.run(|| {
                    let put = put(line, bytes).map_err(|error| error.to_string());
                    put.and_then(|()| read(line, reader).map_err(|error| error.to_string()))
                })??;
                let as_reader = bytes.read.as_deref().map(|line| Put::Line(one_blank(line)));
                if as_reader.as_ref() == Some(&read) {
                    continue;
                }
                let writers = bytes.writers.iter().map(String::as_str);
                match outcomes.iter_mut().find(|(before, _)| *before == read) {
                    Some((_, all)) => all.extend(writers),
                    None => outcomes.push((read, writers.collect())),
                }
            }
            for (read, writers) in &outcomes {
                record(&mut text, key(line), &writers.join(","), read);
            }
        }
    }
    let sandbox = Sandbox::new()?;
    for line in parse_native(&fs::read_to_string(directory().join(NATIVE))?)? {
        let read = sandbox.run(|| -> Result<Put, String> {
            let all = || -> Result<Put, Box<dyn Error>> {
                clear()?;
                make(&line)?;
                add(&line)?;
                read(&line, reader)
            };
            all().map_err(|error| error.to_string())
        })??;
        record(&mut text, key(&line), "nft", &read);
    }
    fs::write(directory().join(format!("read-{version}.txt")), text)?;
    Ok(())
}

fn record(text: &mut String, (number, family): Key, writers: &str, read: &Put) {
    let _ = writeln!(text, "{number} {family} {writers} {read}");
}

/// Adds a rule with exactly these bytes.
fn put(line: &Line, bytes: &Bytes) -> Result<(), Box<dyn Error>> {
    clear()?;
    make(line)?;
    let (_, options) = (line.rule.split_once(' '))
        .and_then(|(_, rest)| rest.split_once(' '))
        .unwrap_or_default();
    let protocol = Rule::parse(of(line), options)
        .map_err(|fault| format!("{}: {fault}", line.rule))?
        .protocol;
    let mut transaction = Transaction::new();
    transaction.add(&nft::Rule {
        expressions: Some(Expressions::of_bytes(&bytes.expressions)),
        userdata: (!bytes.userdata.is_empty()).then(|| bytes.userdata.as_slice().into()),
        compat: Some(nft::Compat {
            protocol: Some(protocol.map_or(0, |protocol| protocol.number.into())),
            flags: Some(protocol.map_or(0, |protocol| if protocol.invert { 2 } else { 0 })),
            unknown: UnknownAttributes::NONE,
        }),
        ..nft::Rule::new(line.family, line.table.as_str(), line.chain())
    })?;
    Connection::open()?.commit(&transaction)?;
    Ok(())
}

/// Returns what the version's save prints for the only rule.
fn read(line: &Line, reader: &str) -> Result<Put, Box<dyn Error>> {
    let tool = if line.family == Family::IP6 {
        "ip6"
    } else {
        "ip"
    };
    let arguments = [&format!("{tool}tables-save"), "-t", &line.table];
    let output = run(reader, &arguments, "")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut rules = text.lines().filter(|line| line.starts_with("-A "));
    let rule = rules.next();
    if rules.next().is_some() {
        return Err(format!("more than one rule: {}", line.rule).into());
    }
    Ok(match (rule, output.status.code()) {
        (Some(rule), Some(0)) => Put::Line(one_blank(rule)),
        (None, Some(0)) if text.contains("is incompatible, use 'nft' tool.") => Put::Hidden,
        (_, Some(code)) if code != 0 => Put::Failed(code),
        _ => return Err(format!("{:?}: {text}", output.status).into()),
    })
}

/// Removes the extra blanks that some versions print.
fn one_blank(line: &str) -> String {
    let mut text = String::new();
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        if !text.is_empty() {
            text.push(' ');
        }
        text += word;
    }
    text
}
