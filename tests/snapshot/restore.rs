//! Rulesets that `nft` 1.0.6 cannot express, created by the crate: saved, flushed, restored, and the
//! same, attribute by attribute. Those that `nft` can express are in `rulesets/`, and restored in
//! `snapshot.rs`.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::common::{committed, connect, kernel, report, sandbox};
use chainwright::nft::expr::{
    Connlimit, ConnlimitFlags, Counter, Limit, ObjectType, Quota, QuotaFlags, Synproxy,
    SynproxyFlags,
};
use chainwright::nft::stateful::{
    CtExpect, CtHelper, CtTimeout, TunnelErspan, TunnelGeneve, TunnelIp, TunnelIp6, TunnelObject,
    TunnelOption, TunnelOptions, TunnelVxlan,
};
use chainwright::nft::{
    Bytes, DataType, DiffOptions, Element, Family, ObjectData, Scope, Set, Snapshot,
    StatefulObject, Table, Transaction,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Creates a ruleset, saves it to a file, flushes it, restores it, and compares.
#[track_caller]
fn assert_restored(fill: impl FnOnce(&mut Transaction)) {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, fill);
    let before = nft.snapshot(Scope::all()).unwrap();
    assert!(before.tables().len() > 0);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("backup");
    before.save(&path).unwrap();
    let loaded = Snapshot::load(&path).unwrap();
    committed(&mut nft, |tx| {
        for table in before.tables() {
            let table = table.table();
            tx.delete(&Table::new(table.family(), table.name()))
                .unwrap();
        }
    });
    // Into an empty ruleset, and over itself, each after a check.
    for _ in 0..2 {
        let generation = nft.generation().unwrap();
        if let Err(error) = loaded.check(&mut nft) {
            panic!("{}", report(&error));
        }
        assert_eq!(nft.generation().unwrap(), generation);
        loaded.restore(&mut nft).unwrap();
        let after = nft.snapshot(Scope::all()).unwrap();
        let mut options = DiffOptions::default();
        options.counters = true;
        let diff = before.diff(&after, options).unwrap();
        assert!(diff.is_empty(), "{diff}");
    }
}

/// Whether the kernel keeps all options that it accepts.
fn is_kept(options: &[TunnelOption<'_>]) -> bool {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let tunnel = TunnelObject {
        id: Some(1),
        ip: Some(TunnelIp {
            source: Some(1),
            destination: Some(2),
            ..TunnelIp::default()
        }),
        options: Some(TunnelOptions(options.to_vec())),
        ..TunnelObject::default()
    };
    let netdev = Family::NETDEV;
    committed(&mut nft, |tx| {
        tx.add(&Table::new(netdev, "t")).unwrap();
        tx.add(&StatefulObject::new(netdev, "t", "o", tunnel))
            .unwrap();
    });
    let found = nft.object(netdev, "t", ObjectType::TUNNEL, "o").unwrap();
    let Some(ObjectData::Tunnel(found)) = found.unwrap().data() else {
        panic!("not a tunnel");
    };
    let found = found.options.map_or(0, |options| options.0.len());
    if found < options.len() {
        assert!(options.len() > 1, "{options:?}");
        println!(
            "this kernel lacks more than one Geneve option for a tunnel: it keeps only the last one"
        );
    }
    found == options.len()
}

