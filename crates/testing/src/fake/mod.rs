//! An nf_tables in memory: it takes the same messages as the kernel's, and answers with the same.
//!
//! | step | where |
//! |---|---|
//! | a datagram comes over a socket; who is told of changes | `socket.rs` |
//! | attributes in and out, acknowledgements | `wire.rs` |
//! | a batch: its operations, then all or nothing | `batch.rs` |
//! | an operation | `table.rs`, `chain.rs`, `rule.rs`, `set.rs`, `element.rs` (`tree.rs`), `object.rs`, `flowtable.rs` |
//! | what expressions become, and what they refer to | `program.rs`, `expression/` |
//! | what a transaction did so far | `draft.rs` |
//! | what is told of it | `told.rs` |
//! | where jumps lead | `validate.rs` |
//! | what is there | `state.rs`, `members.rs`; as it is listed: `listed.rs` |
//! | a look-up, a listing | `request.rs` |
//!
//! Facts of what the kernel accepts, with which error it refuses and how it lists: seen on Linux 6.18, with which
//! the tests compare it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bstr::BString;

use chainwright::netlink::Socket;
use chainwright::nft::Connection;

mod batch;
mod chain;
mod draft;
mod element;
mod expression;
mod flowtable;
mod listed;
mod members;
mod object;
mod program;
mod request;
mod rule;
mod set;
mod socket;
mod state;
mod table;
mod told;
mod tree;
mod validate;
mod wire;

use socket::Shared;
use state::Devices;

/// An nf_tables in memory, to test with: without root, without a network namespace, without Linux' nf_tables.
///
/// What [`connect`](Self::connect) gives is a [`Connection`] as any other, and all that is built on one works
/// over it: transactions with the same errors for the same operations, listings, snapshots, generations, a
/// [`Monitor`](chainwright::nft::live::Monitor) and a [`Mirror`](chainwright::nft::live::Mirror) beside it. An agent whose logic takes its
/// connection from outside is tested with this one:
///
/// ```
/// use chainwright::nft::live::Mirror;
/// use chainwright::nft::{Chain, Family, Rule, Scope, Table, Transaction};
/// use chainwright_testing::FakeKernel;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = FakeKernel::new();
/// let mut mirror = Mirror::open(model.connect()?, &Scope::all())?;
///
/// let mut tx = Transaction::new();
/// tx.add(&Table::new(Family::INET, "mine"))?;
/// tx.add(&Chain::new(Family::INET, "mine", "web"))?;
/// tx.add(&Rule::new(Family::INET, "mine", "web"))?;
/// model.connect()?.commit(&tx)?;
///
/// assert_eq!(mirror.update()?.len(), 1);
/// assert!(mirror.snapshot().chain(Family::INET, "mine", "web").is_some());
///
/// // A chain that is there is not created twice: the kernel's own error.
/// let mut twice = Transaction::new();
/// twice.create(&Chain::new(Family::INET, "mine", "web"))?;
/// let error = model.connect()?.commit(&twice).unwrap_err();
/// assert_eq!(error.failures[0].errno.name(), "EEXIST");
/// # Ok(())
/// # }
/// ```
///
/// # What it does not do
///
/// - No packet comes to it: nothing is counted, no rule adds an element.
/// - Time stands still: no element times out.
/// - A listing is never interrupted: each request is answered as of one moment.
/// - Counters are not set back ([`Connection::reset_rules`] and its like fail with `EOPNOTSUPP`).
/// - When devices join or leave a chain or flowtable, the whole of it is told, and not those devices.
/// - Everybody may do everything: there are no privileges, and all the memory that there is.
///
/// It is of Linux 6.18. Network devices are those that it was told of
/// ([`with_device`](Self::with_device), [`with_any_device`](Self::with_any_device)), and `lo`.
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
    /// An empty ruleset.
    #[must_use]
    pub fn new() -> Self {
        /// Namespaces of the kernel count up from 1.
        static NAMESPACES: AtomicU64 = AtomicU64::new(u64::MAX);
        Self {
            shared: Shared::new(
                NAMESPACES.fetch_sub(1, Ordering::Relaxed),
                Devices {
                    named: vec![BString::from("lo")],
                    any: false,
                },
            ),
        }
    }

    /// The same, with a network device of this name, for chains and flowtables that are bound to one.
    #[must_use]
    pub fn with_device(self, name: impl Into<BString>) -> Self {
        self.shared
            .with_devices(|devices| devices.named.push(name.into()));
        self
    }

    /// The same, with a network device of each name that anything asks for: for rulesets of another machine, whose
    /// devices are not known.
    #[must_use]
    pub fn with_any_device(self) -> Self {
        self.shared.with_devices(|devices| devices.any = true);
        self
    }

    /// Opens a connection to it.
    ///
    /// # Errors
    /// Those of [`socketpair(2)`](https://man7.org/linux/man-pages/man2/socketpair.2.html): its descriptor is
    /// real, so that it can be waited for.
    pub fn connect(&self) -> std::io::Result<Connection> {
        let socket = Socket::to_peer(Box::new(self.shared.connect()?));
        Connection::over(socket).map_err(std::io::Error::other)
    }
}
