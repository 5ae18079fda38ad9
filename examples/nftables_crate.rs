//! A program that uses the structs of the crate `nftables`, as netavark does, and passes them to chainwright instead
//! of running `nft`: the firewall of a container network with a published port.
//!
//! Run it with `cargo run --example nftables_crate`, in a private network namespace.

use std::borrow::Cow;

use chainwright::nft::{Connection, Scope};
use chainwright_lang::{Listing, Options, Script};
use chainwright_testing::Sandbox;
use nftables::batch::Batch;
use nftables::expr::{
    CT, Expression, Meta, MetaKey, NamedExpression, Payload, PayloadField, Prefix, SetItem,
};
use nftables::schema::{
    Chain, Element, NfListObject, Nftables, Rule, Set, SetType, SetTypeValue, Table,
};
use nftables::stmt::{JumpTarget, Match, NAT, NATFamily, Operator, Statement};
use nftables::types::{NfChainPolicy, NfChainType, NfFamily, NfHook};

type Error = Box<dyn std::error::Error + Send + Sync>;

const TABLE: &str = "netavark";
const NETWORK: (&str, u32) = ("10.88.0.0", 16);
const CONTAINER: &str = "10.88.0.5";

fn main() -> Result<(), Error> {
    Sandbox::new()?.run(|| {
        let mut nft = Connection::open()?;
        apply(&mut nft, &network())?;
        print!("{}", listed(&mut nft)?);
        Ok(())
    })?
}

/// Does what `nftables::helper::apply_ruleset` does by running `nft -j -f -`.
fn apply(nft: &mut Connection, ruleset: &Nftables<'_>) -> Result<(), Error> {
    let script = Script::from_nftables(ruleset)?;
    let now = match script.needs_listing() {
        true => Some(nft.snapshot(Scope::all())?),
        false => None,
    };
    let change = script.transaction(now.as_ref())?;
    nft.commit(change.transaction())?; // all or nothing
    Ok(())
}

/// Returns what `nft list ruleset` prints.
fn listed(nft: &mut Connection) -> Result<String, Error> {
    let snapshot = nft.snapshot(Scope::all())?;
    Ok(Listing::new(&snapshot, &Options::default()).to_string())
}

