//! Groups datagrams into transactions: a state machine without a socket.
//!
//! The kernel sends a transaction's events, followed by the message with its generation (`NFT_MSG_NEWGEN`), all under
//! the lock that commits take: on one socket the events of two transactions never interleave. The header of each of
//! these messages has the port of the committing socket; a message with port 0 doesn't belong to a transaction.
//!
//! Events are missing when the socket reports it (`ENOBUFS`), when a datagram was truncated or is malformed, when a
//! generation was skipped, or when the events of one transaction are followed by events of another one. The position of
//! the gap in the queue is unknown: the socket reports the loss before it returns what it queued earlier, and it queues
//! nothing more until that has been received. Therefore the assembler
//!
//! 1. discards everything until the queue is empty ([`drained`](CommitAssembler::drained)): later events come after the
//!    gap;
//! 2. requests the generation from the kernel, on the same socket
//!    ([`needs_generation`](CommitAssembler::needs_generation)): the reply is queued among the events;
//! 3. reports the changes up to that generation as [`Lost`]. Events before the reply were committed before it was
//!    sent. A transaction with a later generation after the reply is complete, because the generation moves before the
//!    first event of a transaction is sent.
//!
//! At the start the same request determines the generation of the first change.

use std::collections::VecDeque;

use bstr::BString;
use chainwright_sys::netlink::{NLMSG_MIN_TYPE, NLMSG_OVERRUN};
use chainwright_sys::nf_tables::NFT_MSG_NEWGEN;
use chainwright_sys::nfnetlink::NFNL_SUBSYS_NFTABLES;

use super::change::{Change, Event};
use crate::netlink::{Acknowledgement, Error, Loss, Malformed, Message, Messages};
use crate::nft::connection::message_type;
use crate::nft::generation::Origin;
use crate::nft::{Generation, GenerationRef};

/// The output of a [`CommitAssembler`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Item {
    /// A transaction was committed. Its generation follows the previous item's, not counting [`OutOfBand`](Self::OutOfBand) events.
    Change(Change),
    /// Changes were lost.
    Lost(Lost),
    /// The kernel reported an object outside of a transaction.
    OutOfBand(OutOfBandEvent),
}

/// Changes whose events were lost. The caller has to read the ruleset again; the next [`Change`] is the first one after
/// [`through`](Self::through).
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("changes after generation {after} up to {through} were lost: {cause}")]
pub struct Lost {
    /// The last generation before the gap.
    pub after: Generation,
    /// The last generation that may have lost events. If it equals [`after`](Self::after), the lost message belonged to
    /// no transaction.
    pub through: Generation,
    /// The evidence of the loss.
    pub cause: Cause,
}

crate::debug_as_message!(Lost);

/// The evidence that changes were lost.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The kernel reported it: the receive buffer was full, there was no memory, or an object was larger than the
    /// kernel's message buffer (a rule of some kilobytes, for example).
    #[error(transparent)]
    Dropped(Loss),
    /// A datagram was longer than the buffer that it was received into.
    #[error("a datagram of {length} bytes was truncated to {capacity}")]
    Cut {
        /// The datagram's length in bytes.
        length: usize,
        /// Number of bytes that fitted.
        capacity: usize,
    },
    /// No event reported the generations in between.
    #[error("the next reported generation is {reported}")]
    Skipped {
        /// The generation that was received.
        reported: Generation,
    },
    /// Events of another transaction came before the end of this one.
    #[error("the end of a transaction is missing")]
    EndMissing,
    /// A message is malformed.
    #[error(transparent)]
    Malformed(Malformed),
    /// A transaction was larger than the limit.
    #[error(
        "a transaction of {events} events and {bytes} bytes{} is larger than the limit of {limit} bytes",
        thread_name.as_ref().map(|name| format!(" by {name}")).unwrap_or_default()
    )]
    TooLarge {
        /// Number of events.
        events: usize,
        /// Size of the events in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
        /// The port of the committing socket.
        port: u32,
        /// The thread that committed it: see [`Change::thread_id`].
        thread_id: Option<u32>,
        /// The name of that thread.
        thread_name: Option<BString>,
    },
}

crate::debug_as_message!(Cause);

/// An event outside of a transaction: a quota object is used up. (The kernel doesn't report quotas inside of rules.) It
/// doesn't move the generation. Linux 5.10, 6.1 and 6.12 report it with the next commit, before the events of that
/// transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutOfBandEvent {
    bytes: Vec<u8>,
}

impl OutOfBandEvent {
    /// Returns the current state of the object.
    #[must_use]
    pub fn event(&self) -> Event<'_> {
        Event::new(Message::first(&self.bytes).expect("invariant: it was read when it came"))
    }
}

