//! `objref`: applies a stateful object to the packet: a named object, or the value of a map for a key.
//!
//! ```text
//! NFTA_OBJREF_IMM_TYPE   be32
//! NFTA_OBJREF_IMM_NAME   string
//! NFTA_OBJREF_SET_SREG   be32
//! NFTA_OBJREF_SET_NAME   string
//! NFTA_OBJREF_SET_ID     be32: written, never listed
//! ```
//!
//! Either the first two, or the others. libnftnl and this crate send these two strings without the NUL; the kernel
//! lists them with it.

use chainwright_sys::nf_tables as sys;
use chainwright_sys::nf_tables::{
    NFTA_OBJREF_IMM_NAME, NFTA_OBJREF_IMM_TYPE, NFTA_OBJREF_SET_ID, NFTA_OBJREF_SET_NAME,
    NFTA_OBJREF_SET_SREG,
};

use super::{Register, expression};
use crate::nft::declare::values;
use crate::nft::name::Name;

values! {
    /// The type of a stateful object (`NFT_OBJECT_*`).
    pub struct ObjectType: u32 {
        /// Counts packets and bytes.
        COUNTER = sys::NFT_OBJECT_COUNTER => "counter",
        /// Counts bytes up to a number.
        QUOTA = sys::NFT_OBJECT_QUOTA => "quota",
        /// Assigns a conntrack helper to a connection.
        CT_HELPER = sys::NFT_OBJECT_CT_HELPER => "ct helper",
        /// Limits a rate.
        LIMIT = sys::NFT_OBJECT_LIMIT => "limit",
        /// Counts connections.
        CONNLIMIT = sys::NFT_OBJECT_CONNLIMIT => "connlimit",
        /// Attaches tunnel metadata to the packet.
        TUNNEL = sys::NFT_OBJECT_TUNNEL => "tunnel",
        /// Assigns timeouts to a connection.
        CT_TIMEOUT = sys::NFT_OBJECT_CT_TIMEOUT => "ct timeout",
        /// Assigns a security mark to the packet.
        SECMARK = sys::NFT_OBJECT_SECMARK => "secmark",
        /// Expects a connection.
        CT_EXPECT = sys::NFT_OBJECT_CT_EXPECT => "ct expectation",
        /// Answers TCP handshakes.
        SYNPROXY = sys::NFT_OBJECT_SYNPROXY => "synproxy",
    }
}

expression! {
    "objref"
    /// Applies a stateful object of the table to the packet (`enum nft_objref_attributes`).
    pub struct Objref<'a> viewed as ObjrefRef,
    listed as [imm_name, imm_type, set_sreg, set_name, set_id] {
        /// Type of the named object.
        NFTA_OBJREF_IMM_TYPE => imm_type: ObjectType,
        /// The object's name.
        NFTA_OBJREF_IMM_NAME => imm_name: Name<'a> [without_nul],
        /// Register with the key for the map; if the map has no object for it, the rule doesn't match.
        NFTA_OBJREF_SET_SREG => set_sreg: Register,
        /// The map's name.
        NFTA_OBJREF_SET_NAME => set_name: Name<'a> [without_nul],
        /// ID of the map in the same batch, if it has no name yet.
        NFTA_OBJREF_SET_ID => set_id: u32,
    }
}

impl<'a> Objref<'a> {
    /// Applies the object with this name.
    pub fn named(object_type: ObjectType, name: impl Into<Name<'a>>) -> Self {
        Self {
            imm_type: Some(object_type),
            imm_name: Some(name.into()),
            ..Self::default()
        }
    }

