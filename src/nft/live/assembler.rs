//! From datagrams to transactions: a state machine without a socket.
//!
//! The kernel sends a transaction's events, and then the message that tells its generation
//! (`NFT_MSG_NEWGEN`), all under the one lock that commits take: on one socket the events of two
//! transactions never mix. Each message of it has the committing socket's port in its header; what has
//! none did not come by a transaction.
//!
//! Something is missing when the socket says so (`ENOBUFS`), when a datagram was cut or is malformed, when
//! a generation was skipped, or when events came that are of another transaction than those before them.
//! Where in the queue it is missing cannot be known: the socket says so before it hands out what it
//! queued earlier, and takes nothing more until that has been handed out. So
//!
//! 1. all is thrown away until the queue is empty ([`drained`](CommitAssembler::drained)): what comes from then
//!    on, comes behind the gap;
//! 2. the kernel is asked for its generation, on the same socket ([`asks`](CommitAssembler::asks)): the answer
//!    takes its place in the queue;
//! 3. changes up to the generation that it tells are [`Lost`]. What came before the answer was committed
//!    before it was given, and of what comes behind it with a later generation nothing can be missing:
//!    the generation moves before the first event of a transaction is sent.
//!
//! In the beginning the same question tells what the first change can be.

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

/// What a [`CommitAssembler`] gives out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Item {
    /// A transaction was committed. Its generation is the one after that of the item before it, but for
    /// [`Notice`](Self::Notice)s.
    Change(Change),
    /// Changes were lost.
    Lost(Lost),
    /// The kernel told of an object by itself.
    Notice(Notice),
}

/// Changes that cannot be told. What is known of the ruleset is to be read anew; the next
/// [`Change`] is the first one after [`through`](Self::through).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("changes after generation {after} up to {through} were lost: {cause}")]
pub struct Lost {
    /// The last generation that nothing is missing of.
    pub after: Generation,
    /// The last generation of which something may be missing. If it is the same as
    /// [`after`](Self::after), what was lost was no transaction's.
    pub through: Generation,
    /// How that is known.
    pub cause: Cause,
}

/// How it is known that changes are missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The kernel says so: the receive buffer was full, there was no memory, or an object was larger than
    /// the kernel's message for it (a rule of some kilobytes, say).
    #[error(transparent)]
    Dropped(Loss),
    /// A datagram was longer than the buffer that it was received into.
    #[error("a datagram of {length} bytes was cut to {capacity}")]
    Cut {
        /// The datagram's length in bytes.
        length: usize,
        /// How much of it fitted.
        capacity: usize,
    },
    /// Nothing told of the generations in between.
    #[error("the next one that was told is {told}")]
    Skipped {
        /// The generation that was told.
        told: Generation,
    },
    /// The events of a transaction were followed by those of another one.
    #[error("the end of a transaction is missing")]
    Unended,
    /// A message was not what it claims to be.
    #[error(transparent)]
    Malformed(Malformed),
    /// A transaction was larger than what is kept of one.
    #[error(
        "a transaction of {events} events and {bytes} bytes{} is larger than the limit of {limit} bytes",
        thread_name.as_ref().map(|name| format!(" by {name}")).unwrap_or_default()
    )]
    TooLarge {
        /// How many events it had.
        events: usize,
        /// How many bytes they were.
        bytes: usize,
        /// How many bytes are kept at most.
        limit: usize,
        /// The port of the socket that committed it.
        port: u32,
        /// The thread that committed it: see [`Change::thread_id`].
        thread_id: Option<u32>,
        /// Its name.
        thread_name: Option<BString>,
    },
}

/// What the kernel tells of an object without a transaction: that a quota object is used up. (A rule's
/// own quota is not told of.) It moves no generation. Linux 5.10, 6.1 and 6.12 tell it when the next transaction is
/// committed, before that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    bytes: Vec<u8>,
}

impl Notice {
    /// The object, as it is now.
    #[must_use]
    pub fn event(&self) -> Event<'_> {
        Event::new(Message::first(&self.bytes).expect("invariant: it was read when it came"))
    }
}

