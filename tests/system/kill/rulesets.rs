//! The rulesets, and the operations to get from one to the other.

use std::os::unix::net::UnixDatagram;
use std::sync::OnceLock;

use chainwright::nft::expr::{Cmp, Counter, Immediate, Payload, PayloadBase, Register};
use chainwright::nft::{Chain, DataType, Element, Rule, Set, SetId, Table, Transaction};
use nix::sys::socket::{setsockopt, sockopt};

use super::*;

/// Number of chains of each table: limited by the send buffer of a user without privileges.
pub(crate) fn chains() -> usize {
    static CHAINS: OnceLock<usize> = OnceLock::new();
    *CHAINS.get_or_init(|| {
        let (socket, _other) = UnixDatagram::pair().unwrap();
        match setsockopt(&socket, sockopt::SndBufForce, &4_000_000) {
            Ok(()) => 400,
            Err(_) => 160,
        }
    })
}

/// Everything of one of two rulesets, which have common and separate chains, rules and elements;
/// every rule shows its ruleset.
fn fill(tx: &mut Transaction, ruleset: &str) {
    let mark = [ruleset.as_bytes()[0]; 4];
    tx.add(&Table::new(IP, "t")).unwrap();
    for table in [ruleset, "t"] {
        tx.add(&Table::new(IP, table)).unwrap();
        let set = Set::new(IP, table, "s", DataType::IPV4_ADDR, 4);
        tx.add(&set).unwrap();
        let keys: Vec<_> = (0..500u32).map(u32::to_be_bytes).chain([mark]).collect();
        tx.add_elements(&SetId::new(IP, table, "s"), keys.iter().map(Element::new))
            .unwrap();
        let names = |number| match number % 3 {
            0 => format!("{ruleset}{number}"),
            _ => format!("c{number}"),
        };
        for number in 0..chains() {
            let name = names(number);
            tx.add(&Chain::new(IP, table, &name)).unwrap();
        }
        for number in 0..chains() {
            let name = names(number);
            for _ in 0..3 {
                tx.add(
                    &Rule::new(IP, table, &name)
                        .with(&Payload::load(PayloadBase::NETWORK, 12, 4, Register::R1))
                        .with(&Cmp::eq(Register::R1, &mark))
                        .with(&Counter::new(0, 0))
                        .with(&Immediate::accept()),
                )
                .unwrap();
            }
            if number > 0 {
                let jump = Immediate::jump(names(number - 1));
                tx.add(&Rule::new(IP, table, &name).with(&jump)).unwrap();
            }
        }
    }
}

/// The operations that replace one ruleset by the other.
pub(crate) fn change(from: &str, to: &str) -> [Transaction; 2] {
    let mut parts = [Transaction::new(), Transaction::new()];
    for table in [from, "t"] {
        parts[0].delete(&Table::new(IP, table)).unwrap();
    }
    fill(&mut parts[1], to);
    parts
}

/// The content of a snapshot except for handles and counters from the kernel, in an order that does
/// not depend on its history.
pub(crate) fn formatted(snapshot: &Snapshot) -> Vec<String> {
    let mut lines = Vec::new();
    for table in snapshot.tables() {
        let name = table.table().name().to_owned();
        lines.push(format!("{name} {:?}", table.table().flags()));
        for set in table.sets() {
            let mut elements: Vec<_> = set
                .elements()
                .map(|element| format!("{:?}", element.key_bytes()))
                .collect();
            elements.sort();
            lines.push(format!("{name} {} {}", set.set().name(), elements.concat()));
        }
        for chain in table.chains() {
            let mut line = format!("{name} {}", chain.chain().name());
            for rule in chain.rules() {
                let rule = rule.to_string();
                // After the line with the handles.
                line += rule.split_once('\n').unwrap().1;
            }
            lines.push(line);
        }
    }
    lines.sort();
    lines
}
