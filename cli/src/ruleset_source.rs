//! Sources of rulesets: a backup, or a text in the language of iptables or nft.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use chainwright::iptables::Family;
use chainwright::iptables::text::{RestoreOptions, ruleset};
use chainwright::nft::{FileError, Scope as NftScope, Snapshot};
use chainwright_lang::{Script, read_text};
use chainwright_trace::graph::Graph;
use clap::ValueEnum;

use crate::output::{Error, Printable, causes};
use crate::progress::Progress;
use crate::scope::Scope;

/// The input of a verb.
#[derive(clap::Args)]
pub(crate) struct Input {
    /// Input file; standard input if omitted, or `-`
    #[arg(
        short = 'f',
        long = "file",
        value_name = "FILE",
        conflicts_with = "input"
    )]
    option: Option<PathBuf>,

    /// The same as --file
    #[arg(value_name = "FILE")]
    input: Option<PathBuf>,
}

impl Input {
    /// Returns the file; `-` for standard input.
    pub(crate) fn path(&self) -> &Path {
        self.option
            .as_deref()
            .or(self.input.as_deref())
            .unwrap_or(Path::new("-"))
    }

    /// Returns the name of the file for messages.
    pub(crate) fn name(&self) -> Cow<'_, str> {
        match self.path() {
            path if path == Path::new("-") => Cow::Borrowed("<stdin>"),
            path => path.to_string_lossy(),
        }
    }

    /// Reads a text.
    pub(crate) fn text(&self, format: Format) -> Result<Vec<u8>, Error> {
        Ok(text(self.path(), &self.name(), Some(format))?.1)
    }

    /// Reads a file, of any format if `format` is `None`.
    pub(crate) fn read(&self, format: Option<Format>) -> Result<Contents, Error> {
        Contents::read(self.path(), &self.name(), format)
    }
}

/// The format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// nft's language
    Nft,
    /// libnftables' JSON
    NftJson,
    /// the format of iptables-save
    Iptables,
}

impl Format {
    /// Recognises the format by a line; returns `None` if it is empty or a comment.
    fn of_line(line: &[u8]) -> Option<Self> {
        match line.trim_ascii().first()? {
            b'#' => None,
            b'*' => Some(Self::Iptables),
            b'{' => Some(Self::NftJson),
            _ => Some(Self::Nft),
        }
    }
}

/// Reads a text from a file, or from standard input if it is `-`.
fn text(file: &Path, name: &str, format: Option<Format>) -> Result<(Format, Vec<u8>), Error> {
    let is_stdin = file == Path::new("-");
    // No progress line while the user types the input.
    let is_typed = is_stdin && io::stdin().is_terminal();
    let _progress = (!is_typed).then(|| Progress::new(format!("reading {name}")));
    match is_stdin {
        true => text_of(io::stdin().lock(), format),
        false => File::open(file).and_then(|file| text_of(BufReader::new(file), format)),
    }
    .map_err(|error| Error::Other(format!("cannot read {}: {error}", Printable(name))))
}

/// Reads a text, whose lines have the maximum length of its format.
fn text_of(mut input: impl BufRead, format: Option<Format>) -> io::Result<(Format, Vec<u8>)> {
    /// The maximum length of a line that is read before the format is known.
    const LINE: u64 = 1 << 20;
    let mut beginning = Vec::new();
    let mut recognized = format;
    while recognized.is_none() {
        let start = beginning.len();
        if input
            .by_ref()
            .take(LINE)
            .read_until(b'\n', &mut beginning)?
            == 0
        {
            break;
        }
        recognized = Format::of_line(&beginning[start..]);
    }
    let format = recognized.unwrap_or(Format::Nft);
    let input = beginning.as_slice().chain(input);
    let text = match format {
        Format::Iptables => chainwright::iptables::text::read(input),
        Format::Nft | Format::NftJson => read_text(input),
    };
    Ok((format, text?))
}

/// The contents of a file, recognized but not parsed.
pub(crate) enum Contents {
    /// Written by `snapshot`.
    Snapshot(Box<Snapshot>),
    /// The output of iptables-save.
    Iptables(Vec<u8>),
    /// A text in nft's language.
    Nft(Vec<u8>),
    /// libnftables' JSON.
    NftJson(Vec<u8>),
}

impl Contents {
    /// Reads a file, or standard input if it is `-`; a text may also come from a pipe.
    pub(crate) fn read(file: &Path, name: &str, format: Option<Format>) -> Result<Self, Error> {
        // Other files can be read only once, and are no snapshots.
        if format.is_none() && fs::metadata(file).is_ok_and(|there| there.is_file()) {
            let _progress = Progress::new("reading the file");
            match Snapshot::load(file) {
                Ok(snapshot) => return Ok(Self::Snapshot(Box::new(snapshot))),
                Err(FileError::Foreign { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let (format, text) = text(file, name, format)?;
        Ok(match format {
            Format::Iptables => Self::Iptables(text),
            Format::NftJson => Self::NftJson(text),
            Format::Nft => Self::Nft(text),
        })
    }
}

/// The contents of a file.
pub(crate) enum Source {
    /// Written by `snapshot`.
    Backup(Box<Snapshot>),
    /// The output of iptables-save, for this family.
    Iptables(Family, Vec<u8>),
    /// A text in nft's language.
    Script(Script),
}

impl Source {
    /// Reads and parses a file, or standard input if it is `-`.
    pub(crate) fn read(file: &Path, scope: &Scope) -> Result<Self, Error> {
        let name = file.to_string_lossy();
        Self::parse(Contents::read(file, &name, None)?, &name, scope)
    }

    /// Parses the contents of a file.
    pub(crate) fn parse(contents: Contents, name: &str, scope: &Scope) -> Result<Self, Error> {
        match contents {
            Contents::Snapshot(snapshot) => return Ok(Self::Backup(snapshot)),
            Contents::Iptables(text) => {
                let family = scope.place.iptables()?.unwrap_or(Family::Ipv4);
                return Ok(Self::Iptables(family, text));
            }
            Contents::NftJson(text) => Script::parse_json(name, &text),
            Contents::Nft(text) => Script::parse(name, &text),
        }
        .map(Self::Script)
        .map_err(|error| Error::Other(error.to_string()))
    }

    /// Returns the jumps between the chains of the source, also if the kernel would reject it.
    pub(crate) fn graph(&self) -> Result<Graph, Error> {
        let mut graph = Graph::new();
        match self {
            Self::Iptables(family, text) => graph.add_iptables_text(*family, text),
            Self::Script(script) => graph.add_script(script),
            Self::Backup(snapshot) => {
                graph.add_snapshot(snapshot);
                Ok(())
            }
        }
        .map_err(|error| Error::Other(error.to_string()))?;
        Ok(graph)
    }

    /// Returns the ruleset after loading the source into an empty one, without a kernel; or an error message.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, String> {
        let ruleset = match self {
            Self::Backup(snapshot) => return Ok((**snapshot).clone()),
            Self::Iptables(family, text) => ruleset(*family, text, &RestoreOptions::default())
                .map_err(|error| causes(&error))?,
            Self::Script(script) => script.ruleset().map_err(|error| error.to_string())?,
        };
        Ok(ruleset.to_snapshot(&NftScope::all()))
    }
    /// Like [`snapshot`](Self::snapshot), without a copy.
    pub(crate) fn into_snapshot(self) -> Result<Snapshot, String> {
        match self {
            Self::Backup(snapshot) => Ok(*snapshot),
            source => source.snapshot(),
        }
    }
}
