//! Chains and rules that a program keeps present among those of other programs, on either backend.
//!
//! The chains of a [`kubelet`](super::kubelet) are such a set, and so are the chains and rules in a text
//! ([`Declared::of_text`]). Existing rules are recognized whichever version of iptables wrote them. Missing ones are
//! created: on nf_tables in one transaction over all tables and both families, in the legacy backend with one
//! replacement per table. Everything that is not declared is left alone.

mod complete;
mod found;
mod on_legacy;
mod on_nft;
mod text;

use std::borrow::Cow;
use std::fmt;

use super::detect;
use chainwright::iptables::nft::Unwritable;
use chainwright::iptables::{self, Backend, Family, Iptables, Rule, SetError, builtin};
use chainwright::nft::{CommitError, Connection, Scope};
use chainwright::{ErrorKind, netlink, nft};

pub(super) use found::Found;
pub(super) use on_legacy::change as change_legacy;
pub(super) use on_nft::{Attempt, change as change_nft};
pub use text::TextError;

/// An error of this module.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The ruleset could not be read.
    #[error("cannot read the declared chains: {0}")]
    Read(netlink::Error),
    /// The transaction failed; the error describes the known state of the ruleset.
    #[error("cannot change the declared chains: {0}")]
    Commit(Box<CommitError>),
    /// An attribute was too long to be put into a message.
    #[error("cannot write the declared rules: {0}")]
    MessageError(netlink::MessageError),
    /// A rule could not be put into nf_tables' terms.
    #[error("cannot encode the declared rules: {0}")]
    Encode(Unwritable),
    /// A set that a rule refers to could not be looked up.
    #[error(transparent)]
    Set(#[from] SetError),
    /// The legacy tables could not be read or changed; the error describes what was applied.
    #[error(transparent)]
    Tables(Box<iptables::Error>),
    /// A table or chain exists, but packets do not pass through it as iptables expects: rules in it would have no
    /// effect. Nothing was applied.
    #[error("{family} {table}{}: {reason}; iptables' rules have no effect there", chain.as_ref().map(|c| format!(" {c}")).unwrap_or_default())]
    Ineffective {
        /// Address family.
        family: nft::Family,
        /// Table.
        table: String,
        /// Chain; `None` if the table is at fault.
        chain: Option<String>,
        /// The fault of the table or chain.
        reason: &'static str,
    },
    /// The tables kept changing between reading and committing. Nothing was applied.
    #[error(
        "the ruleset changed {attempts} times while the declared chains were read; nothing was applied"
    )]
    Contended {
        /// Number of attempts.
        attempts: u32,
    },
    /// The other backend has the hint: a second one would send other components to the wrong backend. Nothing was
    /// applied.
    #[error(
        "{} is in the {family} mangle table of {found_in}: creating it in {requested} too would send the node's other components to the wrong backend; nothing was created",
        super::kubelet::HINT
    )]
    HintElsewhere {
        /// Address family.
        family: Family,
        /// The backend that has it.
        found_in: Backend,
        /// The backend in which it would have been created.
        requested: Backend,
    },
}

chainwright::debug_as_message!(Error);
chainwright::classified!(Error, |error| match error {
    Self::Read(error) => error.class(),
    Self::Commit(error) => error.class(),
    Self::Set(error) => error.class(),
    Self::Tables(error) => error.class(),
    Self::MessageError(_) | Self::Encode(_) | Self::Ineffective { .. } => ErrorKind::Invalid.into(),
    Self::Contended { .. } => ErrorKind::Retryable.into(),
    Self::HintElsewhere { .. } => ErrorKind::AlreadyExists.into(),
});
chainwright::cause_from!(Error {
    netlink::Error => Read,
    netlink::MessageError => MessageError,
    Unwritable => Encode,
});

impl From<iptables::Error> for Error {
    fn from(error: iptables::Error) -> Self {
        match error {
            iptables::Error::Set(error) => Self::Set(error),
            iptables::Error::Contended { attempts } => Self::Contended { attempts },
            error => Self::Tables(Box::new(error)),
        }
    }
}

