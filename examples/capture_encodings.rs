//! Captures how a version of iptables-nft encodes the rules of `tests/data/encodings/rules.txt`,
//! and writes that version's file next to it: see `tests/data/encodings/README.md`.
//!
//! ```sh
//! cargo run --example capture_encodings -- 1.8.11 /path/to/xtables-nft-multi
//! ```
//!
//! The second argument is the command that runs this version: words to which `iptables-restore` and
//! its arguments are appended. A third one gives the command of iptables-nft 1.8.9, whose reading
//! is recorded as well; it is optional if that version is installed. Everything happens in private
//! network namespaces.

mod capture;
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/common/encodings.rs"]
mod encodings;

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::process::ExitCode;

use chainwright::nft::{Connection, Family, Scope};
use chainwright_testing::Sandbox;

use capture::{BUILT_IN, clear, run};
use encodings::{Cases, Corpus, Line, READER, Written, directory, key, ordinal, pack, parse_rules};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (version, writer, reader) = match arguments.as_slice() {
        [version, writer] => (version, writer, "xtables-nft-multi"),
        [version, writer, reader] => (version, writer, reader.as_str()),
        _ => {
            eprintln!("usage: capture_encodings VERSION COMMAND [COMMAND-OF-{READER}]");
            return ExitCode::from(2);
        }
    };
    match capture(version, writer, reader) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn capture(version: &str, writer: &str, reader: &str) -> Result<(), Box<dyn Error>> {
    let iptables_version = |command: &str| -> Result<String, Box<dyn Error>> {
        let output = run(command, &["iptables", "-V"], "")?;
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    };
    let version_line = iptables_version(writer)?;
    for (version_line, version) in [
        (&version_line, version),
        (&iptables_version(reader)?, READER),
    ] {
        if *version_line != format!("iptables v{version} (nf_tables)") {
            return Err(format!("not {version}: {version_line}").into());
        }
    }
    let lines = parse_rules(&fs::read_to_string(directory().join("rules.txt"))?)?;
    let path = directory().join(format!("{version}.txt"));
    // What this file is compared with: the reader's version, and versions between the two.
    let others = if version == READER {
        Others::new()
    } else {
        between(version)?
    };
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let architecture = std::env::consts::ARCH;
    let mut text = format!("# {version_line}, Linux {} {architecture}\n", kernel.trim());
    for family in [Family::IP, Family::IP6] {
        let sandbox = Sandbox::new()?;
        let setup = fs::read_to_string(directory().join("setup.sh"))?;
        let output = sandbox.run(|| run("sh", &[], &setup))??;
        if !output.status.success() {
            return Err(format!("setup.sh: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        for line in lines.iter().filter(|line| line.family == family) {
            let written =
                sandbox.run(|| one(line, writer, reader).map_err(|e| e.to_string()))??;
            record(&mut text, version, line, written.as_ref(), &others);
        }
    }
    fs::write(path, text)?;
    Ok(())
}

/// The cases of the versions that a file may refer to, the one nearest to the reader's first.
type Others = Vec<(String, Cases)>;

fn between(version: &str) -> Result<Others, Box<dyn Error>> {
    let (reader, own) = (ordinal(READER), ordinal(version));
    let range = reader.clone().min(own.clone())..=reader.clone().max(own.clone());
    let wanted = |other: &str| other != version && range.contains(&ordinal(other));
    let mut others = Corpus::load_versions(&directory(), wanted)?.versions;
    if own < reader {
        others.reverse();
    }
    Ok(others)
}

/// Appends the record of one rule.
fn record(
    text: &mut String,
    version: &str,
    line: &Line,
    written: Option<&Written>,
    others: &Others,
) {
    let key = key(line);
    let _ = write!(text, "{} {} ", key.0, key.1);
    let Some(written) = written else {
        *text += "refused\n";
        return;
    };
    let theirs = |name: &str| {
        let (_, cases) = others.iter().find(|(other, _)| other == name)?;
        cases.get(&key)?.as_ref()
    };
    let bytes = |written: &Written| (written.expressions.clone(), written.userdata.clone());
    let same = (others.iter().map(|(name, _)| name.as_str()))
        .find(|name| theirs(name).is_some_and(|theirs| bytes(theirs) == bytes(written)));
    let implied = match same {
        Some(name) => {
            let _ = writeln!(text, "= {name}");
            theirs(name)
        }
        None => {
            *text += &pack(&written.expressions);
            if !written.userdata.is_empty() {
                let _ = write!(text, " {}", pack(&written.userdata));
            }
            *text += "\n";
            theirs(READER)
        }
    };
    let mut write_reading = |word: &str, reading: &Option<String>| {
        let _ = match reading {
            Some(reading) => writeln!(text, " {word} {reading}"),
            None => writeln!(text, " un{word}"),
        };
    };
    if version == READER || implied.is_none_or(|implied| implied.read != written.read) {
        write_reading("read", &written.read);
    }
    if written.saved != written.read {
        write_reading("saved", &written.saved);
    }
}

/// Loads a rule, lists it, and reads it with the reader.
fn one(line: &Line, writer: &str, reader: &str) -> Result<Option<Written>, Box<dyn Error>> {
    clear()?;
    let words: Vec<&str> = line.rule.split(' ').collect();
    let mut input = format!("*{}\n", line.table);
    let mut chains = Vec::new();
    chains.extend((!BUILT_IN.contains(&line.chain())).then(|| line.chain()));
    for pair in words.windows(2) {
        // No target has a hyphen in its name.
        if pair[0] == "-g" || (pair[0] == "-j" && (pair[1].contains('-') || pair[1] == "USER")) {
            chains.push(pair[1]);
        }
    }
    for chain in chains {
        let _ = writeln!(input, ":{chain} - [0:0]");
    }
    let _ = write!(input, "{}\nCOMMIT\n", line.rule);
    let tool = if line.family == Family::IP {
        "ip"
    } else {
        "ip6"
    };
    let restored = run(writer, &[&format!("{tool}tables-restore")], &input)?;
    if !restored.status.success() {
        let why = String::from_utf8_lossy(&restored.stderr);
        let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
        eprintln!("{} {tool} {}: {why}", line.number, line.rule);
        return Ok(None);
    }
    let save = |command: &str| -> Result<Option<String>, Box<dyn Error>> {
        let arguments = [&format!("{tool}tables-save"), "-t", &line.table];
        let output = run(command, &arguments, "")?;
        let text = String::from_utf8(output.stdout)?;
        let mut rules = text.lines().filter(|line| line.starts_with("-A "));
        let rule = rules.next().map(str::to_owned);
        if rules.next().is_some() {
            return Err(format!("more than one rule: {}", line.rule).into());
        }
        Ok(rule.filter(|_| output.status.success()))
    };
    let (saved, read) = (save(writer)?, save(reader)?);
    let mut nft = Connection::open()?;
    let mut rules = nft.rules(Scope::table(line.family, line.table.as_str()))?;
    let mut found = Vec::new();
    while let Some(rule) = rules.try_next()? {
        let expressions = rule.to_builder().expressions.unwrap_or_default();
        found.push(Written {
            expressions: expressions.as_bytes().to_vec(),
            userdata: rule.userdata().unwrap_or_default().to_vec(),
            expected: None,
            read: read.clone(),
            saved: saved.clone(),
        });
    }
    if found.len() > 1 {
        return Err(format!("more than one rule: {}", line.rule).into());
    }
    found
        .pop()
        .map(Some)
        .ok_or_else(|| format!("no rule: {}", line.rule).into())
}
