//! `chainwright apply`: applies a file of any format.

mod iptables;
mod prune;
mod replace;
mod script;

use std::path::PathBuf;

use chainwright::nft::{OwnerTag, Snapshot};

use self::iptables::Version;
use crate::confirm::Confirm;
use crate::glob::Glob;
use crate::iptables::Locking;
use crate::output::{Error, Exit};
use crate::ruleset_source::{Contents, Format, Input, Source};
use crate::scope::Scope;

/// Apply a file atomically: nft's language, libnftables' JSON, output of iptables-save, or a snapshot
///
/// Recognises the format by the content. If a line is wrong, or the kernel refuses one, nothing is changed, and standard
/// error shows the position: FILE:LINE:COLUMN.
///
/// nft's language and its JSON: runs the commands in one transaction, as `nft -f` does. Prints nothing on success,
/// unless --echo requests the added objects.
///
/// Output of iptables-save, and all other input of iptables-restore: tables in the input are emptied first, unless
/// --noflush is given; other tables are not changed. In nf_tables all tables change in one transaction. Legacy tables
/// are replaced one after the other, each atomically, under the lock of the legacy tools.
///
/// --prune: makes the tables in the file match the file with the fewest changes, in one transaction. Objects that
/// already match keep their handles and counters, sets their elements. Tables that are not in the file, or that the
/// options do not select, are not changed; neither are elements that rules added to sets. If the kernel cannot change
/// something, it is deleted and recreated, with everything that refers to it; the output reports this. --prune=OWNER
/// restricts this to objects whose comment is the tag, or starts with the tag and a colon.
///
/// --replace: makes the whole ruleset of nf_tables, or the part that the snapshot covers and the options select, match
/// the file in one transaction, and removes tables that are not in the file. Counters and quotas continue from the
/// numbers in the file, and timeouts from the remaining time. A table that another process owns is skipped, and the exit
/// code is 2.
///
/// A snapshot requires --prune or --replace.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) input: Input,

    /// Format of the file; by default it is recognized by the content
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,

    /// Change nothing. Prints the changes that the input would make, after it was checked; with --prune the exit code is
    /// 1 if there are any. Those of input of iptables-restore are shown without counters, and not with --noflush and
    /// --keep
    #[arg(long, alias = "check", alias = "test", conflicts_with = "confirm")]
    pub(crate) dry_run: bool,

    /// Make only the tables in the file match it; with OWNER, only objects with this tag
    #[arg(
        long,
        value_name = "OWNER",
        num_args = 0..=1,
        require_equals = true,
        conflicts_with = "replace"
    )]
    prune: Option<Option<OwnerTag>>,

    /// Replace the whole ruleset of nf_tables, or the selected part: also delete all other tables
    #[arg(long)]
    replace: bool,

    /// Keep chains whose names match, and the jumps to them from other chains, and change only what differs from the
    /// input, which is that of iptables-restore. Use this on a node whose running agents have chains in these tables
    /// (KUBE-*, CNI-*, cali-*). May be given more than once. Matching chains in the input are ignored; unchanged rules
    /// keep their counters
    #[arg(long, value_name = "GLOB", num_args = 1, conflicts_with_all = ["noflush", "counters", "prune", "replace"])]
    pub(crate) keep: Vec<Glob>,

    #[command(flatten)]
    pub(crate) confirm: Confirm,

    /// With --replace and --dry-run, show rules that iptables cannot express as bytecode
    #[arg(long, requires = "replace", requires = "dry_run")]
    pub(crate) bytecode: bool,

    #[command(flatten)]
    pub(crate) nft: NftOptions,

    #[command(flatten)]
    pub(crate) iptables: IptablesOptions,

    #[command(flatten)]
    pub(crate) locking: Locking,

    #[command(flatten)]
    pub(crate) scope: Scope,
}

/// The options for nft's language.
#[derive(clap::Args)]
#[command(next_help_heading = "Input in nft's language")]
pub(crate) struct NftOptions {
    /// Print the added objects in nft's language, as reported by the kernel; with --json, the document contains them
    #[arg(short, long, conflicts_with = "dry_run")]
    pub(crate) echo: bool,

    /// With --echo: print the handles assigned by the kernel
    #[arg(short = 'a', long, requires = "echo")]
    pub(crate) handles: bool,

