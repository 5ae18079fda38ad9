//! Types of keys and data: later users of a set know how it was declared, and rules use only sets of their types.

use chainwright_lang::{Options, RunMode, Script};

use super::*;

fn run(nft: &mut Connection, text: &str) -> Result<(), String> {
    let script = Script::parse("-", text).unwrap();
    let done = script.run(nft, RunMode::Commit, &Options::default());
    done.map(|_| ()).map_err(|error| error.to_string())
}

/// Fields whose type does not determine the length or the byte order of their values.
const FIELDS: &[&str] = &[
    "ip id",
    "ip length",
    "ip ttl",
    "ip checksum",
    "ip frag-off",
    "ip version",
    "ip6 flowlabel",
    "ip6 length",
    "ip6 hoplimit",
    "tcp sequence",
    "tcp ackseq",
    "tcp window",
    "tcp checksum",
    "tcp urgptr",
    "tcp doff",
    "udp length",
    "udp checksum",
    "icmp id",
    "icmp sequence",
    "icmp mtu",
    "icmpv6 id",
    "icmpv6 mtu",
    "vlan id",
    "vlan pcp",
    "ah spi",
    "ah sequence",
    "esp spi",
    "esp sequence",
    "comp cpi",
    "sctp vtag",
    "arp htype",
    "arp hlen",
    "ct zone",
    "ct id",
    "ct avgpkt",
    "ct bytes",
    "ct packets",
    "meta length",
    "meta cpu",
    "meta random",
    "meta cgroup",
    "frag id",
    "frag frag-off",
    "tcp option maxseg size",
    "tcp option window count",
    "tcp option timestamp tsval",
    "numgen inc mod 100",
    "symhash mod 100",
    "rt mtu",
    "dst hdrlength",
    "srh tag",
    "@th,32,16",
    "@nh,0,8",
];

/// A table that has such packets, a field of addresses and an address.
fn address_key_for(field: &str) -> [&'static str; 3] {
    match field.split(' ').next() {
        Some("ip6" | "icmpv6" | "frag" | "dst" | "srh") => ["ip6", "ip6 saddr", "2001:db8::1"],
        Some("arp") => ["arp", "arp saddr ip", "192.0.2.1"],
        Some("vlan") => ["bridge", "ether saddr", "00:11:22:33:44:55"],
        _ => ["ip", "ip saddr", "192.0.2.1"],
    }
}

/// The value 5 of a field is preserved in a set, or map, that was created before, by nft or the library; and rules look
/// it up.
#[test]
fn fields_are_known_later() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let mut nft = connect(&sandbox);
    for field in FIELDS {
        let [family, of_address, address] = address_key_for(field);
        // The declaration, an element, and a rule's key.
        let key = format!("{of_address} . {field}");
        let turned = format!("{field} . {of_address}");
        let kinds = [
            (
                format!("set {family} t s {{ typeof {field}; }}"),
                "5".to_owned(),
                Some(*field),
            ),
            (
                format!("set {family} t s {{ typeof {key}; }}"),
                format!("{address} . 5"),
                Some(&key),
            ),
            (
                format!("set {family} t s {{ typeof {turned}; }}"),
                format!("5 . {address}"),
                Some(&turned),
            ),
            (
                format!("map {family} t s {{ typeof {of_address} : {field}; }}"),
                format!("{address} : 5"),
                None,
            ),
            (
                format!("map {family} t s {{ typeof {of_address} : {key}; }}"),
                format!("{address} : {address} . 5"),
                None,
            ),
            (
                format!("map {family} t s {{ typeof {key} : meta mark; }}"),
                format!("{address} . 5 : 0x00000007"),
                None,
            ),
        ];
        for (declared, element, looked_up) in kinds {
            let base = format!("flush ruleset\nadd table {family} t\nadd {declared}\n");
            for is_nft in [true, false] {
                match is_nft {
                    true => _ = tools.run_with("nft -f -", &base),
                    false => run(&mut nft, &base).unwrap(),
                }
                let context = format!("{declared} by nft: {is_nft}: {element}");
                let add = format!("add element {family} t s {{ {element} }}");
                run(&mut nft, &add).unwrap_or_else(|error| panic!("{context}: {error}"));
                let listed = tools.run(&format!("nft list ruleset {family}"));
                // nft 1.0.6 misreads such data of maps itself.
                let ours = script_listing(&mut nft);
                let expected = format!("elements = {{ {element} }}");
                let normalized = ours.replace("0x5 ", "5 ").replace("0x05 ", "5 ");
                assert!(
                    normalized.contains(&expected),
                    "{context}: {ours}\n{listed}"
                );
                if let Some(key) = looked_up {
                    let rule = format!("add chain {family} t c\nadd rule {family} t c {key} @s");
                    run(&mut nft, &rule).unwrap_or_else(|error| panic!("{context}: {error}"));
                    assert!(
                        listed.contains(&expected) || listed.contains("0x"),
                        "{context}: {listed}"
                    );
                }
                let delete = format!("delete element {family} t s {{ {element} }}");
                run(&mut nft, &delete).unwrap_or_else(|error| panic!("{context}: {error}"));
            }
            // What nft adds to a set in the text that declares it equals a later addition.
        }
    }
}

