//! Commands and table blocks.

use super::*;
use crate::syntax::Expr;
use chainwright::nft::expr::ObjectType;
use chainwright::nft::{
    ChainFlags, DataType, Family, FlowtableFlags, ObjectData, Policy, SetFlags, SetPolicy,
    TableFlags,
};

/// Formats the objects of commands in short form.
fn short(commands: &[Command]) -> Vec<String> {
    let name = |name: &Option<chainwright::nft::Name<'_>>| {
        name.as_ref().map_or("-".to_owned(), ToString::to_string)
    };
    let object = |object: &Object| match object {
        Object::Ruleset(family) => format!("ruleset {family}"),
        Object::Table(table) => format!("table {} {}", table.family, name(&table.name)),
        Object::Chain(chain) => format!("chain {} {}", name(&chain.table), name(&chain.name)),
        Object::Renamed(chain, new) => format!("chain {} to {new}", name(&chain.name)),
        Object::Rule(rule) => {
            format!(
                "rule {} {} {}: {}",
                rule.family,
                rule.table,
                rule.chain,
                printed(rule).unwrap_or_default()
            )
        }
        Object::Set(set) => format!(
            "{} {}",
            if set.is_map { "map" } else { "set" },
            name(&set.set.name)
        ),
        Object::Elements(elements) => {
            format!("{} elements of {}", elements.elements.len(), elements.set)
        }
        Object::Flowtable(flowtable) => format!("flowtable {}", name(&flowtable.name)),
        Object::Stateful(object) => format!("object {}", name(&object.name)),
        Object::Kind(kind, family, table) => format!("{kind:?} {family} {}", name(table)),
        Object::Meter(set) => format!("meter {}", name(&set.name)),
        Object::Monitor(watched) => format!("{watched:?}"),
        Object::Described(described) => format!("{described:?}"),
    };
    let one = |command: &Command| format!("{:?} {}", command.verb, object(&command.object));
    commands.iter().map(one).collect()
}

#[test]
fn tables_are_created_first_and_rules_last() {
    let text = "create table inet t {
        chain a { type filter hook input priority 0; jump b; }
        set s { type ipv4_addr; elements = { 1.1.1.1, 1.1.1.2 } }
        counter n { }
        flowtable f { hook ingress priority 0; devices = { lo }; }
        map m { type ipv4_addr : verdict; elements = { 1.1.1.1 : jump b } }
        chain b { counter name n; }
        quota q { 5 mbytes }
    }";
    assert_eq!(
        short(&commands(text)),
        [
            "Create table inet t",
            "Add chain t a",
            "Add chain t b",
            "Add object n",
            "Add object q",
            "Add set s",
            "Add 2 elements of s",
            "Add map m",
            "Add 1 elements of m",
            "Add flowtable f",
            "Add rule inet t a: jump b",
            "Add rule inet t b: counter name n",
        ]
    );
}

#[test]
fn commands_of_every_verb_are_read() {
    let cases: Vec<_> = include_str!("commands.txt")
        .lines()
        .filter_map(|line| line.split_once(" => "))
        .collect();
    assert_eq!(cases.len(), 57);
    for (text, expected) in cases {
        let found = short(&commands(text));
        assert_eq!((found.len(), found[0].trim_end()), (1, expected), "{text}");
    }
    let text = "add table t; add chain t c\n\n;add rule t c accept;delete table t";
    assert_eq!(short(&commands(text)).len(), 4);
}

