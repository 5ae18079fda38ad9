//! Tables protected against changes by others.

use super::name::Name;
use super::{CommitError, Connection, Family, Table, TableFlags, Transaction};
use crate::error::Error;

/// Protection of a table against changes by others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ownership {
    /// The kernel protects the table, which belongs to the connection. `nft flush ruleset`, firewalld and
    /// iptables-restore skip it, and the kernel rejects changes by others (`EPERM`). The table remains after the
    /// connection ends, even by a crash; the next connection that [owns](Connection::own) it finds it unchanged.
    Owned,
    /// The kernel protects the table until the connection ends, and then deletes it: it was created over this
    /// connection with the flag `owner` but without `persist`, which cannot be changed.
    OwnedUntilClose,
    /// Nothing protects the table: the kernel does not support it (before Linux 6.9), or another program created the
    /// table without an owner. Changes by others must be detected and repaired ([`Mirror`](super::live::Mirror),
    /// [`Connection::reconcile`]).
    Shared,
}

impl Connection {
    /// Takes ownership of a table and its contents: takes over a table whose owner is gone, creates a missing one,
    /// and returns whether the kernel protects it against changes by others. The contents are not changed, and never
    /// missing in between.
    ///
    /// A table that was created without an owner cannot get one, unless it is created again. Such a table stays
    /// unchanged, as [`Ownership::Shared`]. Tables that are deleted with their owner, supported since Linux 5.12,
    /// are not used: after a crash the table would be missing.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = chainwright_testing::Sandbox::new()?;
    /// # sandbox.run(|| -> Result<(), chainwright::Error> {
    /// use chainwright::nft::{Connection, Family, Ownership};
    ///
    /// let mut nft = Connection::open()?;
    /// match nft.own(Family::INET, "policies")? {
    ///     Ownership::Owned => println!("other programs cannot change it"),
    ///     _ => println!("others may change it: it is watched and repaired"),
    /// }
    /// # Ok(()) })??;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Commit`] with `EPERM` if the table belongs to another open connection, or the caller lacks
    /// `CAP_NET_ADMIN`; others like [`commit`](Self::commit).
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
        let generation = self.stable_generation()?;
        let existing = self.table(family, name)?;
        let existing = existing.map(|table| (table.flags().unwrap_or_default(), table.owner()));
        let mut table = Table::new(family, name);
        let mut tx = Transaction::new();
        tx.expect_generation(generation);
        let flags = match existing {
            Some((flags, owner)) if owner == Some(self.port()) => {
                return Ok(match flags.contains(TableFlags::PERSIST) {
                    true => Ownership::Owned,
                    false => Ownership::OwnedUntilClose,
                });
            }
            // A dormant table stays dormant.
            Some((flags, _)) => flags & TableFlags::DORMANT,
            None => TableFlags::empty(),
        };
        table.flags = Some(flags | TableFlags::OWNER | TableFlags::PERSIST);
        tx.add(&table)?;
        match self.commit(&tx) {
            Ok(()) => return Ok(Ownership::Owned),
            Err(error) if is_flags_rejection(&error) => {}
            Err(error) => return Err(error.into()),
        }
        // Without flags an existing table is not changed.
        table.flags = None;
        tx.clear();
        tx.expect_generation(generation);
        tx.add(&table)?;
        self.commit(&tx)?;
        Ok(Ownership::Shared)
    }
}

/// Returns `true` if the kernel rejected flags because they are unknown, or cannot be set on an existing table.
fn is_flags_rejection(error: &CommitError) -> bool {
    let errnos = [libc::EOPNOTSUPP, libc::EINVAL];
    let mut failures = error.failures.iter();
    error.is_refusal() && failures.all(|failure| errnos.contains(&failure.errno.number()))
}