    /// Applies the object that a map has for the value of a register.
    pub fn mapped(sreg: Register, map: impl Into<Name<'a>>) -> Self {
        Self {
            set_sreg: Some(sreg),
            set_name: Some(map.into()),
            ..Self::default()
        }
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Objref<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self.set_sreg {
            Some(sreg) => {
                write!(f, "[ objref sreg {} set ", sreg.0)?;
                &self.set_name
            }
            None => {
                let object_type = self.imm_type.unwrap_or_default().0;
                write!(f, "[ objref type {object_type} name ")?;
                &self.imm_name
            }
        };
        match name {
            Some(name) => write!(f, "{name} ]"),
            None => f.write_str("(null) ]"),
        }
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::expr::Decoded;
    use crate::nft::expr::tests::captured::{
        Wire, assert_attributes, assert_element, assert_layout, assert_listed, hex,
    };

    #[test]
    fn layout() {
        let layout = [
            (1, "NFTA_OBJREF_IMM_TYPE", Wire::Be32),
            (2, "NFTA_OBJREF_IMM_NAME", Wire::EndMissing),
            (3, "NFTA_OBJREF_SET_SREG", Wire::Be32),
            (4, "NFTA_OBJREF_SET_NAME", Wire::EndMissing),
            (5, "NFTA_OBJREF_SET_ID", Wire::Be32),
        ];
        assert_layout::<Objref<'_>>(Objref::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip t c ct timeout set ti`.
    #[test]
    fn a_named_object() {
        assert_element(
            Decoded::Objref,
            Objref {
                imm_type: Some(ObjectType::CT_TIMEOUT),
                imm_name: Some("ti".into()),
                ..Default::default()
            },
            "
                24000180                    ; NFTA_LIST_ELEM
                0b000100 6f626a72 65660000  ;   NFTA_EXPR_NAME: objref
                14000280                    ;   NFTA_EXPR_DATA
                08000100 00000007           ;     NFTA_OBJREF_IMM_TYPE
                06000200 74690000           ;     NFTA_OBJREF_IMM_NAME
            ",
        );
    }

    /// nft 1.0.6: `counter name k`, `quota name q`, `limit name l`, `ct helper set h`, `ct timeout set ti`,
    /// `ct expectation set ex`, `meta secmark set s`, `synproxy name sp`, `counter name ip saddr map @m`, and
    /// `counter name ip saddr map { 1.2.3.4 : k }`, whose map has no name yet. Names with a NUL are accepted as well.
    #[test]
    fn named_and_mapped() {
        let named = Objref::named;
        for (objref, sent, ended) in [
            (
                named(ObjectType::COUNTER, "k"),
                "08000100 00000001 05000200 6b000000",
                "08000100 00000001 06000200 6b000000",
            ),
            (
                named(ObjectType::QUOTA, "q"),
                "08000100 00000002 05000200 71000000",
                "08000100 00000002 06000200 71000000",
            ),
            (
                named(ObjectType::LIMIT, "l"),
                "08000100 00000004 05000200 6c000000",
                "08000100 00000004 06000200 6c000000",
            ),
            (
                named(ObjectType::CT_HELPER, "h"),
                "08000100 00000003 05000200 68000000",
                "08000100 00000003 06000200 68000000",
            ),
            (
                named(ObjectType::CT_TIMEOUT, "ti"),
                "08000100 00000007 06000200 74690000",
                "08000100 00000007 07000200 74690000",
            ),
            (
                named(ObjectType::CT_EXPECT, "ex"),
                "08000100 00000009 06000200 65780000",
                "08000100 00000009 07000200 65780000",
            ),
            (
                named(ObjectType::SECMARK, "s"),
                "08000100 00000008 05000200 73000000",
                "08000100 00000008 06000200 73000000",
            ),
            (
                named(ObjectType::SYNPROXY, "sp"),
                "08000100 0000000a 06000200 73700000",
                "08000100 0000000a 07000200 73700000",
            ),
            (
                Objref {
                    set_id: Some(1),
                    ..Objref::mapped(Register::R1, "m")
                },
                "08000300 00000001 05000400 6d000000 08000500 00000001",
                "08000300 00000001 06000400 6d000000 08000500 00000001",
            ),
            (
                Objref {
                    set_id: Some(2),
                    ..Objref::mapped(Register::R1, "__objmap%d")
                },
                "08000300 00000001 0e000400 5f5f6f62 6a6d6170 25640000 08000500 00000002",
                "08000300 00000001 0f000400 5f5f6f62 6a6d6170 25640000 08000500 00000002",
            ),
        ] {
            assert_eq!(
                Objref::from_attributes(&hex(ended)).as_ref(),
                Ok(&objref),
                "{ended}"
            );
            assert_attributes(Decoded::Objref, objref, sent);
        }
    }

    /// Listed after nft 1.0.6: `add rule ip t c synproxy name sp` and
    /// `add rule ip t c counter name ip saddr map @m`.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Objref,
            Objref::named(ObjectType::SYNPROXY, "sp"),
            "
                24000100 0b000100 6f626a72 65660000 14000200 07000200 73700000 08000100
                0000000a
            ",
        );
        assert_listed(
            Decoded::Objref,
            Objref::mapped(Register::R1, "m"),
            "
                24000100 0b000100 6f626a72 65660000 14000200 08000300 00000001 06000400
                6d000000
            ",
        );
    }

    /// The rules above as nft 1.0.6 prints them; the last two as libnftnl 1.2.4 prints missing names.
    #[test]
    fn bytecode() {
        for (objref, line) in [
            (
                Objref::named(ObjectType::COUNTER, "k"),
                "[ objref type 1 name k ]",
            ),
            (
                Objref::named(ObjectType::SYNPROXY, "sp"),
                "[ objref type 10 name sp ]",
            ),
            (
                Objref::mapped(Register::R1, "__objmap0"),
                "[ objref sreg 1 set __objmap0 ]",
            ),
            (Objref::default(), "[ objref type 0 name (null) ]"),
            (
                Objref {
                    set_name: None,
                    ..Objref::mapped(Register::R1, "m")
                },
                "[ objref sreg 1 set (null) ]",
            ),
        ] {
            assert_eq!(objref.to_string(), line);
        }
    }

    /// The names of `nft list`.
    #[test]
    fn types_have_names() {
        assert_eq!(ObjectType::CT_EXPECT.to_string(), "ct expectation");
        assert_eq!(
            ObjectType::from_name("ct helper"),
            Some(ObjectType::CT_HELPER)
        );
        assert_eq!(ObjectType(11).to_string(), "11");
    }
}