/// Whether the events are complete.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// No event is missing since this generation.
    Complete(Generation),
    /// Events are missing, or no generation is known yet. All input is discarded.
    Missing {
        /// The last generation returned and the cause of the gap; `None` at the start.
        gap: Option<(Generation, Cause)>,
        stage: Stage,
    },
}

/// Progress of the recovery from a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Discarding the queued messages, which may precede the gap.
    Draining,
    /// The next step is to request the generation.
    Requesting,
    /// Waiting for the reply.
    Requested,
}

/// Groups the datagrams of the multicast group `NFNLGRP_NFTABLES` into [`Item`]s. A [`Monitor`](super::Monitor) is a
/// `CommitAssembler` with a socket.
///
/// The caller repeats these steps:
/// 1. When [`needs_generation`](Self::needs_generation) returns true, send a request for the generation (`NFT_MSG_GETGEN`) on the same socket,
///    and call [`generation_requested`](Self::generation_requested).
/// 2. Call [`next`](Self::next) until it returns `None`.
/// 3. Receive, and pass on the result: a [`datagram`](Self::datagram), a [loss](Self::record_loss), or an [empty
///    queue](Self::drained).
///
/// It keeps the events of one transaction, up to a limit; for a larger one it returns [`Lost`](Cause::TooLarge), with
/// the committing thread.
#[derive(Debug)]
pub struct CommitAssembler {
    /// The namespace of the generations.
    origin: Origin,
    /// Port of the caller's socket: messages addressed to it are answers.
    port: u32,
    /// Maximum number of bytes kept per transaction.
    limit: usize,
    state: State,
    /// The messages of the current transaction.
    bytes: Vec<u8>,
    /// Number and total length of the messages, including those beyond the limit.
    events: usize,
    length: usize,
    /// Port and resource ID (the low 16 bits of the generation) of these messages.
    header: (u32, u16),
    ready: VecDeque<Item>,
}

impl CommitAssembler {
    /// Creates an assembler for a socket with this port that has joined the group. It first requests the generation.
    ///
    /// The network namespace of its generations is unknown: they never equal generations read over a
    /// [`Connection`](crate::nft::Connection).
    #[must_use]
    pub fn new(port: u32, limit: usize) -> Self {
        Self::of(Origin::Recorded, port, limit)
    }

    /// Creates an assembler for a socket in this namespace.
    pub(super) fn of(origin: Origin, port: u32, limit: usize) -> Self {
        Self {
            origin,
            port,
            limit,
            state: State::Missing {
                gap: None,
                stage: Stage::Requesting,
            },
            bytes: Vec::new(),
            events: 0,
            length: 0,
            header: (0, 0),
            ready: VecDeque::new(),
        }
    }

    /// Returns the last generation that was returned or reported as lost; `None` until the first reply. The next
    /// change has the following generation.
    #[must_use]
    pub fn reported(&self) -> Option<Generation> {
        match &self.state {
            State::Complete(reported) => Some(*reported),
            State::Missing { gap, .. } => gap.as_ref().map(|(reported, _)| *reported),
        }
    }

    /// Returns `true` if the caller has to request the generation now.
    #[must_use]
    pub fn needs_generation(&self) -> bool {
        matches!(
            self.state,
            State::Missing {
                stage: Stage::Requesting,
                ..
            }
        )
    }

    /// Returns `true` if a requested generation has not arrived yet.
    #[must_use]
    pub fn awaits_generation(&self) -> bool {
        matches!(
            self.state,
            State::Missing {
                stage: Stage::Requested,
                ..
            }
        )
    }

    /// Records that the caller sent the request.
    pub fn generation_requested(&mut self) {
        if let State::Missing { stage, .. } = &mut self.state {
            *stage = Stage::Requested;
        }
    }

    /// Records a loss: the socket reported it, or a datagram did not fit into its buffer.
    pub fn record_loss(&mut self, cause: Cause) {
        self.forget();
        match &mut self.state {
            State::Complete(reported) => {
                self.state = State::Missing {
                    gap: Some((*reported, cause)),
                    stage: Stage::Draining,
                };
            }
            // The reply may have been lost, too.
            State::Missing { stage, .. } => *stage = Stage::Draining,
        }
    }

    /// Records that the queue is empty.
    pub fn drained(&mut self) {
        if let State::Missing { stage, .. } = &mut self.state {
            // The kernel queues the reply while the request is sent: a reply that isn't there was lost.
            *stage = Stage::Requesting;
        }
    }

