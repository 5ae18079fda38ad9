//! Positions of the fields of protocols, options and extension headers.
//!
//! Sources: the protocol specifications and the kernel's headers (`linux/ip.h`, `linux/tcp.h`, …) for the positions,
//! nft(8) for the names. The fields are in the order in which nft numbers them, from 1 on, in the user data of sets
//! ([`SET_KEY_TYPEOF`](chainwright::nft::userdata::SET_KEY_TYPEOF)).

use chainwright::nft::DataType;
use chainwright::nft::expr::{ChecksumType, ExthdrOp, PayloadBase};

use super::syntax::OptionField;
use super::types::BITMASK;

/// Header field.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) data_type: DataType,
    /// Offset and length in bits.
    pub(super) offset: u32,
    pub(super) bits: u32,
}

/// Protocol header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Protocol {
    pub(super) name: &'static str,
    pub(super) base: PayloadBase,
    /// Number in the user data of sets.
    pub(super) number: u32,
    /// Name of the field that identifies the next protocol.
    pub(super) key: Option<&'static str>,
    pub(super) fields: &'static [Field],
}

const fn field(name: &'static str, offset: u32, bits: u32, data_type: DataType) -> Field {
    Field {
        name,
        data_type,
        offset,
        bits,
    }
}

const fn number(name: &'static str, offset: u32, bits: u32) -> Field {
    field(name, offset, bits, DataType::INTEGER)
}

const fn port(name: &'static str, offset: u32) -> Field {
    field(name, offset, 16, DataType::INET_SERVICE)
}

const fn transport(name: &'static str, number: u32, fields: &'static [Field]) -> Protocol {
    Protocol {
        name,
        base: PayloadBase::TRANSPORT,
        number,
        key: None,
        fields,
    }
}

pub(super) static AH: Protocol = Protocol {
    key: Some("nexthdr"),
    ..transport(
        "ah",
        1,
        &[
            field("nexthdr", 0, 8, DataType::INET_PROTO),
            number("hdrlength", 8, 8),
            number("reserved", 16, 16),
            number("spi", 32, 32),
            number("sequence", 64, 32),
        ],
    )
};

pub(super) static ESP: Protocol = transport(
    "esp",
    2,
    &[number("spi", 0, 32), number("sequence", 32, 32)],
);

pub(super) static COMP: Protocol = Protocol {
    key: Some("nexthdr"),
    ..transport(
        "comp",
        3,
        &[
            field("nexthdr", 0, 8, DataType::INET_PROTO),
            field("flags", 8, 8, BITMASK),
            number("cpi", 16, 16),
        ],
    )
};

pub(super) static ICMP: Protocol = transport(
    "icmp",
    4,
    &[
        field("type", 0, 8, DataType::ICMP_TYPE),
        field("code", 8, 8, DataType::ICMP_CODE),
        number("checksum", 16, 16),
        number("id", 32, 16),
        number("sequence", 48, 16),
        number("gateway", 32, 32),
        number("mtu", 48, 16),
    ],
);

pub(super) static IGMP: Protocol = transport(
    "igmp",
    5,
    &[
        field("type", 0, 8, DataType::IGMP_TYPE),
        number("checksum", 16, 16),
        number("mrt", 8, 8),
        number("group", 32, 32),
    ],
);

pub(super) static UDP: Protocol = transport(
    "udp",
    6,
    &[
        port("sport", 0),
        port("dport", 16),
        number("length", 32, 16),
        number("checksum", 48, 16),
    ],
);

pub(super) static UDPLITE: Protocol = transport(
    "udplite",
    7,
    &[
        port("sport", 0),
        port("dport", 16),
        number("csumcov", 32, 16),
        number("checksum", 48, 16),
    ],
);

