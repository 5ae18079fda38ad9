//! `-j CLUSTERIP`: lets several hosts share an IPv4 address, and distributes connections among them
//! by a hash. Removed in Linux 6.3.
//!
//! Data of revision 0 (`struct ipt_clusterip_tgt_info`, `linux/netfilter_ipv4/ipt_CLUSTERIP.h`):
//! whether the rule creates a cluster, and the cluster's parameters if so.

use chainwright_sys::ipt_clusterip_target::{
    CLUSTERIP_FLAG_NEW, CLUSTERIP_HASHMODE_SIP, CLUSTERIP_HASHMODE_SIP_SPT,
    CLUSTERIP_HASHMODE_SIP_SPT_DPT, CLUSTERIP_MAX_NODES, ipt_clusterip_tgt_info,
};
use zerocopy::FromZeros;

use crate::xt::value::{mac, number, number_within, one_of};
use crate::xt::{
    Context, Extension, Families, Family, GivenOption, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

/// The input of the hash that selects a connection's node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClusteripHash {
    /// Source address.
    Source,
    /// Source address and port.
    SourcePort,
    /// Source address and port, destination port.
    SourcePortDestinationPort,
}

const HASHES: [(&str, ClusteripHash); 3] = [
    ("sourceip", ClusteripHash::Source),
    ("sourceip-sourceport", ClusteripHash::SourcePort),
    (
        "sourceip-sourceport-destport",
        ClusteripHash::SourcePortDestinationPort,
    ),
];

/// Parameters of a cluster that a rule creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClusteripNew {
    /// The input of the hash that selects a connection's node.
    pub hash: ClusteripHash,
    /// The cluster's Ethernet multicast address.
    pub mac: [u8; 6],
    /// Number of nodes, at most 16.
    pub total_nodes: u16,
    /// Number of this host's node, 1 to 16.
    pub local_node: u16,
    /// Seed of the hash.
    pub seed: u32,
}

/// `-j CLUSTERIP`: lets several hosts share an IPv4 address, and distributes connections among them
/// by a hash. Removed in Linux 6.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Clusterip {
    /// The cluster's parameters, if the rule creates it.
    pub new: Option<ClusteripNew>,
}

impl Extension for Clusterip {
    const NAME: &'static str = "CLUSTERIP";
    const REVISION: u8 = 0;
    const FAMILIES: Families = Families::Ipv4;
    const OPTIONS: &'static [OptionSpec] = &[
        // A rule gives all of these to create a cluster, or none for an existing one.
        OptionSpec::switch("new").needs(&["hashmode"]),
        OptionSpec::one("hashmode").needs(&["clustermac"]),
        OptionSpec::one("clustermac").needs(&["total-nodes"]),
        OptionSpec::one("total-nodes").needs(&["local-node"]),
        OptionSpec::one("local-node").needs(&["new"]),
        OptionSpec::one("hash-init").needs(&["new"]),
    ];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: ipt_clusterip_tgt_info = read_struct(info)?;
        if revision != Self::REVISION {
            return None;
        }
        match info.flags {
            0 => return Some(Self { new: None }),
            CLUSTERIP_FLAG_NEW => {}
            _ => return None,
        }
        // The options support only one node.
        (info.num_local_nodes == 1).then_some(())?;
        Some(Self {
            new: Some(ClusteripNew {
                hash: match info.hash_mode {
                    CLUSTERIP_HASHMODE_SIP => ClusteripHash::Source,
                    CLUSTERIP_HASHMODE_SIP_SPT => ClusteripHash::SourcePort,
                    CLUSTERIP_HASHMODE_SIP_SPT_DPT => ClusteripHash::SourcePortDestinationPort,
                    _ => return None,
                },
                mac: info.clustermac,
                total_nodes: info.num_total_nodes,
                local_node: info.local_nodes[0],
                seed: info.hash_initval,
            }),
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = ipt_clusterip_tgt_info::new_zeroed();
        if let Some(new) = self.new {
            info.flags = CLUSTERIP_FLAG_NEW;
            info.clustermac = new.mac;
            info.num_total_nodes = new.total_nodes;
            info.num_local_nodes = 1;
            info.local_nodes[0] = new.local_node;
            info.hash_mode = match new.hash {
                ClusteripHash::Source => CLUSTERIP_HASHMODE_SIP,
                ClusteripHash::SourcePort => CLUSTERIP_HASHMODE_SIP_SPT,
                ClusteripHash::SourcePortDestinationPort => CLUSTERIP_HASHMODE_SIP_SPT_DPT,
            };
            info.hash_initval = new.seed;
        }
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        if given.is_empty() {
            return Ok(Self::default());
        }
        let find = |option| GivenOption::find(given, option);
        let find_required = |option| GivenOption::find_required(given, option);
        let node = |option| find_required(option)?.parse(|value| number_within(value, 1..=NODES));
        let address = find_required("clustermac")?;
        let new = ClusteripNew {
            hash: find_required("hashmode")?.parse(|value| one_of(value, &HASHES))?,
            mac: address.parse(mac)?,
            total_nodes: node("total-nodes")?,
            local_node: node("local-node")?,
            seed: find("hash-init").map_or(Ok(0), |one| one.parse(number))?,
        };
        if new.mac[0] & 1 == 0 {
            return Err(address.error("not a multicast address: its first byte must be odd"));
        }
        Ok(Self { new: Some(new) })
    }

    fn print(&self, text: &mut Text) {
        let Some(new) = self.new else {
            return;
        };
        let name = HASHES.iter().find(|(_, hash)| *hash == new.hash);
        text.option(false, "new");
        text.option(false, "hashmode")
            .word(name.map_or("", |(name, _)| name));
        let [a, b, c, d, e, f] = new.mac;
        text.option(false, "clustermac").display(format_args!(
            " {a:02X}:{b:02X}:{c:02X}:{d:02X}:{e:02X}:{f:02X}"
        ));
        for (option, number) in [
            ("total-nodes", u32::from(new.total_nodes)),
            ("local-node", u32::from(new.local_node)),
            ("hash-init", new.seed),
        ] {
            text.option(false, option).push(" ").number(number);
        }
    }
}

