//! Tunnels whose inside can be looked at: `vxlan ip saddr`, `gre tcp dport`.
//!
//! Sources: `linux/netfilter/nf_tables.h` for the instruction `inner`, RFC 7348 (VXLAN), 8926 (Geneve) and 2784 (GRE) for the
//! headers, nft(8) for the names. What nft calls GRE and GRETAP the kernel has no number for: those are nft's, as 1.1.7 sends
//! them, and the kernel takes any.

use chainwright::nft::expr::{
    Expression, Inner, InnerFlags, InnerType, MetaKey, NestedExpression, PayloadBase,
};

use super::headers::{GENEVE, GRE, GRETAP, PROTOCOLS, Protocol, UDP, VXLAN};
use super::syntax::Payload;

/// A tunnel.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tunnel {
    /// Its own fields, its name, and its number in the user data of sets.
    pub(super) own: &'static Protocol,
    /// What carries it.
    pub(super) below: &'static Protocol,
    /// The port that it is sent to, by the registry of the IANA, if it is known by one.
    pub(super) port: Option<u16>,
    /// Its number in the instruction.
    number: InnerType,
    /// The length of its header in bytes.
    header: u32,
    /// Whether there are frames in it, and not only packets.
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

/// The tunnel of this name.
pub(super) fn named(name: &str) -> Option<&'static Tunnel> {
    TUNNELS.iter().find(|tunnel| tunnel.name() == name)
}

/// The names of all.
#[cfg(feature = "json")]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TUNNELS.iter().map(Tunnel::name)
}

/// The tunnel with this number in the user data of sets.
pub(super) fn numbered(number: u32) -> Option<&'static Tunnel> {
    TUNNELS.iter().find(|tunnel| tunnel.own.number == number)
}

/// The tunnel that an instruction looks into, if nft has a name for it.
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

    /// Whether nft asks by itself for what carries it: for GRE, and not for UDP, whose port who writes the rule must say.
    pub(super) fn is_asked_for(&self) -> bool {
        *self.below == GRE
    }

    fn flags(&self) -> InnerFlags {
        // How long a header of GRE is, it says itself.
        let header = match self.is_asked_for() {
            true => InnerFlags::empty(),
            false => InnerFlags::HDRSIZE,
        };
        let frames = match self.has_frames {
            true => InnerFlags::LL,
            false => InnerFlags::empty(),
        };
        header | frames | InnerFlags::NH | InnerFlags::TH
    }

    /// An instruction that is applied to what is inside.
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

    /// The protocols whose fields can be asked for inside of it, its own first where that has fields there.
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

    /// The field of a protocol inside of it that has this number among them.
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

    /// The protocol of this name inside of it.
    pub(super) fn protocol(&'static self, name: &str) -> Option<&'static Protocol> {
        self.protocols().find(|protocol| protocol.name == name)
    }
}

/// What is known of a packet inside a tunnel: nft has no words for it, and asks for it by itself.
pub(super) const fn is_told(key: MetaKey) -> bool {
    matches!(key, MetaKey::PROTOCOL | MetaKey::L4PROTO)
}
