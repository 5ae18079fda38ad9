//! `meta`: reads or sets the kernel's metadata of a packet.
//!
//! All attributes are be32. Exactly one of the registers is present.

use chainwright_sys::nf_tables as sys;
use chainwright_sys::nf_tables::{NFTA_META_DREG, NFTA_META_KEY, NFTA_META_SREG};

use super::{Register, expression};
use crate::nft::UnknownAttributes;
use crate::nft::declare::values;

values! {
    /// The key to read or set (`enum nft_meta_keys`). Values are in host byte order except for
    /// protocols, which are in network order.
    pub struct MetaKey: u32 {
        /// Length of the packet in bytes, u32.
        LEN = sys::NFT_META_LEN => "len",
        /// Protocol of the link layer (`ETH_P_*`), be16.
        PROTOCOL = sys::NFT_META_PROTOCOL => "protocol",
        /// Priority (`tc` class), u32.
        PRIORITY = sys::NFT_META_PRIORITY => "priority",
        /// Mark, u32.
        MARK = sys::NFT_META_MARK => "mark",
        /// Index of the input interface, u32.
        IIF = sys::NFT_META_IIF => "iif",
        /// Index of the output interface, u32.
        OIF = sys::NFT_META_OIF => "oif",
        /// Name of the input interface, 16 bytes.
        IIFNAME = sys::NFT_META_IIFNAME => "iifname",
        /// Name of the output interface, 16 bytes.
        OIFNAME = sys::NFT_META_OIFNAME => "oifname",
        /// Hardware type of the input interface, u16.
        IIFTYPE = sys::NFT_META_IIFTYPE => "iiftype",
        /// Hardware type of the output interface, u16.
        OIFTYPE = sys::NFT_META_OIFTYPE => "oiftype",
        /// User ID of the socket, u32.
        SKUID = sys::NFT_META_SKUID => "skuid",
        /// Group ID of the socket, u32.
        SKGID = sys::NFT_META_SKGID => "skgid",
        /// Whether the packet is traced, u8.
        NFTRACE = sys::NFT_META_NFTRACE => "nftrace",
        /// Realm of the route, u32.
        RTCLASSID = sys::NFT_META_RTCLASSID => "rtclassid",
        /// Security mark, u32.
        SECMARK = sys::NFT_META_SECMARK => "secmark",
        /// Family of the packet (`NFPROTO_*`), u8.
        NFPROTO = sys::NFT_META_NFPROTO => "nfproto",
        /// Layer-4 protocol (`IPPROTO_*`), u8.
        L4PROTO = sys::NFT_META_L4PROTO => "l4proto",
        /// Name of the input bridge.
        BRI_IIFNAME = sys::NFT_META_BRI_IIFNAME => "bri_iifname",
        /// Name of the output bridge.
        BRI_OIFNAME = sys::NFT_META_BRI_OIFNAME => "bri_oifname",
        /// Packet type (`PACKET_*`), u8.
        PKTTYPE = sys::NFT_META_PKTTYPE => "pkttype",
        /// Number of the CPU, u32.
        CPU = sys::NFT_META_CPU => "cpu",
        /// Group of the input interface, u32.
        IIFGROUP = sys::NFT_META_IIFGROUP => "iifgroup",
        /// Group of the output interface, u32.
        OIFGROUP = sys::NFT_META_OIFGROUP => "oifgroup",
        /// Control group class, u32.
        CGROUP = sys::NFT_META_CGROUP => "cgroup",
        /// A random number, u32.
        PRANDOM = sys::NFT_META_PRANDOM => "prandom",
        /// Whether the packet came through IPsec, u8.
        SECPATH = sys::NFT_META_SECPATH => "secpath",
        /// Kind of the input interface, 16 bytes.
        IIFKIND = sys::NFT_META_IIFKIND => "iifkind",
        /// Kind of the output interface, 16 bytes.
        OIFKIND = sys::NFT_META_OIFKIND => "oifkind",
        /// VLAN ID of the bridge port, u16.
        BRI_IIFPVID = sys::NFT_META_BRI_IIFPVID => "bri_iifpvid",
        /// VLAN protocol of the bridge, be16.
        BRI_IIFVPROTO = sys::NFT_META_BRI_IIFVPROTO => "bri_iifvproto",
        /// Time in nanoseconds since 1970, u64.
        TIME_NS = sys::NFT_META_TIME_NS => "time",
        /// Day of the week, 0 is Sunday, u8.
        TIME_DAY = sys::NFT_META_TIME_DAY => "day",
        /// Second of the day, u32.
        TIME_HOUR = sys::NFT_META_TIME_HOUR => "hour",
        /// Index of the VRF member that received the packet, 0 if there is none, u32.
        SDIF = sys::NFT_META_SDIF => "sdif",
        /// Name of the VRF member that received the packet, 16 bytes.
        SDIFNAME = sys::NFT_META_SDIFNAME => "sdifname",
        /// Whether the bridge passes the packet to upper layers instead of forwarding it (Linux
        /// 6.4), u8; can only be set.
        BRI_BROUTE = sys::NFT_META_BRI_BROUTE => "broute",
        /// Hardware address of the input bridge (Linux 6.18), 6 bytes.
        BRI_IIFHWADDR = sys::NFT_META_BRI_IIFHWADDR => "ibrhwaddr",
    }
}

