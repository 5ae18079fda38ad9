//! Converts nft rulesets to iptables tables.

use crate::{Error, Script};
use chainwright::iptables::builtin::NAMES;
use chainwright::iptables::{Family, Tables};
use chainwright::nft::{self, Scope};

/// A ruleset in nft's language as seen by iptables: its tables, and the tables that iptables ignores.
///
/// The script is [executed](Script::ruleset) on an empty ruleset, without a kernel. Rules that iptables-nft can decode are
/// printed in iptables' syntax; [`Tables::save_with_formatter`] writes the others as comments and counts them.
///
/// ```
/// use chainwright::iptables::text::SaveOptions;
/// use chainwright::iptables::Family;
/// use chainwright_lang::translate::ReverseTranslation;
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
/// let back = ReverseTranslation::of(Family::Ipv4, &script)?;
/// let mut text = Vec::new();
/// let options = Options::here();
/// let omissions = back
///     .tables
///     .save_with_formatter(
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
pub struct ReverseTranslation {
    /// Tables of this family with iptables' table names.
    pub tables: Tables,
    /// Other tables, such as `inet firewall`, which iptables ignores.
    pub others: Vec<String>,
}

impl ReverseTranslation {
    /// Converts a ruleset.
    ///
    /// # Errors
    /// The errors of [`Script::ruleset`].
    pub fn of(family: Family, script: &Script) -> Result<Self, Error> {
        let snapshot = script.ruleset()?.to_snapshot(&Scope::all());
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
