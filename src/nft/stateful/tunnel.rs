//! Tunnel keys, which are attached to packets that enter a tunnel.
//!
//! ```text
//! NFTA_TUNNEL_KEY_ID      be32
//! NFTA_TUNNEL_KEY_IP      nested: NFTA_TUNNEL_KEY_IP_*
//! NFTA_TUNNEL_KEY_IP6     nested: NFTA_TUNNEL_KEY_IP6_*
//! NFTA_TUNNEL_KEY_FLAGS   be32
//! NFTA_TUNNEL_KEY_TOS     u8
//! NFTA_TUNNEL_KEY_TTL     u8
//! NFTA_TUNNEL_KEY_SPORT   be16
//! NFTA_TUNNEL_KEY_DPORT   be16
//! NFTA_TUNNEL_KEY_OPTS    nested: one kind of tunnel; several NFTA_TUNNEL_KEY_OPTS_GENEVE
//! ```

use std::fmt;

use chainwright_sys::nf_tables::{
    NFT_TUNNEL_F_DONT_FRAGMENT, NFT_TUNNEL_F_SEQ_NUMBER, NFT_TUNNEL_F_ZERO_CSUM_TX,
    NFTA_TUNNEL_KEY_DPORT, NFTA_TUNNEL_KEY_ERSPAN_V1_INDEX, NFTA_TUNNEL_KEY_ERSPAN_V2_DIR,
    NFTA_TUNNEL_KEY_ERSPAN_V2_HWID, NFTA_TUNNEL_KEY_ERSPAN_VERSION, NFTA_TUNNEL_KEY_FLAGS,
    NFTA_TUNNEL_KEY_GENEVE_CLASS, NFTA_TUNNEL_KEY_GENEVE_DATA, NFTA_TUNNEL_KEY_GENEVE_TYPE,
    NFTA_TUNNEL_KEY_ID, NFTA_TUNNEL_KEY_IP, NFTA_TUNNEL_KEY_IP_DST, NFTA_TUNNEL_KEY_IP_SRC,
    NFTA_TUNNEL_KEY_IP6, NFTA_TUNNEL_KEY_IP6_DST, NFTA_TUNNEL_KEY_IP6_FLOWLABEL,
    NFTA_TUNNEL_KEY_IP6_SRC, NFTA_TUNNEL_KEY_OPTS, NFTA_TUNNEL_KEY_OPTS_ERSPAN,
    NFTA_TUNNEL_KEY_OPTS_GENEVE, NFTA_TUNNEL_KEY_OPTS_VXLAN, NFTA_TUNNEL_KEY_SPORT,
    NFTA_TUNNEL_KEY_TOS, NFTA_TUNNEL_KEY_TTL, NFTA_TUNNEL_KEY_VXLAN_GBP,
};

use crate::netlink::{Attributes, MessageWriter};
use crate::nft::UnknownAttributes;
use crate::nft::declare::{Field, attributes, flags, nested_field};
use crate::nft::name::Bytes;

flags! {
    /// Flags of a tunnel key (`enum nft_tunnel_flags`).
    pub struct TunnelFlags: u32 {
        /// The outer packets have no checksum.
        const ZERO_CSUM_TX = NFT_TUNNEL_F_ZERO_CSUM_TX,
        /// The outer packets must not be fragmented.
        const DONT_FRAGMENT = NFT_TUNNEL_F_DONT_FRAGMENT,
        /// The outer packets have sequence numbers.
        const SEQ_NUMBER = NFT_TUNNEL_F_SEQ_NUMBER,
    }
}

attributes! {
    /// Outer IPv4 addresses (`enum nft_tunnel_key_ip_attributes`).
    pub struct TunnelIp {
        /// Source, as a number: `u32::from(Ipv4Addr)`.
        NFTA_TUNNEL_KEY_IP_SRC => source: u32,
        /// Destination.
        NFTA_TUNNEL_KEY_IP_DST => destination: u32,
    }
}

