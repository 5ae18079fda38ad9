//! Legacy tables: the kernel's description of a table and its entries, edits of the table, and iptables'
//! form of its rules.

use chainwright::iptables::{Family as IptablesFamily, legacy::decode};
use chainwright::legacy::{Family, Info, Table, TableEditor, Target as RuleTarget};

use super::assert_prints_and_parses;
use crate::Target;
use crate::mutate::InputFormat;

/// The target: a byte for the family (IPv4, IPv6, ARP), the answer to `GET_INFO`, the entries.
pub const TARGET: Target = Target {
    name: "iptables_legacy",
    input_format: InputFormat::Bytes,
    run,
};

/// Length of the answer to `GET_INFO` (`ipt_getinfo`, `ip6t_getinfo`, `arpt_getinfo`).
#[must_use]
pub const fn info_length(family: Family) -> usize {
    match family {
        Family::Ipv4 | Family::Ipv6 => 84,
        Family::Arp => 68,
    }
}

fn run(input: &[u8]) {
    let Some((family, input)) = input.split_first() else {
        return;
    };
    let family = [Family::Ipv4, Family::Ipv6, Family::Arp][usize::from(family % 3)];
    let Some((info, entries)) = input.split_at_checked(info_length(family)) else {
        return;
    };
    let mut info = info.to_vec();
    // Otherwise every change of the length would be refused at once.
    let whole = entries.len() / 8 * 8;
    info[info_length(family) - 4..].copy_from_slice(&(whole as u32).to_ne_bytes());
    let Ok(info) = Info::from_bytes(family, &info) else {
        return;
    };
    let Ok(table) = Table::from_bytes(info, &entries[..whole]) else {
        return;
    };
    let mut counted = 0;
    for chain in table.chains() {
        let _ = format!("{chain:?}");
        for rule in chain.rules() {
            counted += 1;
            let _ = format!("{:?} {:?} {}", rule.header(), rule, rule.counters());
            for one in rule.matches() {
                let Ok(one) = one else { break };
                let _ = format!("{one:?}");
            }
            match rule.target() {
                Ok(RuleTarget::Jump(chain) | RuleTarget::Goto(chain)) => {
                    let _ = chain.name();
                }
                other => drop(format!("{other:?}")),
            }
            let family = match family {
                Family::Ipv4 => IptablesFamily::Ipv4,
                Family::Ipv6 => IptablesFamily::Ipv6,
                Family::Arp => continue,
            };
            if let Ok(entry) = decode(&rule) {
                assert_prints_and_parses(family, &entry.rule);
            }
        }
    }
    assert!(counted <= table.info().num_entries() as usize);
    check_edits(&table);
}

/// A table rebuilt without changes has the same length and chains; one with an added chain keeps all
/// others.
fn check_edits(table: &Table) {
    let editor = TableEditor::of(table);
    if let Ok(replacement) = editor.finish() {
        assert_eq!(replacement.entries().len(), table.entries().len());
        let again = replacement
            .to_table()
            .expect("cannot read the written table");
        assert_eq!(chains(table), chains(&again));
    }
    let mut editor = TableEditor::of(table);
    if editor.add_chain("fuzz-target").is_err() {
        return;
    }
    if let Ok(replacement) = editor.finish() {
        let again = replacement
            .to_table()
            .expect("cannot read the written table");
        let mut names = chains(&again);
        let new = names.iter().position(|(name, _)| name == b"fuzz-target");
        names.remove(new.expect("the new chain is missing"));
        assert_eq!(chains(table), names);
    }
}

/// Names and numbers of rules of the chains, in order.
fn chains(table: &Table) -> Vec<(Vec<u8>, usize)> {
    let chains = table.chains();
    chains
        .map(|chain| (chain.name().to_vec(), chain.rule_count()))
        .collect()
}
