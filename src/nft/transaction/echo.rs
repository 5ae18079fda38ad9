//! Requests for the kernel's echo of a transaction.

use chainwright_sys::netlink::NLM_F_ECHO;
use chainwright_sys::nf_tables::{
    NFT_MSG_NEWCHAIN, NFT_MSG_NEWFLOWTABLE, NFT_MSG_NEWOBJ, NFT_MSG_NEWRULE, NFT_MSG_NEWSET,
    NFT_MSG_NEWTABLE,
};

use super::{BEGIN, END, FLAGS, Transaction};
use crate::netlink::Message;

/// Returns `true` if this message adds an object with a handle.
pub(in crate::nft) const fn has_handle(message: u8) -> bool {
    matches!(
        message,
        NFT_MSG_NEWTABLE
            | NFT_MSG_NEWCHAIN
            | NFT_MSG_NEWRULE
            | NFT_MSG_NEWSET
            | NFT_MSG_NEWOBJ
            | NFT_MSG_NEWFLOWTABLE
    )
}

/// Returns `true` if the kernel always sends a notification for this message; it sends none for a table or stateful
/// object that already exists.
const fn is_always_notified(message: u8) -> bool {
    matches!(message, NFT_MSG_NEWCHAIN | NFT_MSG_NEWRULE)
}

/// The messages to be echoed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::nft) enum Echo {
    /// All objects with a handle, which implies the generation.
    Added,
    /// Only the generation.
    Generation,
}

impl Transaction {
    /// Returns `true` if committing it certainly creates a new generation; some transactions change nothing.
    pub(in crate::nft) fn creates_generation(&self) -> bool {
        (self.messages()).any(|message| is_always_notified(message.kind as u8))
    }

    /// Requests the kernel's echo.
    ///
    /// The kernel echoes each operation whose message has the flag, and the generation if the first operation has
    /// it. But every echo contains the low 16 bits of the generation, so a first operation that is not an addition
    /// need not have the flag: with it, flushing a chain would echo each rule, and adding elements each element.
    pub(in crate::nft) fn request_echo(&mut self, echo: Echo) {
        let kind = |message: &Message<'_>| message.kind as u8;
        // The echo of a chain is a few bytes; that of a rule may be too large for the kernel's buffer.
        let is_chain = |message: &Message<'_>| kind(message) == NFT_MSG_NEWCHAIN;
        let notified = (self.messages().find(is_chain)).or_else(|| {
            self.messages()
                .find(|message| is_always_notified(kind(message)))
        });
        let one = notified.map_or(1, |message| message.sequence);
        let mut at = BEGIN;
        let end = self.buffer.len() - END;
        while let Ok(message) = Message::first(&self.buffer[at..end]) {
            let wants_echo = match echo {
                Echo::Added => has_handle(kind(&message)) || message.sequence == one,
                Echo::Generation => message.sequence == one,
            };
            let next = (at + message.padded_length()).min(end);
            if wants_echo {
                let flags = (message.flags | NLM_F_ECHO).to_ne_bytes();
                self.buffer[at + FLAGS.start..at + FLAGS.end].copy_from_slice(&flags);
            }
            at = next;
        }
    }
}
