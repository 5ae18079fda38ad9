//! Runs a batch: one operation after the other, then commits all or none, and acknowledges them.

use std::sync::Arc;

use chainwright_sys::netlink::{NLM_F_ACK, NLM_F_ECHO};
use chainwright_sys::nfnetlink::{
    NFNL_BATCH_GENID, NFNL_MSG_BATCH_BEGIN, NFNL_MSG_BATCH_END, NFNL_SUBSYS_NFTABLES,
};

use super::draft::{Draft, Operation};
use super::state::{Devices, State};
use super::told::Told;
use super::wire::{Given, Refusal, U32, acknowledge, refuse};
use chainwright::netlink::{Message, Messages};

/// The changes of a batch.
pub(super) struct Committed {
    pub(super) state: State,
    pub(super) told: Vec<Told>,
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

/// Whether this datagram is a batch.
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
            Given::read(attributes, &[(NFNL_BATCH_GENID, U32)])
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
        let mut draft = Draft::of(state, port, devices);
        draft.validates_at_once = validates_at_once;
        let mut answers = Vec::new();
        let mut end = None;
        let mut failed = false;
        for message in &operations {
            if message.kind == NFNL_MSG_BATCH_END {
                end = Some(message);
                break;
            }
            let carried_out = carry_out(&mut draft, message);
            failed |= carried_out.is_err();
            if carried_out.is_err() || message.flags & NLM_F_ACK != 0 {
                answers.push((message.raw, carried_out.err()));
            }
        }
        let Some(end) = end.filter(|_| !failed) else {
            keep_handles(state, &draft);
            return Outcome {
                committed: None,
                replies: deliver(&answers, port),
            };
        };
        if draft.is_unbound() {
            keep_handles(state, &draft);
            answers.insert(0, (first, Some(refuse(libc::EINVAL))));
            return Outcome {
                committed: None,
                replies: deliver(&answers, port),
            };
        }
        if draft.needs_validation && draft.validate().is_err() && !validates_at_once {
            // Runs the batch again to find the failing operation.
            keep_handles(state, &draft);
            validates_at_once = true;
            continue;
        }
        if end.flags & NLM_F_ACK != 0 {
            answers.push((end.raw, None));
        }
        let committed = match draft.is_empty() {
            true => {
                keep_handles(state, &draft);
                None
            }
            false => {
                let (state, told) = draft.commit();
                let flags = operations.first().map_or(0, |first| first.flags);
                Some(Committed {
                    state,
                    told,
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

fn carry_out(draft: &mut Draft, message: &Message<'_>) -> Result<(), Refusal> {
    if message.kind >> 8 != u16::from(NFNL_SUBSYS_NFTABLES) {
        return Err(refuse(libc::EINVAL));
    }
    let (header, attributes) = message.nfgenmsg().map_err(|_| refuse(libc::EINVAL))?;
    draft.carry_out(&Operation {
        message: message.kind as u8,
        flags: message.flags,
        sequence: message.sequence,
        family: header.family,
        attributes,
    })
}

/// Keeps what a failed transaction doesn't revert: the handle counters, and the size that a set gets from a rule that
/// adds elements to it.
fn keep_handles(state: &mut State, draft: &Draft) {
    state.handles = draft.state.handles;
    state.unnamed_chains = draft.state.unnamed_chains;
    for table in &mut state.tables {
        let after = draft.state.place(table.handle);
        let Some(after) = after.map(|after| &draft.state.tables[after]) else {
            continue;
        };
        if after.handles == table.handles {
            continue;
        }
        let table = Arc::make_mut(table);
        table.handles = after.handles;
        for at in 0..table.sets.len() {
            let set = &table.sets[at];
            let after = after.sets.whatever(set.handle);
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
