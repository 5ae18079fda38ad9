//! `xfrm`: reads the IPsec state that transformed the packet, or that will transform it.
//!
//! ```text
//! NFTA_XFRM_KEY     be32
//! NFTA_XFRM_DIR     u8
//! NFTA_XFRM_SPNUM   be32, at most 5
//! NFTA_XFRM_DREG    be32
//! ```

use chainwright_sys::nf_tables as sys;
use chainwright_sys::nf_tables::{NFTA_XFRM_DIR, NFTA_XFRM_DREG, NFTA_XFRM_KEY, NFTA_XFRM_SPNUM};

use super::{Register, expression};
use crate::nft::UnknownAttributes;
use crate::nft::declare::values;

values! {
    /// The key to read (`enum nft_xfrm_keys`). Addresses are those of the tunnel, in network order;
    /// a state in another mode has none, and the rule doesn't match.
    pub struct XfrmKey: u32 {
        /// IPv4 destination, 4 bytes.
        DADDR_IP4 = sys::NFT_XFRM_KEY_DADDR_IP4 => "daddr4",
        /// IPv6 destination, 16 bytes.
        DADDR_IP6 = sys::NFT_XFRM_KEY_DADDR_IP6 => "daddr6",
        /// IPv4 source, 4 bytes.
        SADDR_IP4 = sys::NFT_XFRM_KEY_SADDR_IP4 => "saddr4",
        /// IPv6 source, 16 bytes.
        SADDR_IP6 = sys::NFT_XFRM_KEY_SADDR_IP6 => "saddr6",
        /// Request ID, u32 in host byte order.
        REQID = sys::NFT_XFRM_KEY_REQID => "reqid",
        /// Security parameter index, u32 in network order.
        SPI = sys::NFT_XFRM_KEY_SPI => "spi",
    }
}

values! {
    /// The direction of the packet (`XFRM_POLICY_*`, `linux/xfrm.h`).
    pub struct XfrmDirection: u8 {
        /// Received through IPsec.
        IN = 0 => "in",
        /// Will be sent through IPsec.
        OUT = 1 => "out",
    }
}

expression! {
    "xfrm"
    /// Reads a key of an IPsec state of the packet into a register (`enum nft_xfrm_attributes`);
    /// the rule doesn't match a packet without such a state.
    pub struct Xfrm viewed as XfrmRef,
    listed as [dreg, key, dir, spnum] {
        /// Key to read.
        NFTA_XFRM_KEY => key: XfrmKey,
        /// Direction of the packet.
        NFTA_XFRM_DIR => dir: XfrmDirection,
        /// Index of the packet's state, from 0.
        NFTA_XFRM_SPNUM => spnum: u32,
        /// Destination register.
        NFTA_XFRM_DREG => dreg: Register,
    }
}

