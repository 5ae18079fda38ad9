//! `log`: writes the packet to the kernel's log or hands it to user space.

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
        /// Something must be done at once.
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
    /// What a log line shows beyond the usual (`NF_LOG_*`, `linux/netfilter/nf_log.h`).
    pub struct LogFlags: u32 {
        /// TCP sequence numbers.
        const TCPSEQ = 0x01,
        /// TCP options.
        const TCPOPT = 0x02,
        /// IP options.
        const IPOPT = 0x04,
        /// User id of the socket.
        const UID = 0x08,
        /// The link layer header, decoded.
        const MACDECODE = 0x20,
    }
}

expression! {
    "log"
    /// Writes a line to the kernel's log, or hands the packet to a group of listeners
    /// (`enum nft_log_attributes`).
    pub struct Log<'a> {
        /// Netlink group; with it the packet goes to listeners instead of the kernel's log.
        NFTA_LOG_GROUP => group: u16,
        /// Start of the line.
        NFTA_LOG_PREFIX => prefix: Name<'a>,
        /// How many bytes of the packet listeners get.
        NFTA_LOG_SNAPLEN => snaplen: u32,
        /// How many packets are gathered before listeners get them.
        NFTA_LOG_QTHRESHOLD => queue_threshold: u16,
        /// Level of the line.
        NFTA_LOG_LEVEL => level: LogLevel,
        /// What the line shows.
        NFTA_LOG_FLAGS => flags: LogFlags,
    }
}

impl<'a> Log<'a> {
    /// A line in the kernel's log that starts with this prefix.
    pub fn prefix(prefix: impl Into<Name<'a>>) -> Self {
        Self {
            prefix: Some(prefix.into()),
            ..Self::default()
        }
    }
}
