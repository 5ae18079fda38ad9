//! The corpus of encodings in `tests/data/encodings/`: the bytes that each version of iptables-nft
//! leaves in nf_tables for a rule. That directory's `README.md` describes the format.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs;
use std::path::{Path, PathBuf};

use chainwright::nft::Family;

/// The version whose reading of all encodings is recorded.
pub(crate) const READER: &str = "1.8.9";

/// The directory of the corpus.
pub(crate) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/encodings")
}

/// A rule of the list, for one family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its number in the list, the same for both families of a line.
    pub(crate) number: u32,
    /// `IP` or `IP6`.
    pub(crate) family: Family,
    pub(crate) table: String,
    /// The input for `iptables-restore`: `-A CHAIN …`.
    pub(crate) rule: String,
}

impl Line {
    /// The chain that the rule is in.
    pub(crate) fn chain(&self) -> &str {
        self.rule.split(' ').nth(1).unwrap_or_default()
    }
}

/// The encoding of one rule by one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    /// The payload of `NFTA_RULE_EXPRESSIONS`; empty if the attribute is missing.
    pub(crate) expressions: Vec<u8>,
    /// The payload of `NFTA_RULE_USERDATA`; empty if the attribute is missing.
    pub(crate) userdata: Vec<u8>,
    /// The line that `iptables-nft-save` 1.8.9 prints for it; `None` if it cannot.
    pub(crate) read: Option<String>,
    /// The line with the full meaning of the bytes, in the syntax of 1.8.9: `read`, unless
    /// `misread.txt` corrects it.
    pub(crate) expected: Option<String>,
    /// The line that the same version's `iptables-nft-save` prints; `None` if it cannot.
    pub(crate) saved: Option<String>,
}

/// The number of a rule and its family, 4 or 6, as in the files.
pub(crate) type Key = (u32, u8);

/// One version's cases; `None` if the version or the kernel refused the rule.
pub(crate) type Cases = BTreeMap<Key, Option<Written>>;

/// The whole corpus.
#[derive(Debug)]
pub(crate) struct Corpus {
    /// In the order of the list.
    pub(crate) lines: Vec<Line>,
    /// By version, oldest first.
    pub(crate) versions: Vec<(String, Cases)>,
}

impl Corpus {
    /// Reads the corpus. An error contains the file.
    pub(crate) fn load(directory: &Path) -> Result<Self, String> {
        Self::load_versions(directory, |_| true)
    }

    /// Reads the files of these versions, and those for all versions.
    pub(crate) fn load_versions(
        directory: &Path,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Self, String> {
        let lines = parse_rules(&read(&directory.join("rules.txt"))?)
            .map_err(|error| format!("rules.txt: {error}"))?;
        let mut names = Vec::new();
        for entry in fs::read_dir(directory).map_err(|error| error.to_string())? {
            let name = entry.map_err(|error| error.to_string())?.file_name();
            let name = name.to_string_lossy();
            if let Some(version) = name.strip_suffix(".txt")
                && version.starts_with(|c: char| c.is_ascii_digit())
                && wanted(version)
            {
                names.push(version.to_owned());
            }
        }
        names.sort_by_key(|version| ordinal(version));
        let mut files = BTreeMap::new();
        for version in &names {
            let parsed = parse_file(&read(&directory.join(format!("{version}.txt")))?)
                .map_err(|error| format!("{version}.txt: {error}"))?;
            files.insert(version.clone(), parsed);
        }
        let mut versions = Vec::new();
        for version in names {
            let cases =
                resolve(&version, &files).map_err(|error| format!("{version}.txt: {error}"))?;
            versions.push((version, cases));
        }
        correct(
            &read(&directory.join("misread.txt"))?,
            &wanted,
            &mut versions,
        )
        .map_err(|error| format!("misread.txt: {error}"))?;
        Ok(Self { lines, versions })
    }

    /// Lists all encodings: version, rule, bytes.
    pub(crate) fn written(&self) -> impl Iterator<Item = (&str, &Line, &Written)> {
        self.versions.iter().flat_map(|(version, cases)| {
            self.lines.iter().filter_map(move |line| {
                let written = cases.get(&key(line))?.as_ref()?;
                Some((version.as_str(), line, written))
            })
        })
    }
}

/// The key of a line in the files.
pub(crate) fn key(line: &Line) -> Key {
    (line.number, if line.family == Family::IP6 { 6 } else { 4 })
}

/// A version as numbers, so that 1.8.10 is newer than 1.8.9.
pub(crate) fn ordinal(version: &str) -> Vec<u32> {
    version
        .split('.')
        .map(|part| part.parse().unwrap_or(0))
        .collect()
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The file with the statements for `nft`.
pub(crate) const NATIVE: &str = "native.txt";

/// How a version reads bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Put {
    /// The line that its save prints, with one blank between words.
    Line(String),
    /// Nothing: it does not print the table.
    Hidden,
    /// It fails with this exit code.
    Failed(i32),
}

impl fmt::Display for Put {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => f.write_str(line),
            Self::Hidden => f.write_str("hidden"),
            Self::Failed(code) => write!(f, "failed {code}"),
        }
    }
}