impl Xfrm {
    /// Reads a key of the packet's state with this index, from 0 to 5, into a register.
    #[must_use]
    pub const fn load(key: XfrmKey, dir: XfrmDirection, spnum: u32, dreg: Register) -> Self {
        Self {
            key: Some(key),
            dir: Some(dir),
            spnum: Some(spnum),
            dreg: Some(dreg),
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Xfrm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(dreg) = self.dreg else {
            return f.write_str("[ xfrm ]");
        };
        let dir = self.dir.unwrap_or_default().name().unwrap_or("unknown");
        let key = self.key.unwrap_or_default();
        let key = match key.name() {
            None if key.0 == sys::NFT_XFRM_KEY_UNSPEC => "(null)",
            name => name.unwrap_or("unknown"),
        };
        let spnum = self.spnum.unwrap_or_default();
        write!(f, "[ xfrm load {dir} {spnum} {key} => reg {} ]", dreg.0)
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::expr::Decoded;
    use crate::nft::expr::tests::captured::{
        Wire, assert_attributes, assert_element, assert_layout, assert_listed,
    };

    #[test]
    fn layout() {
        let layout = [
            (2, "NFTA_XFRM_KEY", Wire::Be32),
            (3, "NFTA_XFRM_DIR", Wire::U8),
            (4, "NFTA_XFRM_SPNUM", Wire::Be32),
            (1, "NFTA_XFRM_DREG", Wire::Be32),
        ];
        assert_layout::<Xfrm>(Xfrm::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule inet t c ipsec in spnum 2 spi 0x100`.
    #[test]
    fn an_index() {
        assert_element(
            Decoded::Xfrm,
            Xfrm {
                key: Some(XfrmKey::SPI),
                dir: Some(XfrmDirection::IN),
                spnum: Some(2),
                dreg: Some(Register::R1),
                ..Default::default()
            },
            "
                34000180                    ; NFTA_LIST_ELEM
                09000100 7866726d 00000000  ;   NFTA_EXPR_NAME: xfrm
                24000280                    ;   NFTA_EXPR_DATA
                08000200 00000006           ;     NFTA_XFRM_KEY
                05000300 00000000           ;     NFTA_XFRM_DIR
                08000400 00000002           ;     NFTA_XFRM_SPNUM
                08000100 00000001           ;     NFTA_XFRM_DREG
            ",
        );
    }

    /// nft 1.0.6: `ipsec in spnum 255 ip daddr 10.0.0.1` (which the kernel refuses),
    /// `ipsec in ip6 daddr 2001:db8::1`, `ipsec in ip saddr 10.0.0.1`,
    /// `ipsec in ip6 saddr 2001:db8::1`, `ipsec out reqid 1`.
    #[test]
    fn keys() {
        use XfrmDirection as Dir;
        for (key, dir, spnum, sent) in [
            (
                XfrmKey::DADDR_IP4,
                Dir::IN,
                255,
                "08000200 00000001 05000300 00000000 08000400 000000ff 08000100 00000001",
            ),
            (
                XfrmKey::DADDR_IP6,
                Dir::IN,
                0,
                "08000200 00000002 05000300 00000000 08000400 00000000 08000100 00000001",
            ),
            (
                XfrmKey::SADDR_IP4,
                Dir::IN,
                0,
                "08000200 00000003 05000300 00000000 08000400 00000000 08000100 00000001",
            ),
            (
                XfrmKey::SADDR_IP6,
                Dir::IN,
                0,
                "08000200 00000004 05000300 00000000 08000400 00000000 08000100 00000001",
            ),
            (
                XfrmKey::REQID,
                Dir::OUT,
                0,
                "08000200 00000005 05000300 01000000 08000400 00000000 08000100 00000001",
            ),
        ] {
            let xfrm = Xfrm::load(key, dir, spnum, Register::R1);
            assert_attributes(Decoded::Xfrm, xfrm, sent);
        }
    }

    /// Listed after nft 1.0.6: `add rule inet t c ipsec in spnum 2 spi 0x100` and
    /// `add rule inet t c ipsec out reqid 1`.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Xfrm,
            Xfrm::load(XfrmKey::SPI, XfrmDirection::IN, 2, Register::R1),
            "
                34000100 09000100 7866726d 00000000 24000200 08000100 00000001 08000200
                00000006 05000300 00000000 08000400 00000002
            ",
        );
        assert_listed(
            Decoded::Xfrm,
            Xfrm::load(XfrmKey::REQID, XfrmDirection::OUT, 0, Register::R1),
            "
                34000100 09000100 7866726d 00000000 24000200 08000100 00000001 08000200
                00000005 05000300 01000000 08000400 00000000
            ",
        );
    }

    /// The rules above as nft 1.0.6 prints them; from the unknown key on as libnftnl 1.2.4 prints
    /// attributes that no kernel lists.
    #[test]
    fn bytecode() {
        use XfrmDirection as Dir;
        for (key, dir, spnum, line) in [
            (
                XfrmKey::DADDR_IP4,
                Dir::IN,
                255,
                "[ xfrm load in 255 daddr4 => reg 1 ]",
            ),
            (
                XfrmKey::DADDR_IP6,
                Dir::IN,
                0,
                "[ xfrm load in 0 daddr6 => reg 1 ]",
            ),
            (
                XfrmKey::SADDR_IP4,
                Dir::IN,
                0,
                "[ xfrm load in 0 saddr4 => reg 1 ]",
            ),
            (
                XfrmKey::SADDR_IP6,
                Dir::IN,
                0,
                "[ xfrm load in 0 saddr6 => reg 1 ]",
            ),
            (
                XfrmKey::REQID,
                Dir::OUT,
                0,
                "[ xfrm load out 0 reqid => reg 1 ]",
            ),
            (XfrmKey::SPI, Dir::IN, 2, "[ xfrm load in 2 spi => reg 1 ]"),
            (
                XfrmKey(7),
                Dir::IN,
                0,
                "[ xfrm load in 0 unknown => reg 1 ]",
            ),
            (
                XfrmKey(0),
                Dir::OUT,
                1,
                "[ xfrm load out 1 (null) => reg 1 ]",
            ),
            (
                XfrmKey::DADDR_IP4,
                Dir(2),
                1,
                "[ xfrm load unknown 1 daddr4 => reg 1 ]",
            ),
        ] {
            let xfrm = Xfrm::load(key, dir, spnum, Register::R1);
            assert_eq!(xfrm.to_string(), line);
        }
        assert_eq!(Xfrm::default().to_string(), "[ xfrm ]");
    }
}