    /// Allow the text to include files in and below this directory (`include "file"`); may be given more than once.
    /// Without this option, no file can be included
    #[arg(short = 'I', long, value_name = "DIRECTORY")]
    pub(crate) include: Vec<PathBuf>,

    /// With --echo: print libnftables' JSON
    #[arg(short = 'j')]
    pub(crate) libnftables_json: bool,
}

/// The options for the input of iptables-restore.
#[derive(clap::Args)]
#[command(next_help_heading = "Input of iptables-restore")]
pub(crate) struct IptablesOptions {
    /// Do not empty the tables first. A user-defined chain that the input declares (`:CHAIN`) is emptied anyway
    #[arg(short, long)]
    pub(crate) noflush: bool,

    /// Set counters to those in the input, instead of 0
    #[arg(short, long)]
    pub(crate) counters: bool,

    /// In nf_tables, write rules in the form of this version of iptables. All later versions read the form of 1.8.7;
    /// earlier versions overlook parts of later forms
    #[arg(long, value_enum, value_name = "VERSION")]
    pub(crate) profile: Option<Version>,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    let contents = args.input.read(args.format)?;
    if let Some(owner) = &args.prune {
        args.check_state_options("--prune")?;
        let Some(desired) = args.state(contents)? else {
            return Ok(Exit::Absent);
        };
        return prune::run(args, &desired, owner.as_ref(), json);
    }
    if args.replace {
        args.check_state_options("--replace")?;
        let Some(snapshot) = args.state(contents)? else {
            return Ok(Exit::Absent);
        };
        return replace::run(args, &snapshot, json);
    }
    match contents {
        Contents::Snapshot(_) => Err(Error::Other(
            "a snapshot contains a state: use --prune to change the tables in it, or --replace to replace the \
             whole ruleset"
                .into(),
        )),
        Contents::Iptables(text) => {
            args.reject("input of iptables-restore", &args.nft.given())?;
            iptables::run(args, &text, json)
        }
        Contents::Nft(text) => {
            args.check_nft_options()?;
            script::run(args, text, false, json)
        }
        Contents::NftJson(text) => {
            args.check_nft_options()?;
            script::run(args, text, true, json)
        }
    }
}

impl NftOptions {
    /// Returns the given options.
    fn given(&self) -> [(bool, &'static str); 3] {
        [
            (self.echo, "--echo"),
            (!self.include.is_empty(), "--include"),
            (self.libnftables_json, "-j"),
        ]
    }
}

impl IptablesOptions {
    /// Returns the given options.
    fn given(&self) -> [(bool, &'static str); 3] {
        [
            (self.noflush, "--noflush"),
            (self.counters, "--counters"),
            (self.profile.is_some(), "--profile"),
        ]
    }
}

impl Args {
    /// Rejects options that do not apply to the input.
    fn reject(&self, input: &str, given: &[(bool, &str)]) -> Result<(), Error> {
        match given.iter().find(|(is_given, _)| *is_given) {
            None => Ok(()),
            Some((_, option)) => Err(Error::Other(format!(
                "{option} does not apply to {input}; nothing was changed"
            ))),
        }
    }

    /// Rejects options that do not apply to nft's language.
    fn check_nft_options(&self) -> Result<(), Error> {
        const INPUT: &str = "input in nft's language";
        self.reject(INPUT, &self.iptables.given())?;
        let selects = self.scope.is_filtered() || self.scope.place.is_backend_given();
        self.reject(
            INPUT,
            &[
                (!self.keep.is_empty(), "--keep"),
                (selects, "a selection of tables"),
            ],
        )
    }

    /// Rejects options that do not apply to `option`.
    fn check_state_options(&self, option: &str) -> Result<(), Error> {
        self.reject(option, &self.nft.given())?;
        self.reject(option, &self.iptables.given())
    }

    /// Returns the selected part of the state that the input describes. Returns `None`, and prints a note, if it has no
    /// such part.
    fn state(&self, contents: Contents) -> Result<Option<Snapshot>, Error> {
        self.scope.check_file()?;
        let name = self.input.name();
        let source = Source::parse(contents, &name, &self.scope)?;
        let snapshot = source.into_snapshot().map_err(Error::Other)?;
        Ok(self.scope.part_of(snapshot, &name))
    }
}
