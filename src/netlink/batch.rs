//! The replies to a batch, and the outcome that they prove.
//!
//! A batch is `NFNL_MSG_BATCH_BEGIN`, operations, `NFNL_MSG_BATCH_END` in one datagram. The kernel
//! processes it inside `sendmsg` and queues its replies before that returns:
//!
//! - an error for each operation that failed, in order, at the operation's sequence number;
//! - an error of the commit itself, at the *first operation's* sequence number, queued before any
//!   of the others;
//! - an error of the whole batch (no permission) at `BATCH_BEGIN`'s sequence number;
//! - an acknowledgement for each operation that requested one and did not fail, even if the batch
//!   failed because of others;
//! - an acknowledgement for `BATCH_END` if it requested one, only after the commit, and only since
//!   Linux 6.10.
//!
//! So three acknowledgements are enough for a batch of any size: on the first operation
//! (an error *and* an acknowledgement at its number mean that the commit failed, not the
//! operation), on the last one, and on `BATCH_END`.
//! Source: `net/netfilter/nfnetlink.c` of Linux, `nfnetlink_rcv_batch`; observed on 6.18.

use std::ops::RangeInclusive;

use bstr::BString;

use super::Malformed;
use super::ack::Acknowledgement;
use super::message::Messages;
use crate::errno::Errno;

/// One error that the kernel reported for a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// Index of the failed operation, from 0; `None` when the kernel refused the whole batch
    /// or its commit.
    pub operation: Option<usize>,
    /// The kernel's error number.
    pub errno: Errno,
    /// The kernel's own text, if any.
    pub text: Option<BString>,
    /// Start of the attribute that caused the error, in bytes from the start of the operation's
    /// netlink header.
    pub attribute_offset: Option<u32>,
}

/// The outcome that the replies prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchStatus {
    /// Every operation was applied: the kernel acknowledged the end.
    Applied,
    /// Every operation was valid, and the end was not acknowledged. Kernels before 6.10 report applied
    /// batches like this; newer ones only if a reply is missing.
    Acknowledged,
    /// Nothing was applied.
    Rejected,
    /// Replies were lost: the batch may have been applied as a whole, or not at all.
    Unknown,
}

/// The result of the replies to one batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchResult {
    /// The outcome that they prove.
    pub status: BatchStatus,
    /// The errors, in the order of the operations.
    pub rejections: Vec<Rejection>,
    /// Whether replies were lost, so that more operations may have failed than are listed.
    pub lost: bool,
}

/// State machine that derives a batch's outcome from its replies, independent of any socket.
#[derive(Debug, Clone)]
pub struct BatchReplies {
    operations: RangeInclusive<u32>,
    rejections: Vec<Rejection>,
    first_acknowledged: bool,
    last_acknowledged: bool,
    end_acknowledged: bool,
    echoed: bool,
    lost: bool,
}

impl BatchReplies {
    /// Creates the state for a batch whose operations have these sequence numbers; `BATCH_BEGIN` has the number before
    /// them and `BATCH_END` the number after them.
    #[must_use]
    pub const fn new(operations: RangeInclusive<u32>) -> Self {
        Self {
            operations,
            rejections: Vec::new(),
            first_acknowledged: false,
            last_acknowledged: false,
            end_acknowledged: false,
            echoed: false,
            lost: false,
        }
    }

    /// Processes one datagram.
    ///
    /// # Errors
    /// [`Malformed`] when a message in it is malformed; the rest counts as lost.
    pub fn accept(&mut self, datagram: &[u8]) -> Result<(), Malformed> {
        for message in Messages::new(datagram) {
            let acknowledgement = message.and_then(|message| Acknowledgement::parse(&message));
            match acknowledgement {
                Ok(Some(acknowledgement)) => self.acknowledge(&acknowledgement),
                Ok(None) => {} // not a reply to a batch: an event or an echo
                Err(malformed) => {
                    self.lost = true;
                    return Err(malformed);
                }
            }
        }
        Ok(())
    }

    fn acknowledge(&mut self, acknowledgement: &Acknowledgement<'_>) {
        let (first, last) = (*self.operations.start(), *self.operations.end());
        let sequence = acknowledgement.sequence;
        let Some(errno) = acknowledgement.errno else {
            self.first_acknowledged |= sequence == first;
            self.last_acknowledged |= sequence == last;
            self.end_acknowledged |= sequence == last.wrapping_add(1);
            return;
        };
        let operation = if self.operations.contains(&sequence) {
            Some((sequence - first) as usize)
        } else if sequence == first.wrapping_sub(1) || sequence == last.wrapping_add(1) {
            None
        } else {
            return; // a reply to an earlier request
        };
        self.rejections.push(Rejection {
            operation,
            errno,
            text: acknowledgement.text.map(BString::from),
            attribute_offset: acknowledgement.attribute_offset,
        });
    }

    /// Records that the kernel echoed the batch's changes to the sender (`NLM_F_ECHO`), as it does only for committed
    /// batches.
    pub fn record_echo(&mut self) {
        self.echoed = true;
    }

    /// Records that the kernel dropped replies, or that one was truncated.
    pub fn record_loss(&mut self) {
        self.lost = true;
    }

    /// Returns `true` if no further reply can come: `BATCH_END` was acknowledged.
    #[must_use]
    pub const fn complete(&self) -> bool {
        self.end_acknowledged
    }

