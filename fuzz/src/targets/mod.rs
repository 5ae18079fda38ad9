//! The targets, one per file.

pub mod conntrack;
pub mod extension;
pub mod graph_text;
pub mod ipset;
pub mod iptables_legacy;
pub mod iptables_nft;
pub mod netlink;
pub mod nft_elements;
pub mod nft_events;
pub mod nft_expressions;
pub mod nft_json;
pub mod nft_objects;
pub mod nft_text;
pub mod record;
pub mod restore_text;
pub mod rule_text;
pub mod snapshot;

use crate::Target;

/// All targets.
pub const ALL: &[Target] = &[
    netlink::TARGET,
    nft_objects::TARGET,
    nft_expressions::TARGET,
    nft_elements::TARGET,
    nft_events::TARGET,
    nft_json::TARGET,
    snapshot::TARGET,
    record::TARGET,
    iptables_nft::TARGET,
    iptables_legacy::TARGET,
    extension::TARGET,
    rule_text::TARGET,
    restore_text::TARGET,
    nft_text::TARGET,
    graph_text::TARGET,
    ipset::TARGET,
    conntrack::TARGET,
];

use chainwright::iptables::{Entry, Family, Rule};
use chainwright::netlink::Message;
use chainwright::nft;
use chainwright::xt::{SetName, SetNames, Text};

/// Both families.
const FAMILIES: [Family; 2] = [Family::Ipv4, Family::Ipv6];

/// Names for sets as if the kernel had them: a set's index is the sum of its letters.
pub(crate) struct FakeSetNames;

impl SetNames for FakeSetNames {
    type Error = ();

    fn index(&mut self, _: Family, name: &SetName) -> Result<u16, ()> {
        Ok(name.as_bytes().iter().map(|byte| u16::from(*byte)).sum())
    }

    fn name(&mut self, index: u16) -> Result<SetName, ()> {
        SetName::new(format!("set{index}")).ok_or(())
    }
}

/// Checks that a rule decoded from binary data prints as text that is parsed to the same rule.
///
/// A rule that a decoder returns must be expressible as text.
fn assert_prints_and_parses(family: Family, rule: &Rule) {
    let mut named = rule.clone();
    if named.name_sets(&mut FakeSetNames).is_err() {
        return;
    }
    let mut text = Text::new();
    named.print(&mut text);
    let shown = bstr::BStr::new(text.as_bytes());
    let parsed = match Rule::parse(family, text.as_bytes()) {
        Ok(parsed) => parsed,
        Err(fault) => panic!("{family:?}: {shown:?} cannot be parsed: {fault}\n{rule:?}"),
    };
    assert!(
        parsed.means_the_same(&named),
        "{family:?}: {shown:?} is parsed as another rule:\n{named:?}\n{parsed:?}"
    );
    let mut again = Text::new();
    parsed.print(&mut again);
    assert_eq!(bstr::BStr::new(again.as_bytes()), shown);
}

/// Decodes a rule for nf_tables as if the kernel had listed it.
fn listed(mut rule: nft::Rule<'_>) -> Result<Entry, chainwright::iptables::NotExpressible> {
    rule.handle = Some(1);
    let mut tx = nft::Transaction::new();
    if tx.add(&rule).is_err() {
        return Err(chainwright::iptables::NotExpressible {
            expression: None,
            reason: "it is too long for a message",
        });
    }
    tx.datagram(|datagram| {
        let (_begin, rest) =
            Message::split(datagram).expect("the transaction has no valid message");
        let (message, _) = Message::split(rest).expect("the transaction has no valid message");
        let view = nft::RuleRef::parse(&message).expect("cannot read the written rule");
        chainwright::iptables::nft::decode(&view)
    })
}
