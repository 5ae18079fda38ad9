//! `log`: writes the packet to the kernel's log or passes it to user space.
//!
//! ```text
//! NFTA_LOG_PREFIX       string, at most 127 bytes
//! NFTA_LOG_GROUP        be16
//! NFTA_LOG_SNAPLEN      be32
//! NFTA_LOG_QTHRESHOLD   be16
//! NFTA_LOG_LEVEL        be32
//! NFTA_LOG_FLAGS        be32
//! ```
//!
//! Either group, snap length and threshold, or level and flags.

use chainwright_sys::nf_tables as sys;
use chainwright_sys::nf_tables::{
    NFTA_LOG_FLAGS, NFTA_LOG_GROUP, NFTA_LOG_LEVEL, NFTA_LOG_PREFIX, NFTA_LOG_QTHRESHOLD,
    NFTA_LOG_SNAPLEN,
};

use super::expression;
use crate::nft::declare::{flags, values};
use crate::nft::name::Name;

values! {
    /// Level of a log line (`enum nft_log_level`, as in syslog(3)).
    pub struct LogLevel: u32 {
        /// The system is unusable.
        EMERG = sys::NFT_LOGLEVEL_EMERG => "emerg",
        /// Immediate action is required.
        ALERT = sys::NFT_LOGLEVEL_ALERT => "alert",
        /// Critical.
        CRIT = sys::NFT_LOGLEVEL_CRIT => "crit",
        /// An error.
        ERR = sys::NFT_LOGLEVEL_ERR => "err",
        /// A warning.
        WARNING = sys::NFT_LOGLEVEL_WARNING => "warn",
        /// Worth a notice.
        NOTICE = sys::NFT_LOGLEVEL_NOTICE => "notice",
        /// Information.
        INFO = sys::NFT_LOGLEVEL_INFO => "info",
        /// For debugging.
        DEBUG = sys::NFT_LOGLEVEL_DEBUG => "debug",
        /// To the audit log.
        AUDIT = sys::NFT_LOGLEVEL_AUDIT => "audit",
    }
}

flags! {
    /// The contents of a log line beyond the default (`NF_LOG_*`, `linux/netfilter/nf_log.h`).
    pub struct LogFlags: u32 {
        /// TCP sequence numbers.
        const TCPSEQ = 0x01,
        /// TCP options.
        const TCPOPT = 0x02,
        /// IP options.
        const IPOPT = 0x04,
        /// User ID of the socket.
        const UID = 0x08,
        /// The link layer header, decoded.
        const MACDECODE = 0x20,
    }
}

expression! {
    "log"
    /// Writes a line to the kernel's log, or passes the packet to a group of listeners
    /// (`enum nft_log_attributes`).
    pub struct Log<'a> viewed as LogRef {
        /// Prefix of the line.
        NFTA_LOG_PREFIX => prefix: Name<'a>,
        /// Netlink group; with it the packet is passed to listeners instead of the kernel's log.
        NFTA_LOG_GROUP => group: u16,
        /// Number of bytes of the packet that listeners receive.
        NFTA_LOG_SNAPLEN => snaplen: u32,
        /// Number of packets to queue before listeners receive them.
        NFTA_LOG_QTHRESHOLD => queue_threshold: u16,
        /// Level of the line.
        NFTA_LOG_LEVEL => level: LogLevel,
        /// Contents of the line.
        NFTA_LOG_FLAGS => flags: LogFlags,
    }
}