/// The network's table as structs.
fn network() -> Nftables<'static> {
    let mut batch = Batch::new();
    batch.add(NfListObject::Table(Table {
        family: NfFamily::INet,
        name: TABLE.into(),
        handle: None,
    }));
    let hooks = [
        ("INPUT", NfChainType::Filter, NfHook::Input, 0),
        ("FORWARD", NfChainType::Filter, NfHook::Forward, 0),
        ("PREROUTING", NfChainType::NAT, NfHook::Prerouting, -100),
        ("POSTROUTING", NfChainType::NAT, NfHook::Postrouting, 100),
    ];
    for (name, kind, hook, priority) in hooks {
        batch.add(NfListObject::Chain(Chain {
            _type: Some(kind),
            hook: Some(hook),
            prio: Some(priority),
            policy: Some(NfChainPolicy::Accept),
            ..chain(name)
        }));
    }
    for name in ["nv_dnat", "nv_podman"] {
        batch.add(NfListObject::Chain(chain(name)));
    }
    batch.add(NfListObject::Set(Box::new(Set {
        family: NfFamily::INet,
        table: TABLE.into(),
        name: "published".into(),
        set_type: SetTypeValue::Single(SetType::InetService),
        ..Set::default()
    })));
    batch.add(NfListObject::Element(Element {
        family: NfFamily::INet,
        table: TABLE.into(),
        name: "published".into(),
        elem: vec![Expression::Number(8080), Expression::Number(8443)].into(),
    }));

    let network = || {
        Expression::Named(NamedExpression::Prefix(Prefix {
            addr: Box::new(Expression::String(NETWORK.0.into())),
            len: NETWORK.1,
        }))
    };
    let established = Expression::List(vec![
        Expression::String("established".into()),
        Expression::String("related".into()),
    ]);
    let state = Expression::Named(NamedExpression::CT(CT {
        key: "state".into(),
        family: None,
        dir: None,
    }));
    let to_network = |op| matches("ip", "daddr", op, network());
    let rules = [
        (
            "FORWARD",
            vec![
                to_network(Operator::EQ),
                Statement::Match(Match {
                    left: state,
                    right: established,
                    op: Operator::IN,
                }),
                Statement::Accept(None),
            ],
        ),
        (
            "FORWARD",
            vec![
                matches("ip", "saddr", Operator::EQ, network()),
                Statement::Accept(None),
            ],
        ),
        (
            "INPUT",
            vec![
                matches("ip", "saddr", Operator::EQ, network()),
                Statement::Match(Match {
                    left: Expression::Named(NamedExpression::Meta(Meta {
                        key: MetaKey::L4proto,
                    })),
                    right: Expression::Named(NamedExpression::Set(vec![
                        SetItem::Element(Expression::String("tcp".into())),
                        SetItem::Element(Expression::String("udp".into())),
                    ])),
                    op: Operator::EQ,
                }),
                matches("th", "dport", Operator::EQ, Expression::Number(53)),
                Statement::Accept(None),
            ],
        ),
        (
            "PREROUTING",
            vec![
                matches(
                    "tcp",
                    "dport",
                    Operator::EQ,
                    Expression::String("@published".into()),
                ),
                jump("nv_dnat"),
            ],
        ),
        (
            "nv_dnat",
            vec![
                matches("tcp", "dport", Operator::EQ, Expression::Number(8080)),
                Statement::DNAT(Some(NAT {
                    addr: Some(Expression::String(CONTAINER.into())),
                    family: Some(NATFamily::IP),
                    port: Some(Expression::Number(80)),
                    flags: None,
                })),
            ],
        ),
        (
            "POSTROUTING",
            vec![
                matches("ip", "saddr", Operator::EQ, network()),
                jump("nv_podman"),
            ],
        ),
        (
            "nv_podman",
            vec![to_network(Operator::EQ), Statement::Accept(None)],
        ),
        (
            "nv_podman",
            vec![
                matches(
                    "ip",
                    "daddr",
                    Operator::NEQ,
                    Expression::Named(NamedExpression::Prefix(Prefix {
                        addr: Box::new(Expression::String("224.0.0.0".into())),
                        len: 4,
                    })),
                ),
                Statement::Masquerade(None),
            ],
        ),
    ];
    for (chain, statements) in rules {
        batch.add(NfListObject::Rule(Rule {
            family: NfFamily::INet,
            table: TABLE.into(),
            chain: chain.into(),
            expr: statements.into(),
            ..Rule::default()
        }));
    }
    batch.to_nftables()
}

fn chain(name: &'static str) -> Chain<'static> {
    Chain {
        family: NfFamily::INet,
        table: TABLE.into(),
        name: name.into(),
        ..Chain::default()
    }
}

/// Compares a field of the packet.
fn matches(
    protocol: &'static str,
    field: &'static str,
    op: Operator,
    right: Expression<'static>,
) -> Statement<'static> {
    let field = PayloadField {
        protocol: protocol.into(),
        field: field.into(),
    };
    Statement::Match(Match {
        left: Expression::Named(NamedExpression::Payload(Payload::PayloadField(field))),
        right,
        op,
    })
}

