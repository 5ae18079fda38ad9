//! A text of nft's as iptables' tables.

use crate::{Error, Script};
use chainwright::iptables::builtin::NAMES;
use chainwright::iptables::{Family, Tables};
use chainwright::nft::{self, Scope};
use chainwright_testing::FakeKernel;

/// What a ruleset in nft's language is to iptables: its tables, and those that it does not know.
///
/// Nothing of it is in the kernel: it is the tables that the ruleset makes where nothing was before. What iptables-nft
/// reads in them is said in its words; [`Tables::save_in_words`] writes the rest as comments, and counts it.
///
/// ```
/// use chainwright::iptables::text::SaveOptions;
/// use chainwright::iptables::Family;
/// use chainwright_lang::translate::Back;
/// use chainwright_lang::{Options, Script, rule};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = Script::parse(
///     "rules.nft",
///     "table ip filter {
///         chain INPUT {
///             type filter hook input priority 0; policy drop;
///             iifname lo counter accept
///             tcp dport { 22, 80 } counter accept
///         }
///     }",
/// )?;
/// let back = Back::of(Family::Ipv4, &script)?;
/// let mut text = Vec::new();
/// let options = Options::here();
/// let omissions = back
///     .tables
///     .save_in_words(
///         SaveOptions::default(),
///         &|table, native| rule(table, native, &options),
///         &mut text,
///     )?;
/// let text = String::from_utf8(text)?;
/// assert!(text.contains("-A INPUT -i lo -j ACCEPT\n"));
/// assert!(text.contains("#   tcp dport { 22, 80 } counter packets 0 bytes 0 accept\n"));
/// assert_eq!(omissions.rules, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Back {
    /// The tables of this family that have names of iptables'.
    pub tables: Tables,
    /// The other tables, as `inet firewall`: iptables sees nothing of them.
    pub others: Vec<String>,
}

/// Why a ruleset cannot be looked at as iptables would.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotMade {
    /// No transaction can be made of it.
    #[error(transparent)]
    Script(#[from] Error),
    /// The kernel would refuse this, first, where nothing is there before.
    #[error("{0}")]
    Refused(Error),
    /// The model of nf_tables could not make it, or be asked.
    #[error("it cannot be made in memory: {0}")]
    FakeKernel(String),
}

impl Back {
    /// Looks at a ruleset.
    ///
    /// # Errors
    /// [`NotMade`]: only what can be made where nothing is there before has tables.
    pub fn of(family: Family, script: &Script) -> Result<Self, NotMade> {
        let of_model = |error: &dyn std::fmt::Display| NotMade::FakeKernel(error.to_string());
        let mut model = FakeKernel::new()
            .connect()
            .map_err(|error| of_model(&error))?;
        let nothing = model
            .snapshot(Scope::all())
            .map_err(|error| of_model(&error))?;
        let change = script.transaction(Some(&nothing))?;
        model.commit(change.transaction()).map_err(|error| {
            let first = change.explain(&error).into_iter().next();
            first.map_or_else(|| of_model(&error), NotMade::Refused)
        })?;
        let snapshot = model
            .snapshot(Scope::all())
            .map_err(|error| of_model(&error))?;
        let is_its = |table: &nft::TableRef<'_>| {
            table.family() == nft::Family::from(family)
                && NAMES.iter().any(|name| table.name() == name)
        };
        let all = snapshot.tables().map(|table| table.table());
        let others = all.filter(|table| !is_its(table));
        let others = others
            .map(|table| format!("{} {}", table.family(), table.name()))
            .collect();
        Ok(Self {
            tables: Tables::in_snapshot(family, snapshot),
            others,
        })
    }
}
