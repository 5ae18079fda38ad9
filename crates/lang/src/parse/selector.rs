//! Parses selectors: packet fields, options, and metadata that the kernel has for a packet.

use super::error::{Diagnostic, shown};
use super::expr::Side;
use super::parser::{Parser, parse_number};
use super::selectors::{
    FIB_RESULTS, bits_of_field, ct_key, ct_names, extension, extensions, fib_of, field_names,
    field_of, meta_key, meta_names, needs_direction, option_of, presence, protocol, raw,
    raw_option, type_names, version_in, without_direction,
};
use super::tunnel::is_inside;
use crate::protocols::{self, Extension, Protocol};
use crate::syntax::Expr;
use crate::tunnels;
use chainwright::nft::expr::{
    CtDirection, CtKey, ExthdrOp, FibFlags, MetaKey, NumgenType, OsfTtl, PayloadBase, RtKey,
    SocketKey, TunnelKey, XfrmDirection, XfrmKey,
};
use chainwright::nft::{DataType, Family};

/// First words of selectors.
const WORDS: &[&str] = &[
    "meta", "ct", "ip", "ip6", "tcp", "udp", "udplite", "sctp", "dccp", "icmp", "icmpv6", "igmp",
    "ether", "vlan", "arp", "ah", "esp", "comp", "th", "rt", "socket", "fib", "osf", "ipsec",
    "numgen", "jhash", "symhash", "exthdr", "hbh", "frag", "dst", "mh", "srh", "tunnel", "vxlan",
    "geneve", "gre", "gretap",
];

/// `meta` keys that are valid without `meta`.
const BARE: &[&str] = &[
    "mark",
    "iif",
    "iifname",
    "iiftype",
    "iifgroup",
    "oif",
    "oifname",
    "oiftype",
    "oifgroup",
    "skuid",
    "skgid",
    "nftrace",
    "rtclassid",
    "pkttype",
    "cpu",
    "cgroup",
    "ibrname",
    "obrname",
    "ibriport",
    "obriport",
    "day",
    "hour",
    "time",
];

/// Returns all first words of selectors.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    WORDS.iter().chain(BARE).copied()
}