pub(super) static TCP: Protocol = transport(
    "tcp",
    8,
    &[
        port("sport", 0),
        port("dport", 16),
        number("sequence", 32, 32),
        number("ackseq", 64, 32),
        number("doff", 96, 4),
        number("reserved", 100, 4),
        field("flags", 104, 8, DataType::TCP_FLAG),
        number("window", 112, 16),
        number("checksum", 128, 16),
        number("urgptr", 144, 16),
    ],
);

pub(super) static DCCP: Protocol = transport(
    "dccp",
    9,
    &[
        port("sport", 0),
        port("dport", 16),
        field("type", 67, 4, DataType::DCCP_PKTTYPE),
    ],
);

pub(super) static SCTP: Protocol = transport(
    "sctp",
    10,
    &[
        port("sport", 0),
        port("dport", 16),
        number("vtag", 32, 32),
        number("checksum", 64, 32),
    ],
);

/// Any transport protocol with ports.
pub(super) static TH: Protocol = transport("th", 11, &[port("sport", 0), port("dport", 16)]);

pub(super) static ICMPV6: Protocol = transport(
    "icmpv6",
    14,
    &[
        field("type", 0, 8, DataType::ICMPV6_TYPE),
        field("code", 8, 8, DataType::ICMPV6_CODE),
        number("checksum", 16, 16),
        number("parameter-problem", 32, 32),
        number("mtu", 32, 32),
        number("id", 32, 16),
        number("sequence", 48, 16),
        number("max-delay", 32, 16),
        field("taddr", 64, 128, DataType::IPV6_ADDR),
        field("daddr", 192, 128, DataType::IPV6_ADDR),
    ],
);

/// ICMPv6 types with a `taddr` field: those that concern an address.
pub(super) const WITH_TADDR: &[u128] = &[130, 131, 132, 135, 136, 137];

pub(super) static IP: Protocol = Protocol {
    name: "ip",
    base: PayloadBase::NETWORK,
    number: 12,
    key: Some("protocol"),
    fields: &[
        number("version", 0, 4),
        number("hdrlength", 4, 4),
        field("dscp", 8, 6, DataType::DSCP),
        field("ecn", 14, 2, DataType::ECN),
        number("length", 16, 16),
        number("id", 32, 16),
        number("frag-off", 48, 16),
        number("ttl", 64, 8),
        field("protocol", 72, 8, DataType::INET_PROTO),
        number("checksum", 80, 16),
        field("saddr", 96, 32, DataType::IPV4_ADDR),
        field("daddr", 128, 32, DataType::IPV4_ADDR),
    ],
};

pub(super) static IP6: Protocol = Protocol {
    name: "ip6",
    base: PayloadBase::NETWORK,
    number: 13,
    key: Some("nexthdr"),
    fields: &[
        number("version", 0, 4),
        field("dscp", 4, 6, DataType::DSCP),
        field("ecn", 10, 2, DataType::ECN),
        number("flowlabel", 12, 20),
        number("length", 32, 16),
        field("nexthdr", 48, 8, DataType::INET_PROTO),
        number("hoplimit", 56, 8),
        field("saddr", 64, 128, DataType::IPV6_ADDR),
        field("daddr", 192, 128, DataType::IPV6_ADDR),
    ],
};

pub(super) static ARP: Protocol = Protocol {
    name: "arp",
    base: PayloadBase::NETWORK,
    number: 15,
    key: None,
    fields: &[
        number("htype", 0, 16),
        field("ptype", 16, 16, DataType::ETHER_TYPE),
        number("hlen", 32, 8),
        number("plen", 40, 8),
        field("operation", 48, 16, DataType::ARP_OP),
        field("saddr ether", 64, 48, DataType::ETHER_ADDR),
        field("saddr ip", 112, 32, DataType::IPV4_ADDR),
        field("daddr ether", 144, 48, DataType::ETHER_ADDR),
        field("daddr ip", 192, 32, DataType::IPV4_ADDR),
    ],
};

