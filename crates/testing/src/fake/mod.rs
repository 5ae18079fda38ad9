//! An in-memory nf_tables that accepts the kernel's messages and answers like the kernel.
//!
//! | part | file |
//! |---|---|
//! | sockets and event subscribers | `socket.rs` |
//! | attributes and acknowledgements | `wire.rs` |
//! | batches: all operations or none | `batch.rs` |
//! | operations | `table.rs`, `chain.rs`, `rule.rs`, `set.rs`, `element.rs` (`tree.rs`), `object.rs`, `flowtable.rs` |
//! | expressions as listed, and their references | `program.rs`, `expression/` |
//! | the state of a running transaction | `tx_state.rs` |
//! | its events | `events.rs` |
//! | validation of jumps | `validate.rs` |
//! | the ruleset | `state.rs`, `members.rs`; its listing: `listed.rs` |
//! | lookups and dumps | `request.rs` |
//! | counters and times, which change without a transaction | `stateful.rs` |
//! | packets, with the feature `trace` | `send.rs` |
//!
//! The accepted operations, the error numbers and the listings follow observations of Linux 6.18; the tests compare
//! with that kernel.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bstr::BString;

use chainwright::netlink::Socket;
use chainwright::nft::Connection;

mod batch;
mod chain;
mod element;
mod events;
mod expression;
mod flowtable;
mod listed;
mod members;
mod object;
mod program;
mod request;
mod rule;
#[cfg(feature = "trace")]
mod send;
mod set;
mod socket;
mod state;
mod stateful;
mod table;
mod tree;
mod tx_state;
mod validate;
mod wire;

#[cfg(feature = "trace")]
pub use send::SendError;
use socket::Shared;
use state::{Devices, State};

/// An in-memory nf_tables for tests, without root, network namespaces, or Linux' nf_tables.
///
/// [`connect`](Self::connect) returns an ordinary [`Connection`], and everything built on one works over it:
/// transactions with the same errors for the same operations, listings, snapshots, generations,
/// [`Monitor`](chainwright::nft::live::Monitor) and [`Mirror`](chainwright::nft::live::Mirror). A program that receives
/// its connection as a parameter can be tested with it:
///
/// ```
/// use chainwright::nft::live::Mirror;
/// use chainwright::nft::{Chain, Family, Rule, Scope, Table, Transaction};
/// use chainwright_testing::FakeKernel;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let fake = FakeKernel::new();
/// let mut mirror = Mirror::open(fake.connect()?, &Scope::all())?;
///
/// let mut tx = Transaction::new();
/// tx.add(&Table::new(Family::INET, "mine"))?;
/// tx.add(&Chain::new(Family::INET, "mine", "web"))?;
/// tx.add(&Rule::new(Family::INET, "mine", "web"))?;
/// fake.connect()?.commit(&tx)?;
///
/// assert_eq!(mirror.update()?.len(), 1);
/// assert!(mirror.snapshot().chain(Family::INET, "mine", "web").is_some());
///
/// // A chain that is there is not created twice: the kernel's own error.
/// let mut twice = Transaction::new();
/// twice.create(&Chain::new(Family::INET, "mine", "web"))?;
/// let error = fake.connect()?.commit(&twice).unwrap_err();
/// assert_eq!(error.failures[0].errno.name(), "EEXIST");
/// # Ok(())
/// # }
/// ```
///
/// # Limitations
///
/// - There are no packets but those of `send` (feature `trace`). Counters change otherwise only when they are reset,
///   and rules don't add elements.
/// - Time passes only by [`advance`](Self::advance). Expired elements disappear at once, and so do elements that rules
///   delete. The kernel stops listing them at once, but counts them until it removes them: some time later, in an
///   interval set when the set next changes. Until then it still lists the end of an expired range.
/// - A dump is never interrupted: each request sees one state.
/// - When devices join or leave a chain or flowtable, the event has the complete object and not those devices.
/// - There are no privileges and no memory limits.
///
/// It models Linux 6.18. Its network devices are `lo` and those added with [`with_device`](Self::with_device) or
/// [`with_any_device`](Self::with_any_device).
#[derive(Debug, Clone)]
pub struct FakeKernel {
    shared: Arc<Shared>,
}

impl Default for FakeKernel {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeKernel {
    /// Creates an empty ruleset.
    #[must_use]
    pub fn new() -> Self {
        /// The next namespace number. The kernel numbers its namespaces upwards from 1; these count down.
        static NAMESPACES: AtomicU64 = AtomicU64::new(u64::MAX);
        Self {
            shared: Shared::new(
                NAMESPACES.fetch_sub(1, Ordering::Relaxed),
                Devices {
                    named: vec![BString::from("lo")],
                    any: false,
                },
                State::default(),
            ),
        }
    }

    /// Adds a network device of this name, for chains and flowtables that are bound to devices.
    #[must_use]
    pub fn with_device(self, name: impl Into<BString>) -> Self {
        self.shared
            .with_devices(|devices| devices.named.push(name.into()));
        self
    }

    /// Makes every network device name exist: for rulesets of another machine with unknown devices.
    #[must_use]
    pub fn with_any_device(self) -> Self {
        self.shared.with_devices(|devices| devices.any = true);
        self
    }

    /// Lets time pass: elements with a timeout expire when their time is over, without an event, as in the kernel. Time
    /// does not pass otherwise.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use chainwright::nft::{DataType, Element, Family, Set, SetFlags, Table, Transaction};
    /// use chainwright_testing::FakeKernel;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let kernel = FakeKernel::new();
    /// let banned = Set::new(Family::INET, "mine", "banned", DataType::INET_SERVICE, 2)
    ///     .with_timeout(Some(Duration::from_secs(60)));
    /// let mut tx = Transaction::new();
    /// tx.add(&Table::new(Family::INET, "mine"))?.add(&banned)?;
    /// tx.add_elements(&banned.set_id(), &[Element::new(&[0, 22])])?;
    /// let mut nft = kernel.connect()?;
    /// nft.commit(&tx)?;
    ///
    /// kernel.advance(Duration::from_secs(59));
    /// let mut elements = nft.elements(Family::INET, "mine", "banned")?;
    /// let element = elements.try_next()?.ok_or("expired too early")?;
    /// assert_eq!(element.expiration(), Some(Duration::from_secs(1)));
    /// drop(elements);
    ///
    /// kernel.advance(Duration::from_secs(1));
    /// assert!(nft.elements(Family::INET, "mine", "banned")?.try_next()?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn advance(&self, time: Duration) {
        self.shared.advance(time);
    }

    /// Opens a connection to this kernel.
    ///
    /// # Errors
    /// The errors of [`socketpair(2)`](https://man7.org/linux/man-pages/man2/socketpair.2.html): the connection has a
    /// real descriptor for polling.
    pub fn connect(&self) -> std::io::Result<Connection> {
        let socket = Socket::with_transport(Box::new(self.shared.connect()?));
        Connection::over(socket).map_err(std::io::Error::other)
    }
}
