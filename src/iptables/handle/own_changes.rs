//! Identifies a handle's own changes of the ruleset.

use super::{Inner, Iptables};
use crate::nft::Generation;

impl Iptables {
    /// Returns the connection for reading and changing nf_tables.
    #[doc(hidden)]
    pub fn nft_connection(&mut self) -> Option<&mut crate::nft::Connection> {
        match &mut self.inner {
            Inner::Nft { connection, .. } => Some(connection),
            Inner::Legacy { .. } => None,
        }
    }

    /// Returns the port of the connection that changes nf_tables
    /// ([`nft::Connection::port`](crate::nft::Connection::port)). A monitor of changes uses it to recognize, and
    /// ignore, those made through this handle. `None` for legacy tables, which have no notifications.
    #[must_use]
    pub fn port(&self) -> Option<u32> {
        match &self.inner {
            Inner::Nft { connection, .. } => Some(connection.port()),
            Inner::Legacy { .. } => None,
        }
    }

    /// Returns the nf_tables generation that the last change through this handle created
    /// ([`update`](Self::update), [`restore`](Self::restore), …): no other process's change has it. `None` if it
    /// changed nothing or failed, if the kernel's notification was lost (because of a rule too large for a message, for
    /// instance), before the first change, and for legacy tables, which have no generations.
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