/// Offsets count from the tag control information, after the frame's ether type.
pub(super) static VLAN: Protocol = Protocol {
    name: "vlan",
    base: PayloadBase::LINK,
    number: 16,
    key: Some("type"),
    fields: &[
        number("pcp", 0, 3),
        number("dei", 3, 1),
        number("cfi", 3, 1),
        number("id", 4, 12),
        field("type", 16, 16, DataType::ETHER_TYPE),
    ],
};

pub(super) static ETHER: Protocol = Protocol {
    name: "ether",
    base: PayloadBase::LINK,
    number: 17,
    key: Some("type"),
    fields: &[
        field("daddr", 0, 48, LINK_ADDRESS),
        field("saddr", 48, 48, LINK_ADDRESS),
        field("type", 96, 16, DataType::ETHER_TYPE),
    ],
};

const LINK_ADDRESS: DataType = DataType::ETHER_ADDR;

/// Builds the protocol of a tunnel's own header.
const fn tunnel(name: &'static str, number: u32, fields: &'static [Field]) -> Protocol {
    Protocol {
        name,
        base: PayloadBase::TUNNEL,
        number,
        key: None,
        fields,
    }
}

pub(super) static VXLAN: Protocol = tunnel(
    "vxlan",
    18,
    &[number("vni", 32, 24), field("flags", 0, 8, BITMASK)],
);

pub(super) static GENEVE: Protocol = tunnel(
    "geneve",
    19,
    &[
        number("vni", 32, 24),
        field("type", 16, 16, DataType::ETHER_TYPE),
    ],
);

/// Its header is matched like that of any transport protocol.
pub(super) static GRE: Protocol = transport(
    "gre",
    20,
    &[
        number("version", 13, 3),
        number("flags", 0, 5),
        field("protocol", 16, 16, DataType::ETHER_TYPE),
    ],
);

/// GRE that carries Ethernet frames. Its header is GRE's.
pub(super) static GRETAP: Protocol = tunnel("gretap", 21, &[]);

/// All protocols except tunnels whose fields are only available in the `inner` expression.
pub(super) static PROTOCOLS: &[&Protocol] = &[
    &AH, &ESP, &COMP, &ICMP, &IGMP, &UDP, &UDPLITE, &TCP, &DCCP, &SCTP, &TH, &IP, &IP6, &ICMPV6,
    &ARP, &VLAN, &ETHER, &GRE,
];

/// Returns the protocol above IP with this number.
pub(super) fn above_ip(number: u128) -> Option<&'static Protocol> {
    Some(match number {
        1 => &ICMP,
        2 => &IGMP,
        6 => &TCP,
        17 => &UDP,
        33 => &DCCP,
        47 => &GRE,
        50 => &ESP,
        51 => &AH,
        58 => &ICMPV6,
        108 => &COMP,
        132 => &SCTP,
        136 => &UDPLITE,
        _ => return None,
    })
}

/// Returns the protocol with this ether type.
pub(super) fn above_ethernet(number: u128) -> Option<&'static Protocol> {
    Some(match number {
        0x0800 => &IP,
        0x0806 => &ARP,
        0x86dd => &IP6,
        0x8100 | 0x88a8 => &VLAN,
        _ => return None,
    })
}

/// Protocol option, extension header or SCTP chunk.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Extension {
    pub(super) kind: ExthdrOp,
    pub(super) name: &'static str,
    pub(super) number: u8,
    pub(super) fields: &'static [Field],
}