/// How far it is known what came.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// Nothing is missing since this generation.
    Whole(Generation),
    /// Something is missing, or nothing was told yet. All is thrown away.
    Missing {
        /// The last generation that was given out, and what happened since; none in the beginning.
        gap: Option<(Generation, Cause)>,
        stage: Stage,
    },
}

/// How far it is with a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// What is queued came before it.
    Draining,
    /// The kernel is to be asked for the generation.
    Asking,
    /// Its answer is on the way.
    Asked,
}

/// Groups the datagrams of the multicast group `NFNLGRP_NFTABLES` into [`Item`]s. [`Monitor`](super::Monitor)
/// is one of these with a socket.
///
/// Its owner
/// 1. when [`asks`](Self::asks) says so, sends a request for the generation (`NFT_MSG_GETGEN`) on the
///    same socket, and says that it was [`asked`](Self::asked);
/// 2. takes what [`next`](Self::next) gives, until that is nothing;
/// 3. receives, and hands over what came: a [`datagram`](Self::datagram), that something was
///    [`lost`](Self::lose), or that the queue is [empty](Self::drained); and begins again.
///
/// It keeps the events of one transaction, up to a limit; of a larger one it gives out that it was
/// [lost](Cause::TooLarge), and who committed it.
#[derive(Debug)]
pub struct CommitAssembler {
    /// What its generations are of.
    origin: Origin,
    /// Of the socket: what is addressed to it is an answer.
    port: u32,
    /// How many bytes of a transaction are kept.
    limit: usize,
    state: State,
    /// The messages of the transaction that is coming in.
    bytes: Vec<u8>,
    /// How many they are, and how many bytes, of which there may be more than are kept.
    events: usize,
    length: usize,
    /// Port and resource number (the low half of the generation) in each of them.
    header: (u32, u16),
    ready: VecDeque<Item>,
}

impl CommitAssembler {
    /// For a socket of this port that has joined the group. It begins with a question.
    ///
    /// It does not know of which network namespace its generations are: they are the same as none that
    /// was read over a [`Connection`](crate::nft::Connection).
    #[must_use]
    pub fn new(port: u32, limit: usize) -> Self {
        Self::of(Origin::Recorded, port, limit)
    }

    /// The same for a socket of this namespace.
    pub(super) fn of(origin: Origin, port: u32, limit: usize) -> Self {
        Self {
            origin,
            port,
            limit,
            state: State::Missing {
                gap: None,
                stage: Stage::Asking,
            },
            bytes: Vec::new(),
            events: 0,
            length: 0,
            header: (0, 0),
            ready: VecDeque::new(),
        }
    }

    /// The generation up to which everything was given out or said to be lost; `None` until the first
    /// answer has come. The next change is of the generation behind it.
    #[must_use]
    pub fn told(&self) -> Option<Generation> {
        match &self.state {
            State::Whole(told) => Some(*told),
            State::Missing { gap, .. } => gap.as_ref().map(|(told, _)| *told),
        }
    }

    /// Whether the kernel is to be asked for the generation now.
    #[must_use]
    pub fn asks(&self) -> bool {
        matches!(
            self.state,
            State::Missing {
                stage: Stage::Asking,
                ..
            }
        )
    }

    /// Whether the answer to that question is on the way.
    #[must_use]
    pub fn awaits(&self) -> bool {
        matches!(
            self.state,
            State::Missing {
                stage: Stage::Asked,
                ..
            }
        )
    }

    /// Says that the kernel was asked.
    pub fn asked(&mut self) {
        if let State::Missing { stage, .. } = &mut self.state {
            *stage = Stage::Asked;
        }
    }

    /// Says that something was lost: the socket reported it, or a datagram did not fit its buffer.
    pub fn lose(&mut self, cause: Cause) {
        self.forget();
        match &mut self.state {
            State::Whole(told) => {
                self.state = State::Missing {
                    gap: Some((*told, cause)),
                    stage: Stage::Draining,
                };
            }
            // The answer may be what is missing.
            State::Missing { stage, .. } => *stage = Stage::Draining,
        }
    }