/// The kernel lists Geneve options without the nested flag, and refuses them without it.
#[test]
fn tunnels_with_options_of_every_kind() {
    let geneve = |option_type, data| {
        TunnelOption::Geneve(TunnelGeneve {
            class: Some(1),
            option_type: Some(option_type),
            data: Some(Bytes::borrowed(data)),
            ..TunnelGeneve::default()
        })
    };
    let vxlan = TunnelOption::Vxlan(TunnelVxlan {
        gbp: Some(4),
        ..TunnelVxlan::default()
    });
    let erspan = TunnelErspan {
        version: Some(1),
        index: Some(3),
        ..TunnelErspan::default()
    };
    let erspan_2 = TunnelErspan {
        version: Some(2),
        hardware_id: Some(5),
        direction: Some(1),
        ..TunnelErspan::default()
    };
    let ip6 = [0xfd; 16];
    let options = [
        None,
        Some(vec![geneve(1, &[1, 2, 3, 4])]),
        Some(vec![geneve(1, &[1, 2, 3, 4]), geneve(2, &[5; 124])]),
        Some(vec![vxlan]),
        Some(vec![TunnelOption::Erspan(erspan)]),
        Some(vec![TunnelOption::Erspan(erspan_2)]),
    ];
    let options = options
        .into_iter()
        .filter(|options| options.as_ref().is_none_or(|options| is_kept(options)));
    let options: Vec<_> = options.collect();
    assert_restored(|tx| {
        tx.add(&Table::new(Family::NETDEV, "t")).unwrap();
        for (number, options) in options.iter().enumerate() {
            for over_ip6 in [false, true] {
                let tunnel = TunnelObject {
                    id: Some(number as u32),
                    ip: (!over_ip6).then(|| TunnelIp {
                        source: Some(0x0a00_0001),
                        destination: Some(0x0a00_0002),
                        ..TunnelIp::default()
                    }),
                    ip6: over_ip6.then(|| TunnelIp6 {
                        source: Some(Bytes::borrowed(&ip6)),
                        destination: Some(Bytes::borrowed(&ip6)),
                        ..TunnelIp6::default()
                    }),
                    tos: Some(4),
                    ttl: Some(64),
                    sport: Some(1),
                    dport: Some(4789),
                    options: options.clone().map(TunnelOptions),
                    ..TunnelObject::default()
                };
                let name = format!("tunnel-{number}-{over_ip6}");
                tx.add(&StatefulObject::new(Family::NETDEV, "t", name, tunnel))
                    .unwrap();
            }
        }
    });
}

/// Each with a comment; timeouts and expectations of every protocol that the kernel accepts.
#[test]
fn objects_of_every_type() {
    const TCP: u8 = libc::IPPROTO_TCP as u8;
    let quota = |flags, consumed| Quota {
        bytes: Some(1000),
        flags: Some(flags),
        consumed: Some(consumed),
        ..Quota::default()
    };
    let connlimit = |flags| Connlimit {
        count: Some(3),
        flags: Some(flags),
        ..Connlimit::default()
    };
    let synproxy = |flags| Synproxy {
        mss: Some(1460),
        wscale: Some(7),
        flags: Some(SynproxyFlags::from_bits_retain(flags)),
        ..Synproxy::default()
    };
    let helper = |name: &'static str, protocol, family| CtHelper {
        l3proto: Some(family),
        ..CtHelper::new(name, protocol)
    };
    let mut objects: Vec<ObjectData<'_>> = vec![
        Counter::new(u64::MAX, u64::MAX).into(),
        quota(QuotaFlags::empty(), 0).into(),
        quota(QuotaFlags::INV, 999).into(),
        quota(QuotaFlags::empty(), 1000).into(),
        Limit::packets(400, 60, 7).into(),
        Limit::packets(1, 604_800, 1).into(),
        connlimit(ConnlimitFlags::empty()).into(),
        connlimit(ConnlimitFlags::INV).into(),
        synproxy(0).into(),
        synproxy(3).into(),
        helper("ftp", TCP, 2).into(),
        helper("tftp", 17, 2).into(),
        helper("sip", 17, 2).into(),
    ];
    // ICMP, TCP, UDP, GRE, ICMPv6, SCTP, all others; UDP-Lite, which newer kernels lack.
    let mut protocols = vec![1, TCP, 17, 47, 58, 132, 255];
    let mut udp_lite = Transaction::new();
    let timeout = CtTimeout {
        l3proto: Some(2),
        ..CtTimeout::new(136, &[(1, 11)])
    };
    udp_lite
        .add(&Table::new(Family::IP, "t"))
        .unwrap()
        .add(&StatefulObject::new(Family::IP, "t", "o", timeout))
        .unwrap();
    let what = "timeouts of UDP-Lite";
    let words = "built without this type of object, or not for this family or protocol";
    if kernel::commit_if_built(&mut connect(&sandbox()), &mut udp_lite, what, words) {
        protocols.push(136);
    }
    for protocol in protocols {
        for family in [2, 10] {
            let timeout = CtTimeout {
                l3proto: Some(family),
                ..CtTimeout::new(protocol, &[(1, 11)])
            };
            objects.push(timeout.into());
        }
    }
    for protocol in [TCP, 17, 33, 132] {
        let expect = CtExpect {
            l3proto: Some(2),
            ..CtExpect::new(protocol, 5432, 3_600_000, 12)
        };
        objects.push(expect.into());
    }
    for family in [Family::IP, Family::INET] {
        assert_restored(|tx| {
            tx.add(&Table::new(family, "t").with_comment("the table").unwrap())
                .unwrap();
            for (number, data) in objects.iter().enumerate() {
                let object = StatefulObject::new(family, "t", format!("o{number}"), data.clone())
                    .with_comment(&format!("number {number}"))
                    .unwrap();
                tx.add(&object).unwrap();
            }
        });
    }
}