impl Extension {
    /// Returns all its fields, in the order of nft's numbers.
    pub(super) fn all_fields(&self) -> impl Iterator<Item = &'static Field> {
        let common = common(self.kind);
        let common = match self.name {
            // nft numbers these without some or all of the common fields.
            "srh" | "rt0" | "rt2" => &common[common.len()..],
            "frag" => &common[..1],
            _ => common,
        };
        common.iter().chain(self.fields)
    }

    /// Returns the number of the first field in the user data of sets, and the number of the first field of its own,
    /// for extensions that share their number with others.
    fn first_number(&self) -> (u32, u32) {
        let first = match self.kind {
            ExthdrOp::TCPOPT | ExthdrOp::SCTP => 0,
            _ => 1,
        };
        let skipped = match self.name {
            "sack1" => 2,
            "sack2" => 4,
            "sack3" => 6,
            _ => 0,
        };
        let first = match self.name {
            "rt0" | "rt2" => first + 1,
            _ => first,
        };
        (first, skipped)
    }

    /// Returns the number of a field in the user data of sets.
    pub(super) fn number_of(&self, offset: u32, bits: u32) -> Option<u32> {
        let (first, skipped) = self.first_number();
        let mut all = self.all_fields();
        let index = all.position(|field| field.offset == offset && field.bits == bits)? as u32; // few
        if self.kind == ExthdrOp::IPV4 {
            // Options number their fields in one common sequence.
            let own = self
                .fields
                .iter()
                .find(|f| f.offset == offset && f.bits == bits);
            match own.map(|field| field.name) {
                Some("ptr") => return Some(4),
                Some("addr") => return Some(5),
                _ => {}
            }
        }
        let common = common(self.kind).len() as u32; // two or three
        Some(match index < common {
            true => first + index,
            false => first + index + skipped,
        })
    }

    /// Returns the field with this number in the user data of sets.
    pub(super) fn numbered(&self, number: u32) -> Option<&'static Field> {
        let mut all = self.all_fields();
        all.find(|field| self.number_of(field.offset, field.bits) == Some(number))
    }

    /// Returns the number of an extension header in the user data of sets.
    pub(super) fn number_in_typeof(&self) -> Option<u32> {
        (self.kind == ExthdrOp::IPV6).then_some(())?;
        Some(match self.name {
            "hbh" => 1,
            "rt" => 2,
            "rt0" => 3,
            "rt2" => 4,
            "srh" => 5,
            "frag" => 6,
            "dst" => 7,
            "mh" => 8,
            _ => return None,
        })
    }

    /// Returns the field of this name.
    pub(super) fn named(&self, name: &str) -> Option<&'static Field> {
        let mut fields = self.fields.iter().chain(common(self.kind));
        fields.find(|field| field.name == name)
    }

    /// Returns the names of all fields.
    pub(super) fn fields_named(&self) -> impl Iterator<Item = &'static str> {
        let fields = self.fields.iter().chain(common(self.kind));
        fields.map(|field| field.name)
    }
}

impl OptionField {
    /// Returns `true` if the field is this field of this option.
    pub(super) fn is(&self, option: &str, field: &str) -> bool {
        self.extension.name == option
            && !self.presence
            && self.field().is_some_and(|of| of.name == field)
    }

    /// Returns `true` if the field is an address in an IPv4 option.
    pub(super) fn is_address_of_ipv4(&self) -> bool {
        self.extension.kind == ExthdrOp::IPV4
            && ["rr", "lsrr", "ssrr"]
                .iter()
                .any(|option| self.is(option, "addr"))
    }

    /// Returns its field, if the bits have a name.
    pub(super) fn field(&self) -> Option<&'static Field> {
        let fields = self.extension.fields.iter();
        let mut fields = fields.chain(common(self.extension.kind));
        fields.find(|field| field.offset == self.offset && field.bits == self.bits)
    }
}

/// Returns the fields that all extensions of a kind have.
fn common(kind: ExthdrOp) -> &'static [Field] {
    const CHUNK: &[Field] = &[
        number("type", 0, 8),
        number("flags", 8, 8),
        number("length", 16, 16),
    ];
    const TCP: &[Field] = &[number("kind", 0, 8), number("length", 8, 8)];
    const IPV4: &[Field] = &[number("type", 0, 8), number("length", 8, 8)];
    const IPV6: &[Field] = &[
        field("nexthdr", 0, 8, DataType::INET_PROTO),
        number("hdrlength", 8, 8),
    ];
    match kind {
        ExthdrOp::SCTP => CHUNK,
        ExthdrOp::TCPOPT => TCP,
        ExthdrOp::IPV4 => IPV4,
        ExthdrOp::IPV6 => IPV6,
        _ => &[],
    }
}

