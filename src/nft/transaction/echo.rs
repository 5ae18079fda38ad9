//! A transaction of which the kernel is to tell the sender what it made of it.

use chainwright_sys::netlink::NLM_F_ECHO;
use chainwright_sys::nf_tables::{
    NFT_MSG_NEWCHAIN, NFT_MSG_NEWFLOWTABLE, NFT_MSG_NEWOBJ, NFT_MSG_NEWRULE, NFT_MSG_NEWSET,
    NFT_MSG_NEWTABLE,
};

use super::{BEGIN, END, FLAGS, Transaction};
use crate::netlink::Message;

/// Whether what this message adds has a handle.
pub(in crate::nft) const fn gets_a_handle(message: u8) -> bool {
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

/// Whether there is always something to be told of a message like this: not so of a table or an object that is there
/// already.
const fn is_always_told(message: u8) -> bool {
    matches!(message, NFT_MSG_NEWCHAIN | NFT_MSG_NEWRULE)
}

/// What is to be told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::nft) enum Echo {
    /// Of all that gets a handle, and so of the generation.
    Added,
    /// Of the generation.
    Generation,
}

impl Transaction {
    /// Whether the kernel makes a new generation of it, if it commits it: some transactions change nothing.
    pub(in crate::nft) fn makes_a_generation(&self) -> bool {
        (self.messages()).any(|message| is_always_told(message.kind as u8))
    }

    /// Has it ask the kernel to tell the sender of it.
    ///
    /// What each operation did is told if its message asks; of the generation, if the first operation's does.
    /// But all that is told has the low half of the generation's number, so that where the first is no addition
    /// it need not ask: of a chain that is flushed each rule would be told, and each element that is added.
    pub(in crate::nft) fn ask_echo(&mut self, echo: Echo) {
        let kind = |message: &Message<'_>| message.kind as u8;
        // A chain is told of in a few bytes; a rule may be too large for the kernel's message.
        let is_chain = |message: &Message<'_>| kind(message) == NFT_MSG_NEWCHAIN;
        let told = (self.messages().find(is_chain)).or_else(|| {
            self.messages()
                .find(|message| is_always_told(kind(message)))
        });
        let one = told.map_or(1, |message| message.sequence);
        let mut at = BEGIN;
        let end = self.buffer.len() - END;
        while let Ok(message) = Message::first(&self.buffer[at..end]) {
            let asks = match echo {
                Echo::Added => gets_a_handle(kind(&message)) || message.sequence == one,
                Echo::Generation => message.sequence == one,
            };
            let next = (at + message.padded_length()).min(end);
            if asks {
                let flags = (message.flags | NLM_F_ECHO).to_ne_bytes();
                self.buffer[at + FLAGS.start..at + FLAGS.end].copy_from_slice(&flags);
            }
            at = next;
        }
    }
}