const NODES: u16 = CLUSTERIP_MAX_NODES as u16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Target;

    const TEXT: &str = "-j CLUSTERIP --new --hashmode sourceip-sourceport --clustermac \
                        01:02:03:0A:0B:06 --total-nodes 4 --local-node 2 --hash-init 7";

    /// Returns the data of [`TEXT`] from iptables-legacy 1.8.9 on x86-64 (`strace -xx`). The test kernel has no
    /// CLUSTERIP, so there is no file of rules; the tool was made to assume support.
    fn captured() -> Vec<u8> {
        let mut info = vec![0; 64];
        info[0] = 1;
        info[4..10].copy_from_slice(&[1, 2, 3, 10, 11, 6]);
        (info[10], info[12], info[14]) = (4, 1, 2);
        (info[48], info[52]) = (1, 7);
        info
    }

    #[test]
    #[cfg(all(target_endian = "little", target_pointer_width = "64"))]
    fn round_trips_data_of_iptables() {
        let value = Target::read(Family::Ipv4, "CLUSTERIP", 0, &captured());
        assert_eq!(value.to_string(), TEXT);
        assert_eq!(value.encode(Family::Ipv4).unwrap().info, captured());
        let rule = Rule::parse(Family::Ipv4, TEXT).unwrap();
        assert_eq!(rule.to_string(), TEXT);
        let other = Target::read(Family::Ipv4, "CLUSTERIP", 0, &[0; 64]);
        assert_eq!(other.to_string(), "-j CLUSTERIP");
        assert_eq!(Clusterip::read(Family::Ipv4, 0, &captured()[..63]), None);
        assert_eq!(Clusterip::read(Family::Ipv4, 1, &captured()), None);
        // Unknown flags; two nodes; an unknown hash.
        for (at, byte) in [(0, 3), (12, 2), (48, 3)] {
            let mut invalid = captured();
            invalid[at] = byte;
            assert_eq!(Clusterip::read(Family::Ipv4, 0, &invalid), None);
        }
    }

    #[test]
    fn refuses() {
        for (from, to, message) in [
            ("--new ", "", "--local-node needs --new"),
            ("--local-node 2 ", "", "--total-nodes needs --local-node"),
            (" 01:", " 02:", "not a multicast address"),
            ("--total-nodes 4", "--total-nodes 17", "from 1 to 16"),
            ("ip-sourceport", "", "`source` is not one of sourceip, "),
        ] {
            let fault = Rule::parse(Family::Ipv4, TEXT.replacen(from, to, 1)).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
        assert!(Rule::parse(Family::Ipv6, TEXT).is_err());
    }
}