const fn ipv6(name: &'static str, number: u8, fields: &'static [Field]) -> Extension {
    Extension {
        kind: ExthdrOp::IPV6,
        name,
        number,
        fields,
    }
}

const fn tcp(name: &'static str, number: u8, fields: &'static [Field]) -> Extension {
    Extension {
        kind: ExthdrOp::TCPOPT,
        name,
        number,
        fields,
    }
}

const fn ipv4(name: &'static str, number: u8, fields: &'static [Field]) -> Extension {
    Extension {
        kind: ExthdrOp::IPV4,
        name,
        number,
        fields,
    }
}

const fn sctp(name: &'static str, number: u8, fields: &'static [Field]) -> Extension {
    Extension {
        kind: ExthdrOp::SCTP,
        name,
        number,
        fields,
    }
}

const ROUTE: &[Field] = &[number("ptr", 16, 8), number("addr", 24, 32)];
const INIT: &[Field] = &[
    number("init-tag", 32, 32),
    number("a-rwnd", 64, 32),
    number("num-outbound-streams", 96, 16),
    number("num-inbound-streams", 112, 16),
    number("initial-tsn", 128, 32),
];

/// All named extensions.
pub(super) static EXTENSIONS: &[Extension] = &[
    ipv6("hbh", 0, &[]),
    ipv6(
        "rt",
        43,
        &[number("type", 16, 8), number("seg-left", 24, 8)],
    ),
    ipv6(
        "srh",
        43,
        &[
            number("last-entry", 32, 8),
            number("flags", 40, 8),
            number("tag", 48, 16),
            field("sid[1]", 64, 128, DataType::IPV6_ADDR),
            field("sid[2]", 192, 128, DataType::IPV6_ADDR),
        ],
    ),
    ipv6("rt0", 43, &[field("addr[1]", 64, 128, DataType::IPV6_ADDR)]),
    ipv6("rt2", 43, &[field("addr", 64, 128, DataType::IPV6_ADDR)]),
    ipv6(
        "frag",
        44,
        &[
            number("reserved", 8, 8),
            number("frag-off", 16, 13),
            number("reserved2", 29, 2),
            number("more-fragments", 31, 1),
            number("id", 32, 32),
        ],
    ),
    ipv6("dst", 60, &[]),
    ipv6(
        "mh",
        135,
        &[
            field("type", 16, 8, DataType::MH_TYPE),
            number("reserved", 24, 8),
            number("checksum", 32, 16),
        ],
    ),
    tcp("eol", 0, &[]),
    tcp("nop", 1, &[]),
    tcp("maxseg", 2, &[number("size", 16, 16)]),
    tcp("window", 3, &[number("count", 16, 8)]),
    tcp("sack-perm", 4, &[]),
    tcp(
        "sack",
        5,
        &[number("left", 16, 32), number("right", 48, 32)],
    ),
    tcp(
        "sack1",
        5,
        &[number("left", 80, 32), number("right", 112, 32)],
    ),
    tcp(
        "sack2",
        5,
        &[number("left", 144, 32), number("right", 176, 32)],
    ),
    tcp(
        "sack3",
        5,
        &[number("left", 208, 32), number("right", 240, 32)],
    ),
    tcp(
        "timestamp",
        8,
        &[number("tsval", 16, 32), number("tsecr", 48, 32)],
    ),
    tcp("md5sig", 19, &[]),
    tcp("mptcp", 30, &[number("subtype", 16, 4)]),
    tcp("fastopen", 34, &[]),
    ipv4("rr", 7, ROUTE),
    ipv4("lsrr", 131, ROUTE),
    ipv4("ssrr", 137, ROUTE),
    ipv4("ra", 148, &[number("value", 16, 16)]),
    sctp(
        "data",
        0,
        &[
            number("tsn", 32, 32),
            number("stream", 64, 16),
            number("ssn", 80, 16),
            number("ppid", 96, 32),
        ],
    ),
    sctp("init", 1, INIT),
    sctp("init-ack", 2, INIT),
    sctp(
        "sack",
        3,
        &[
            number("cum-tsn-ack", 32, 32),
            number("a-rwnd", 64, 32),
            number("num-gap-ack-blocks", 96, 16),
            number("num-dup-tsns", 112, 16),
        ],
    ),
    sctp("heartbeat", 4, &[]),
    sctp("heartbeat-ack", 5, &[]),
    sctp("abort", 6, &[]),
    sctp("shutdown", 7, &[number("cum-tsn-ack", 32, 32)]),
    sctp("shutdown-ack", 8, &[]),
    sctp("error", 9, &[]),
    sctp("cookie-echo", 10, &[]),
    sctp("cookie-ack", 11, &[]),
    sctp("ecne", 12, &[number("lowest-tsn", 32, 32)]),
    sctp("cwr", 13, &[number("lowest-tsn", 32, 32)]),
    sctp("shutdown-complete", 14, &[]),
    sctp("asconf-ack", 128, &[number("seqno", 32, 32)]),
    sctp("forward-tsn", 192, &[number("new-cum-tsn", 32, 32)]),
    sctp("asconf", 193, &[number("seqno", 32, 32)]),
];

