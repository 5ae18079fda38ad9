//! The output of `iptables-save`.

use std::io::{self, Write};

use bstr::ByteSlice;

use crate::escape::Escaped;
use crate::iptables::KnownDifference;
use crate::iptables::{
    Backend, Builtin, Chain, ChainKind, Counters, Entry, NotExpressible, RuleView, Table, Tables,
};
use crate::legacy::sort_key;
use crate::nft::{RuleRef, SnapshotTable};
use crate::xt::Text;

/// Text is written out in pieces of at least this many bytes.
const CHUNK_SIZE: usize = 64 * 1024;

/// Options of a save.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SaveOptions {
    /// Includes the counters of rules (`-c`). Those of policies are always printed.
    pub counters: bool,
}

/// Counts of rules and chains that iptables' language cannot express. The text has them as comments, which
/// `iptables-restore` ignores, or in syntax that it rejects, so it cannot restore the complete tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use = "a text that lacks rules is not a complete copy of the tables"]
pub struct Omissions {
    /// Number of rules printed as bytecode or bytes.
    pub rules: usize,
    /// Number of chains omitted with all their rules: base chains that are not iptables' built-in ones, and
    /// chains with names that iptables rejects ([`Chain::not_expressible`]).
    pub chains: usize,
    /// Number of rules with an extension in raw bytes (`--xt-revision`, `--xt-data`). The text
    /// has them, and [`restore`](crate::iptables::Iptables::restore) loads them, but the real tools
    /// reject that syntax.
    pub private: usize,
}

impl std::ops::AddAssign for Omissions {
    fn add_assign(&mut self, more: Self) {
        self.rules += more.rules;
        self.chains += more.chains;
        self.private += more.private;
    }
}

impl Omissions {
    /// Returns `true` if iptables' language could express everything.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.is_complete() && self.private == 0
    }

    /// Returns `true` if the text has everything, possibly in this crate's own syntax.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.rules == 0 && self.chains == 0
    }
}

/// Differences from `iptables-save`.
pub(in crate::iptables) const DIFFERENCES: &[KnownDifference] = &[
    KnownDifference {
        subject: "a rule that iptables cannot express",
        iptables: "omits parts of it, or refuses the table",
        chainwright: "writes it as a comment, in nft's syntax or as bytecode; exit code 2",
        reason: "A rule is never printed as a broader one.",
    },
    KnownDifference {
        subject: "an extension without options for its data",
        iptables: "prints some other option, or none",
        chainwright: "`--xt-revision` and `--xt-data`; exit code 2",
        reason: "It can be restored, and other tools fail on it visibly.",
    },
    KnownDifference {
        subject: "comments around tables",
        iptables: "name the tool and the time",
        chainwright: "name the tool",
        reason: "Two saves of the same tables are identical.",
    },
];

/// Returns another text for a rule that iptables cannot express, if there is one.
pub type RuleFormatter<'w> = dyn Fn(&SnapshotTable<'_>, &RuleRef<'_>) -> Option<String> + 'w;

impl Tables {
    /// Writes all tables in the format of `iptables-save`.
    ///
    /// The text of a table equals that of the real tool; only the comments around tables
    /// differ, which contain the tool's name there.
    ///
    /// # Errors
    /// Write errors.
    pub fn save(&self, options: SaveOptions, out: &mut impl Write) -> io::Result<Omissions> {
        self.save_with(options, None, out)
    }

    /// Like [`save`](Self::save), but a comment for a rule of nf_tables that iptables cannot express has another text
    /// than bytecode, for instance nft's language (`chainwright_lang::rule`).
    ///
    /// # Errors
    /// Write errors.
    pub fn save_with_formatter(
        &self,
        options: SaveOptions,
        formatter: &RuleFormatter<'_>,
        out: &mut impl Write,
    ) -> io::Result<Omissions> {
        self.save_with(options, Some(formatter), out)
    }

    /// Writes a single table.
    pub(in crate::iptables) fn save_table(
        &self,
        table: &Table<'_>,
        options: SaveOptions,
        out: &mut impl Write,
    ) -> io::Result<Omissions> {
        table.save(self, options, None, out)
    }

    fn save_with(
        &self,
        options: SaveOptions,
        formatter: Option<&RuleFormatter<'_>>,
        out: &mut impl Write,
    ) -> io::Result<Omissions> {
        let mut omissions = Omissions::default();
        for table in self.iter() {
            omissions += table.save(self, options, formatter, out)?;
        }
        Ok(omissions)
    }
}

impl<'t> Table<'t> {
    fn save(
        &self,
        tables: &Tables,
        options: SaveOptions,
        formatter: Option<&RuleFormatter<'_>>,
        out: &mut impl Write,
    ) -> io::Result<Omissions> {
        let format_inexpressible = |rule: &RuleRef<'_>| {
            let formatted = formatter.and_then(|formatter| formatter(&self.in_snapshot()?, rule));
            formatted.unwrap_or_else(|| rule.to_string())
        };
        let backend = tables.backend();
        let mut text = Text::with_names(tables.names.clone());
        let mut omissions = Omissions::default();
        start(&mut text, backend, self.name());

