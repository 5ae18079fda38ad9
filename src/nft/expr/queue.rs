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
    use crate::nft::expr::Decoded;
    use crate::nft::expr::tests::captured::{
        Wire, assert_attributes, assert_element, assert_layout, assert_listed,
    };

    /// All flags.
    const BOTH: QueueFlags = QueueFlags::BYPASS.union(QueueFlags::CPU_FANOUT);

    #[test]
    fn layout() {
        let layout = [
            (1, "NFTA_QUEUE_NUM", Wire::Be16),
            (2, "NFTA_QUEUE_TOTAL", Wire::Be16),
            (3, "NFTA_QUEUE_FLAGS", Wire::Be16),
            (4, "NFTA_QUEUE_SREG_QNUM", Wire::Be32),
        ];
        assert_layout::<Queue>(Queue::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip t c queue flags bypass,fanout num 1-65535`.
    #[test]
    fn many_queues() {
        assert_element(
            Decoded::Queue,
            Queue {
                num: Some(1),
                total: Some(65535),
                flags: Some(BOTH),
                ..Default::default()
            },
            "
                2c000180                    ; NFTA_LIST_ELEM
                0a000100 71756575 65000000  ;   NFTA_EXPR_NAME: queue
                1c000280                    ;   NFTA_EXPR_DATA
                06000100 00010000           ;     NFTA_QUEUE_NUM
                06000200 ffff0000           ;     NFTA_QUEUE_TOTAL
                06000300 00030000           ;     NFTA_QUEUE_FLAGS
            ",
        );
    }

    /// nft 1.0.6: `queue`, `queue num 3`, `queue num 3-7`, `queue num 3 bypass`,
    /// `queue to oifname map { "eth0" : 0 }`, `queue flags bypass to numgen inc mod 4`.
    #[test]
    fn by_number_and_by_register() {
        for (queue, sent) in [
            (Queue::to(0), "06000100 00000000 06000200 00010000"),
            (Queue::to(3), "06000100 00030000 06000200 00010000"),
            (Queue::spread(3, 5), "06000100 00030000 06000200 00050000"),
            (
                Queue::to(3).with_flags(QueueFlags::BYPASS),
                "06000100 00030000 06000200 00010000 06000300 00010000",
            ),
            (Queue::register(Register::R1), "08000400 00000001"),
            (
                Queue::register(Register::R1).with_flags(QueueFlags::BYPASS),
                "06000300 00010000 08000400 00000001",
            ),
        ] {
            assert_attributes(Decoded::Queue, queue, sent);
        }
    }

    /// The kernel at hand has no `queue`: built from `linux/netfilter/nf_tables.h`, in the kernel's
    /// order, with the flags that it always lists.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Queue,
            Queue::spread(3, 5).with_flags(QueueFlags::empty()),
            "
                2c000100 0a000100 71756575 65000000 1c000200 06000100 00030000 06000200
                00050000 06000300 00000000
            ",
        );
        assert_listed(
            Decoded::Queue,
            Queue::register(Register::R1).with_flags(QueueFlags::BYPASS),
            "
                24000100 0a000100 71756575 65000000 14000200 08000400 00000001 06000300
                00010000
            ",
        );
    }

    /// The rules above as nft 1.0.6 sends and prints them; from the last total on as libnftnl 1.2.4
    /// prints attributes that no kernel lists.
    #[test]
    fn bytecode() {
        for (queue, line) in [
            (Queue::to(0), "[ queue num 0 ]"),
            (Queue::to(65535), "[ queue num 65535 ]"),
            (Queue::spread(3, 5), "[ queue num 3-7 ]"),
            (
                Queue::to(3).with_flags(QueueFlags::BYPASS),
                "[ queue num 3 bypass ]",
            ),
            (
                Queue::spread(1, 65535).with_flags(BOTH),
                "[ queue num 1-65535 bypass fanout ]",
            ),
            (Queue::register(Register::R1), "[ queue sreg_qnum 1 ]"),
            (
                Queue::register(Register::R1).with_flags(QueueFlags::BYPASS),
                "[ queue sreg_qnum 1 bypass ]",
            ),
            (Queue::spread(65535, 2), "[ queue num 65535-0 ]"),
            (Queue::spread(3, 0), "[ queue num 3 ]"),
            (
                Queue {
                    sreg_qnum: Some(Register::R1),
                    ..Queue::spread(3, 3).with_flags(QueueFlags::CPU_FANOUT)
                },
                "[ queue num 3-5 sreg_qnum 1 fanout ]",
            ),
            (Queue::default(), "[ queue ]"),
        ] {
            assert_eq!(queue.to_string(), line);
        }
    }
}
