//! `-m cluster`: divides connections among the nodes of a cluster that all receive every
//! packet.
//!
//! Data of revision 0 (`struct xt_cluster_match_info`, `linux/netfilter/xt_cluster.h`).

use chainwright_sys::xt_cluster::{XT_CLUSTER_F_INV, XT_CLUSTER_NODES_MAX, xt_cluster_match_info};

use crate::xt::value::{number, number_within};
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionGroup, OptionSpec, Text,
    read_struct, write_struct,
};

/// `-m cluster`: divides connections among the nodes of a cluster that all receive every
/// packet.
///
/// Matches if the packet's connection belongs to one of these nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cluster {
    /// Number of nodes in the cluster: 1 to 32.
    pub total_nodes: u32,
    /// The nodes: bit 0 for the first one.
    pub nodes: u32,
    /// Seed of the hash of the connection's source, identical on all nodes.
    pub hash_seed: u32,
    /// Whether the comparison is negated.
    pub invert: bool,
}

/// Returns `true` if a cluster of that size contains all these nodes.
fn has_nodes(total: u32, nodes: u32) -> bool {
    u64::from(nodes) < 1 << total.min(XT_CLUSTER_NODES_MAX)
}

impl Extension for Cluster {
    const NAME: &'static str = "cluster";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("cluster-total-nodes").required(),
        OptionSpec::one("cluster-local-node").inverts(),
        OptionSpec::one("cluster-local-nodemask").inverts(),
        OptionSpec::one("cluster-hash-seed").required(),
    ];
    const GROUPS: &'static [OptionGroup] = &[OptionGroup::one_of(&[
        "cluster-local-node",
        "cluster-local-nodemask",
    ])];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_cluster_match_info = read_struct(info)?;
        let expressible = (1..=XT_CLUSTER_NODES_MAX).contains(&info.total_nodes)
            && has_nodes(info.total_nodes, info.node_mask)
            && info.flags & !XT_CLUSTER_F_INV == 0;
        expressible.then_some(Self {
            total_nodes: info.total_nodes,
            nodes: info.node_mask,
            hash_seed: info.hash_seed,
            invert: info.flags & XT_CLUSTER_F_INV != 0,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_cluster_match_info {
            total_nodes: self.total_nodes,
            node_mask: self.nodes,
            hash_seed: self.hash_seed,
            flags: if self.invert { XT_CLUSTER_F_INV } else { 0 },
        };
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let (mut total_nodes, mut hash_seed, mut nodes) = (0, 0, 0);
        for one in given {
            let count = || one.parse(|value| number_within(value, 1..=XT_CLUSTER_NODES_MAX));
            let of_nodes = match one.option {
                "cluster-total-nodes" => {
                    total_nodes = count()?;
                    continue;
                }
                "cluster-hash-seed" => {
                    hash_seed = one.parse(number)?;
                    continue;
                }
                "cluster-local-node" => 1 << (count()? - 1),
                _ => one.parse(number::<u32>)?,
            };
            nodes = of_nodes;
        }
        let one = Self::GROUPS[0].find(given)?;
        if !has_nodes(total_nodes, nodes) {
            return Err(one.error(format!("there are only {total_nodes} nodes")));
        }
        Ok(Self {
            total_nodes,
            nodes,
            hash_seed,
            invert: one.invert,
        })
    }

    fn print(&self, text: &mut Text) {
        let (nodes, seed) = (self.nodes, self.hash_seed);
        text.option(self.invert, "cluster-local-nodemask")
            .display(format_args!(" {nodes:#010x}"));
        text.option(false, "cluster-total-nodes")
            .push(" ")
            .number(self.total_nodes);
        text.option(false, "cluster-hash-seed")
            .display(format_args!(" {seed:#010x}"));
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        let (nodes, seed, total) = (self.nodes, self.hash_seed, self.total_nodes);
        let not = if self.invert { "!" } else { "" };
        text.display(format_args!(
            " cluster {not}node_mask={nodes:#010x} total_nodes={total} hash_seed={seed:#010x}"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    /// Data from iptables-legacy 1.8.9 for `--cluster-total-nodes 4 ! --cluster-local-node 3
    /// --cluster-hash-seed 0xdeadbeef` (from `strace -xx`).
    const CAPTURED: [u8; 16] = [4, 0, 0, 0, 4, 0, 0, 0, 0xef, 0xbe, 0xad, 0xde, 1, 0, 0, 0];

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let cluster = Cluster {
            total_nodes: 4,
            nodes: 4,
            hash_seed: 0xdead_beef,
            invert: true,
        };
        assert_eq!(Cluster::read(Family::Ipv4, 0, &CAPTURED), Some(cluster));
        assert_eq!(cluster.write(Family::Ipv4).unwrap(), CAPTURED);
        assert_eq!(
            Match::Cluster(cluster).to_string(),
            "-m cluster ! --cluster-local-nodemask 0x00000004 --cluster-total-nodes 4 \
             --cluster-hash-seed 0xdeadbeef"
        );
        assert_eq!(Cluster::read(Family::Ipv4, 0, &CAPTURED[..15]), None);
        assert_eq!(Cluster::read(Family::Ipv4, 1, &CAPTURED), None);
        for (at, byte) in [(0, 0), (0, 33), (4, 16), (12, 2)] {
            let mut info = CAPTURED;
            info[at] = byte;
            assert_eq!(Cluster::read(Family::Ipv4, 0, &info), None, "{at}");
        }
    }

    #[test]
    fn masks_above_32_can_be_restored() {
        // iptables 1.8.9 prints such masks but does not accept them.
        let printed = "-m cluster --cluster-local-nodemask 0x000000ff --cluster-total-nodes 8 \
                       --cluster-hash-seed 0x00000001";
        let rule = Rule::parse(Family::Ipv4, printed).unwrap();
        assert_eq!(rule.to_string(), printed);
    }

    #[test]
    fn refusals() {
        let rest = "--cluster-total-nodes 4 --cluster-hash-seed 1";
        for (options, message) in [
            (
                "",
                "column 4: -m cluster: --cluster-local-node or \
                 --cluster-local-nodemask is required",
            ),
            (
                "--cluster-local-node 5",
                "column 33: -m cluster: --cluster-local-node: there are only 4 nodes",
            ),
            (
                "--cluster-local-nodemask 16",
                "column 37: -m cluster: --cluster-local-nodemask: there are only 4 nodes",
            ),
            (
                "--cluster-local-node 33",
                "column 33: -m cluster: --cluster-local-node: `33` is not a number from 1 to 32",
            ),
            (
                "--cluster-local-node 1 --cluster-local-nodemask 1",
                "column 35: -m cluster: --cluster-local-nodemask cannot be used with \
                 --cluster-local-node",
            ),
        ] {
            let rule = format!("-m cluster {options} {rest}");
            let error = Rule::parse(Family::Ipv4, rule).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