/// The recorded readings of one version, by rule and writer.
pub(crate) type Readings = BTreeMap<(Key, String), Put>;

/// Parses `read-VERSION.txt`.
pub(crate) fn parse_readings(text: &str) -> Result<Readings, String> {
    let mut readings = Readings::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let wrong = || format!("invalid line: {line}");
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().ok_or_else(wrong);
        let number: u32 = word()?.parse().map_err(|_| wrong())?;
        let family: u8 = word()?.parse().map_err(|_| wrong())?;
        let (writers, outcome) = (word()?, word()?);
        let put = match outcome.strip_prefix("failed ") {
            Some(code) => Put::Failed(code.parse().map_err(|_| wrong())?),
            None if outcome == "hidden" => Put::Hidden,
            None if outcome.starts_with("-A ") => Put::Line(outcome.to_owned()),
            None => return Err(wrong()),
        };
        for writer in writers.split(',') {
            let key = ((number, family), writer.to_owned());
            if readings.insert(key, put.clone()).is_some() {
                return Err(format!("duplicate line: {line}"));
            }
        }
    }
    Ok(readings)
}

/// Parses `native.txt`. Each line becomes a rule `-A CHAIN STATEMENT`.
pub(crate) fn parse_native(text: &str) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = || format!("not `NUMBER FAMILY TABLE CHAIN STATEMENT`: {line}");
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().ok_or_else(wrong);
        let number: u32 = word()?.parse().map_err(|_| wrong())?;
        let families = families(word()?).ok_or_else(wrong)?;
        let (table, rule) = (word()?, word()?);
        lines.extend(families.iter().map(|&family| Line {
            number,
            family,
            table: table.to_owned(),
            rule: format!("add {rule}"),
        }));
    }
    Ok(lines)
}

/// Expressions and user data of a rule.
pub(crate) type Bytes = (Vec<u8>, Vec<u8>);

/// Parses `written-by-nft.txt`.
pub(crate) fn parse_written(text: &str) -> Result<BTreeMap<Key, Bytes>, String> {
    let mut written = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let wrong = || format!("invalid line: {line}");
        let words: Vec<_> = line.split(' ').collect();
        let (number, family, bytes) = match *words.as_slice() {
            [number, family, expressions] => (number, family, (expressions, "-")),
            [number, family, expressions, userdata] => (number, family, (expressions, userdata)),
            _ => return Err(wrong()),
        };
        let key = (
            number.parse().map_err(|_| wrong())?,
            family.parse().map_err(|_| wrong())?,
        );
        let unpacked = |text| unpack(text).ok_or_else(wrong);
        written.insert(key, (unpacked(bytes.0)?, unpacked(bytes.1)?));
    }
    Ok(written)
}

/// Parses `rules.txt`.
pub(crate) fn parse_rules(text: &str) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    let mut last = 0;
    for line in text.lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = || format!("not `NUMBER FAMILIES TABLE RULE`: {line}");
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().ok_or_else(wrong);
        let number: u32 = word()?.parse().map_err(|_| wrong())?;
        let families = families(word()?).ok_or_else(wrong)?;
        let (table, rule) = (word()?, word()?);
        if number <= last {
            return Err(format!("the numbers are not ascending: {line}"));
        }
        if !rule.starts_with("-A ") {
            return Err(wrong());
        }
        last = number;
        lines.extend(families.iter().map(|&family| Line {
            number,
            family,
            table: table.to_owned(),
            rule: rule.to_owned(),
        }));
    }
    Ok(lines)
}

/// The families for these digits.
fn families(digits: &str) -> Option<&'static [Family]> {
    match digits {
        "4" => Some(&[Family::IP]),
        "6" => Some(&[Family::IP6]),
        "46" => Some(&[Family::IP, Family::IP6]),
        _ => None,
    }
}

/// Applies `misread.txt`.
fn correct(
    text: &str,
    wanted: impl Fn(&str) -> bool,
    versions: &mut [(String, Cases)],
) -> Result<(), String> {
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let wrong = || format!("invalid line: {line}");
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().ok_or_else(wrong);
        let number: u32 = word()?.parse().map_err(|_| wrong())?;
        let families = families(word()?).ok_or_else(wrong)?;
        let (writers, right) = (word()?, word()?);
        for writer in writers.split(',').filter(|writer| wanted(writer)) {
            let (_, cases) = versions
                .iter_mut()
                .find(|(version, _)| version == writer)
                .ok_or_else(wrong)?;
            for &family in families {
                let key = (number, if family == Family::IP6 { 6 } else { 4 });
                let written = cases.get_mut(&key).and_then(Option::as_mut);
                let written = written.ok_or_else(wrong)?;
                if written.read.as_deref() == Some(right) {
                    return Err(format!("the line is read correctly: {line}"));
                }
                written.expected = Some(right.to_owned());
            }
        }
    }
    Ok(())
}