/// TCP option without a name.
pub(super) static NAMELESS_TCP: Extension = tcp("", 0, &[]);
/// DCCP option. None has a name, and a rule can only test whether it exists.
pub(super) static NAMELESS_DCCP: Extension = Extension {
    kind: ExthdrOp::DCCP,
    name: "",
    number: 0,
    fields: &[],
};

/// Returns the placeholder for unnamed options of this kind; `None` if all have names.
pub(super) fn nameless(kind: ExthdrOp) -> Option<&'static Extension> {
    match kind {
        ExthdrOp::TCPOPT => Some(&NAMELESS_TCP),
        ExthdrOp::DCCP => Some(&NAMELESS_DCCP),
        _ => None,
    }
}

/// Returns the extension with this number and this field; if none has the field, the first one with the number.
pub(super) fn extension(
    kind: ExthdrOp,
    number: u8,
    offset: u32,
    bits: u32,
) -> Option<&'static Extension> {
    let mut named = EXTENSIONS
        .iter()
        .filter(|e| e.kind == kind && e.number == number);
    let first = named.clone().next();
    let has = |e: &&'static Extension| {
        let mut fields = e.fields.iter().chain(common(kind));
        fields.any(|field| field.offset == offset && field.bits == bits)
    };
    named.find(has).or(first)
}

/// Returns the IP protocol number of a protocol.
pub(super) fn number_above_ip(protocol: &Protocol) -> u128 {
    let mut numbers = 0..=u128::from(u8::MAX);
    let found = numbers.find(|number| above_ip(*number) == Some(protocol));
    found.unwrap_or_default()
}

/// Returns the checksum to update when a field of a protocol is written: its type and byte offset.
pub(super) fn checksum_of(protocol: &Protocol) -> Option<(ChecksumType, u32)> {
    let kind = match protocol.name {
        "ip" | "icmp" | "icmpv6" | "igmp" | "udp" | "tcp" => ChecksumType::INET,
        "sctp" => ChecksumType::SCTP,
        _ => return None,
    };
    let mut fields = protocol.fields.iter();
    let field = fields.find(|field| field.name == "checksum")?;
    Some((kind, field.offset / 8))
}

/// Returns `true` if a field is part of the pseudo header for transport checksums.
pub(super) fn is_in_pseudo_header(protocol: &Protocol, field: &Field) -> bool {
    protocol.base == PayloadBase::NETWORK
        && matches!(
            field.name,
            "saddr" | "daddr" | "length" | "protocol" | "nexthdr"
        )
}