    /// Says that the queue is empty.
    pub fn drained(&mut self) {
        if let State::Missing { stage, .. } = &mut self.state {
            // An answer that is on the way is there when the question has been sent: it was lost.
            *stage = Stage::Asking;
        }
    }

    /// Takes in a datagram.
    ///
    /// # Errors
    /// [`Error::Refused`] when the kernel refused the question for the generation. It is to be asked again.
    pub fn datagram(&mut self, datagram: &[u8]) -> Result<(), Error> {
        let mut refused = Ok(());
        for message in Messages::new(datagram) {
            let taken = message.and_then(|message| self.message(&message));
            match taken {
                Ok(Ok(())) => {}
                Ok(Err(error)) => refused = Err(error),
                Err(malformed) => self.lose(Cause::Malformed(malformed)),
            }
        }
        refused
    }

    /// The next thing to be given out; `None` when more is to be received.
    #[allow(clippy::should_implement_trait)] // there may be more after the end
    pub fn next(&mut self) -> Option<Item> {
        self.ready.pop_front()
    }

    /// Whether something is to be given out.
    pub(super) fn has_next(&self) -> bool {
        !self.ready.is_empty()
    }

    /// How much memory is held for the transaction that is coming in, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    /// Takes in a message; the inner error is the kernel's answer.
    fn message(&mut self, message: &Message<'_>) -> Result<Result<(), Error>, Malformed> {
        if message.kind < NLMSG_MIN_TYPE {
            if message.kind == NLMSG_OVERRUN {
                self.lose(Cause::Dropped(Loss::Overrun));
            }
            let Some(answer) = Acknowledgement::parse(message)? else {
                return Ok(Ok(()));
            };
            if self.awaits() && answer.errno.is_some() {
                self.drained();
                return Ok(answer.into_result("tell the generation"));
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
                if *stage == Stage::Asked && message.port == self.port {
                    let through = Generation::new(answer.id(), self.origin);
                    if let Some((after, cause)) = gap.take() {
                        self.ready.push_back(Item::Lost(Lost {
                            after,
                            through,
                            cause,
                        }));
                    }
                    self.state = State::Whole(through);
                }
            }
            (State::Missing { .. }, None) => {}
            (State::Whole(_), Some(_)) if message.port == self.port => {} // of an earlier question
            (State::Whole(told), Some(end)) => {
                let told = *told;
                self.end(told, message, &end);
            }
            (State::Whole(_), None) if message.port == 0 => {
                self.ready.push_back(Item::Notice(Notice {
                    bytes: message.raw.to_vec(),
                }));
            }
            (State::Whole(_), None) => self.event(message, (message.port, header.resource)),
        }
        Ok(Ok(()))
    }

    /// Takes in an event of a transaction.
    fn event(&mut self, message: &Message<'_>, header: (u32, u16)) {
        if self.events > 0 && self.header != header {
            self.lose(Cause::Unended);
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

    /// Takes in the end of a transaction.
    fn end(&mut self, told: Generation, message: &Message<'_>, end: &GenerationRef<'_>) {
        let generation = Generation::new(end.id(), self.origin);
        if !precedes(told, generation) {
            // A part of one that is lost, or was there in the beginning.
            self.forget();
            return;
        }
        if generation != told.next() {
            self.lose(Cause::Skipped { told: generation });
            return;
        }
        if self.events > 0 && self.header.0 != message.port {
            self.lose(Cause::Unended);
            return;
        }
        let item = if self.length > self.limit {
            Item::Lost(Lost {
                after: told,
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
        self.state = State::Whole(generation);
        self.ready.push_back(item);
    }

    /// Throws away the events of a transaction that is not whole.
    fn forget(&mut self) {
        self.bytes.clear();
        self.events = 0;
        self.length = 0;
    }
}

/// Whether a generation came before another one: that is less than half the way round ahead of it.
pub(super) const fn precedes(one: Generation, other: Generation) -> bool {
    other.number().wrapping_sub(one.number()) as i32 > 0
}