fn script_listing(nft: &mut Connection) -> String {
    let script = Script::parse("-", "list ruleset").unwrap();
    let query = script.queries().next().unwrap();
    let answer = query.answer(nft).unwrap();
    answer.listing(&Options::default()).to_string()
}

/// A set whose user data does not describe its numbers accepts no elements from a text.
#[test]
fn sets_without_type_data_accept_no_text_elements() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        let set = Set::new(IP, "t", "s", DataType::INTEGER, 4)
            .with_fields(&[(DataType::IPV4_ADDR, 4), (DataType::INTEGER, 2)]);
        tx.add(&set).unwrap();
    });
    let error = run(&mut nft, "add element ip t s { 192.0.2.1 . 5 }").unwrap_err();
    assert!(error.contains("does not record the byte order"), "{error}");
}

const COMMON: &str = "flush ruleset
add table ip t
add table inet t
add table netdev t
add map ip t address { type ipv4_addr : ipv4_addr; }
add map ip t range { type ipv4_addr : interval ipv4_addr; }
add map ip t both { type ipv4_addr : ipv4_addr . inet_service; }
add map ip t turned { type ipv4_addr : inet_service . ipv4_addr; }
add map ip t three { type ipv4_addr : ipv4_addr . inet_service . mark; }
add map ip t marked { type ipv4_addr : ipv4_addr . mark; }
add map ip t address6 { type ipv4_addr : ipv6_addr; }
add map ip t port { type ipv4_addr : inet_service; }
add map ip t frame { type ipv4_addr : ether_type; }
add map ip t mark { type ipv4_addr : mark; }
add map ip t class { type ipv4_addr : classid; }
add map ip t state { type ipv4_addr : ct_state; }
add map ip t name { type ipv4_addr : ifname; }
add map ip t device { type ipv4_addr : iface_index; }
add map ip t version { type ipv4_addr : nf_proto; }
add map ip t kind { type ipv4_addr : pkt_type; }
add map ip t number { typeof ip saddr : ip id; }
add map ip t zone { typeof ip saddr : ct zone; }
add map ip t verdict { type ipv4_addr : verdict; }
add map ip t counter { type ipv4_addr : counter; }
add map ip t by_mark { type mark : mark; }
add map ip t by_port { type inet_service : mark; }
add map ip t by_frame { type ether_type : verdict; }
add set ip t marks { type mark; }
add set ip t frames { type ether_type; }
add set ip t ports { type inet_service; }
add set ip t numbers { typeof ip id; }
add set ip t users { type uid; }
add set ip t types { type icmp_type; }
add set ip t marked_addresses { type ipv4_addr . mark; }
add set ip t named_ports { type ipv4_addr . inet_service; }
add set ip t learned { type mark; flags dynamic; }
add map ip t learned_ports { type ipv4_addr : inet_service; flags dynamic; }
add map inet t address { type ipv4_addr : ipv4_addr; }
add map inet t address6 { type ipv4_addr : ipv6_addr; }
add map inet t of_mark { type mark : ipv4_addr; }
add map inet t of_mark6 { type mark : ipv6_addr; }
add map netdev t device { type ipv4_addr : iface_index; }
add map netdev t mark { type ipv4_addr : mark; }
add map netdev t address { type ipv4_addr : ipv4_addr; }
";

