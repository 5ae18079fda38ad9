//! `match`: an xtables match, in nf_tables' compatibility layer.
//!
//! ```text
//! NFTA_MATCH_NAME   string
//! NFTA_MATCH_REV    be32
//! NFTA_MATCH_INFO   bytes
//! ```
//!
//! A rule with a match needs [`Compat`](crate::nft::Compat).

use chainwright_sys::nf_tables_compat::{NFTA_MATCH_INFO, NFTA_MATCH_NAME, NFTA_MATCH_REV};

use super::expression;
use crate::nft::UnknownAttributes;
use crate::nft::name::{Bytes, Name};

expression! {
    "match"
    /// An xtables match: matches if the extension does (`enum nft_match_attributes`).
    pub struct Match<'a> viewed as MatchRef {
        /// The extension's name.
        NFTA_MATCH_NAME => name: Name<'a>,
        /// The extension's revision.
        NFTA_MATCH_REV => revision: u32,
        /// The extension's own struct, in host byte order, padded to 8 bytes.
        NFTA_MATCH_INFO => info: Bytes<'a>,
    }
}

impl<'a> Match<'a> {
    /// Creates a match with this extension.
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
impl std::fmt::Display for Match<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[ match name ")?;
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

    #[test]
    fn layout() {
        let layout = [
            (1, "NFTA_MATCH_NAME", Wire::Text),
            (2, "NFTA_MATCH_REV", Wire::Be32),
            (3, "NFTA_MATCH_INFO", Wire::Bytes),
        ];
        assert_layout::<Match<'_>>(Match::ATTRIBUTES, &layout);
    }

    /// iptables-nft 1.8.9: `-t nat -A PREROUTING -m addrtype --dst-type LOCAL`.
    #[test]
    fn addrtype() {
        assert_element(
            Decoded::Match,
            Match {
                name: Some("addrtype".into()),
                revision: Some(1),
                // `struct xt_addrtype_info_v1`: source, dest (RTN_LOCAL is 2), flags.
                info: Some([0, 0, 1 << 2, 0, 0, 0, 0, 0][..].into()),
                ..Default::default()
            },
            "
                38000180                             ; NFTA_LIST_ELEM
                0a000100 6d617463 68000000           ;   NFTA_EXPR_NAME: match
                28000280                             ;   NFTA_EXPR_DATA
                0d000100 61646472 74797065 00000000  ;     NFTA_MATCH_NAME
                08000200 00000001                    ;     NFTA_MATCH_REV
                0c000300 00000400 00000000           ;     NFTA_MATCH_INFO
            ",
        );
    }

    /// iptables-nft 1.8.9: `-m conntrack --ctstate RELATED,ESTABLISHED`,
    /// `-m statistic --mode random --probability 0.5`, `-p tcp -m multiport --dports 80,443`.
    #[test]
    fn others() {
        // `struct xt_conntrack_mtinfo3`, in host byte order: match_flags (XT_CONNTRACK_STATE),
        // invert_flags, state_mask (IP_CT_ESTABLISHED and IP_CT_RELATED).
        let mut conntrack = [0; 168];
        conntrack[146..152].copy_from_slice(&[1, 0, 0, 0, 6, 0]);
        assert_attributes(
            Decoded::Match,
            Match::new("conntrack", 3, &conntrack[..]),
            "
                0e000100 636f6e6e 74726163 6b000000 08000200 00000003 ac000300 00000000
                00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
                00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
                00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
                00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
                00000000 00000000 00000000 00000100 00000600 00000000 00000000 00000000
                00000000
            ",
        );
        // `struct xt_statistic_info`: mode, flags, probability of 2³¹. The tool writes the same
        // number into the field that another mode uses for its count.
        let mut statistic = [0; 24];
        statistic[7] = 0x40;
        statistic[15] = 0x40;
        assert_attributes(
            Decoded::Match,
            Match::new("statistic", 0, &statistic[..]),
            "
                0e000100 73746174 69737469 63000000 08000200 00000000 1c000300 00000000
                00000040 00000000 00000040 00000000 00000000
            ",
        );
        // `struct xt_multiport_v1`: by destination, two ports, in host byte order.
        let mut multiport = [0; 48];
        multiport[..6].copy_from_slice(&[1, 2, 80, 0, 0xbb, 1]);
        assert_attributes(
            Decoded::Match,
            Match::new("multiport", 1, &multiport[..]),
            "
                0e000100 6d756c74 69706f72 74000000 08000200 00000001 34000300 01025000
                bb010000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
                00000000 00000000 00000000
            ",
        );
    }

    /// Listed after iptables-nft 1.8.9: `-t nat -A PREROUTING … -m addrtype --dst-type LOCAL …`.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Match,
            Match::new("addrtype", 1, &[0, 0, 1 << 2, 0, 0, 0, 0, 0][..]),
            "
                38000100 0a000100 6d617463 68000000 28000200 0d000100 61646472 74797065
                00000000 08000200 00000001 0c000300 00000400 00000000
            ",
        );
    }

    /// Lines of `nft --debug=netlink list ruleset` (nft 1.0.6, libnftnl 1.2.4) after iptables-nft
    /// 1.8.9 wrote `-m addrtype --dst-type LOCAL` and `-m conntrack …`. They don't contain the
    /// info.
    #[test]
    fn bytecode() {
        for (expression, line) in [
            (
                Match::new("addrtype", 1, &[0; 8]),
                "[ match name addrtype rev 1 ]",
            ),
            (
                Match::new("conntrack", 3, &[0; 168]),
                "[ match name conntrack rev 3 ]",
            ),
            (Match::default(), "[ match name  rev 0 ]"),
        ] {
            assert_eq!(expression.to_string(), line);
        }
    }
}
