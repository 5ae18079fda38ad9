//! Tunnels whose inner packet can be matched: `vxlan ip saddr`, `gre tcp dport`.
//!
//! Sources: `linux/netfilter/nf_tables.h` for the expression `inner`; RFC 7348 (VXLAN), 8926 (Geneve) and 2784 (GRE)
//! for the headers; nft(8) for the names. The kernel defines no numbers for GRE and GRETAP. The numbers here are those
//! that nft 1.1.7 sends; the kernel accepts any number.

use chainwright::nft::expr::{
    Expression, Inner, InnerFlags, InnerType, MetaKey, NestedExpression, PayloadBase,
};

use super::protocols::{GENEVE, GRE, GRETAP, PROTOCOLS, Protocol, UDP, VXLAN};
use super::syntax::Payload;

/// Tunnel protocol.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tunnel {
    /// The tunnel's own protocol: name, fields, and number in the user data of sets.
    pub(super) own: &'static Protocol,
    /// Protocol that carries the tunnel.
    pub(super) below: &'static Protocol,
    /// Well-known destination port (IANA), if there is one.
    pub(super) port: Option<u16>,
    /// Type number in the `inner` expression.
    number: InnerType,
    /// Header length in bytes.
    header: u32,
    /// Whether the tunnel carries Ethernet frames.
    pub(super) has_frames: bool,
}

static TUNNELS: [Tunnel; 4] = [
    Tunnel {
        own: &VXLAN,
        below: &UDP,
        port: Some(4789),
        number: InnerType::VXLAN,
        header: 8,
        has_frames: true,
    },
    Tunnel {
        own: &GENEVE,
        below: &UDP,
        port: Some(6081),
        number: InnerType::GENEVE,
        header: 8,
        has_frames: true,
    },
    Tunnel {
        own: &GRE,
        below: &GRE,
        port: None,
        number: InnerType(3),
        header: 4,
        has_frames: false,
    },
    Tunnel {
        own: &GRETAP,
        below: &GRE,
        port: None,
        number: InnerType(4),
        header: 4,
        has_frames: true,
    },
];

/// Returns the tunnel of this name.
pub(super) fn named(name: &str) -> Option<&'static Tunnel> {
    TUNNELS.iter().find(|tunnel| tunnel.name() == name)
}

/// Returns the names of all tunnels.
#[cfg(feature = "json")]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TUNNELS.iter().map(Tunnel::name)
}

/// Returns the tunnel with this number in the user data of sets.
pub(super) fn numbered(number: u32) -> Option<&'static Tunnel> {
    TUNNELS.iter().find(|tunnel| tunnel.own.number == number)
}

/// Returns the tunnel of an `inner` expression, if nft has a name for it.
pub(super) fn of(inner: &Inner<'_>) -> Option<&'static Tunnel> {
    TUNNELS.iter().find(|tunnel| {
        inner.num == Some(0)
            && inner.inner_type == Some(tunnel.number)
            && inner.flags == Some(tunnel.flags())
            && inner.hdrsize == Some(tunnel.header)
    })
}

impl Tunnel {
    pub(super) const fn name(&self) -> &'static str {
        self.own.name
    }

    /// Returns `true` if nft matches the carrier protocol implicitly. True for GRE; the author of a rule must match the
    /// UDP port.
    pub(super) fn has_implicit_carrier(&self) -> bool {
        *self.below == GRE
    }

    fn flags(&self) -> InnerFlags {
        // A GRE header contains its own length.
        let header = match self.has_implicit_carrier() {
            true => InnerFlags::empty(),
            false => InnerFlags::HDRSIZE,
        };
        let frames = match self.has_frames {
            true => InnerFlags::LL,
            false => InnerFlags::empty(),
        };
        header | frames | InnerFlags::NH | InnerFlags::TH
    }

    /// Wraps an expression so that it applies to the inner packet.
    pub(super) fn inside<E: Expression>(&self, expression: &E) -> Inner<'static> {
        Inner {
            num: Some(0),
            inner_type: Some(self.number),
            flags: Some(self.flags()),
            hdrsize: Some(self.header),
            expr: Some(NestedExpression::new(expression)),
            ..Inner::default()
        }
    }

    /// Returns the protocols whose fields can be matched inside the tunnel; the tunnel's own protocol comes first if it
    /// has fields there.
    pub(super) fn protocols(&self) -> impl Iterator<Item = &'static Protocol> + use<'_> {
        let is_inside = |protocol: &&'static Protocol| match protocol.name {
            "ether" | "vlan" | "arp" => self.has_frames,
            "gre" => false,
            _ => true,
        };
        let own = (self.own.base == PayloadBase::TUNNEL && !self.own.fields.is_empty())
            .then_some(self.own);
        let others = PROTOCOLS.iter().copied().filter(is_inside);
        own.into_iter().chain(others)
    }

    /// Returns a field of an inner protocol by its index.
    pub(super) fn field(&'static self, protocol: &'static Protocol, index: usize) -> Payload {
        let field = &protocol.fields[index];
        Payload {
            base: protocol.base,
            offset: field.offset,
            bits: field.bits,
            field: Some((protocol, index)),
            tunnel: Some(self),
        }
    }

    /// Returns the inner protocol of this name.
    pub(super) fn protocol(&'static self, name: &str) -> Option<&'static Protocol> {
        self.protocols().find(|protocol| protocol.name == name)
    }
}

/// Returns `true` if nft matches this metadata of an inner packet implicitly; it has no syntax for it.
pub(super) const fn is_implicit_key(key: MetaKey) -> bool {
    matches!(key, MetaKey::PROTOCOL | MetaKey::L4PROTO)
}