/// Rules by context, and whether nft 1.1.7 accepts them.
const RULES: &[(&str, &str, bool)] = &[
    ("ip nat", "dnat to ip saddr map @address", true),
    ("ip nat", "dnat ip to ip saddr map @address", true),
    ("ip nat", "dnat to ip saddr map @range", true),
    ("ip nat", "ip protocol tcp dnat to ip saddr map @both", true),
    (
        "ip nat",
        "ip protocol tcp dnat to ip saddr map @turned",
        false,
    ),
    (
        "ip nat",
        "ip protocol tcp dnat to ip saddr map @three",
        false,
    ),
    (
        "ip nat",
        "ip protocol tcp dnat to ip saddr map @marked",
        false,
    ),
    ("ip nat", "dnat to ip saddr map @address6", false),
    ("ip nat", "dnat to ip saddr map @port", false),
    ("ip nat", "dnat ip to ip saddr map @port", false),
    ("ip nat", "dnat to ip saddr map @mark", false),
    ("ip nat", "dnat to ip saddr map @number", false),
    ("ip nat", "dnat to ip saddr map @verdict", false),
    ("ip nat", "dnat to ip saddr map @counter", false),
    (
        "ip nat",
        "tcp dport 1 dnat to 192.0.2.1:ip saddr map @port",
        true,
    ),
    (
        "ip nat",
        "tcp dport 1 dnat to 192.0.2.1:ip saddr map @frame",
        false,
    ),
    (
        "ip nat",
        "tcp dport 1 dnat to 192.0.2.1:ip saddr map @address",
        false,
    ),
    (
        "ip nat",
        "ip protocol tcp redirect to :ip saddr map @port",
        true,
    ),
    (
        "ip nat",
        "ip protocol tcp redirect to :ip saddr map @frame",
        false,
    ),
    (
        "ip nat",
        "ip protocol tcp redirect to :ip saddr map @number",
        false,
    ),
    (
        "ip nat",
        "ip protocol tcp redirect to :ip saddr map @address",
        false,
    ),
    ("ip snat", "snat to ip saddr map @address", true),
    ("ip snat", "snat to ip saddr map @port", false),
    ("ip snat", "snat to ip saddr map @mark", false),
    (
        "ip snat",
        "ip protocol tcp masquerade to :ip saddr map @port",
        true,
    ),
    (
        "ip snat",
        "ip protocol tcp masquerade to :ip saddr map @frame",
        false,
    ),
    ("inet nat", "dnat ip to ip saddr map @address", true),
    ("inet nat", "dnat to ip saddr map @address", true),
    ("inet nat", "dnat ip to ip saddr map @address6", false),
    ("inet nat", "dnat ip6 to ip saddr map @address6", false),
    ("inet nat", "dnat ip to meta mark map @of_mark", true),
    ("inet nat", "dnat ip to meta mark map @of_mark6", false),
    ("inet nat", "dnat ip6 to meta mark map @of_mark6", true),
    ("inet nat", "dnat to meta mark map @of_mark", false),
    ("inet nat", "dnat to meta mark map @of_mark6", false),
    ("inet nat", "ip6 saddr ::1 dnat ip to 192.0.2.1", false),
    (
        "inet nat",
        "ip saddr 192.0.2.1 dnat ip6 to 2001:db8::1",
        false,
    ),
    (
        "ip filter",
        "ip protocol tcp tproxy to ip saddr map @address",
        true,
    ),
    (
        "ip filter",
        "ip protocol tcp tproxy to ip saddr map @mark",
        false,
    ),
    (
        "ip filter",
        "ip protocol tcp tproxy to :ip saddr map @port",
        true,
    ),
    (
        "ip filter",
        "ip protocol tcp tproxy to :ip saddr map @frame",
        false,
    ),
    ("ip filter", "ip daddr set ip saddr map @address", true),
    ("ip filter", "ip daddr set ip saddr map @mark", false),
    ("ip filter", "ip daddr set ip saddr map @port", false),
    ("ip filter", "tcp dport set ip saddr map @port", true),
    ("ip filter", "tcp dport set ip saddr map @frame", false),
    ("ip filter", "tcp dport set ip saddr map @number", false),
    ("ip filter", "ip id set ip saddr map @number", true),
    ("ip filter", "ip id set ip saddr map @port", false),
    ("ip filter", "meta mark set ip saddr map @mark", true),
    ("ip filter", "meta mark set ip saddr map @class", true),
    ("ip filter", "meta mark set ip saddr map @address", true),
    ("ip filter", "meta mark set ip saddr map @state", false),
    ("ip filter", "meta mark set ip saddr map @name", false),
    ("ip filter", "meta mark set ip saddr map @verdict", false),
    ("ip filter", "meta priority set ip saddr map @class", true),
    ("ip filter", "meta priority set ip saddr map @mark", false),
    ("ip filter", "meta pkttype set ip saddr map @kind", true),
    ("ip filter", "meta pkttype set ip saddr map @version", false),
    ("ip filter", "ct mark set ip saddr map @mark", true),
    ("ip filter", "ct mark set ip saddr map @state", false),
    ("ip filter", "ct zone set ip saddr map @zone", true),
    ("ip filter", "ct zone set ip saddr map @mark", false),
    ("ip filter", "dup to ip saddr map @address", true),
    ("ip filter", "dup to ip saddr map @mark", false),
    (
        "ip filter",
        "dup to 192.0.2.1 device ip saddr map @device",
        true,
    ),
    (
        "ip filter",
        "dup to 192.0.2.1 device ip saddr map @mark",
        false,
    ),
    ("ip filter", "queue to ip saddr map @port", false),
    ("ip filter", "counter name ip saddr map @counter", true),
    ("ip filter", "quota name ip saddr map @counter", false), // nft accepts it, and counts nothing
    ("ip filter", "counter name ip saddr map @mark", false),
    ("ip filter", "ct helper set ip saddr map @counter", false),
    ("ip filter", "ip saddr vmap @verdict", true),
    ("ip filter", "ip saddr vmap @mark", false),
    ("ip filter", "ip saddr vmap @counter", false),
    ("ip filter", "tcp dport vmap @by_frame", false),
    ("ip filter", "meta mark set tcp dport map @by_port", true),
    ("ip filter", "meta mark set @th,16,16 map @by_port", true),
    ("ip filter", "meta mark set ip id map @by_port", false),
    (
        "ip filter",
        "meta mark set meta priority map @by_mark",
        true,
    ),
    ("ip filter", "meta mark set ip saddr map @by_mark", true),
    ("ip filter", "meta mark @marks", true),
    ("ip filter", "ct mark @marks", true),
    ("ip filter", "ip saddr @marks", false),
    ("ip filter", "@nh,96,32 @marks", false),
    ("ip filter", "ip saddr @by_mark", false),
    ("ip filter", "tcp dport @ports", true),
    ("ip filter", "th dport @ports", true),
    ("ip filter", "@th,16,16 @ports", true),
    ("ip filter", "tcp dport @frames", false),
    ("ip filter", "tcp dport @numbers", false),
    ("ip filter", "ip id @numbers", true),
    ("ip filter", "ip length @numbers", true),
    ("ip filter", "ip id @ports", false),
    ("ip filter", "meta skuid @users", true),
    ("ip filter", "meta skgid @users", false),
    ("ip filter", "icmp type @types", true),
    ("ip filter", "icmp code @types", false),
    ("ip filter", "ip saddr . meta mark @marked_addresses", true),
    ("ip filter", "ip saddr . ip daddr @marked_addresses", false),
    ("ip filter", "ip saddr . tcp dport @named_ports", true),
    ("ip filter", "ip saddr . @th,16,16 @named_ports", true),
    ("ip filter", "ip saddr . ip id @named_ports", false),
    ("ip filter", "add @learned { ip saddr }", true),
    ("ip filter", "add @learned { ct mark }", true),
    ("ip filter", "add @learned { tcp dport }", false),
    (
        "ip filter",
        "add @learned_ports { ip saddr : tcp dport }",
        true,
    ),
    (
        "ip filter",
        "add @learned_ports { ip saddr : meta mark }",
        false,
    ),
    (
        "ip filter",
        "add @learned_ports { ip saddr : ip ttl }",
        false,
    ),
    ("ip filter", "ip id set tcp dport", false),
    ("ip filter", "meta priority set ip id", false),
    ("ip filter", "ct zone set ip ttl", false),
    ("netdev ", "fwd to ip saddr map @device", true),
    ("netdev ", "fwd to ip saddr map @mark", false),
    ("netdev ", "dup to ip saddr map @mark", false),
    ("netdev ", "fwd ip to ip saddr map @address device lo", true),
    ("netdev ", "fwd ip to ip saddr map @mark device lo", false),
];

