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
    use crate::nft::expr::tests::cases::assert_built;

    #[test]
    fn constructors() {
        assert_built("log prefix \"x\"", Log::prefix("x"));
        assert_built(
            "listed: … log prefix \"in: \"",
            Log {
                level: Some(LogLevel::WARNING),
                ..Log::prefix("in: ")
            },
        );
    }
}
