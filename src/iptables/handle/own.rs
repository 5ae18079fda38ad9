//! Which changes of the ruleset are a handle's own.

use super::{Inner, Iptables};
use crate::nft::Generation;

impl Iptables {
    /// The connection over which nf_tables are read and changed.
    #[doc(hidden)]
    pub fn nft_connection(&mut self) -> Option<&mut crate::nft::Connection> {
        match &mut self.inner {
            Inner::Nft { connection, .. } => Some(connection),
            Inner::Legacy { .. } => None,
        }
    }

    /// The port of the connection over which nf_tables are changed
    /// ([`nft::Connection::port`](crate::nft::Connection::port)): who is told of changes knows by it those that were
    /// made through this handle, and does not answer to oneself. `None` for legacy tables, of which nothing is told.
    #[must_use]
    pub fn port(&self) -> Option<u32> {
        match &self.inner {
            Inner::Nft { connection, .. } => Some(connection.port()),
            Inner::Legacy { .. } => None,
        }
    }

    /// The generation of nf_tables that the last change through this handle made
    /// ([`update`](Self::update), [`restore`](Self::restore), …): nobody else's change has it. `None` if it
    /// changed nothing or failed, if the kernel's word of it was lost (of a rule too large for its message, say), if there
    /// was none yet, and for legacy tables, which have no generations.
    ///
    /// ```
    /// # fn main() -> Result<(), chainwright::Error> {
    /// # chainwright_testing::Sandbox::new()?.run(|| {
    /// use chainwright::iptables::{Family, Iptables};
    /// use chainwright::nft::live::{Item, Monitor};
    ///
    /// let mut monitor = Monitor::open()?;
    /// let mut iptables = Iptables::nft()?;
    /// iptables.update(Family::Ipv4, "nat", |table| table.ensure_chain("KUBE-MARK-MASQ"))?;
    /// match monitor.receive()? {
    ///     Item::Change(change) => {
    ///         assert_eq!(iptables.last_generation(), Some(change.generation()));
    ///         assert_eq!(iptables.port(), Some(change.port()));
    ///     }
    ///     lost => panic!("{lost:?}"),
    /// }
    /// # Ok::<(), chainwright::Error>(()) })?
    /// # }
    /// ```
    #[must_use]
    pub const fn last_generation(&self) -> Option<Generation> {
        self.made
    }
}