/// The chain for rules in a table of this family and type.
fn chain_of(place: &str) -> (&str, String) {
    let (family, kind) = place
        .split_once(' ')
        .expect("no chain type after the family");
    let hook = match kind {
        "nat" => "{ type nat hook prerouting priority -100; }",
        "snat" => "{ type nat hook postrouting priority 100; }",
        "filter" => "{ type filter hook prerouting priority -150; }",
        _ => "",
    };
    (family, format!("add chain {family} t c {hook}"))
}

/// Rules that misuse a map or a set are refused, whether it is in the kernel or in the same text; others are listed as
/// they were written, and have the same effect again.
#[test]
fn rules_use_sets_of_their_types() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    for (place, rule, is_taken) in RULES {
        let (family, chain) = chain_of(place);
        let text = format!("{chain}\nadd rule {family} t c {rule}\n");
        for in_kernel in [true, false] {
            let context = format!("{place}: {rule}, sets in the kernel: {in_kernel}");
            let done = match in_kernel {
                true => {
                    run(&mut nft, COMMON).unwrap_or_else(|error| panic!("{error}"));
                    run(&mut nft, &text)
                }
                false => run(&mut nft, &format!("{COMMON}{text}")),
            };
            match done {
                Ok(()) => assert!(is_taken, "{context}"),
                Err(error) => {
                    assert!(!is_taken, "{context}: {error}");
                    assert!(
                        !error.contains("rejected by the kernel"),
                        "{context}: {error}"
                    );
                    continue;
                }
            }
            let listed = script_listing(&mut nft);
            let (_, chain) = listed
                .split_once("chain c {")
                .expect("chain c is not listed");
            let mut words = rule.split([' ', ':']);
            let used = words.rfind(|word| word.starts_with('@'));
            assert!(
                used.is_some_and(|name| chain.contains(name)),
                "{context}: {listed}"
            );
            run(&mut nft, &format!("flush ruleset\n{listed}"))
                .unwrap_or_else(|error| panic!("{context}: {error}"));
            assert_eq!(script_listing(&mut nft), listed, "{context}");
        }
    }
}

/// The same in JSON.
#[test]
fn json_uses_maps_of_their_types() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    run(&mut nft, &format!("{COMMON}{}", chain_of("ip nat").1)).unwrap();
    for (map, is_taken) in [
        ("address", true),
        ("port", false),
        ("mark", false),
        ("verdict", false),
    ] {
        let text = format!(
            r#"{{"nftables": [{{"add": {{"rule": {{"family": "ip", "table": "t", "chain": "c", "expr": [
            {{"dnat": {{"addr": {{"map": {{"key": {{"payload": {{"protocol": "ip", "field": "saddr"}}}},
            "data": "@{map}"}}}}}}}}]}}}}}}]}}"#
        );
        let script = Script::parse_json("-", text).unwrap();
        let done = script.run(&mut nft, RunMode::Commit, &Options::default());
        assert_eq!(done.is_ok(), is_taken, "{map}: {done:?}");
    }
}