/// A set or map of intervals of ports.
#[derive(Debug, Clone)]
struct Intervals {
    /// Alternating starts and ends of intervals; an end is the first value after the interval.
    bounds: BTreeSet<u32>,
    /// Whether each begins where the previous one ends.
    adjacent: bool,
    sized: bool,
    passing: bool,
    values: bool,
    counters: bool,
    catch_all: bool,
}

impl Intervals {
    fn any() -> impl Strategy<Value = Self> {
        // Bytes of ones and of zeros have a special meaning to the kernel, and so have both limits.
        let bound = prop_oneof![
            0..65_537u32,
            Just(0),
            Just(1),
            Just(0x0100),
            Just(0x0101),
            Just(65_535),
            Just(65_536)
        ];
        let flags = any::<(bool, bool, bool, bool, bool, bool)>();
        (prop::collection::btree_set(bound, 2..60), flags).prop_map(|(bounds, flags)| Self {
            bounds,
            adjacent: flags.0,
            sized: flags.1,
            passing: flags.2,
            values: flags.3,
            counters: flags.4,
            catch_all: flags.5,
        })
    }

    fn pairs(&self) -> Vec<[u32; 2]> {
        let bounds: Vec<_> = self.bounds.iter().copied().collect();
        match self.adjacent {
            true => bounds.windows(2).map(|two| [two[0], two[1]]).collect(),
            false => bounds.chunks_exact(2).map(|two| [two[0], two[1]]).collect(),
        }
    }

    fn add_to(&self, tx: &mut Transaction) {
        let key = |bound: u32| (bound as u16).to_be_bytes().to_vec();
        let pairs = self.pairs();
        let mut set = Set::new(Family::IP, "t", "s", DataType::INET_SERVICE, 2).with_interval();
        set.id = Some(1);
        if self.sized {
            set = set.with_size(pairs.len() as u32);
        }
        if self.passing {
            set = set.with_timeout(Some(Duration::from_secs(86_400)));
        }
        if self.values {
            set = set.with_data(DataType::MARK, 4);
        }
        if self.counters {
            set = set.with_expression(&Counter::default());
        }
        let mut elements = Vec::new();
        if pairs[0][0] > 0 {
            elements.push(Element::end(key(0)));
        }
        let starting = |element: Element<'static>, number: u32| {
            let mut element = element;
            if self.values {
                element = element.with_data(number.to_ne_bytes().to_vec());
            }
            if self.counters {
                element = element.with_expression(&Counter::new(number.into(), 1));
            }
            element
        };
        for &[from, to] in &pairs {
            elements.push(starting(Element::new(key(from)), from));
            if to < 65_536 {
                elements.push(Element::end(key(to)));
            }
        }
        if self.catch_all {
            elements.push(starting(Element::catch_all(), 7));
        }
        tx.add(&Table::new(Family::IP, "t")).unwrap();
        tx.add(&set).unwrap();
        tx.add_elements(&set.set_id(), elements).unwrap();
    }
}

#[test]
fn sets_of_any_intervals() {
    let mut runner = TestRunner::new(Config {
        cases: 200,
        failure_persistence: None,
        ..Config::default()
    });
    runner
        .run(&Intervals::any(), |intervals| {
            assert_restored(|tx| intervals.add_to(tx));
            Ok(())
        })
        .unwrap();
}