expression! {
    "meta"
    /// Reads a key into a register (`dreg`), or sets it from one (`sreg`)
    /// (`enum nft_meta_attributes`).
    pub struct Meta viewed as MetaRef {
        /// Key to read or set.
        NFTA_META_KEY => key: MetaKey,
        /// Destination register of a read.
        NFTA_META_DREG => dreg: Register,
        /// Source register of a write.
        NFTA_META_SREG => sreg: Register,
    }
}

impl Meta {
    /// Reads a key into a register.
    #[must_use]
    pub const fn load(key: MetaKey, dreg: Register) -> Self {
        Self {
            key: Some(key),
            dreg: Some(dreg),
            sreg: None,
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Sets a key from a register.
    #[must_use]
    pub const fn set(key: MetaKey, sreg: Register) -> Self {
        Self {
            key: Some(key),
            dreg: None,
            sreg: Some(sreg),
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Meta {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = match self.key.unwrap_or_default() {
            // libnftnl 1.2.4 does not know these.
            MetaKey::BRI_BROUTE | MetaKey::BRI_IIFHWADDR => "unknown",
            key => key.name().unwrap_or("unknown"),
        };
        match (self.sreg, self.dreg) {
            (Some(sreg), _) => write!(f, "[ meta set {key} with reg {} ]", sreg.0),
            (None, Some(dreg)) => write!(f, "[ meta load {key} => reg {} ]", dreg.0),
            (None, None) => f.write_str("[ meta ]"),
        }
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::expr::tests::cases::assert_built;

    #[test]
    fn constructors() {
        assert_built("tcp dport 443", Meta::load(MetaKey::L4PROTO, Register::R1));
        assert_built(
            "meta mark set mark and 0xffff",
            Meta::set(MetaKey::MARK, Register::R1),
        );
        assert_built(
            "of [ meta load time => reg 3 ]",
            Meta::load(MetaKey::TIME_NS, Register::R3),
        );
        assert_built(
            "of [ meta set unknown with reg 9 ]",
            Meta::set(MetaKey(41), Register::word(1)),
        );
    }

    #[test]
    fn keys_have_names() {
        assert_eq!("iifname".parse(), Ok(MetaKey::IIFNAME));
        assert_eq!(MetaKey(9999).to_string(), "9999");
    }

    /// The names of all keys, ordered by number.
    #[test]
    fn names_of_all_keys() {
        let names: Vec<_> = (0..35).map(|key| MetaKey(key).name().unwrap()).collect();
        assert_eq!(
            names.join(" "),
            "len protocol priority mark iif oif iifname oifname iiftype oiftype skuid skgid \
             nftrace rtclassid secmark nfproto l4proto bri_iifname bri_oifname pkttype cpu \
             iifgroup oifgroup cgroup prandom secpath iifkind oifkind bri_iifpvid bri_iifvproto \
             time day hour sdif sdifname"
        );
    }
}
