//! Runs a batch: one operation after the other, then commits all or none, and acknowledges them.

use std::sync::Arc;

use chainwright_sys::netlink::{NLM_F_ACK, NLM_F_ECHO};
use chainwright_sys::nfnetlink::{
    NFNL_BATCH_GENID, NFNL_MSG_BATCH_BEGIN, NFNL_MSG_BATCH_END, NFNL_SUBSYS_NFTABLES,
};

use super::events::QueuedEvent;
use super::state::{Devices, State};
use super::tx_state::{Operation, TxState};
use super::wire::{ParsedAttributes, Refusal, U32, acknowledge, refuse};
use chainwright::netlink::{Message, Messages};

/// The changes of a batch.
pub(super) struct Committed {
    pub(super) state: State,
    pub(super) events: Vec<QueuedEvent>,
    /// The first operation's sequence number, and whether it requests an echo of the generation to the sender.
    pub(super) first: u32,
    pub(super) is_echoed: bool,
}

/// The result of a batch.
pub(super) struct Outcome {
    pub(super) committed: Option<Committed>,
    /// The acknowledgements, one datagram each.
    pub(super) replies: Vec<Vec<u8>>,
}

/// Returns `true` if this datagram is a batch.
pub(super) fn is_batch(datagram: &[u8]) -> bool {
    Message::first(datagram).is_ok_and(|message| message.kind == NFNL_MSG_BATCH_BEGIN)
}

/// Runs a batch. Handles that failed operations allocated remain allocated.
pub(super) fn run(
    state: &mut State,
    port: u32,
    devices: &Arc<Devices>,
    datagram: &[u8],
) -> Outcome {
    let mut messages = Messages::new(datagram).map_while(Result::ok);
    let expected = messages
        .next()
        .and_then(|begin| begin.nfgenmsg().ok())
        .and_then(|(_, attributes)| {
            ParsedAttributes::read(attributes, &[(NFNL_BATCH_GENID, U32)])
                .ok()?
                .u32(NFNL_BATCH_GENID)
        });
    let operations: Vec<Message<'_>> = messages.collect();
    let first = operations.first().map_or(&[][..], |message| message.raw);
    if expected.is_some_and(|expected| expected != state.generation) {
        return Outcome {
            committed: None,
            replies: vec![acknowledge(first, port, Some(refuse(libc::ERESTART)))],
        };
    }
    let mut validates_at_once = false;
    loop {
        let mut tx_state = TxState::of(state, port, devices);
        tx_state.validates_at_once = validates_at_once;
        let mut answers = Vec::new();
        let mut end = None;
        let mut failed = false;
        for message in &operations {
            if message.kind == NFNL_MSG_BATCH_END {
                end = Some(message);
                break;
            }
            let executed = execute(&mut tx_state, message);
            failed |= executed.is_err();
            if executed.is_err() || message.flags & NLM_F_ACK != 0 {
                answers.push((message.raw, executed.err()));
            }
        }
        let Some(end) = end.filter(|_| !failed) else {
            keep_handles(state, &tx_state);
            return Outcome {
                committed: None,
                replies: deliver(&answers, port),
            };
        };
        if tx_state.is_unbound() {
            keep_handles(state, &tx_state);
            answers.insert(0, (first, Some(refuse(libc::EINVAL))));
            return Outcome {
                committed: None,
                replies: deliver(&answers, port),
            };
        }
        if tx_state.needs_validation && tx_state.validate().is_err() && !validates_at_once {
            // Runs the batch again to find the failing operation.
            keep_handles(state, &tx_state);
            validates_at_once = true;
            continue;
        }
        if end.flags & NLM_F_ACK != 0 {
            answers.push((end.raw, None));
        }
        let committed = match tx_state.is_empty() {
            true => {
                keep_handles(state, &tx_state);
                None
            }
            false => {
                let (state, events) = tx_state.commit();
                let flags = operations.first().map_or(0, |first| first.flags);
                Some(Committed {
                    state,
                    events,
                    first: operations.first().map_or(0, |first| first.sequence),
                    is_echoed: flags & NLM_F_ECHO != 0,
                })
            }
        };
        return Outcome {
            committed,
            replies: deliver(&answers, port),
        };
    }
}

fn execute(tx_state: &mut TxState, message: &Message<'_>) -> Result<(), Refusal> {
    if message.kind >> 8 != u16::from(NFNL_SUBSYS_NFTABLES) {
        return Err(refuse(libc::EINVAL));
    }
    let (header, attributes) = message.nfgenmsg().map_err(|_| refuse(libc::EINVAL))?;
    tx_state.execute(&Operation {
        message: message.kind as u8,
        flags: message.flags,
        sequence: message.sequence,
        family: header.family,
        attributes,
    })
}

/// Keeps the state that a failed transaction doesn't revert: the handle counters, and the size that a set gets from a
/// rule that adds elements to it.
fn keep_handles(state: &mut State, tx_state: &TxState) {
    state.handles = tx_state.state.handles;
    state.unnamed_chains = tx_state.state.unnamed_chains;
    for table in &mut state.tables {
        let after = tx_state.state.index_of(table.handle);
        let Some(after) = after.map(|after| &tx_state.state.tables[after]) else {
            continue;
        };
        if after.handles == table.handles {
            continue;
        }
        let table = Arc::make_mut(table);
        table.handles = after.handles;
        for at in 0..table.sets.len() {
            let set = &table.sets[at];
            let after = after.sets.find_any(set.handle);
            let size = after.map_or(set.size, |after| after.size);
            if set.size == 0 && size != 0 {
                table.sets.edit(at).size = size;
            }
        }
    }
}

fn deliver(answers: &[(&[u8], Option<Refusal>)], port: u32) -> Vec<Vec<u8>> {
    let answers = answers.iter();
    answers
        .map(|(request, refusal)| acknowledge(request, port, *refusal))
        .collect()
}