attributes! {
    /// Outer IPv6 addresses (`enum nft_tunnel_key_ip6_attributes`).
    pub struct TunnelIp6<'a> {
        /// Source, 16 bytes.
        NFTA_TUNNEL_KEY_IP6_SRC => source: Bytes<'a>,
        /// Destination, 16 bytes.
        NFTA_TUNNEL_KEY_IP6_DST => destination: Bytes<'a>,
        /// Flow label.
        NFTA_TUNNEL_KEY_IP6_FLOWLABEL => flow_label: u32,
    }
}

attributes! {
    /// Options of VXLAN (`enum nft_tunnel_opts_vxlan_attributes`).
    pub struct TunnelVxlan {
        /// Group based policy.
        NFTA_TUNNEL_KEY_VXLAN_GBP => gbp: u32,
    }
}

attributes! {
    /// Options of ERSPAN (`enum nft_tunnel_opts_erspan_attributes`).
    pub struct TunnelErspan {
        /// Version, 1 or 2.
        NFTA_TUNNEL_KEY_ERSPAN_VERSION => version: u32,
        /// Index, for version 1.
        NFTA_TUNNEL_KEY_ERSPAN_V1_INDEX => index: u32,
        /// Hardware id, for version 2.
        NFTA_TUNNEL_KEY_ERSPAN_V2_HWID => hardware_id: u8,
        /// Direction, for version 2.
        NFTA_TUNNEL_KEY_ERSPAN_V2_DIR => direction: u8,
    }
}

attributes! {
    /// An option of Geneve (`enum nft_tunnel_opts_geneve_attributes`).
    pub struct TunnelGeneve<'a> {
        /// Class.
        NFTA_TUNNEL_KEY_GENEVE_CLASS => class: u16,
        /// Type.
        NFTA_TUNNEL_KEY_GENEVE_TYPE => option_type: u8,
        /// Data of the option: a multiple of four bytes, at most 127.
        NFTA_TUNNEL_KEY_GENEVE_DATA => data: Bytes<'a>,
    }
}

/// An option of a tunnel (`enum nft_tunnel_opts_attributes`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum TunnelOption<'a> {
    /// `NFTA_TUNNEL_KEY_OPTS_VXLAN`.
    Vxlan(TunnelVxlan),
    /// `NFTA_TUNNEL_KEY_OPTS_ERSPAN`.
    Erspan(TunnelErspan),
    /// `NFTA_TUNNEL_KEY_OPTS_GENEVE`.
    Geneve(TunnelGeneve<'a>),
    /// An attribute unknown to this version of the crate, as received.
    Unknown(UnknownAttributes),
}

/// The options of a tunnel, all for the same type of tunnel; only Geneve allows several.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct TunnelOptions<'a>(pub Vec<TunnelOption<'a>>);

impl<'a> TunnelOptions<'a> {
    fn read(payload: &'a [u8]) -> Option<Self> {
        let mut options = Vec::new();
        for attribute in Attributes::new(payload) {
            let attribute = attribute.ok()?;
            let payload = attribute.payload;
            options.push(match attribute.kind {
                NFTA_TUNNEL_KEY_OPTS_VXLAN => TunnelOption::Vxlan(Field::decode(payload)?),
                NFTA_TUNNEL_KEY_OPTS_ERSPAN => TunnelOption::Erspan(Field::decode(payload)?),
                NFTA_TUNNEL_KEY_OPTS_GENEVE => TunnelOption::Geneve(Field::decode(payload)?),
                _ => {
                    let mut unknown = UnknownAttributes::NONE;
                    unknown.keep(&attribute);
                    TunnelOption::Unknown(unknown)
                }
            });
        }
        Some(Self(options))
    }
}

