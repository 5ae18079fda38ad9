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
    use crate::nft::captured::hex;
    use crate::nft::expr::tests::cases::assert_built;

    #[test]
    fn constructors() {
        assert_built(
            "listed: counter name ip saddr map @m",
            Objref::mapped(Register::R1, "m"),
        );
        assert_built(
            "synproxy name sp",
            Objref::named(ObjectType::SYNPROXY, "sp"),
        );
        assert_built("counter name k", Objref::named(ObjectType::COUNTER, "k"));
        assert_built(
            "of [ objref sreg 1 set __objmap0 ]",
            Objref::mapped(Register::R1, "__objmap0"),
        );
    }

    /// Names are written without a NUL, and accepted with one.
    #[test]
    fn names_with_a_nul() {
        for (objref, ended) in [
            (
                Objref::named(ObjectType::COUNTER, "k"),
                "08000100 00000001 06000200 6b000000",
            ),
            (
                Objref::named(ObjectType::CT_TIMEOUT, "ti"),
                "08000100 00000007 07000200 74690000",
            ),
            (
                Objref::mapped(Register::R1, "m"),
                "08000300 00000001 06000400 6d000000",
            ),
            (
                Objref::mapped(Register::R1, "__objmap%d"),
                "08000300 00000001 0f000400 5f5f6f62 6a6d6170 25640000",
            ),
        ] {
            assert_eq!(Objref::from_attributes(&hex(ended)), Ok(objref), "{ended}");
        }
    }

    /// The names of `nft list`.
    #[test]
    fn types_have_names() {
        assert_eq!(ObjectType::CT_EXPECT.to_string(), "ct expectation");
        assert_eq!("ct helper".parse(), Ok(ObjectType::CT_HELPER));
        let error = "ct helpers".parse::<ObjectType>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`ct helpers` is not the name of a value of ObjectType"
        );
        assert_eq!(ObjectType(11).to_string(), "11");
    }
}
