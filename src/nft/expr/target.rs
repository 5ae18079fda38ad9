//! `target`: an xtables target, in nf_tables' compatibility layer.
//!
//! ```text
//! NFTA_TARGET_NAME   string
//! NFTA_TARGET_REV    be32
//! NFTA_TARGET_INFO   bytes
//! ```
//!
//! A rule with a target needs [`Compat`](crate::nft::Compat).

use chainwright_sys::nf_tables_compat::{NFTA_TARGET_INFO, NFTA_TARGET_NAME, NFTA_TARGET_REV};

use super::expression;
use crate::nft::UnknownAttributes;
use crate::nft::name::{Bytes, Name};

expression! {
    "target"
    /// An xtables target: the extension processes the packet and returns the verdict
    /// (`enum nft_target_attributes`).
    pub struct Target<'a> viewed as TargetRef {
        /// The extension's name.
        NFTA_TARGET_NAME => name: Name<'a>,
        /// The extension's revision.
        NFTA_TARGET_REV => revision: u32,
        /// The extension's own struct, in host byte order, padded to 8 bytes.
        NFTA_TARGET_INFO => info: Bytes<'a>,
    }
}

impl<'a> Target<'a> {
    /// Creates a target with this extension.
    pub fn new(name: impl Into<Name<'a>>, revision: u32, info: impl Into<Bytes<'a>>) -> Self {
        Self {
            name: Some(name.into()),
            revision: Some(revision),
            info: Some(info.into()),
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[ target name ")?;
        if let Some(name) = &self.name {
            name.fmt(f)?;
        }
        write!(f, " rev {} ]", self.revision.unwrap_or_default())
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

    /// `struct nf_nat_range2` of `--to-destination 10.0.0.1:8080`: flags in host byte order, first
    /// and last address, first, last and base port.
    const TO_DESTINATION: [u8; 48] = {
        let mut range = [0; 48];
        range[0] = 3; // NF_NAT_RANGE_MAP_IPS and NF_NAT_RANGE_PROTO_SPECIFIED
        (range[4], range[7]) = (10, 1);
        (range[20], range[23]) = (10, 1);
        [range[36], range[37]] = 8080u16.to_be_bytes();
        [range[38], range[39]] = 8080u16.to_be_bytes();
        range
    };

    #[test]
    fn layout() {
        let layout = [
            (1, "NFTA_TARGET_NAME", Wire::Text),
            (2, "NFTA_TARGET_REV", Wire::Be32),
            (3, "NFTA_TARGET_INFO", Wire::Bytes),
        ];
        assert_layout::<Target<'_>>(Target::ATTRIBUTES, &layout);
    }

    /// iptables-nft 1.8.9: `-t nat -A PREROUTING -p tcp -j DNAT --to-destination 10.0.0.1:8080`.
    #[test]
    fn dnat() {
        assert_element(
            Decoded::Target,
            Target {
                name: Some("DNAT".into()),
                revision: Some(2),
                info: Some(TO_DESTINATION[..].into()), ..Default::default()
            },
            "
                5c000180                                                                 ; NFTA_LIST_ELEM
                0b000100 74617267 65740000                                               ;   NFTA_EXPR_NAME: target
                4c000280                                                                 ;   NFTA_EXPR_DATA
                09000100 444e4154 00000000                                               ;     NFTA_TARGET_NAME
                08000200 00000002                                                        ;     NFTA_TARGET_REV
                34000300 03000000 0a000001 00000000 00000000 00000000 0a000001 00000000  ;     NFTA_TARGET_INFO
                00000000 00000000 1f901f90 00000000 00000000
            ",
        );
    }

    /// iptables-nft 1.8.9: `-j MARK --set-xmark 0x4000/0x4000`, `-j MASQUERADE --random-fully`,
    /// `-j REJECT`, `-j LOG --log-prefix "x: "`.
    #[test]
    fn others() {
        // `struct xt_mark_tginfo2`: mark, mask.
        let mark = [0, 0x40, 0, 0, 0, 0x40, 0, 0];
        // `struct nf_nat_ipv4_multi_range_compat`: one range, NF_NAT_RANGE_PROTO_RANDOM_FULLY.
        let mut masquerade = [0; 24];
        (masquerade[0], masquerade[4]) = (1, 0x10);
        // `struct ipt_reject_info`: IPT_ICMP_PORT_UNREACHABLE.
        let reject = [3, 0, 0, 0, 0, 0, 0, 0];
        // `struct ipt_log_info`: level, flags, prefix.
        let mut log = [0; 32];
        log[0] = 4;
        log[2..5].copy_from_slice(b"x: ");
        for (target, sent) in [
            (
                Target::new("MARK", 2, &mark[..]),
                "09000100 4d41524b 00000000 08000200 00000002 0c000300 00400000 00400000",
            ),
            (
                Target::new("MASQUERADE", 0, &masquerade[..]),
                "
                    0f000100 4d415351 55455241 44450000 08000200 00000000 1c000300 01000000
                    10000000 00000000 00000000 00000000 00000000
                ",
            ),
            (
                Target::new("REJECT", 0, &reject[..]),
                "0b000100 52454a45 43540000 08000200 00000000 0c000300 03000000 00000000",
            ),
            (
                Target::new("LOG", 0, &log[..]),
                "
                    08000100 4c4f4700 08000200 00000000 24000300 0400783a 20000000 00000000
                    00000000 00000000 00000000 00000000 00000000
                ",
            ),
        ] {
            assert_attributes(Decoded::Target, target, sent);
        }
    }

    /// Listed after iptables-nft 1.8.9:
    /// `-t nat -A PREROUTING -p tcp … -j DNAT --to-destination 10.0.0.1:8080`.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Target,
            Target::new("DNAT", 2, &TO_DESTINATION[..]),
            "
                5c000100 0b000100 74617267 65740000 4c000200 09000100 444e4154 00000000
                08000200 00000002 34000300 03000000 0a000001 00000000 00000000 00000000
                0a000001 00000000 00000000 00000000 1f901f90 00000000 00000000
            ",
        );
    }

    /// Lines of `nft --debug=netlink list ruleset` (nft 1.0.6, libnftnl 1.2.4) after iptables-nft
    /// 1.8.9 wrote `-j DNAT --to-destination …` and `-j REJECT`. They don't contain the info.
    #[test]
    fn bytecode() {
        for (target, line) in [
            (
                Target::new("DNAT", 2, &TO_DESTINATION[..]),
                "[ target name DNAT rev 2 ]",
            ),
            (
                Target::new("REJECT", 0, &[0; 8]),
                "[ target name REJECT rev 0 ]",
            ),
            (Target::default(), "[ target name  rev 0 ]"),
        ] {
            assert_eq!(target.to_string(), line);
        }
    }
}
