//! Differences from 1.1.7, and what cannot be compared.

/// Rules for which 1.1.7 sends something else, and the reasons.
pub(super) const SENT_DIFFERENTLY: &[(&str, &str)] = &[
    (
        "udp dport 4789 vxlan icmp id 7",
        "it matches the type for this field outside of the tunnel",
    ),
    ("udp dport 4789 vxlan icmp mtu 7", "the same"),
    ("udp dport 4789 vxlan icmpv6 mtu 7", "the same"),
    (
        "udp dport 4789 vxlan ip saddr 10.0.0.1 udp dport 6081 geneve ip saddr 10.0.0.2",
        "it applies the matches inside one tunnel to packets inside another one",
    ),
];

/// Lines that 1.1.7 lists differently: its text, the library's, and the reason.
pub(super) const LISTED_DIFFERENTLY: &[(&str, &str, &str)] = &[
    (
        "vxlan vni . th sport",
        "vxlan vni . udp sport",
        "after a field of a tunnel it ignores the matches outside",
    ),
    ("vxlan vni . @nh,96,32", "vxlan vni . ip saddr", "the same"),
    (
        "meta protocol ip meta mark set vxlan ip saddr",
        "meta mark set vxlan ip saddr",
        "it lists an implied match inside as a match outside",
    ),
    (
        "meta protocol ip meta l4proto tcp meta mark set jhash vxlan ip saddr . vxlan udp dport",
        "meta mark set jhash vxlan ip saddr . vxlan tcp dport",
        "the same",
    ),
    ("meta protocol ip jhash vxlan", "jhash vxlan", "the same"),
    (
        "meta protocol ip meta mark set gre @nh,96,32",
        "meta mark set gre ip saddr",
        "the same",
    ),
    ("meta protocol ip gre igmp", "gre igmp", "the same"),
    (
        "meta nfproto ipv4 vxlan ip saddr . ip saddr",
        "vxlan ip saddr . ip saddr",
        "it lists an implied match",
    ),
    (
        "meta protocol ip vxlan ip saddr . ip saddr",
        "vxlan ip saddr . ip saddr",
        "the same",
    ),
    (
        "udp dport 4789 vxlan ip saddr 10.0.0.1",
        "udp dport 4789 vxlan ether type ip vxlan ip saddr 10.0.0.1",
        "frames with a tag are no longer excluded: parsed again, it matches the packet's protocol",
    ),
    (
        "vxlan vni 3 udp dport 4789",
        "meta l4proto udp vxlan vni 3 udp dport 4789",
        "it cannot parse this itself",
    ),
    (
        "@th,0,8 { 0x0, 0x8 } vxlan icmp id 7",
        "vxlan icmp type { echo-reply, echo-request } vxlan icmp id 7",
        "the text is a different rule",
    ),
    (
        "udp sport 768/8 vxlan icmp sequence 7",
        "vxlan icmp type destination-unreachable vxlan icmp mtu 7",
        "the same",
    ),
    (
        "udp sport 512/8 vxlan icmpv6 parameter-problem 7",
        "vxlan icmpv6 type packet-too-big vxlan icmpv6 mtu 7",
        "the same",
    ),
    (
        "tunnel id . tunnel path { 0 . 5 }",
        "tunnel id . tunnel path { 5 . exists }",
        "it loses the byte order of a number",
    ),
    (
        "tunnel id . udp dport { 0 . 1280 }",
        "tunnel id . udp dport { 5 . 53 }",
        "the same",
    ),
    (
        "tunnel id . ip saddr { 0 . 5.0.0.0 }",
        "tunnel id . ip saddr { 5 . 10.0.0.1 }",
        "the same",
    ),
];

/// A match that 1.1.7 prints if more than one value is matched inside of GRE, though it is implied.
pub(super) const REDUNDANT_MATCH: &str = "meta l4proto gre gre";

/// Maps that JSON describes incompletely, like others: only the type of the data, which for numbers has no length.
pub(super) const NOT_IN_JSON: &[&str] = &["m1", "m3"];

/// A rule whose listing gives instructions in another order, like that of 1.1.7.
pub(super) const IN_OTHER_ORDER: &str = "meta l4proto gre ip saddr 10.0.0.1 gre ip saddr 10.0.0.2";
