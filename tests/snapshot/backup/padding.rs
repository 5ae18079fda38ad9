//! The listing of a kernel with padding before 64-bit numbers (`NFTA_*_PAD`, on machines without efficient unaligned
//! access) is equivalent to that of other kernels. Padding depends on a message's start position.

use chainwright::iptables::text::SaveOptions;
use chainwright::iptables::{self, Tables};
use chainwright::netlink::Attributes;
use chainwright::nft::expr::Last;
use chainwright::nft::{DiffOptions, PlanOptions, Ruleset, UnknownAttributes};
use chainwright_lang::{Listing, Options, Script};
use chainwright_sys::nf_tables::*;
use chainwright_testing::FakeKernel;

use super::*;
use crate::common::kernel::commit_if_supported;

/// All objects with 64-bit numbers.
const WIDE: &str = "table inet wide {
    counter n { packets 1 bytes 2; }
    quota q { over 1 mbytes used 7 bytes; }
    limit l { rate 1/second; }
    set d { type ipv4_addr; flags dynamic, timeout; timeout 1h; size 100; }
    set t { type ipv4_addr; flags timeout; counter; elements = { 10.0.0.1 timeout 10m expires 9m, 10.0.0.2 }; }
    set i { type ipv4_addr; flags interval; limit rate 5/second; elements = { 10.0.0.0/8 }; }
    set m { type ipv4_addr; flags dynamic; size 5; }
    map o { type ipv4_addr : counter; elements = { 10.0.0.1 : \"n\" }; }
    chain c {
        counter packets 5 bytes 6 accept;
        limit rate over 10 mbytes/second burst 5 kbytes drop;
        quota over 25 mbytes used 3 bytes drop;
        tcp dport { 1, 2 } counter name n quota name \"q\" limit name \"l\";
        update @d { ip saddr timeout 5m limit rate 10/second };
        add @d { ip saddr counter };
        add @m { ip saddr limit rate 3/minute };
        ct count over 3 counter;
    }
    chain b { type filter hook input priority 0; policy drop; counter jump c; }
}
table netdev e { chain i { type filter hook ingress device lo priority 0; counter drop; }; }";

const SAVED: &str = "*filter
:INPUT ACCEPT [11:12]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:mine - [0:0]
[1:2] -A INPUT -p tcp -m tcp --dport 22 -m limit --limit 3/min -j ACCEPT
[3:4] -A INPUT -s 10.0.0.0/8 -m comment --comment \"a comment\" -j mine
[5:6] -A mine -m mark --mark 0x1/0x1 -j DROP
COMMIT
";

/// The kind of attributes.
#[derive(Clone, Copy)]
enum These {
    /// Attributes of an object or expression: the padding, the 64-bit numbers, and the nested ones.
    Group(u16, &'static [u16], &'static [(u16, These)]),
    Expressions,
    Expression,
    Elements,
    Object,
    Plain,
}

use These::{Elements, Expression, Expressions, Group, Object, Plain};

const COUNTER: These = Group(
    NFTA_COUNTER_PAD,
    &[NFTA_COUNTER_BYTES, NFTA_COUNTER_PACKETS],
    &[],
);
const QUOTA: These = Group(
    NFTA_QUOTA_PAD,
    &[NFTA_QUOTA_BYTES, NFTA_QUOTA_CONSUMED],
    &[],
);
const LIMIT: These = Group(NFTA_LIMIT_PAD, &[NFTA_LIMIT_RATE, NFTA_LIMIT_UNIT], &[]);
const ELEMENT: These = Group(
    NFTA_SET_ELEM_PAD,
    &[NFTA_SET_ELEM_TIMEOUT, NFTA_SET_ELEM_EXPIRATION],
    &[
        (NFTA_SET_ELEM_EXPR, Expression),
        (NFTA_SET_ELEM_EXPRESSIONS, Expressions),
    ],
);

/// The attributes of an object's message.
fn of_message(kind: u8) -> These {
    match kind {
        NFT_MSG_NEWTABLE => Group(NFTA_TABLE_PAD, &[NFTA_TABLE_HANDLE], &[]),
        NFT_MSG_NEWCHAIN => Group(
            NFTA_CHAIN_PAD,
            &[NFTA_CHAIN_HANDLE],
            &[(NFTA_CHAIN_COUNTERS, COUNTER)],
        ),
        NFT_MSG_NEWRULE => Group(
            NFTA_RULE_PAD,
            &[NFTA_RULE_HANDLE, NFTA_RULE_POSITION],
            &[(NFTA_RULE_EXPRESSIONS, Expressions)],
        ),
        NFT_MSG_NEWSET => Group(
            NFTA_SET_PAD,
            &[NFTA_SET_HANDLE, NFTA_SET_TIMEOUT],
            &[
                (NFTA_SET_EXPR, Expression),
                (NFTA_SET_EXPRESSIONS, Expressions),
            ],
        ),
        NFT_MSG_NEWSETELEM => Group(0, &[], &[(NFTA_SET_ELEM_LIST_ELEMENTS, Elements)]),
        NFT_MSG_NEWOBJ => Group(NFTA_OBJ_PAD, &[NFTA_OBJ_HANDLE], &[(NFTA_OBJ_DATA, Object)]),
        NFT_MSG_NEWFLOWTABLE => Group(NFTA_FLOWTABLE_PAD, &[NFTA_FLOWTABLE_HANDLE], &[]),
        other => panic!("message {other}"),
    }
}

fn of_expression(name: &[u8]) -> These {
    match name.strip_suffix(b"\0").unwrap_or(name) {
        b"counter" => COUNTER,
        b"quota" => QUOTA,
        b"limit" => LIMIT,
        b"last" => Group(NFTA_LAST_PAD, &[NFTA_LAST_MSECS], &[]),
        b"dynset" => Group(
            NFTA_DYNSET_PAD,
            &[NFTA_DYNSET_TIMEOUT],
            &[
                (NFTA_DYNSET_EXPR, Expression),
                (NFTA_DYNSET_EXPRESSIONS, Expressions),
            ],
        ),
        _ => Plain,
    }
}

/// Inserts padding before 64-bit numbers if `here` returns true.
fn padded(bytes: &[u8], these: These, here: &mut dyn FnMut() -> bool) -> Vec<u8> {
    let mut out = Vec::new();
    for attribute in Attributes::new(bytes) {
        let attribute = attribute.unwrap();
        let kind = attribute.kind;
        let find = |kind| Attributes::new(bytes).find(kind);
        let inner = match these {
            Group(pad, wide, nested) => {
                if wide.contains(&kind) && here() {
                    out.extend([4_u16, pad].map(u16::to_ne_bytes).concat());
                }
                nested
                    .iter()
                    .find(|(holds, _)| *holds == kind)
                    .map(|(_, inner)| match inner {
                        Object => match find(NFTA_OBJ_TYPE).unwrap() {
                            [0, 0, 0, 1] => COUNTER,
                            [0, 0, 0, 2] => QUOTA,
                            [0, 0, 0, 4] => LIMIT,
                            _ => Plain,
                        },
                        inner => *inner,
                    })
            }
            Expressions => Some(Expression),
            Expression if kind == NFTA_EXPR_DATA => {
                Some(of_expression(find(NFTA_EXPR_NAME).unwrap()))
            }
            Elements => Some(ELEMENT),
            _ => None,
        };
        match inner {
            None | Some(Plain) => out.extend_from_slice(attribute.raw),
            Some(inner) => {
                let payload = padded(attribute.payload, inner, here);
                out.extend((payload.len() as u16 + 4).to_ne_bytes());
                out.extend_from_slice(&attribute.raw[2..4]);
                out.extend(payload);
                out.resize(out.len().next_multiple_of(4), 0);
            }
        }
    }
    out
}

/// Everything that is derived from a snapshot.
fn read(place: &BackupDirectory, bytes: &[u8]) -> Vec<(String, String)> {
    let snapshot = || place.load(bytes).unwrap();
    let mut all = Vec::new();
    let mut add = |what: String, text: String| all.push((what, text));
    let whole = snapshot();
    for table in whole.tables() {
        let view = table.table();
        assert_eq!(view.to_builder().unknown, UnknownAttributes::NONE);
        add(view.name().to_string(), format!("{:?}", view.to_builder()));
        for chain in table.chains() {
            let view = chain.chain();
            add(view.name().to_string(), format!("{:?}", view.to_builder()));
            for rule in chain.rules() {
                add(
                    rule.handle().to_string(),
                    format!("{:?} {rule}", rule.to_builder()),
                );
                for expression in rule.expressions().into_iter().flatten().flatten() {
                    let (decoded, view) = (expression.decode().unwrap(), expression.view());
                    assert!(decoded.unknown().is_empty(), "{decoded:?}");
                    add(format!("{decoded}"), format!("{decoded:?} {view:?}"));
                }
            }
        }
        for set in table.sets() {
            add(
                set.set().name().to_string(),
                format!("{:?}", set.set().to_builder()),
            );
            for element in set.elements() {
                add(format!("{element}"), format!("{:?}", element.to_builder()));
            }
        }
        for object in table.objects() {
            add(
                object.name().to_string(),
                format!("{:?} {object}", object.to_builder()),
            );
        }
        for flowtable in table.flowtables() {
            add(
                flowtable.name().to_string(),
                format!("{:?}", flowtable.to_builder()),
            );
        }
    }
    let options = Options::default();
    add("text".into(), Listing::new(&whole, &options).to_string());
    add(
        "JSON".into(),
        Listing::new(&whole, &options).json().to_string(),
    );
    add("serde".into(), serde_json::to_string(&whole).unwrap());
    let mut tx = Transaction::new();
    whole.write_to(&mut tx).unwrap();
    add("operations".into(), tx.len().to_string());
    let tables = Tables::in_snapshot(iptables::Family::Ipv4, snapshot());
    let saved = SaveOptions { counters: true };
    let mut text = Vec::new();
    let omissions = tables.save(saved, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    add("iptables".into(), format!("{omissions:?}\n{text}"));
    let mut fake = FakeKernel::new().connect().unwrap();
    let kept = fake
        .commit(&tx)
        .map(|_| fake.snapshot(Scope::all()).unwrap());
    add("fake kernel".into(), format!("{}", kept.unwrap()));
    all
}

#[test]
fn padding_does_not_change_the_result() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with("nft -f -", WIDE);
    tools.run_with("iptables-nft-restore --counters", SAVED);
    let mut nft = connect(&sandbox);
    let mut tx = Transaction::new();
    tx.add(&Rule::new(Family::INET, "wide", "c").with(&Last::ago(5000)))
        .unwrap();
    // Without it, the other objects are compared.
    let _ = commit_if_supported(&mut nft, &mut tx, &["the expression `last`"]);
    let snapshot = nft.snapshot(Scope::all()).unwrap();
    // The kernel may lack flowtables, so use the fake kernel.
    let mut fake = FakeKernel::new().connect().unwrap();
    let mut tx = Transaction::new();
    snapshot.write_to(&mut tx).unwrap();
    fake.commit(&tx).unwrap();
    let text = "table inet wide { flowtable f { hook ingress priority 0; devices = { lo }; }; }";
    let script = Script::parse("flowtable.nft", text).unwrap();
    let change = script.transaction(None).unwrap();
    fake.commit(change.transaction()).unwrap();
    for snapshot in [snapshot, fake.snapshot(Scope::all()).unwrap()] {
        padding_is_not_seen_in(&file_of(&snapshot));
    }
}

fn padding_is_not_seen_in(plain: &[u8]) {
    let (place, other) = (BackupDirectory::new(), BackupDirectory::new());
    let expected = read(&place, plain);
    // Everywhere, and at every second position.
    for step in [1, 2, 2, 3] {
        let mut number = usize::from(step == 2);
        let mut inserted = 0;
        let mut parts = Parts::of(plain);
        for message in &mut parts.messages {
            let attributes = padded(&message[20..], of_message(message[4]), &mut || {
                number += 1;
                let here = number.is_multiple_of(step);
                inserted += usize::from(here);
                here
            });
            message.splice(20.., attributes);
            let length = message.len() as u32;
            message[..4].copy_from_slice(&length.to_ne_bytes());
        }
        assert!(inserted > 60 / step, "{inserted}");
        let with = parts.counted().file();
        for (found, expected) in read(&other, &with).iter().zip(&expected) {
            assert_eq!(found, expected);
        }
        // Both are equal.
        let (one, two) = (place.load(plain).unwrap(), other.load(&with).unwrap());
        let [of_one, of_two] = [&one, &two].map(|snapshot| Ruleset::try_from(snapshot).unwrap());
        assert_eq!(of_one, of_two);
        let again = two.plan(&of_one.to_snapshot(&Scope::all()), PlanOptions::default());
        let again = again.unwrap();
        assert!(again.is_empty(), "{again}");
        for (one, two) in [(&one, &two), (&two, &one)] {
            for counters in [false, true] {
                let mut options = DiffOptions::default();
                options.counters = counters;
                let diff = one.diff(two, options).unwrap();
                assert!(diff.is_empty(), "{diff}");
                let mut options = PlanOptions::default();
                options.remove_other_tables = true;
                options.remove_dynamic_elements = true;
                options.counters = counters;
                let plan = one.plan(two, options).unwrap();
                assert!(plan.is_empty(), "{plan}");
            }
        }
    }
}