        let chains = self.in_order(backend);
        let all = crate::iptables::builtins(&self.name().to_str_lossy()).unwrap_or_default();
        if backend == Backend::Nft {
            // Built-in chains come in their order, whether they exist or not.
            for builtin in all {
                match chains.iter().find(|chain| chain.name() == builtin.chain) {
                    Some(chain) => head(&mut text, chain, &mut omissions),
                    None => missing(&mut text, builtin),
                }
            }
        }
        let is_listed = |chain: &&Chain<'_>| {
            backend == Backend::Legacy || all.iter().all(|builtin| chain.name() != builtin.chain)
        };
        for chain in chains.iter().filter(is_listed) {
            head(&mut text, chain, &mut omissions);
        }
        let mut entry = Entry::default();
        for chain in &chains {
            if chain.not_expressible().is_some() {
                continue;
            }
            for rule in chain.rules() {
                let read = tables.entry_into(&rule, &mut entry).map(|()| &entry);
                line(
                    &mut text,
                    chain,
                    (&rule, read),
                    options,
                    &format_inexpressible,
                    &mut omissions,
                );
                if text.as_bytes().len() >= CHUNK_SIZE {
                    out.write_all(text.as_bytes())?;
                    text.clear();
                }
            }
        }
        text.push(END);
        out.write_all(text.as_bytes())?;
        Ok(omissions)
    }

    /// Returns the chains in the order of the real tool: for nf_tables the built-in ones and then the others by
    /// name, for a legacy table the kernel's order.
    pub(in crate::iptables) fn in_order(&self, backend: Backend) -> Vec<Chain<'t>> {
        let mut chains: Vec<_> = self.chains().collect();
        if backend == Backend::Nft {
            let name = self.name().to_str_lossy();
            let all = crate::iptables::builtins(&name).unwrap_or_default();
            chains.sort_by_cached_key(|chain| {
                let builtin = all.iter().position(|builtin| chain.name() == builtin.chain);
                let name = chain.name();
                // Names that differ early, as most do, need no full comparison.
                (builtin.unwrap_or(usize::MAX), sort_key(name), name)
            });
        }
        chains
    }
}

/// The end of a table.
const END: &str = "COMMIT\n# Completed\n";

/// The start of a table.
fn start(text: &mut Text, backend: Backend, name: impl AsRef<[u8]>) {
    let what = match backend {
        Backend::Nft => "nf_tables",
        Backend::Legacy => "legacy",
    };
    let version = env!("CARGO_PKG_VERSION");
    text.display(format_args!(
        "# Generated by chainwright {version} ({what})\n*"
    ));
    text.push(name).push("\n");
}

/// Prints the line of a missing built-in chain.
fn missing(text: &mut Text, builtin: &Builtin) {
    text.push(":").push(builtin.chain).push(" ACCEPT [0:0]\n");
}

/// Writes a missing table of nf_tables: its built-in chains with their defaults.
pub(in crate::iptables) fn save_missing(name: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut text = Text::new();
    start(&mut text, Backend::Nft, name);
    let all = crate::iptables::builtins(name).unwrap_or_default();
    all.iter().for_each(|builtin| missing(&mut text, builtin));
    text.push(END);
    out.write_all(text.as_bytes())
}

/// Prints the line that declares a chain.
fn head(text: &mut Text, chain: &Chain<'_>, omissions: &mut Omissions) {
    if let Some(reason) = chain.not_expressible() {
        omissions.chains += 1;
        let (name, rules) = (chain.name(), chain.rule_count());
        text.display(format_args!(
            "# chain {name:?} with {rules} rules, which iptables cannot express ({reason})\n"
        ));
        return;
    }
    let (policy, counters) = match chain.kind() {
        ChainKind::Builtin { policy, counters } => (policy.name(), counters),
        _ => ("-", Counters::default()),
    };
    text.push(":").push(chain.name()).word(policy).push(" ");
    counters.print(text);
    text.push("\n");
}

/// Prints the line of a rule, or the comments for one that iptables cannot express.
fn line(
    text: &mut Text,
    chain: &Chain<'_>,
    (rule, entry): (&RuleView<'_>, Result<&Entry, NotExpressible>),
    options: SaveOptions,
    format_inexpressible: &dyn Fn(&RuleRef<'_>) -> String,
    omissions: &mut Omissions,
) {
    let start = text.as_bytes().len();
    let error = match entry {
        Ok(entry) => {
            if options.counters {
                entry.counters.print(text);
                text.push(" ");
            }
            text.push("-A ").push(chain.name());
            entry.rule.print(text);
            if text.as_bytes()[start..].find_byte(b'\n').is_none() {
                text.push("\n");
                omissions.private += usize::from(entry.rule.has_opaque());
                return;
            }
            // A set's name, for instance, that would start a new line.
            text.truncate(start);
            NotExpressible {
                expression: None,
                reason: "its text has a newline",
            }
        }
        Err(error) => error,
    };
    omissions.rules += 1;
    text.display(format_args!(
        "# a rule of {} that iptables cannot express ({error}):\n",
        Escaped(chain.name())
    ));
    match rule {
        RuleView::Nft(rule) => {
            for line in format_inexpressible(rule).lines() {
                text.display(format_args!("#   {}\n", Escaped(line.trim_start().into())));
            }
        }
        RuleView::Legacy(rule) => {
            text.display(format_args!("#   {rule:?}\n"));
        }
    }
}