    /// Determines the outcome, once the socket has no more replies.
    #[must_use]
    pub fn finish(mut self) -> BatchResult {
        if self.first_acknowledged {
            // The first operation succeeded: an error at its number is the commit's.
            for rejection in &mut self.rejections {
                if rejection.operation == Some(0) {
                    rejection.operation = None;
                }
            }
        }
        let status = if self.end_acknowledged || self.echoed {
            // The kernel acknowledges the end and echoes changes only after the commit. An error in addition to that
            // answers another request.
            self.rejections.clear();
            BatchStatus::Applied
        } else if !self.rejections.is_empty() {
            BatchStatus::Rejected
        } else if self.first_acknowledged && self.last_acknowledged && !self.lost {
            BatchStatus::Acknowledged
        } else {
            BatchStatus::Unknown
        };
        BatchResult {
            status,
            rejections: self.rejections,
            lost: self.lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ack::tests::reply;
    use super::*;

    /// Replays (sequence, errno) pairs as the replies to five operations numbered 1 to 5.
    fn replay(replies: &[(u32, i32)], lost: bool) -> BatchResult {
        let mut state = BatchReplies::new(1..=5);
        for &(sequence, errno) in replies {
            let mut datagram = Vec::new();
            reply(&mut datagram, sequence, errno, None, None);
            state.accept(&datagram).unwrap();
        }
        if lost {
            state.record_loss();
        }
        state.finish()
    }

    fn failed(replies: &BatchResult) -> Vec<Option<usize>> {
        replies.rejections.iter().map(|r| r.operation).collect()
    }

    #[test]
    fn applied_with_and_without_an_end_acknowledgement() {
        // Linux 6.10 and later.
        assert_eq!(
            replay(&[(1, 0), (5, 0), (6, 0)], false).status,
            BatchStatus::Applied
        );
        // Before 6.10 BATCH_END is never acknowledged.
        assert_eq!(
            replay(&[(1, 0), (5, 0)], false).status,
            BatchStatus::Acknowledged
        );
        // The first operation's is missing: perhaps together with the commit's error.
        assert_eq!(replay(&[(5, 0)], false).status, BatchStatus::Unknown);
        // The end is acknowledged after the commit, whatever else was lost.
        assert_eq!(replay(&[(6, 0)], true).status, BatchStatus::Applied);
    }

    #[test]
    fn several_operations_failed() {
        let outcome = replay(&[(1, 0), (2, 2), (4, 17), (5, 0)], false);
        assert_eq!(outcome.status, BatchStatus::Rejected);
        assert_eq!(failed(&outcome), [Some(1), Some(3)]);
        assert_eq!(outcome.rejections[1].errno, Errno::new(17));
    }

    #[test]
    fn the_first_operation_or_the_commit() {
        // The first operation itself.
        assert_eq!(failed(&replay(&[(1, 2), (5, 0)], false)), [Some(0)]);
        // The commit: reported at the first operation, which was acknowledged as well.
        let commit = replay(&[(1, libc::ELOOP), (1, 0), (5, 0)], false);
        assert_eq!(commit.status, BatchStatus::Rejected);
        assert_eq!(failed(&commit), [None]);
        // A moved generation: reported at the first operation, nothing else comes.
        let moved = replay(&[(1, libc::ERESTART)], false);
        assert_eq!(moved.status, BatchStatus::Rejected);
        // No permission: reported at BATCH_BEGIN.
        assert_eq!(failed(&replay(&[(0, libc::EPERM)], false)), [None]);
    }

    #[test]
    fn lost_replies() {
        assert_eq!(replay(&[], true).status, BatchStatus::Unknown);
        assert_eq!(replay(&[], false).status, BatchStatus::Unknown);
        // The commit's error may be among the lost ones.
        assert_eq!(replay(&[(1, 0), (5, 0)], true).status, BatchStatus::Unknown);
        // One error proves that nothing was applied.
        let outcome = replay(&[(3, 2)], true);
        assert_eq!(
            (outcome.status, outcome.lost),
            (BatchStatus::Rejected, true)
        );
    }

    #[test]
    fn an_echo_proves_the_commit() {
        let mut state = BatchReplies::new(1..=5);
        state.record_echo();
        state.record_loss();
        assert_eq!(state.finish().status, BatchStatus::Applied);
    }

    #[test]
    fn answers_to_other_requests_do_not_count() {
        let outcome = replay(&[(77, 1), (1, 0), (5, 0)], false);
        assert_eq!(outcome.status, BatchStatus::Acknowledged);
        // The end's acknowledgement proves the commit, whatever else is queued.
        let outcome = replay(&[(3, libc::ENOENT), (1, 0), (5, 0), (6, 0)], false);
        assert_eq!(
            (outcome.status, failed(&outcome)),
            (BatchStatus::Applied, vec![])
        );
    }

    #[test]
    fn a_truncated_reply_counts_as_lost() {
        let mut datagram = Vec::new();
        reply(&mut datagram, 6, 0, None, None);
        for end in 1..datagram.len() {
            let mut state = BatchReplies::new(1..=5);
            assert!(state.accept(&datagram[..end]).is_err());
            assert_eq!(state.finish().status, BatchStatus::Unknown);
        }
    }

    #[test]
    fn text_and_offset_are_kept() {
        let mut datagram = Vec::new();
        reply(&mut datagram, 2, 2, Some("why"), Some(32));
        let mut state = BatchReplies::new(1..=5);
        state.accept(&datagram).unwrap();
        let outcome = state.finish();
        assert_eq!(outcome.rejections[0].text, Some("why".into()));
        assert_eq!(outcome.rejections[0].attribute_offset, Some(32));
    }
}
