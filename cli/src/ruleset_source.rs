//! Sources of rulesets: a backup, or a text in the language of iptables or nft.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use bstr::ByteSlice;
use chainwright::iptables::Family;
use chainwright::iptables::text::{RestoreOptions, ruleset};
use chainwright::nft::{FileError, Scope as NftScope, Snapshot};
use chainwright_lang::{Script, read_text};

use crate::output::{Error, Printable, causes};
use crate::scope::Scope;

/// The contents of a file.
pub(crate) enum Source {
    /// Written by `backup`.
    Backup(Box<Snapshot>),
    /// The output of iptables-save, for this family.
    Iptables(Family, Vec<u8>),
    /// A text in nft's language.
    Script(Script),
}

impl Source {
    /// Reads a file, or standard input if it is `-`; a text may also come from a pipe.
    pub(crate) fn read(file: &Path, scope: &Scope) -> Result<Self, Error> {
        let name = file.to_string_lossy();
        // Other files can be read only once, and are no backups.
        if fs::metadata(file).is_ok_and(|there| there.is_file()) {
            match Snapshot::load(file) {
                Ok(snapshot) => return Ok(Self::Backup(Box::new(snapshot))),
                Err(FileError::Foreign { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let text = match file == Path::new("-") {
            true => read_text(io::stdin().lock()),
            false => File::open(file).and_then(read_text),
        };
        let text = text
            .map_err(|error| Error::Other(format!("cannot read {}: {error}", Printable(&name))))?;
        let mut lines = text.lines().map(|line| line.trim_ascii());
        let first = lines.find(|line| !line.is_empty() && !line.starts_with(b"#"));
        match first.and_then(|line| line.first()) {
            Some(b'*') => {
                let family = scope.place.iptables()?.unwrap_or(Family::Ipv4);
                Ok(Self::Iptables(family, text))
            }
            Some(b'{') => Script::parse_json(&name, &text).map(Self::Script),
            _ => Script::parse(&name, &text).map(Self::Script),
        }
        .map_err(|error| Error::Other(error.to_string()))
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
}