impl<'a> Field<'a> for TunnelOptions<'a> {
    type Static = TunnelOptions<'static>;
    nested_field!('a, Self::read);

    fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16) {
        writer.nested(kind, |writer| {
            for option in &self.0 {
                match option {
                    TunnelOption::Vxlan(vxlan) => vxlan.encode(writer, NFTA_TUNNEL_KEY_OPTS_VXLAN),
                    TunnelOption::Erspan(erspan) => {
                        erspan.encode(writer, NFTA_TUNNEL_KEY_OPTS_ERSPAN);
                    }
                    TunnelOption::Geneve(geneve) => {
                        geneve.encode(writer, NFTA_TUNNEL_KEY_OPTS_GENEVE);
                    }
                    TunnelOption::Unknown(unknown) => unknown.write(writer),
                }
            }
        });
    }

    fn into_static(self) -> TunnelOptions<'static> {
        let owned = |option| match option {
            TunnelOption::Vxlan(vxlan) => TunnelOption::Vxlan(vxlan),
            TunnelOption::Erspan(erspan) => TunnelOption::Erspan(erspan),
            TunnelOption::Geneve(geneve) => TunnelOption::Geneve(geneve.into_owned()),
            TunnelOption::Unknown(unknown) => TunnelOption::Unknown(unknown),
        };
        TunnelOptions(self.0.into_iter().map(owned).collect())
    }
}

attributes! {
    /// A tunnel key (`enum nft_tunnel_key_attributes`).
    pub struct TunnelObject<'a> {
        /// Id of the tunnel: VNI, key, …
        NFTA_TUNNEL_KEY_ID => id: u32,
        /// Outer IPv4 addresses.
        NFTA_TUNNEL_KEY_IP => ip: TunnelIp,
        /// Outer IPv6 addresses.
        NFTA_TUNNEL_KEY_IP6 => ip6: TunnelIp6<'a>,
        /// Flags.
        NFTA_TUNNEL_KEY_FLAGS => flags: TunnelFlags,
        /// Type of service of the outer packets.
        NFTA_TUNNEL_KEY_TOS => tos: u8,
        /// Time to live of the outer packets.
        NFTA_TUNNEL_KEY_TTL => ttl: u8,
        /// Outer source port.
        NFTA_TUNNEL_KEY_SPORT => sport: u16,
        /// Outer destination port.
        NFTA_TUNNEL_KEY_DPORT => dport: u16,
        /// Options for the type of tunnel.
        NFTA_TUNNEL_KEY_OPTS => options: TunnelOptions<'a>,
    }
}

impl fmt::Display for TunnelObject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[ tunnel id {} ]", self.id.unwrap_or_default())
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::ObjectData;
    use crate::nft::captured::objects::assert_built;

    #[test]
    fn built() {
        let ip = TunnelIp {
            source: Some(0x0a00_0001),
            destination: Some(0x0a00_0002),
            ..TunnelIp::default()
        };
        let geneve = |option_type, data| TunnelGeneve {
            class: Some(1),
            option_type: Some(option_type),
            data: Some(Bytes::borrowed(data)),
            ..TunnelGeneve::default()
        };
        let tunnel = TunnelObject {
            id: Some(7),
            ip: Some(ip),
            flags: Some(TunnelFlags::DONT_FRAGMENT),
            ttl: Some(64),
            dport: Some(4789),
            options: Some(TunnelOptions(vec![
                TunnelOption::Geneve(geneve(1, &[1, 2, 3, 4])),
                TunnelOption::Geneve(geneve(2, &[5, 6, 7, 8])),
            ])),
            ..TunnelObject::default()
        };
        assert_built("tunnel", "two options of Geneve", &ObjectData::from(tunnel));
    }

    /// The other types, and an unknown one.
    #[test]
    fn options() {
        let vxlan = TunnelVxlan {
            gbp: Some(4),
            ..TunnelVxlan::default()
        };
        let erspan = TunnelErspan {
            version: Some(1),
            index: Some(3),
            ..TunnelErspan::default()
        };
        let bytes = crate::nft::captured::hex(
            "
                0c000180 08000100 00000004
                14000280 08000100 00000001 08000200 00000003
                08000900 00000001
            ",
        );
        let options = TunnelOptions::decode(&bytes).unwrap();
        assert_eq!(options.0[0], TunnelOption::Vxlan(vxlan));
        assert_eq!(options.0[1], TunnelOption::Erspan(erspan));
        assert!(matches!(options.0[2], TunnelOption::Unknown(_)));
        let mut written = Vec::new();
        let mut writer = MessageWriter::bare(&mut written);
        options.encode(&mut writer, 9);
        writer.finish_bare().unwrap();
        assert_eq!(written[4..], bytes);
        assert_eq!(options.clone().into_static(), options);
    }
}