/// The position at which a missing rule is inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum InsertPosition {
    /// At the head of a chain that other programs use as well: `iptables -I`.
    Head,
    /// At the end: `iptables -A`.
    End,
}

/// A chain and the rules it must contain.
#[derive(Debug, Clone)]
pub(super) struct RequiredChain {
    pub(super) family: Family,
    pub(super) table: Cow<'static, str>,
    pub(super) chain: Cow<'static, str>,
    pub(super) position: InsertPosition,
    pub(super) rules: Vec<Rule>,
}

impl RequiredChain {
    pub(super) fn item(&self, rule: Option<&Rule>) -> Item {
        Item {
            family: self.family,
            table: self.table.clone().into_owned(),
            chain: self.chain.clone().into_owned(),
            rule: rule.cloned(),
        }
    }

    /// Returns the family and table that the chain is in.
    fn table_key(&self) -> (Family, &str) {
        (self.family, &self.table)
    }

    pub(super) fn is_builtin(&self) -> bool {
        builtin(&self.table, &self.chain).is_some()
    }

    /// Returns the rules with the names of sets replaced by their indexes.
    fn resolved(&self) -> Result<Cow<'_, [Rule]>, SetError> {
        if !self.rules.iter().any(Rule::has_set_names) {
            return Ok(Cow::Borrowed(&self.rules));
        }
        let rules = self.rules.iter();
        let rules = rules.map(|rule| Ok(iptables::resolved_here(rule, self.family)?.into_owned()));
        rules.collect::<Result<Vec<_>, _>>().map(Cow::Owned)
    }
}

/// A chain or rule that is missing, was created, or was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Address family.
    pub family: Family,
    /// Table.
    pub table: String,
    /// Chain.
    pub chain: String,
    /// The rule; `None` for the chain itself.
    pub rule: Option<Rule>,
}

impl fmt::Display for Item {
    /// Formats as `ip filter: -A INPUT -j KUBE-FIREWALL` or `ip mangle: chain KUBE-IPTABLES-HINT`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = nft::Family::from(self.family);
        match &self.rule {
            None => write!(f, "{family} {}: chain {}", self.table, self.chain),
            Some(rule) => write!(f, "{family} {}: -A {} {rule}", self.table, self.chain),
        }
    }
}

/// A handle on the tables in which chains are looked up and created: an [`Iptables`] of either backend, or a
/// [`Connection`] to nf_tables.
#[derive(Debug)]
#[non_exhaustive]
pub enum BackendMut<'t> {
    /// nf_tables.
    Nft(&'t mut Connection),
    /// The legacy tables.
    Legacy(&'t mut Iptables),
}

impl<'t> From<&'t mut Connection> for BackendMut<'t> {
    fn from(connection: &'t mut Connection) -> Self {
        Self::Nft(connection)
    }
}

impl<'t> From<&'t mut Iptables> for BackendMut<'t> {
    fn from(iptables: &'t mut Iptables) -> Self {
        match iptables.backend() {
            Backend::Legacy => Self::Legacy(iptables),
            Backend::Nft => {
                let connection = iptables.nft_connection();
                Self::Nft(connection.expect("invariant: a handle of nf_tables has a connection"))
            }
        }
    }
}

impl BackendMut<'_> {
    /// Returns the backend.
    #[must_use]
    pub const fn backend(&self) -> Backend {
        match self {
            Self::Nft(_) => Backend::Nft,
            Self::Legacy(_) => Backend::Legacy,
        }
    }
}

/// Chains, jumps and rules that must exist.
///
/// ```
/// # fn main() -> Result<(), chainwright_kube::Error> {
/// # chainwright_testing::Sandbox::new()?.run(|| {
/// use chainwright::iptables::{Family, Iptables};
/// use chainwright_kube::declared::Declared;
///
/// let text = "*filter\n:AGENT -\n-I INPUT -j AGENT\n-A AGENT -s 192.0.2.1 -j DROP\nCOMMIT\n";
/// let declared = Declared::of_text(Family::Ipv4, text).expect("it is a text of rules");
/// let mut iptables = Iptables::nft()?;
/// assert_eq!(declared.check(&mut iptables)?.len(), 3);
/// declared.ensure(&mut iptables)?;
/// assert!(declared.check(&mut iptables)?.is_empty());
/// # Ok::<(), chainwright_kube::Error>(()) })?
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Declared {
    /// Ordered so that no rule jumps to a later chain, except that chains listed without rules come first.
    pub(super) chains: Vec<RequiredChain>,
    /// Whether the hint may be created while the other backend has one.
    pub(super) second_hint: bool,
}

