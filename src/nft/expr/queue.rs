//! `queue`: passes the packet to a program, which returns the verdict.
//!
//! ```text
//! NFTA_QUEUE_NUM         be16
//! NFTA_QUEUE_TOTAL       be16, not 0
//! NFTA_QUEUE_FLAGS       be16
//! NFTA_QUEUE_SREG_QNUM   be32
//! ```
//!
//! Either number and total, or a register.

use chainwright_sys::nf_tables::{
    NFT_QUEUE_FLAG_BYPASS, NFT_QUEUE_FLAG_CPU_FANOUT, NFTA_QUEUE_FLAGS, NFTA_QUEUE_NUM,
    NFTA_QUEUE_SREG_QNUM, NFTA_QUEUE_TOTAL,
};

use super::{Register, expression};
use crate::nft::UnknownAttributes;
use crate::nft::declare::flags;

flags! {
    /// Flags of the expression (`NFT_QUEUE_FLAG_*`).
    pub struct QueueFlags: u16 {
        /// Accepts the packet if no program listens on the queue, instead of dropping it.
        const BYPASS = NFT_QUEUE_FLAG_BYPASS,
        /// Selects the queue by the CPU that processes the packet, instead of by a hash of its
        /// addresses; not with a register.
        const CPU_FANOUT = NFT_QUEUE_FLAG_CPU_FANOUT,
    }
}

expression! {
    "queue"
    /// Passes the packet to the program that listens on a queue of nfnetlink
    /// (`enum nft_queue_attributes`).
    pub struct Queue viewed as QueueRef {
        /// The queue, or the first of several.
        NFTA_QUEUE_NUM => num: u16,
        /// Number of queues; 1 if absent.
        NFTA_QUEUE_TOTAL => total: u16,
        /// Flags.
        NFTA_QUEUE_FLAGS => flags: QueueFlags,
        /// Register with the number of the queue, u32 in host byte order.
        NFTA_QUEUE_SREG_QNUM => sreg_qnum: Register,
    }
}

impl Queue {
    /// Passes packets to one queue.
    #[must_use]
    pub const fn to(num: u16) -> Self {
        Self::spread(num, 1)
    }

    /// Passes packets to one of `total` queues starting with `first`; all packets of a connection
    /// to the same one, if [`QueueFlags::CPU_FANOUT`] is not set.
    #[must_use]
    pub const fn spread(first: u16, total: u16) -> Self {
        Self {
            num: Some(first),
            total: Some(total),
            flags: None,
            sreg_qnum: None,
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Passes packets to the queue whose number is in a register.
    #[must_use]
    pub const fn register(sreg_qnum: Register) -> Self {
        Self {
            num: None,
            total: None,
            flags: None,
            sreg_qnum: Some(sreg_qnum),
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Sets the flags.
    #[must_use]
    pub const fn with_flags(mut self, flags: QueueFlags) -> Self {
        self.flags = Some(flags);
        self
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[ queue ")?;
        if let Some(num) = self.num {
            write!(f, "num {num}")?;
            if let Some(total @ 2..) = self.total {
                write!(f, "-{}", num.wrapping_add(total - 1))?;
            }
            f.write_str(" ")?;
        }
        if let Some(sreg) = self.sreg_qnum {
            write!(f, "sreg_qnum {} ", sreg.0)?;
        }
        let flags = self.flags.unwrap_or_default();
        if flags.contains(QueueFlags::BYPASS) {
            f.write_str("bypass ")?;
        }
        if flags.contains(QueueFlags::CPU_FANOUT) {
            f.write_str("fanout ")?;
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
        assert_built("queue", Queue::to(0));
        assert_built("queue num 3", Queue::to(3));
        assert_built("queue num 3-7", Queue::spread(3, 5));
        assert_built(
            "queue num 3 bypass",
            Queue::to(3).with_flags(QueueFlags::BYPASS),
        );
        assert_built(
            "queue to oifname map { \"eth0\" : 0 }",
            Queue::register(Register::R1),
        );
        assert_built(
            "queue flags bypass to numgen inc mod 4",
            Queue::register(Register::R1).with_flags(QueueFlags::BYPASS),
        );
        assert_built(
            "listed: queue num 3-7",
            Queue::spread(3, 5).with_flags(QueueFlags::empty()),
        );
        assert_built(
            "queue flags bypass,fanout num 1-65535",
            Queue::spread(1, 65535).with_flags(QueueFlags::BYPASS | QueueFlags::CPU_FANOUT),
        );
    }
}
