//! Findings in nf_tables, for `check`.

use chainwright::nft::SnapshotTable;
use chainwright_trace::check::{Finding, Part};

use crate::check::Record;

/// The kinds of findings, with descriptions: the rules of a SARIF log.
pub(crate) const KINDS: [(&str, &str); 23] = [
    ("misread", "A version of iptables misreads the rule."),
    ("unread", "A version of iptables stops at the rule."),
    ("hidden", "A version of iptables does not show the table."),
    ("not_expressible", "iptables cannot express the rule."),
    (
        "chain_not_expressible",
        "iptables does not support the chain.",
    ),
    (
        "duplicate",
        "An earlier rule has the same conditions and statements.",
    ),
    (
        "shadowed",
        "An earlier rule matches all packets of the rule, and ends the chain for them.",
    ),
    (
        "unreachable",
        "An earlier rule ends the chain for every packet.",
    ),
    (
        "contradiction",
        "The conditions of the rule exclude one another.",
    ),
    (
        "missing_chain",
        "The rule or map leads to a chain that does not exist.",
    ),
    ("loop", "The rules of the chain lead back to it."),
    ("unreferenced", "No rule or map leads to the chain."),
    ("unreached", "No packet reaches the chain."),
    ("unused", "No rule uses the set, map, object or flowtable."),
    (
        "empty_set",
        "Rules look up the set, but it has no elements.",
    ),
    (
        "drops_all",
        "The policy of the base chain drops every packet, because it has no rules.",
    ),
    ("dormant", "The table is dormant."),
    ("owned", "A process owns the table."),
    (
        "objects",
        "The table has objects that iptables does not show.",
    ),
    ("both_backends", "Packets pass the rules of both backends."),
    ("agents_in_both", "Agents write to both backends."),
    (
        "empty_legacy",
        "The legacy table has no rules, but packets pass through it.",
    ),
    (
        "partly_compared",
        "The chain is too long to compare all of its rules.",
    ),
];

impl Record {
    /// Describes a finding. A table of a rejected file has no rules.
    pub(crate) fn of_nft(finding: &Finding, table: Option<&SnapshotTable<'_>>) -> Self {
        let location = &finding.location;
        let (mut handle, mut object) = (None, None);
        match &location.part {
            Some(Part::Rule { handle: known, .. }) => handle = *known,
            Some(Part::Set(name)) => object = Some(("set", name)),
            Some(Part::Object(kind, name)) => {
                object = Some((kind.name().unwrap_or("object"), name))
            }
            Some(Part::Flowtable(name)) => object = Some(("flowtable", name)),
            _ => {}
        }
        let rule = table.zip(location.chain()).zip(location.rule());
        let rule = rule.and_then(|((table, chain), number)| {
            let rule = table.chain(chain)?.rule(number.checked_sub(1)?)?;
            chainwright_lang::rule(table, &rule, &crate::dialect::options())
        });
        Self {
            severity: finding.severity().name(),
            kind: finding.fault.kind(),
            family: location.family.name().unwrap_or("unknown"),
            backend: Some("nft"),
            table: Some(location.table.to_string()),
            chain: location.chain().map(ToString::to_string),
            number: location.rule(),
            handle,
            object_type: object.map(|(kind, _)| kind.to_owned()),
            object: object.map(|(_, name)| name.to_string()),
            rule,
            message: finding.fault.to_string(),
            versions: Vec::new(),
            read_as: None,
            effect: None,
            location: location.to_string(),
        }
    }
}