fn jump(target: &'static str) -> Statement<'static> {
    Statement::Jump(JumpTarget {
        target: Cow::Borrowed(target),
    })
}

#[cfg(test)]
mod tests {
    use nftables::schema::{NfCmd, NfObject};
    use nftables::stmt::{Counter, Drop};

    use super::*;

    const LISTED: &str = "table inet netavark {
\tset published {
\t\ttype inet_service
\t\telements = { 8080, 8443 }
\t}

\tchain INPUT {
\t\ttype filter hook input priority filter; policy accept;
\t\tip saddr 10.88.0.0/16 meta l4proto { tcp, udp } th dport 53 accept
\t}

\tchain FORWARD {
\t\ttype filter hook forward priority filter; policy accept;
\t\tip daddr 10.88.0.0/16 ct state established,related accept
\t\tip saddr 10.88.0.0/16 accept
\t}

\tchain PREROUTING {
\t\ttype nat hook prerouting priority dstnat; policy accept;
\t\ttcp dport @published jump nv_dnat
\t}

\tchain POSTROUTING {
\t\ttype nat hook postrouting priority srcnat; policy accept;
\t\tip saddr 10.88.0.0/16 jump nv_podman
\t}

\tchain nv_dnat {
\t\ttcp dport 8080 dnat ip to 10.88.0.5:80
\t}

\tchain nv_podman {
\t\tip daddr 10.88.0.0/16 accept
\t\tip daddr != 224.0.0.0/4 masquerade
\t}
}
";

    #[test]
    fn structs_round_trip() -> Result<(), Error> {
        Sandbox::new()?.run(|| {
            let mut nft = Connection::open()?;
            apply(&mut nft, &network())?;
            assert_eq!(listed(&mut nft)?, LISTED);

            // Converted to structs, which create the same ruleset again.
            let options = Options::default();
            let snapshot = nft.snapshot(Scope::all())?;
            let structs = Listing::new(&snapshot, &options).to_nftables()?;
            let mut flush = Batch::new();
            flush.add_cmd(NfCmd::Flush(nftables::schema::FlushObject::Ruleset(None)));
            let flush = flush.to_nftables();
            let objects = flush.objects.iter().chain(structs.objects.iter()).cloned();
            let again = Nftables {
                objects: objects.collect::<Vec<NfObject<'_>>>().into(),
            };
            apply(&mut nft, &again)?;
            assert_eq!(listed(&mut nft)?, LISTED);
            Ok(())
        })?
    }

    /// Covers forms in which the structs are serialized differently from what nft reads.
    #[test]
    fn alternative_encodings_are_read() -> Result<(), Error> {
        Sandbox::new()?.run(|| {
            let mut nft = Connection::open()?;
            apply(&mut nft, &network())?;
            let rule = Rule {
                family: NfFamily::INet,
                table: TABLE.into(),
                chain: "FORWARD".into(),
                expr: vec![
                    Statement::Notrack,
                    Statement::Counter(Counter::Anonymous(None)),
                    Statement::Drop(Some(Drop {})),
                ]
                .into(),
                ..Rule::default()
            };
            let mut batch = Batch::new();
            batch.add_cmd(NfCmd::Insert(NfListObject::Rule(rule)));
            batch.add_cmd(NfCmd::Rename(Chain {
                newname: Some("nv_renamed".into()),
                ..chain("nv_podman")
            }));
            apply(&mut nft, &batch.to_nftables())?;
            let listed = listed(&mut nft)?;
            let expected = [
                "chain FORWARD {\n\t\ttype filter hook forward priority filter; policy accept;\n\
                 \t\tnotrack counter packets 0 bytes 0 drop\n",
                "chain nv_renamed {",
            ];
            for expected in expected {
                assert!(listed.contains(expected), "{listed}");
            }
            Ok(())
        })?
    }

    #[test]
    fn unsupported_fields_are_reported() -> Result<(), Error> {
        Sandbox::new()?.run(|| {
            let mut nft = Connection::open()?;
            let script = Script::parse("t.nft", "table ip t { comment \"x\"; }")?;
            nft.commit(script.transaction(None)?.transaction())?;
            let snapshot = nft.snapshot(Scope::all())?;
            let lost = Listing::new(&snapshot, &Options::default())
                .to_nftables()
                .unwrap_err();
            assert_eq!(lost.path, "nftables[1].table.comment");
            Ok(())
        })?
    }
}
