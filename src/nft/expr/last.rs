//! `last`: records when the last packet matched. Since Linux 5.14.
//!
//! ```text
//! NFTA_LAST_MSECS   be64
//! NFTA_LAST_SET     be32
//! ```

use chainwright_sys::nf_tables::{NFTA_LAST_MSECS, NFTA_LAST_PAD, NFTA_LAST_SET};

use super::expression;
use crate::nft::UnknownAttributes;

expression! {
    "last"
    /// Records when the last packet matched (`enum nft_last_attributes`); a request contains the
    /// start values.
    pub struct Last viewed as LastRef,
    listed as [set, msecs] {
        /// Milliseconds since the last packet; 0 if there was none.
        NFTA_LAST_MSECS => msecs: u64,
        /// Whether there was a packet: 0 or 1. Without it the kernel ignores the milliseconds.
        NFTA_LAST_SET => set: u32,
        _ => NFTA_LAST_PAD,
    }
}

impl Last {
    /// Creates it without a packet.
    #[must_use]
    pub const fn never() -> Self {
        Self {
            msecs: None,
            set: None,
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Creates it with the last packet this many milliseconds ago.
    #[must_use]
    pub const fn ago(msecs: u64) -> Self {
        Self {
            msecs: Some(msecs),
            set: Some(1),
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like libnftnl; nft 1.0.6 fails to print such a rule.
impl std::fmt::Display for Last {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.set.unwrap_or_default() {
            0 => f.write_str("[ last never ]"),
            _ => write!(f, "[ last {} ]", self.msecs.unwrap_or_default()),
        }
    }
}

/// nft 1.0.6 has no syntax for `last`. libnftnl 1.2.4 wrote the bytes after reading them
/// (`nftnl_rule_nlmsg_parse`, `nftnl_rule_nlmsg_build_payload`).
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
            (2, "NFTA_LAST_MSECS", Wire::Be64),
            (1, "NFTA_LAST_SET", Wire::Be32),
        ];
        assert_layout::<Last>(Last::ATTRIBUTES, &layout);
    }

    #[test]
    fn some_time_ago() {
        assert_element(
            Decoded::Last,
            Last {
                msecs: Some(60_000),
                set: Some(1),
                ..Default::default()
            },
            "
                28000180                    ; NFTA_LIST_ELEM
                09000100 6c617374 00000000  ;   NFTA_EXPR_NAME: last
                18000280                    ;   NFTA_EXPR_DATA
                0c000200 00000000 0000ea60  ;     NFTA_LAST_MSECS
                08000100 00000001           ;     NFTA_LAST_SET
            ",
        );
    }

    #[test]
    fn no_packet_yet() {
        assert_attributes(Decoded::Last, Last::never(), "");
    }

    /// Listed after the two above were sent.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Last,
            Last::ago(60_000),
            "
                28000100 09000100 6c617374 00000000 18000200 08000100 00000001 0c000200
                00000000 0000ea60
            ",
        );
        assert_listed(
            Decoded::Last,
            Last {
                msecs: Some(0),
                set: Some(0),
                ..Last::never()
            },
            "
                28000100 09000100 6c617374 00000000 18000200 08000100 00000000 0c000200
                00000000 00000000
            ",
        );
    }

    /// The output of libnftnl 1.2.4 for such bytes (nft 1.0.6 prints the line, and an error).
    #[test]
    fn bytecode() {
        for (expression, line) in [
            (Last::ago(60_000), "[ last 60000 ]"),
            (Last::ago(u64::MAX), "[ last 18446744073709551615 ]"),
            (Last::never(), "[ last never ]"),
            (
                Last {
                    msecs: None,
                    ..Last::ago(0)
                },
                "[ last 0 ]",
            ),
            (
                Last {
                    set: None,
                    ..Last::ago(5)
                },
                "[ last never ]",
            ),
        ] {
            assert_eq!(expression.to_string(), line);
        }
    }
}