/// The entry for one rule in a version's file, before it is completed from other files.
#[derive(Debug)]
enum Entry {
    Refused,
    /// The same as in this version's file.
    Same(String),
    /// Expressions and user data.
    Bytes(Vec<u8>, Vec<u8>),
}

/// An entry and its texts: `Some(None)` is a text that the tool could not print.
type Record = (Entry, Option<Option<String>>, Option<Option<String>>);

fn parse_file(text: &str) -> Result<BTreeMap<Key, Record>, String> {
    let mut records = BTreeMap::<Key, Record>::new();
    let mut current = None;
    for line in text.lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = || format!("invalid line: {line}");
        if let Some(more) = line.strip_prefix(' ') {
            let key: Key = current.ok_or_else(wrong)?;
            let (_, read, saved) = records.get_mut(&key).ok_or_else(wrong)?;
            let (slot, text) = match more.split_once(' ') {
                Some(("read", text)) => (read, Some(text.to_owned())),
                Some(("saved", text)) => (saved, Some(text.to_owned())),
                None if more == "unread" => (read, None),
                None if more == "unsaved" => (saved, None),
                _ => return Err(wrong()),
            };
            if slot.replace(text).is_some() {
                return Err(wrong());
            }
            continue;
        }
        let words: Vec<_> = line.split(' ').collect();
        let (number, family, rest) = match *words.as_slice() {
            [number, "4", ref rest @ ..] => (number, 4, rest),
            [number, "6", ref rest @ ..] => (number, 6, rest),
            _ => return Err(wrong()),
        };
        let entry = match *rest {
            ["refused"] => Entry::Refused,
            ["=", version] => Entry::Same(version.to_owned()),
            [expressions] => Entry::Bytes(unpack(expressions).ok_or_else(wrong)?, Vec::new()),
            [expressions, userdata] => Entry::Bytes(
                unpack(expressions).ok_or_else(wrong)?,
                unpack(userdata).ok_or_else(wrong)?,
            ),
            _ => return Err(wrong()),
        };
        let key = (number.parse().map_err(|_| wrong())?, family);
        if records.insert(key, (entry, None, None)).is_some() {
            return Err(format!("duplicate line: {line}"));
        }
        current = Some(key);
    }
    Ok(records)
}

fn resolve(
    version: &str,
    files: &BTreeMap<String, BTreeMap<Key, Record>>,
) -> Result<Cases, String> {
    let mut cases = Cases::new();
    for (&key, (entry, read, saved)) in files.get(version).into_iter().flatten() {
        let wrong = |what: &str| format!("{} {}: {what}", key.0, key.1);
        let (bytes, theirs) = match entry {
            Entry::Refused => {
                cases.insert(key, None);
                continue;
            }
            Entry::Bytes(expressions, userdata) => ((expressions, userdata), None),
            Entry::Same(other) => match files.get(other).and_then(|file| file.get(&key)) {
                Some((Entry::Bytes(expressions, userdata), read, _)) => {
                    ((expressions, userdata), Some(read))
                }
                _ => return Err(wrong("refers to a missing case")),
            },
        };
        // The reader's output: given here, given for the same bytes, or that for its own encoding.
        let own = || match files.get(READER)?.get(&key)? {
            (Entry::Bytes(..), read, _) => read.clone(),
            _ => None,
        };
        let read = read
            .clone()
            .or_else(|| theirs.cloned().flatten())
            .or_else(own)
            .ok_or_else(|| wrong("the reader's output is missing"))?;
        let saved = saved.clone().unwrap_or_else(|| read.clone());
        let written = Written {
            expressions: bytes.0.clone(),
            userdata: bytes.1.clone(),
            expected: read.clone(),
            read,
            saved,
        };
        cases.insert(key, Some(written));
    }
    Ok(cases)
}

/// Shortest run of zero bytes that is written as a number.
const RUN: usize = 4;

/// Bytes in the files' format: hexadecimal digits, and `[N]` for N zero bytes; `-` for none.
pub(crate) fn pack(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "-".to_owned();
    }
    let mut text = String::new();
    let mut rest = bytes;
    while let Some(&first) = rest.first() {
        let zeros = rest.iter().take_while(|&&byte| byte == 0).count();
        if zeros >= RUN {
            let _ = write!(text, "[{zeros}]");
            rest = &rest[zeros..];
        } else {
            let _ = write!(text, "{first:02x}");
            rest = &rest[1..];
        }
    }
    text
}

/// Decodes the result of [`pack`].
pub(crate) fn unpack(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    if text == "-" {
        return Some(bytes);
    }
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(run) = rest.strip_prefix('[') {
            let (count, after) = run.split_once(']')?;
            let count = count.parse::<u16>().ok()?;
            bytes.resize(bytes.len() + usize::from(count), 0);
            rest = after;
        } else {
            let (pair, after) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(pair, 16).ok()?);
            rest = after;
        }
    }
    Some(bytes)
}