impl Declared {
    /// Lists the missing chains and rules.
    ///
    /// # Errors
    /// [`Error::Read`] or [`Error::Tables`], [`Error::Ineffective`] when a built-in chain is there but not hooked in,
    /// [`Error::Set`], or [`Error::Contended`] when the ruleset kept changing.
    pub fn check<'t>(&self, tables: impl Into<BackendMut<'t>>) -> Result<Vec<Item>, Error> {
        match tables.into() {
            BackendMut::Nft(connection) => self.check_nft(connection),
            BackendMut::Legacy(iptables) => self.check_legacy(iptables),
        }
    }

    /// Creates the missing chains and rules, and returns them. If nothing is missing, nothing is changed. Rules of
    /// other programs are left alone.
    ///
    /// On nf_tables this is one transaction. Each legacy table is replaced in one step, under the iptables lock;
    /// `mangle`, which has the hint, is replaced last. If another program changes the tables meanwhile, the call starts
    /// again, as often as the handle's `with_retry` allows.
    ///
    /// The hint ([`HINT`](super::kubelet::HINT)) is not created while the other backend of the calling thread's network
    /// namespace has one, as far as that backend can be read.
    ///
    /// # Errors
    /// Those of [`check`](Self::check), [`Error::Commit`], and [`Error::HintElsewhere`].
    #[tracing::instrument(level = "debug", skip_all)]
    pub fn ensure<'t>(&self, tables: impl Into<BackendMut<'t>>) -> Result<Vec<Item>, Error> {
        match tables.into() {
            BackendMut::Nft(connection) => self.ensure_nft(connection),
            BackendMut::Legacy(iptables) => self.ensure_legacy(iptables),
        }
    }

    /// Refuses to create a hint that the other backend has. `is_here` returns whether these are the tables of the
    /// calling thread's network namespace.
    fn allow(
        &self,
        missing: &[Item],
        wanted: Backend,
        is_here: impl FnOnce() -> bool,
    ) -> Result<(), Error> {
        let hints = missing
            .iter()
            .filter(|item| item.rule.is_none() && item.chain == super::kubelet::HINT);
        let hints: Vec<_> = hints.collect();
        if self.second_hint || hints.is_empty() || !is_here() {
            return Ok(());
        }
        for hint in hints {
            let there = match wanted {
                Backend::Nft => Backend::Legacy,
                Backend::Legacy => Backend::Nft,
            };
            // A hint of the other family counts too: a node uses one backend for both.
            for family in [hint.family, other(hint.family)] {
                match detect::has_hint(there, family) {
                    Ok(false) => {}
                    Ok(true) => {
                        return Err(Error::HintElsewhere {
                            family,
                            found_in: there,
                            requested: wanted,
                        });
                    }
                    Err(error) => tracing::warn!(
                        %error,
                        "cannot check whether the other backend has a hint"
                    ),
                }
            }
        }
        Ok(())
    }

    /// Returns the tables that contain the declared chains, each once.
    pub(super) fn tables(&self) -> Vec<(Family, &str)> {
        let mut tables = Vec::new();
        for wanted in &self.chains {
            if !tables.contains(&wanted.table_key()) {
                tables.push(wanted.table_key());
            }
        }
        tables
    }

    /// Returns the same tables as scopes of an nf_tables guard.
    fn scopes(&self) -> Vec<Scope<'_>> {
        let tables = self.tables().into_iter();
        tables
            .map(|(family, table)| Scope::table(family.into(), table))
            .collect()
    }

    /// Returns `true` if nothing is declared.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.chains.is_empty()
    }
}

const fn other(family: Family) -> Family {
    match family {
        Family::Ipv4 => Family::Ipv6,
        Family::Ipv6 => Family::Ipv4,
    }
}