    /// Processes a datagram.
    ///
    /// # Errors
    /// [`Error::Refused`] when the kernel refused the request for the generation. The caller has to send it again.
    pub fn datagram(&mut self, datagram: &[u8]) -> Result<(), Error> {
        let mut refused = Ok(());
        for message in Messages::new(datagram) {
            let taken = message.and_then(|message| self.message(&message));
            match taken {
                Ok(Ok(())) => {}
                Ok(Err(error)) => refused = Err(error),
                Err(malformed) => self.record_loss(Cause::Malformed(malformed)),
            }
        }
        refused
    }

    /// Returns the next item; `None` when more input is needed.
    #[allow(clippy::should_implement_trait)] // the sequence can continue after `None`
    pub fn next(&mut self) -> Option<Item> {
        self.ready.pop_front()
    }

    /// Returns the size of the buffer for the current transaction, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    /// Processes a message; the inner error is an error from the kernel.
    fn message(&mut self, message: &Message<'_>) -> Result<Result<(), Error>, Malformed> {
        if message.kind < NLMSG_MIN_TYPE {
            if message.kind == NLMSG_OVERRUN {
                self.record_loss(Cause::Dropped(Loss::Overrun));
            }
            let Some(answer) = Acknowledgement::parse(message)? else {
                return Ok(Ok(()));
            };
            if self.awaits_generation() && answer.errno.is_some() {
                self.drained();
                return Ok(answer.into_result("get the generation"));
            }
            return Ok(Ok(()));
        }
        if message.kind >> 8 != u16::from(NFNL_SUBSYS_NFTABLES) {
            return Ok(Ok(()));
        }
        let header = message.nfgenmsg()?.0;
        let generation = match message.kind == message_type(NFT_MSG_NEWGEN) {
            true => Some(GenerationRef::parse(message)?),
            false => None,
        };
        match (&mut self.state, generation) {
            (State::Missing { gap, stage }, Some(answer)) => {
                if *stage == Stage::Requested && message.port == self.port {
                    let through = Generation::new(answer.id(), self.origin);
                    if let Some((after, cause)) = gap.take() {
                        self.ready.push_back(Item::Lost(Lost {
                            after,
                            through,
                            cause,
                        }));
                    }
                    self.state = State::Complete(through);
                }
            }
            (State::Missing { .. }, None) => {}
            (State::Complete(_), Some(_)) if message.port == self.port => {} // a reply to an earlier request
            (State::Complete(reported), Some(end)) => {
                let reported = *reported;
                self.end(reported, message, &end);
            }
            (State::Complete(_), None) if message.port == 0 => {
                self.ready.push_back(Item::OutOfBand(OutOfBandEvent {
                    bytes: message.raw.to_vec(),
                }));
            }
            (State::Complete(_), None) => self.event(message, (message.port, header.resource)),
        }
        Ok(Ok(()))
    }

    /// Processes an event of a transaction.
    fn event(&mut self, message: &Message<'_>, header: (u32, u16)) {
        if self.events > 0 && self.header != header {
            self.record_loss(Cause::EndMissing);
            return;
        }
        self.header = header;
        self.events += 1;
        self.length += message.padded_length();
        if self.length > self.limit {
            self.bytes = Vec::new();
            return;
        }
        self.bytes.extend_from_slice(message.raw);
        self.bytes.resize(self.length, 0);
    }

    /// Processes the end of a transaction.
    fn end(&mut self, reported: Generation, message: &Message<'_>, end: &GenerationRef<'_>) {
        let generation = Generation::new(end.id(), self.origin);
        if !precedes(reported, generation) {
            // The rest of a transaction that was reported as lost, or that precedes the start.
            self.forget();
            return;
        }
        if generation != reported.next() {
            self.record_loss(Cause::Skipped {
                reported: generation,
            });
            return;
        }
        if self.events > 0 && self.header.0 != message.port {
            self.record_loss(Cause::EndMissing);
            return;
        }
        let item = if self.length > self.limit {
            Item::Lost(Lost {
                after: reported,
                through: generation,
                cause: Cause::TooLarge {
                    events: self.events,
                    bytes: self.length,
                    limit: self.limit,
                    port: message.port,
                    thread_id: end.thread_id(),
                    thread_name: end.thread_name().map(ToOwned::to_owned),
                },
            })
        } else {
            let mut bytes = std::mem::take(&mut self.bytes);
            bytes.extend_from_slice(message.raw);
            Item::Change(Change::new(bytes, self.length, self.events, generation))
        };
        self.forget();
        self.state = State::Complete(generation);
        self.ready.push_back(item);
    }

    /// Discards the events of an incomplete transaction.
    fn forget(&mut self) {
        self.bytes.clear();
        self.events = 0;
        self.length = 0;
    }
}

/// Returns `true` if `one` is an earlier generation than `other`, with wraparound.
pub(super) const fn precedes(one: Generation, other: Generation) -> bool {
    other.number().wrapping_sub(one.number()) as i32 > 0
}
