//! Netlink: sockets, messages, attributes, dumps, batches and extended acknowledgements.
//!
//! Except for [`Socket`], everything here is a view of bytes or a state machine on them: tests
//! replay replies of kernels. The path of a reply, from the bottom up:
//!
//! | step | type |
//! |---|---|
//! | one datagram from the kernel | [`Socket::receive`] |
//! | its messages, borrowed | [`Messages`], [`Message`] |
//! | a message's attributes, borrowed | [`Attributes`], [`Attribute`] |
//! | an error or acknowledgement | [`Acknowledgement`] |
//! | a listing in many datagrams | [`Dump`] |
//! | the replies to a transaction | [`BatchReplies`] |
//!
//! One loop (`receive.rs`) receives replies and events and hands them to a `DatagramReceiver`. The peer of a socket
//! need not be the kernel (`transport.rs`): it can be a fake kernel, or in tests a recording of a kernel (`replay.rs`).
//!
//! The path of a request: [`MessageWriter`] into a buffer, then [`Socket::send`]. A `Session` (`session.rs`) makes the
//! requests of nf_tables, of hooks and of conntrack: it numbers them, repeats them, and ends dumps that were abandoned.
//! An `EventSocket` (`events.rs`) receives events of nf_tables, traces and events of conntrack.
//!
//! Code that runs for every object of a listing is always inlined, here and in [`nft`](crate::nft):
//! otherwise the compiler turns it into calls, and passes every view through memory, as soon as a
//! program lists in two places.
//!
//! Header fields of netlink are in host byte order; numbers inside nfnetlink attributes are
//! big-endian. Sources: `linux/netlink.h`, `linux/netfilter/nfnetlink.h`,
//! [netlink(7)](https://man7.org/linux/man-pages/man7/netlink.7.html).

mod ack;
mod attribute;
mod batch;
mod dump;
mod error;
mod events;
mod message;
mod receive;
#[cfg(any(test, feature = "testing"))]
#[cfg_attr(
    not(test),
    allow(dead_code, reason = "most of it is for unit tests alone")
)]
pub(crate) mod replay;
mod session;
#[allow(unsafe_code)]
mod socket;
mod transport;

pub use ack::Acknowledgement;
pub use attribute::{Attribute, Attributes};
#[doc(hidden)]
pub use attribute::{AttributeCursor, FastPathMiss};
pub use batch::{BatchReplies, BatchResult, BatchStatus, Rejection};
pub use dump::{Dump, DumpItem};
pub use error::{Error, Loss, Malformed};
pub(crate) use events::{EventDecoder, EventSocket};
#[cfg(feature = "serde")]
pub(crate) use message::MAX_CONTEXT_LENGTH;
pub use message::{Message, MessageError, MessageErrorKind, MessageWriter, Messages, NfGenMsg};
pub(crate) use receive::DatagramReceiver;
pub(crate) use session::{AbandonedDump, DumpReader, Request, Session, write_request};
#[doc(hidden)]
pub use socket::Received;
pub use socket::{RECEIVE_BUFFER, Socket};
#[doc(hidden)]
pub use transport::Transport;
