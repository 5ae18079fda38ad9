//! The output of `iptables-save`.

use std::io::{self, Write};

use bstr::ByteSlice;

use crate::escape::Escaped;
use crate::iptables::Deviation;
use crate::iptables::{
    Backend, Builtin, Chain, ChainKind, Counters, Entry, NotExpressible, RuleView, Table, Tables,
};
use crate::legacy::start_of;
use crate::nft::{RuleRef, SnapshotTable};
use crate::xt::Text;

/// When so many bytes of text are there, they are written out.
const PIECE: usize = 64 * 1024;

/// How tables are saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SaveOptions {
    /// With the counters of rules (`-c`). Those of policies are printed in any case.
    pub counters: bool,
}

/// What could not be said in iptables' language. It stands in the text as comments, which
/// `iptables-restore` passes over, or in words that it refuses: such a text is no whole copy for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use = "a text that lacks rules is no whole copy of the tables"]
pub struct Omissions {
    /// Rules, shown as bytecode or bytes.
    pub rules: usize,
    /// Chains with all their rules: those that packets enter elsewhere than iptables' built-in ones, and
    /// those with names that iptables does not take ([`Chain::not_expressible`]).
    pub chains: usize,
    /// Rules in which an extension is said by its bytes (`--xt-revision`, `--xt-data`). They do stand in
    /// the text, and [`restore`](crate::iptables::Iptables::restore) loads them, but the real tools know
    /// no such words.
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
    /// Whether everything could be said.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.is_whole() && self.private == 0
    }

    /// Whether everything stands in the text, be it in words of our own.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.rules == 0 && self.chains == 0
    }
}

/// Where tables are saved otherwise than by `iptables-save`.
pub(in crate::iptables) const DEVIATIONS: &[Deviation] = &[
    Deviation {
        about: "a rule that iptables has no words for",
        iptables: "leaves parts of it out, or refuses the table",
        ours: "writes it as a comment, in nft's words or as bytecode; exit code 2",
        why: "A rule is never said wider than it is.",
    },
    Deviation {
        about: "an extension without options for its data",
        iptables: "prints some other option, or none",
        ours: "`--xt-revision` and `--xt-data`; exit code 2",
        why: "It can be restored, and it is seen that other tools cannot.",
    },
    Deviation {
        about: "comments around tables",
        iptables: "the tool and the time",
        ours: "the tool",
        why: "Two saves of the same tables are the same text.",
    },
];

/// Words for a rule that iptables has none for, if there are any.
pub type InOtherWords<'w> = dyn Fn(&SnapshotTable<'_>, &RuleRef<'_>) -> Option<String> + 'w;

impl Tables {
    /// Writes all tables as `iptables-save` prints them.
    ///
    /// The text of a table is what the real tool prints; only the comments that stand around tables
    /// differ, which hold the tool's name there.
    ///
    /// # Errors
    /// What writing says.
    pub fn save(&self, options: SaveOptions, out: &mut impl Write) -> io::Result<Omissions> {
        self.save_with(options, None, out)
    }

    /// The same, where a rule of nf_tables that iptables has no words for is a comment in other words than bytecode: those
    /// of nft's language, say (`text::rule`).
    ///
    /// # Errors
    /// What writing says.
    pub fn save_in_words(
        &self,
        options: SaveOptions,
        words: &InOtherWords<'_>,
        out: &mut impl Write,
    ) -> io::Result<Omissions> {
        self.save_with(options, Some(words), out)
    }

    /// The same of one table.
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
        words: Option<&InOtherWords<'_>>,
        out: &mut impl Write,
    ) -> io::Result<Omissions> {
        let mut omissions = Omissions::default();
        for table in self.iter() {
            omissions += table.save(self, options, words, out)?;
        }
        Ok(omissions)
    }
}

impl<'t> Table<'t> {
    fn save(
        &self,
        tables: &Tables,
        options: SaveOptions,
        words: Option<&InOtherWords<'_>>,
        out: &mut impl Write,
    ) -> io::Result<Omissions> {
        let unsaid = |rule: &RuleRef<'_>| {
            let said = words.and_then(|words| words(&self.in_snapshot()?, rule));
            said.unwrap_or_else(|| rule.to_string())
        };
        let backend = tables.backend();
        let mut text = Text::with_names(tables.names.clone());
        let mut omissions = Omissions::default();
        start(&mut text, backend, self.name());

        let chains = self.in_order(backend);
        let all = crate::iptables::builtins(&self.name().to_str_lossy()).unwrap_or_default();
        if backend == Backend::Nft {
            // Built-in chains stand in their order, be they there or not.
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
                    &unsaid,
                    &mut omissions,
                );
                if text.as_bytes().len() >= PIECE {
                    out.write_all(text.as_bytes())?;
                    text.clear();
                }
            }
        }
        text.push(END);
        out.write_all(text.as_bytes())?;
        Ok(omissions)
    }

    /// The chains in the order of the real tool: of nf_tables the built-in ones and then the others by
    /// name, of a legacy table the kernel's.
    pub(in crate::iptables) fn in_order(&self, backend: Backend) -> Vec<Chain<'t>> {
        let mut chains: Vec<_> = self.chains().collect();
        if backend == Backend::Nft {
            let name = self.name().to_str_lossy();
            let all = crate::iptables::builtins(&name).unwrap_or_default();
            chains.sort_by_cached_key(|chain| {
                let builtin = all.iter().position(|builtin| chain.name() == builtin.chain);
                let name = chain.name();
                // Names that differ early, as most do, need not be looked up again.
                (builtin.unwrap_or(usize::MAX), start_of(name), name)
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

/// The line of a built-in chain that is not there.
fn missing(text: &mut Text, builtin: &Builtin) {
    text.push(":").push(builtin.chain).push(" ACCEPT [0:0]\n");
}

/// Writes a table of nf_tables that is not there: its built-in chains, as packets find them.
pub(in crate::iptables) fn save_missing(name: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut text = Text::new();
    start(&mut text, Backend::Nft, name);
    let all = crate::iptables::builtins(name).unwrap_or_default();
    all.iter().for_each(|builtin| missing(&mut text, builtin));
    text.push(END);
    out.write_all(text.as_bytes())
}

/// The line that declares a chain.
fn head(text: &mut Text, chain: &Chain<'_>, omissions: &mut Omissions) {
    if let Some(reason) = chain.not_expressible() {
        omissions.chains += 1;
        let (name, rules) = (chain.name(), chain.rule_count());
        text.display(format_args!(
            "# the chain {name:?} with {rules} rules, which iptables has no words for ({reason})\n"
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

/// The line of a rule, and those of one that iptables has no words for.
fn line(
    text: &mut Text,
    chain: &Chain<'_>,
    (rule, entry): (&RuleView<'_>, Result<&Entry, NotExpressible>),
    options: SaveOptions,
    unsaid: &dyn Fn(&RuleRef<'_>) -> String,
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
            // A set's name, say, that would become a line of its own.
            text.truncate(start);
            NotExpressible {
                expression: None,
                reason: "there is the end of a line in its text",
            }
        }
        Err(error) => error,
    };
    omissions.rules += 1;
    text.display(format_args!(
        "# a rule of {} that iptables has no words for ({error}):\n",
        Escaped(chain.name())
    ));
    match rule {
        RuleView::Nft(rule) => {
            for line in unsaid(rule).lines() {
                text.display(format_args!("#   {}\n", Escaped(line.trim_start().into())));
            }
        }
        RuleView::Legacy(rule) => {
            text.display(format_args!("#   {rule:?}\n"));
        }
    }
}