impl<'a> Log<'a> {
    /// Writes a line with this prefix to the kernel's log.
    pub fn prefix(prefix: impl Into<Name<'a>>) -> Self {
        Self {
            prefix: Some(prefix.into()),
            ..Self::default()
        }
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Log<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[ log ")?;
        if let Some(prefix) = &self.prefix {
            write!(f, "prefix {prefix} ")?;
        }
        if let Some(group) = self.group {
            let snaplen = self.snaplen.unwrap_or_default();
            let threshold = self.queue_threshold.unwrap_or_default();
            write!(f, "group {group} snaplen {snaplen} qthreshold {threshold} ")?;
        } else {
            if let Some(level) = self.level {
                write!(f, "level {} ", level.0)?;
            }
            for (flag, name) in [
                (LogFlags::TCPSEQ, "tcpseq "),
                (LogFlags::TCPOPT, "tcpopt "),
                (LogFlags::IPOPT, "ipopt "),
                (LogFlags::UID, "uid "),
                (LogFlags::MACDECODE, "macdecode "),
            ] {
                if self.flags.unwrap_or_default().contains(flag) {
                    f.write_str(name)?;
                }
            }
        }
        f.write_str("]")
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
            (2, "NFTA_LOG_PREFIX", Wire::Text),
            (1, "NFTA_LOG_GROUP", Wire::Be16),
            (3, "NFTA_LOG_SNAPLEN", Wire::Be32),
            (4, "NFTA_LOG_QTHRESHOLD", Wire::Be16),
            (5, "NFTA_LOG_LEVEL", Wire::Be32),
            (6, "NFTA_LOG_FLAGS", Wire::Be32),
        ];
        assert_layout::<Log<'_>>(Log::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip t c log prefix "x" group 5 snaplen 128 queue-threshold 10`.
    #[test]
    fn to_a_group() {
        assert_element(
            Decoded::Log,
            Log {
                prefix: Some("x".into()),
                group: Some(5),
                snaplen: Some(128),
                queue_threshold: Some(10),
                level: None,
                flags: None,
                ..Default::default()
            },
            "
                30000180           ; NFTA_LIST_ELEM
                08000100 6c6f6700  ;   NFTA_EXPR_NAME: log
                24000280           ;   NFTA_EXPR_DATA
                06000200 78000000  ;     NFTA_LOG_PREFIX
                06000100 00050000  ;     NFTA_LOG_GROUP
                08000300 00000080  ;     NFTA_LOG_SNAPLEN
                06000400 000a0000  ;     NFTA_LOG_QTHRESHOLD
            ",
        );
    }

    /// nft 1.0.6: `log`, `log prefix "x"`, `log prefix "in: " level info flags all`,
    /// `log level debug flags tcp sequence,options`.
    #[test]
    fn to_the_kernels_log() {
        assert_attributes(Decoded::Log, Log::default(), "");
        assert_attributes(Decoded::Log, Log::prefix("x"), "06000200 78000000");
        let all = LogFlags::TCPSEQ
            | LogFlags::TCPOPT
            | LogFlags::IPOPT
            | LogFlags::UID
            | LogFlags::MACDECODE;
        assert_attributes(
            Decoded::Log,
            Log {
                level: Some(LogLevel::INFO),
                flags: Some(all),
                ..Log::prefix("in: ")
            },
            "09000200 696e3a20 00000000 08000500 00000006 08000600 0000002f",
        );
        assert_attributes(
            Decoded::Log,
            Log {
                level: Some(LogLevel::DEBUG),
                flags: Some(LogFlags::TCPSEQ | LogFlags::TCPOPT),
                ..Log::default()
            },
            "08000500 00000007 08000600 00000003",
        );
    }

    /// iptables-nft 1.8.9: `-j NFLOG --nflog-group 3 --nflog-prefix p`.
    #[test]
    fn nflog_is_native() {
        assert_attributes(
            Decoded::Log,
            Log {
                group: Some(3),
                ..Log::prefix("p")
            },
            "06000200 70000000 06000100 00030000",
        );
    }

    /// Listed after nft 1.0.6: `add rule ip t c … log prefix "in: "`: the kernel adds its default
    /// level.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Log,
            Log {
                level: Some(LogLevel::WARNING),
                ..Log::prefix("in: ")
            },
            "24000100 08000100 6c6f6700 18000200 09000200 696e3a20 00000000 08000500 00000004",
        );
    }

    /// Lines of `nft --debug=netlink list ruleset` (nft 1.0.6, libnftnl 1.2.4) after `log`,
    /// `log prefix "in: "` (the blank at its end belongs to it),
    /// `log prefix "x" group 5 snaplen 128 queue-threshold 10`, `log group 3`,
    /// `log level debug flags tcp sequence,options`, `log level info flags all`; the rest as its
    /// libnftnl printed handmade attributes.
    #[test]
    fn bytecode() {
        let level = |level, prefix| Log {
            level: Some(level),
            prefix,
            ..Log::default()
        };
        let group = Log {
            group: Some(3),
            ..Log::default()
        };
        let all = LogFlags::from_bits_retain(0x2f);
        for (log, line) in [
            (level(LogLevel::WARNING, None), "[ log level 4 ]"),
            (
                level(LogLevel::WARNING, Some("in: ".into())),
                "[ log prefix in:  level 4 ]",
            ),
            (
                Log {
                    group: Some(5),
                    snaplen: Some(128),
                    queue_threshold: Some(10),
                    ..Log::prefix("x")
                },
                "[ log prefix x group 5 snaplen 128 qthreshold 10 ]",
            ),
            (group.clone(), "[ log group 3 snaplen 0 qthreshold 0 ]"),
            (
                Log {
                    flags: Some(LogFlags::TCPSEQ | LogFlags::TCPOPT),
                    ..level(LogLevel::DEBUG, None)
                },
                "[ log level 7 tcpseq tcpopt ]",
            ),
            (
                Log {
                    flags: Some(all),
                    ..level(LogLevel::INFO, None)
                },
                "[ log level 6 tcpseq tcpopt ipopt uid macdecode ]",
            ),
            // A group has neither level nor flags.
            (
                Log {
                    level: Some(LogLevel::INFO),
                    flags: Some(all),
                    ..group
                },
                "[ log group 3 snaplen 0 qthreshold 0 ]",
            ),
            (
                Log {
                    flags: Some(LogFlags::from_bits_retain(0x50)),
                    ..Log::prefix("x")
                },
                "[ log prefix x ]",
            ),
            (Log::default(), "[ log ]"),
        ] {
            assert_eq!(log.to_string(), line);
        }
    }
}
