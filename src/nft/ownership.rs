//! Tables that others leave alone.

use super::name::Name;
use super::{CommitError, Connection, Family, Table, TableFlags, Transaction};
use crate::error::Error;

/// What keeps others from changing a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ownership {
    /// The kernel: the table belongs to the connection. `nft flush ruleset`, firewalld and iptables-restore leave it
    /// alone, and whoever tries to change it is refused (`EPERM`). It stays when the connection ends, also by a
    /// crash; the next one that [owns](Connection::own) it finds it as it was.
    Owned,
    /// The kernel, until the connection ends, with which the table goes: it was made over this connection, to go so
    /// (`owner` without `persist`), and the kernel does not let that be changed.
    UntilClosed,
    /// Nothing does: the kernel knows no such tables (they came with Linux 6.9), or this one was made without an
    /// owner by somebody else. Changes by others are to be noticed and repaired
    /// ([`Mirror`](super::live::Mirror), [`Connection::reconcile`]).
    Shared,
}

impl Connection {
    /// Makes a table one's own, with all that is in it: takes over one whose owner is gone, makes one that is not
    /// there, and says whether the kernel keeps others from changing it. What is in the table is not touched, and at
    /// no time is any of it missing.
    ///
    /// A table that was made without an owner cannot be given one: the kernel would have to make it anew. Such a
    /// table stays as it is, as [`Ownership::Shared`]. Tables that go with their owner, which Linux has had since
    /// 5.12, are not made: after a crash there would be none.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = chainwright_testing::Sandbox::new()?;
    /// # sandbox.run(|| -> Result<(), chainwright::Error> {
    /// use chainwright::nft::{Connection, Family, Ownership};
    ///
    /// let mut nft = Connection::open()?;
    /// match nft.own(Family::INET, "policies")? {
    ///     Ownership::Owned => println!("nobody else changes it"),
    ///     _ => println!("others may change it: it is watched and repaired"),
    /// }
    /// # Ok(()) })??;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Commit`] with `EPERM` if the table belongs to a connection that is still there, or the caller lacks
    /// `CAP_NET_ADMIN`; others as [`commit`](Self::commit).
    #[tracing::instrument(level = "debug", skip_all, fields(%family))]
    pub fn own<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
    ) -> Result<Ownership, Error> {
        let name = table.into();
        let mut attempts = self.retry().begin();
        loop {
            match self.own_once(family, &name) {
                Err(Error::Commit(error)) if error.generation_moved() && attempts.again() => {}
                owned => return owned,
            }
        }
    }

    fn own_once(&mut self, family: Family, name: &Name<'_>) -> Result<Ownership, Error> {
        let generation = self.generation()?;
        let there = self.table(family, name)?;
        let there = there.map(|table| (table.flags().unwrap_or_default(), table.owner()));
        let mut table = Table::new(family, name);
        let mut tx = Transaction::new();
        tx.expect_generation(generation);
        let flags = match there {
            Some((flags, owner)) if owner == Some(self.port()) => {
                return Ok(match flags.contains(TableFlags::PERSIST) {
                    true => Ownership::Owned,
                    false => Ownership::UntilClosed,
                });
            }
            // One that sleeps sleeps on.
            Some((flags, _)) => flags & TableFlags::DORMANT,
            None => TableFlags::empty(),
        };
        table.flags = Some(flags | TableFlags::OWNER | TableFlags::PERSIST);
        tx.add(&table)?;
        match self.commit(&tx) {
            Ok(()) => return Ok(Ownership::Owned),
            Err(error) if is_unknown_or_unowned(&error) => {}
            Err(error) => return Err(error.into()),
        }
        // Without flags nothing of one that is there is changed.
        table.flags = None;
        tx.clear();
        tx.expect_generation(generation);
        tx.add(&table)?;
        self.commit(&tx)?;
        Ok(Ownership::Shared)
    }
}

/// What a kernel says of flags that it does not know, or cannot give to a table that is there.
fn is_unknown_or_unowned(error: &CommitError) -> bool {
    let said = [libc::EOPNOTSUPP, libc::EINVAL];
    let mut failures = error.failures.iter();
    error.is_refusal() && failures.all(|failure| said.contains(&failure.errno.number()))
}