impl Parser<'_> {
    /// Parses a selector, if there is one. Where a constant is also allowed, the word after the first one decides.
    pub(crate) fn selector(&mut self, side: Side) -> Result<Option<Expr>, Diagnostic> {
        let word = self.word().to_owned();
        let word = word.as_str();
        if BARE.contains(&word) {
            return self.meta_key().map(Some);
        }
        let must_be_selector = side == Side::Left;
        if let Some(tunnel) = tunnels::named(word) {
            if !must_be_selector
                && !self
                    .next_if_word()
                    .is_some_and(|next| is_inside(tunnel, &next))
            {
                return Ok(None);
            }
            self.advance();
            return self.in_tunnel(tunnel).map(Some);
        }
        if let Some(protocol) = protocol(word) {
            if !must_be_selector {
                let is_field = self.next_if_word().is_some_and(|next| {
                    let mut names = field_names(protocol);
                    matches!(&*next, "option" | "chunk")
                        || names.any(|name| name == next || name.split(' ').next() == Some(&next))
                });
                if !is_field {
                    return Ok(None);
                }
            }
            self.advance();
            return self.field(protocol).map(Some);
        }
        let may_be_selector = must_be_selector || self.next_if_word().is_some();
        if !may_be_selector {
            return Ok(None);
        }
        Ok(Some(match word {
            "meta" => {
                self.advance();
                self.meta_key()?
            }
            "ct" => {
                self.advance();
                self.connection()?
            }
            "rt" => {
                self.advance();
                self.route()?
            }
            "hbh" | "frag" | "dst" | "mh" | "srh" | "rt0" | "rt2" => {
                let Some(header) = extension(ExthdrOp::IPV6, word) else {
                    return Ok(None);
                };
                self.advance();
                self.option_field(header)?
            }
            "exthdr" => {
                self.advance();
                self.presence_of_header()?
            }
            "socket" => {
                self.advance();
                self.socket()?
            }
            "fib" => {
                self.advance();
                self.fib()?
            }
            "osf" => {
                self.advance();
                self.osf()?
            }
            "ipsec" => {
                self.advance();
                match self.at_any(&["exists", "missing"]).is_some() || !self.is_word() {
                    true => Expr::Meta(MetaKey::SECPATH),
                    false => self.ipsec()?,
                }
            }
            "numgen" => {
                self.advance();
                self.numgen()?
            }
            "jhash" | "symhash" => self.hash()?,
            "tunnel" => {
                self.advance();
                match self.one_of(&["path", "id"])? {
                    "path" => Expr::Tunnel(TunnelKey::PATH),
                    _ => Expr::Tunnel(TunnelKey::ID),
                }
            }
            _ => return Ok(None),
        }))
    }

    /// Parses a `meta` key.
    fn meta_key(&mut self) -> Result<Expr, Diagnostic> {
        match meta_key(self.word()).filter(|_| self.is_word()) {
            Some(key) => {
                self.advance();
                Ok(Expr::Meta(key))
            }
            None => Err(self.unknown("meta key", meta_names().map(|(name, _)| name))),
        }
    }

    /// Parses a field of a protocol, or one of its options or chunks.
    pub(crate) fn field(&mut self, protocol: &'static Protocol) -> Result<Expr, Diagnostic> {
        if self.at("option") {
            let kind = match protocol.name {
                "tcp" => Some(ExthdrOp::TCPOPT),
                "ip" => Some(ExthdrOp::IPV4),
                "dccp" => Some(ExthdrOp::DCCP),
                _ => None,
            };
            if let Some(kind) = kind {
                self.advance();
                return self.option(kind);
            }
        }
        if protocol.name == "sctp" && self.eat("chunk") {
            return self.option(ExthdrOp::SCTP);
        }
        let first = match self.is_word() {
            true => self.word(),
            false => "",
        };
        // nft accepts another name than it lists.
        let first = match (protocol.name, first) {
            ("icmpv6", "param-problem") => "parameter-problem",
            (_, first) => first,
        };
        let first = first.to_owned();
        let mut found = protocol.fields.iter().position(|field| field.name == first);
        if found.is_none() && !first.is_empty() {
            // A name of two words.
            let begins = |name: &str| name.split(' ').next() == Some(&first) && name.contains(' ');
            if field_names(protocol).any(begins) {
                self.advance();
                let second = self.word().to_owned();
                let whole = format!("{first} {second}");
                found = field_names(protocol).position(|name| name == whole);
                if found.is_none() {
                    let seconds = field_names(protocol)
                        .filter(|name| begins(name))
                        .filter_map(|name| name.split(' ').nth(1));
                    return Err(self.unexpected(seconds));
                }
            }
        }
        let Some(index) = found else {
            let mut known: Vec<&str> = field_names(protocol).collect();
            if matches!(protocol.name, "tcp" | "ip" | "dccp") {
                known.push("option");
            }
            if protocol.name == "sctp" {
                known.push("chunk");
            }
            return Err(self.unknown(&format!("{} field", protocol.name), known));
        };
        self.advance();
        Ok(Expr::Payload(field_of(protocol, index)))
    }

    /// Parses a TCP or IP option or an SCTP chunk: one of its fields, or a test whether it exists.
    fn option(&mut self, kind: ExthdrOp) -> Result<Expr, Diagnostic> {
        if kind == ExthdrOp::TCPOPT && self.eat_sign("@") {
            let [number, offset, bits] = self.place_in_packet("an option number")?;
            let number = u8::try_from(number).map_err(|_| {
                Diagnostic::new(self.current.span, "option number is larger than 255")
            })?;
            return Ok(Expr::Option(raw_option(number, offset, bits)));
        }
        let (extension, number) = self.option_name(kind)?;
        let Some(number) = number else {
            return self.option_field(extension);
        };
        // Fields that all options have.
        let field = match (protocols::nameless(kind), self.is_word()) {
            (Some(nameless), true) => nameless.named(self.word()),
            _ => None,
        };
        Ok(match field {
            Some(field) => {
                self.advance();
                Expr::Option(raw_option(number, field.offset, field.bits))
            }
            None => presence(extension, number),
        })
    }

    /// Parses the name of an option or chunk, or the number of an option, which is also returned.
    fn option_name(
        &mut self,
        kind: ExthdrOp,
    ) -> Result<(&'static Extension, Option<u8>), Diagnostic> {
        let word = match self.is_word() {
            true => self.word(),
            false => "",
        };
        if let Some(extension) = extension(kind, word) {
            self.advance();
            return Ok((extension, None));
        }
        let number = parse_number(word).and_then(|number| u8::try_from(number).ok());
        if let (Some(nameless), Some(number)) = (protocols::nameless(kind), number) {
            self.advance();
            let named = extensions(kind).find(|extension| extension.number == number);
            return Ok((named.unwrap_or(nameless), Some(number)));
        }
        if kind == ExthdrOp::DCCP {
            return Err(self.unexpected(["an option number from 0 to 255"]));
        }
        let what = match kind {
            ExthdrOp::TCPOPT => "tcp option",
            ExthdrOp::IPV4 => "ip option",
            _ => "sctp chunk",
        };
        Err(self.unknown(what, extensions(kind).map(|extension| extension.name)))
    }

    /// Parses the option that `reset tcp option` overwrites, after these words.
    pub(crate) fn whole_tcp_option(&mut self) -> Result<Expr, Diagnostic> {
        let (extension, number) = self.option_name(ExthdrOp::TCPOPT)?;
        if self.is_word() && extension.named(self.word()).is_some() {
            let message = "only a whole option can be reset, not one of its fields";
            return Err(Diagnostic::new(self.current.span, message));
        }
        let number = number.unwrap_or(extension.number);
        Ok(Expr::Option(raw_option(number, 0, 0)))
    }

    /// Parses a field of an option, extension header or chunk; without a field, a test whether it exists.
    fn option_field(&mut self, extension: &'static Extension) -> Result<Expr, Diagnostic> {
        let word = match self.is_word() {
            true => self.word().to_owned(),
            false => String::new(),
        };
        // One of several addresses.
        let is_indexed = extension.fields_named().any(|name| {
            name.strip_prefix(word.as_str())
                .is_some_and(|rest| rest.starts_with('['))
        });
        let mut name = word.clone();
        if is_indexed && !word.is_empty() && self.next_is_sign("[") {
            self.advance();
            self.expect_sign("[")?;
            let index: u32 = self.number("an address index")?;
            // Like nft: index 0 is the field before the first address.
            name = match index {
                0 if extension.name == "srh" => "tag".to_owned(),
                index => format!("{word}[{index}]"),
            };
            if !self.at_sign("]") {
                return Err(self.unexpected(["]"]));
            }
        }
        if let Some(field) = extension.named(&name) {
            self.advance();
            return Ok(option_of(extension, field));
        }
        let is_header = extension.kind == ExthdrOp::IPV6;
        // Without a field, `reset`, a relation or a value follows.
        let is_number = parse_number(self.word()).is_some();
        let is_spelled = self.is_word() || self.is_quoted();
        if !is_header && (!is_spelled || is_number || self.at_relation()) {
            return Ok(presence(extension, extension.number));
        }
        Err(self.unknown(
            &format!("{} field", extension.name),
            extension
                .fields_named()
                .chain((!is_header).then_some("exists"))
                .chain((!is_header).then_some("missing")),
        ))
    }

    /// Returns `true` if the current word can follow a test whether an option exists.
    fn at_relation(&self) -> bool {
        const WORDS: [&str; 16] = [
            "exists", "missing", "vmap", "map", "and", "or", "xor", "lshift", "rshift", "eq", "ne",
            "lt", "le", "gt", "ge", "not",
        ];
        self.at_any(&WORDS).is_some()
    }

    /// Parses `exthdr frag`.
    fn presence_of_header(&mut self) -> Result<Expr, Diagnostic> {
        let known = ["hbh", "rt", "frag", "dst", "mh"];
        let found = self
            .at_any(&known)
            .and_then(|name| extension(ExthdrOp::IPV6, name));
        match found {
            Some(header) => {
                self.advance();
                Ok(presence(header, header.number))
            }
            None => Err(self.unknown("extension header", known)),
        }
    }

    /// Parses three numbers: a base or option number, a bit offset and a number of bits.
    fn place_in_packet(&mut self, first: &str) -> Result<[u32; 3], Diagnostic> {
        let number = self.number(first)?;
        self.expect_sign(",")?;
        let offset = self.number("a bit offset")?;
        self.expect_sign(",")?;
        let bits = self.bits()?;
        Ok([number, offset, bits])
    }

    fn bits(&mut self) -> Result<u32, Diagnostic> {
        let span = self.current.span;
        let bits = self.number("a length in bits")?;
        bits_of_field(bits, span)
    }

    /// Parses `@nh,0,8`.
    pub(crate) fn raw_payload(&mut self) -> Result<Expr, Diagnostic> {
        self.expect_sign("@")?;
        let base = match self.one_of(&["ll", "nh", "th", "ih"])? {
            "ll" => PayloadBase::LINK,
            "nh" => PayloadBase::NETWORK,
            "th" => PayloadBase::TRANSPORT,
            _ => PayloadBase::INNER,
        };
        self.expect_sign(",")?;
        let offset = self.number("a bit offset")?;
        self.expect_sign(",")?;
        let bits = self.bits()?;
        Ok(Expr::Payload(raw(base, offset, bits)))
    }

    /// Parses a `ct` key, after `ct`.
    fn connection(&mut self) -> Result<Expr, Diagnostic> {
        let direction = match self.eat_any(&["original", "reply"]) {
            Some("original") => Some(CtDirection::ORIGINAL),
            Some(_) => Some(CtDirection::REPLY),
            None => None,
        };
        // Addresses with their IP version.
        if let Some(version) = self.eat_any(&["ip", "ip6"]) {
            let is_source = self.one_of(&["saddr", "daddr"])? == "saddr";
            let key = match (version, is_source) {
                ("ip", true) => CtKey::SRC_IP,
                ("ip", false) => CtKey::DST_IP,
                (_, true) => CtKey::SRC_IP6,
                (_, false) => CtKey::DST_IP6,
            };
            return Ok(Expr::Ct(key, direction, None));
        }
        let word = match self.is_word() {
            true => self.word(),
            false => "",
        };
        let Some(key) = ct_key(word) else {
            let known = ct_names().map(|(name, _)| name);
            return Err(self.unknown("ct key", known));
        };
        if needs_direction(key) && direction.is_none() {
            let word = shown(word);
            let hint = format!("use ct original {word} or ct reply {word}");
            return Err(without_direction(&word, self.current.span).with_hint(hint));
        }
        self.advance();
        Ok(Expr::Ct(key, direction, version_in(self.family, key)))
    }

    /// Parses an `rt` key or a field of the routing header, after `rt`.
    fn route(&mut self) -> Result<Expr, Diagnostic> {
        let key = match self.eat_any(&["classid", "mtu", "ipsec", "nexthop", "ip", "ip6"]) {
            Some("classid") => RtKey::CLASSID,
            Some("mtu") => RtKey::TCPMSS,
            Some("ipsec") => RtKey::XFRM,
            Some("nexthop") if self.family == Family::IP6 => RtKey::NEXTHOP6,
            Some("nexthop") => RtKey::NEXTHOP4,
            Some(version) => {
                self.expect("nexthop")?;
                match version {
                    "ip" => RtKey::NEXTHOP4,
                    _ => RtKey::NEXTHOP6,
                }
            }
            None => {
                let header = extension(ExthdrOp::IPV6, "rt");
                let is_field = header.is_some_and(|header| header.named(self.word()).is_some());
                return match header {
                    Some(header) if is_field => self.option_field(header),
                    _ => Err(self.unknown(
                        "rt key",
                        [
                            "classid",
                            "mtu",
                            "ipsec",
                            "nexthop",
                            "ip nexthop",
                            "ip6 nexthop",
                            "type",
                            "seg-left",
                            "nexthdr",
                            "hdrlength",
                        ],
                    )),
                };
            }
        };
        Ok(Expr::Rt(key))
    }

    fn socket(&mut self) -> Result<Expr, Diagnostic> {
        let key = match self.one_of(&["transparent", "mark", "wildcard", "cgroupv2"])? {
            "transparent" => SocketKey::TRANSPARENT,
            "mark" => SocketKey::MARK,
            "wildcard" => SocketKey::WILDCARD,
            _ => {
                self.expect("level")?;
                let level = self.number("a level")?;
                return Ok(Expr::Socket(SocketKey::CGROUPV2, level));
            }
        };
        Ok(Expr::Socket(key, 0))
    }

    fn fib(&mut self) -> Result<Expr, Diagnostic> {
        let mut flags = FibFlags::default();
        loop {
            let word = self.one_of(&FibFlags::NAMED.map(|(_, name)| name))?;
            let named = FibFlags::NAMED.iter().find(|(_, name)| *name == word);
            flags |= named.map_or(FibFlags::default(), |(flag, _)| *flag);
            if !self.eat_sign(".") {
                break;
            }
        }
        let result = self.one_of(&FIB_RESULTS)?;
        Ok(fib_of(flags, result))
    }

    fn osf(&mut self) -> Result<Expr, Diagnostic> {
        let ttl = match self.eat("ttl") {
            true => match self.one_of(&["loose", "skip"])? {
                "loose" => OsfTtl::LESS,
                _ => OsfTtl::NOCHECK,
            },
            false => OsfTtl::TRUE,
        };
        let version = self.one_of(&["name", "version"])? == "version";
        Ok(Expr::Osf { ttl, version })
    }

    fn ipsec(&mut self) -> Result<Expr, Diagnostic> {
        let direction = match self.one_of(&["in", "out"])? {
            "in" => XfrmDirection::IN,
            _ => XfrmDirection::OUT,
        };
        let number = match self.eat("spnum") {
            true => self.number("a state number")?,
            false => 0,
        };
        let key = match self.one_of(&["reqid", "spi", "ip", "ip6"])? {
            "reqid" => XfrmKey::REQID,
            "spi" => XfrmKey::SPI,
            version => match (version, self.one_of(&["saddr", "daddr"])?) {
                ("ip", "saddr") => XfrmKey::SADDR_IP4,
                ("ip", _) => XfrmKey::DADDR_IP4,
                (_, "saddr") => XfrmKey::SADDR_IP6,
                _ => XfrmKey::DADDR_IP6,
            },
        };
        Ok(Expr::Xfrm {
            direction,
            key,
            number,
        })
    }

    fn offset(&mut self) -> Result<u32, Diagnostic> {
        match self.eat("offset") {
            true => self.number("an offset"),
            false => Ok(0),
        }
    }

    /// Parses `mod` and the number of values.
    fn modulus(&mut self) -> Result<u32, Diagnostic> {
        self.expect("mod")?;
        let span = self.current.span;
        match self.number("a modulus")? {
            0 => Err(Diagnostic::new(span, "the modulus must not be 0")),
            modulus => Ok(modulus),
        }
    }

    fn numgen(&mut self) -> Result<Expr, Diagnostic> {
        let kind = match self.one_of(&["inc", "random"])? {
            "inc" => NumgenType::INCREMENTAL,
            _ => NumgenType::RANDOM,
        };
        Ok(Expr::Numgen {
            kind,
            modulus: self.modulus()?,
            offset: self.offset()?,
        })
    }

    fn hash(&mut self) -> Result<Expr, Diagnostic> {
        let of_key = self.word() == "jhash";
        self.advance();
        let key = match of_key {
            true => Some(Box::new(self.deeper(Self::left)?)),
            false => None,
        };
        let modulus = self.modulus()?;
        let seed = match of_key && self.eat("seed") {
            true => Some(self.number("a seed")?),
            false => None,
        };
        Ok(Expr::Hash {
            key,
            modulus,
            seed,
            offset: self.offset()?,
        })
    }

    /// Parses the name of a data type.
    pub(crate) fn data_type(&mut self) -> Result<DataType, Diagnostic> {
        let found = type_names().find(|(name, _)| self.at(name));
        match found {
            Some((_, data_type)) => {
                self.advance();
                Ok(data_type)
            }
            None => Err(self.unknown("type", type_names().map(|(name, _)| name))),
        }
    }
}