#[test]
fn chain_hooks_are_parsed() {
    let text = "table inet t {
        chain a { type filter hook forward priority filter - 10; policy drop; comment \"x\"; flags offload; }
        chain b { type nat hook prerouting priority dstnat + 5; }
        chain d { type filter hook ingress device \"eth0\" priority -500; }
        chain e { type filter hook ingress devices = { eth0, \"eth1\", wg* } priority 0; policy accept; }
        chain f { }
    }
    define p = \"filter + 1\"
    table bridge t { chain a { type filter hook output priority out; }; chain b { type filter hook input priority $p; }; }
    table arp t { chain a { type filter hook input priority filter; }; }";
    let commands = commands(text);
    let mut chains = commands.iter().filter_map(|command| match &command.object {
        Object::Chain(chain) => Some(chain),
        _ => None,
    });
    let mut next = || chains.next().expect("no further command");
    let number = |chain: &chainwright::nft::Chain<'_>| {
        let hook = chain.hook.as_ref().expect("no hook");
        (
            hook.number.unwrap_or_default(),
            hook.priority.unwrap_or_default(),
        )
    };
    let chain = next();
    assert_eq!(number(chain), (2, -10));
    assert_eq!(chain.policy, Some(Policy::DROP));
    assert_eq!(chain.flags, Some(ChainFlags::HW_OFFLOAD));
    assert!(chain.userdata.is_some());
    let chain = next();
    assert_eq!(number(chain), (0, -95));
    assert_eq!(
        chain
            .chain_type
            .as_ref()
            .map(ToString::to_string)
            .as_deref(),
        Some("nat")
    );
    assert_eq!((chain.policy, chain.flags), (None, None));
    let chain = next();
    assert_eq!(number(chain), (5, -500));
    let hook = chain.hook.as_ref().expect("no hook");
    assert_eq!(
        hook.device.as_ref().map(ToString::to_string).as_deref(),
        Some("eth0")
    );
    let chain = next();
    let hook = chain.hook.as_ref().expect("no hook");
    let devices = format!("{:?}", hook.devices);
    assert!(hook.device.is_none());
    for device in ["eth0", "eth1", "wg"] {
        assert!(devices.contains(device), "{devices}");
    }
    assert!(devices.contains("Prefix"), "{devices}");
    assert_eq!(next().hook, None);
    assert_eq!(number(next()), (3, 100));
    assert_eq!(number(next()), (1, -199));
    assert_eq!(number(next()), (0, 0));
}

#[test]
fn set_declarations_are_parsed() {
    let text = "table ip t {
        set s { type ipv4_addr . inet_service; flags interval,timeout; timeout 1d2h; gc-interval 5m; size 100
            policy memory; auto-merge; comment \"x\"; counter; quota 5 mbytes; }
        map m { typeof ip saddr . tcp dport : interval ip daddr . tcp sport; flags dynamic; }
        map n { type mark : counter; }
        map o { typeof meta mark : ct helper; }
        map v { typeof iifname : verdict; elements = { \"lo\" timeout 5s comment \"x\" : accept, * : drop, }; }
    }";
    let commands = commands(text);
    let sets: Vec<&SetDeclaration> = commands
        .iter()
        .filter_map(|command| match &command.object {
            Object::Set(set) => Some(&**set),
            _ => None,
        })
        .collect();
    let s = sets[0];
    assert!(!s.is_map && s.auto_merge);
    assert_eq!(s.set.flags, Some(SetFlags::INTERVAL | SetFlags::TIMEOUT));
    assert_eq!(s.set.timeout.map(|time| time.0), Some(93_600_000));
    assert_eq!(s.set.gc_interval.map(|time| time.0), Some(300_000));
    assert_eq!(s.set.policy, Some(SetPolicy::MEMORY));
    assert_eq!(s.set.description.as_ref().and_then(|d| d.size), Some(100));
    assert_eq!(s.comment.as_deref(), Some("x"));
    assert_eq!(s.statements.len(), 2);
    let types = Declared::Types(vec![DataType::IPV4_ADDR, DataType::INET_SERVICE]);
    assert_eq!(s.keys.as_ref().map(|(declared, _)| declared), Some(&types));
    let m = sets[1];
    assert!(m.is_map && m.data_is_interval);
    assert!(
        matches!(&m.data, Some((Declared::Typeof(Expr::Concat(parts)), _)) if parts.len() == 2)
    );
    assert!(matches!(
        &sets[2].data,
        Some((Declared::Objects(ObjectType::COUNTER), _))
    ));
    assert!(matches!(
        &sets[3].data,
        Some((Declared::Objects(ObjectType::CT_HELPER), _))
    ));
    assert_eq!(
        sets[4].data.as_ref().map(|(declared, _)| declared),
        Some(&Declared::Types(vec![DataType::VERDICT]))
    );
    let elements: Vec<&Elements> = commands
        .iter()
        .filter_map(|command| match &command.object {
            Object::Elements(elements) => Some(elements),
            _ => None,
        })
        .collect();
    let of_map: Vec<_> = elements[0].elements.iter().collect();
    let [lo, others] = &of_map[..] else {
        panic!("{of_map:?}");
    };
    assert_eq!((lo.timeout, lo.comment.as_deref()), (Some(5000), Some("x")));
    assert_eq!(others.key, None);
    assert_eq!(elements.len(), 1);
}

#[test]
fn stateful_objects_parse_in_both_forms() {
    for (block, line) in [
        (
            "counter n { packets 1 bytes 2; comment \"x\" }",
            "counter ip t n { packets 1 bytes 2 comment \"x\" }",
        ),
        ("counter n { }", "counter ip t n"),
        (
            "quota n { over 5 mbytes used 1 kbytes; }",
            "quota ip t n over 5 mbytes used 1 kbytes",
        ),
        (
            "limit n { rate over 5/minute burst 7 packets }",
            "limit ip t n rate over 5/minute burst 7 packets",
        ),
        (
            "synproxy n { mss 1460; wscale 7; timestamp sack-perm; }",
            "synproxy ip t n mss 1460 wscale 7 timestamp sack-perm",
        ),
        (
            "secmark n { \"system_u:x\" }",
            "secmark ip t n \"system_u:x\"",
        ),
        (
            "ct helper n { type \"ftp\" protocol tcp; l3proto ip; }",
            "ct helper ip t n { l3proto ip; type \"ftp\" protocol tcp; }",
        ),
        (
            "ct timeout n { protocol tcp; policy = { close : 4, established : 1m }; l3proto ip6; }",
            "ct timeout ip t n { policy = { established : 60, close : 4s }; protocol tcp; l3proto ip6; }",
        ),
        (
            "ct expectation n { protocol tcp; dport 5432; timeout 1h; size 12; l3proto ip; }",
            "ct expectation ip t n { size 12; timeout 1h; dport 5432; protocol tcp; l3proto ip; }",
        ),
    ] {
        let of_block = commands(&format!("table ip t {{\n{block}\n}}\n"));
        let of_line = commands(&format!("add {line}\n"));
        assert_eq!(of_block[1].object, of_line[0].object, "{block}");
        let Object::Stateful(object) = &of_line[0].object else {
            panic!("{line}");
        };
        assert!(
            !matches!(object.data, None | Some(ObjectData::Opaque(_))),
            "{line}"
        );
    }
    let commands = commands(
        "add ct timeout ip t n { protocol tcp; policy = { close : 4, established : 1m }; }",
    );
    let Object::Stateful(object) = &commands[0].object else {
        panic!("{commands:?}");
    };
    let Some(ObjectData::CtTimeout(timeout)) = &object.data else {
        panic!("{object:?}");
    };
    let timeouts: Vec<_> = timeout
        .timeouts
        .iter()
        .flat_map(|timeouts| timeouts.iter())
        .collect();
    // Missing timeouts are nft's defaults.
    let expected = [120, 60, 60, 120, 60, 30, 120, 4, 120, 300, 300];
    assert!(timeouts.into_iter().eq((1..).zip(expected)));
}

#[test]
fn tables_and_flowtables_have_their_flags() {
    let commands = commands(
        "table t { flags dormant, persist; comment \"x\"; }
        add flowtable t f { hook ingress priority filter + 1; devices = { a, b }; flags offload; counter; }
        delete chain netdev t c { type filter hook ingress devices = { eth0 } priority 0; }",
    );
    let Object::Table(table) = &commands[0].object else {
        panic!("{commands:?}");
    };
    assert_eq!(table.flags, Some(TableFlags::DORMANT | TableFlags::PERSIST));
    assert!(table.userdata.is_some());
    let Object::Flowtable(flowtable) = &commands[1].object else {
        panic!("{commands:?}");
    };
    assert_eq!(
        flowtable.flags,
        Some(FlowtableFlags::HW_OFFLOAD | FlowtableFlags::COUNTER)
    );
    assert_eq!(
        flowtable.hook.as_ref().and_then(|hook| hook.priority),
        Some(1)
    );
    let Object::Chain(chain) = &commands[2].object else {
        panic!("{commands:?}");
    };
    assert_eq!(
        (chain.family, commands[2].verb),
        (Family::NETDEV, Verb::Delete)
    );
    assert!(
        chain
            .hook
            .as_ref()
            .is_some_and(|hook| hook.devices.is_some())
    );
}

#[test]
fn rule_positions_are_parsed() {
    for (words, position) in [
        ("", Position::Any),
        ("handle 5 ", Position::Handle(5)),
        ("position 6 ", Position::Handle(6)),
        ("index 0 ", Position::Index(0)),
    ] {
        let commands = commands(&format!("insert rule ip t c {words}accept comment \"x\""));
        let rule = rules(&commands).next().expect("no rule");
        assert_eq!(rule.position, position);
        assert_eq!(rule.comment.as_deref(), Some("x"));
        assert_eq!(rule.statements.len(), 1);
        // The location of a command covers the words that name its object.
        let end = format!("insert rule ip t c {words}").trim_end().len() as u32;
        assert_eq!((commands[0].span.start, commands[0].span.end), (0, end));
    }
}
