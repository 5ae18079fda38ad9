//! Making a ruleset what is desired, beside others who change it.

use std::collections::HashSet;

use bstr::BString;

use super::{Plan, PlanOptions, Restored, Snapshot, SnapshotError};
use crate::netlink;
use crate::nft::commit::CommitError;
use crate::nft::{Connection, Family, Outcome, Scope, TableRef};
use crate::retry::Attempts;
use crate::{Error, Retry};

impl Connection {
    /// What is to be done so that the tables of a snapshot are as it shows them: what is there is read, and
    /// [compared](Snapshot::plan). Nothing is changed.
    ///
    /// Tables that another process owns cannot be changed by anybody else, and are left out:
    /// [`Plan::owned_by_others`] names them.
    ///
    /// # Errors
    /// Those of a [snapshot](Connection::snapshot).
    pub fn plan(&mut self, desired: &Snapshot, options: PlanOptions) -> Result<Plan, Error> {
        let now = self.snapshot(scope_of(desired, options))?;
        let closed = self.closed_in(&now);
        self.plan_from(&now, desired, options, closed)
    }

    /// Makes the tables of a snapshot what it shows, by the fewest operations, in one transaction: what is
    /// the same is not touched, and where nothing differs nothing is sent. Gives what was done.
    ///
    /// The transaction is conditional on the generation that was read: if somebody else changes the ruleset
    /// in between, or an element that was to be deleted times out, all is read and compared anew
    /// ([`with_retry`](Connection::with_retry)). Tables that another process owns stay as they are:
    /// [`Plan::owned_by_others`] names them.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = chainwright_testing::Sandbox::new()?;
    /// # sandbox.run(|| -> Result<(), chainwright::Error> {
    /// use chainwright::nft::{Chain, Connection, Family, PlanOptions, Scope, Table, Transaction};
    ///
    /// let mut nft = Connection::open()?;
    /// let mut tx = Transaction::new();
    /// tx.add(&Table::new(Family::INET, "guard"))?;
    /// tx.add(&Chain::new(Family::INET, "guard", "allowed"))?;
    /// nft.commit(&tx)?;
    /// let desired = nft.snapshot(Scope::table(Family::INET, "guard"))?;
    ///
    /// // Somebody deletes the chain, and makes another.
    /// let mut tx = Transaction::new();
    /// tx.delete(&Chain::new(Family::INET, "guard", "allowed"))?;
    /// tx.add(&Chain::new(Family::INET, "guard", "other"))?;
    /// nft.commit(&tx)?;
    ///
    /// let done = nft.reconcile(&desired, PlanOptions::default())?;
    /// assert_eq!(
    ///     done.to_string(),
    ///     "delete chain inet guard other #0\nadd chain inet guard allowed #1\n"
    /// );
    /// assert!(nft.reconcile(&desired, PlanOptions::default())?.is_empty());
    /// # Ok(()) })??;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`plan`](Self::plan) and [`commit`](Self::commit). A kernel before 6.4 that lacks its corrections
    /// (those of Debian 11 and 12 have them) may refuse (`EBUSY`) to delete a chain or an object together with the
    /// map that leads to it: there [`Snapshot::restore`] makes the table anew.
    #[tracing::instrument(level = "debug", skip_all, fields(bytes = desired.byte_length()))]
    pub fn reconcile(&mut self, desired: &Snapshot, options: PlanOptions) -> Result<Plan, Error> {
        let scope = scope_of(desired, options);
        insist(self, |connection, attempts| {
            let mut guard = connection.guard_of_attempt(attempts, std::slice::from_ref(&scope))?;
            // One policy for both: an attempt is a reading and a commit.
            let now = connection.snapshot_as(&scope, Retry::ONCE)?;
            let closed = connection.closed_in(&now);
            let mut plan = connection.plan_from(&now, desired, options, closed)?;
            guard.commit(connection, plan.transaction_mut())?;
            Ok(plan)
        })
    }

    /// The tables that another process owns.
    pub(in crate::nft) fn closed_in(&self, now: &Snapshot) -> HashSet<(Family, BString)> {
        now.owned_by_others(self.port())
    }

    /// A plan without tables that others own.
    pub(in crate::nft) fn plan_from(
        &self,
        now: &Snapshot,
        desired: &Snapshot,
        options: PlanOptions,
        closed: HashSet<(Family, BString)>,
    ) -> Result<Plan, Error> {
        let mut plan = now.plan_without(desired, options, &closed, &mut Restored::default())?;
        plan.owned_by_others.extend(closed);
        plan.owned_by_others.sort();
        Ok(plan)
    }
}

impl Snapshot {
    /// The tables that somebody else than this port owns, who alone can change them.
    pub(super) fn owned_by_others(&self, port: u32) -> HashSet<(Family, BString)> {
        let tables = self.tables().map(|table| table.table());
        let closed = tables.filter(|table| is_closed(table, port));
        closed
            .map(|table| (table.family(), table.name().to_owned()))
            .collect()
    }
}

/// Whether somebody else than this port owns a table.
pub(super) fn is_closed(table: &TableRef<'_>, port: u32) -> bool {
    table.owner().is_some_and(|owner| owner != port)
}

/// Does what reads a ruleset and then commits, again while others are faster or replies are lost, as often
/// as the connection's policy allows.
pub(super) fn insist<R>(
    connection: &mut Connection,
    mut attempt: impl FnMut(&mut Connection, &Attempts) -> Result<R, Error>,
) -> Result<R, Error> {
    // Of a commit of which it could not be known whether it was done. Done twice it is the same.
    let mut unknown = None;
    let mut attempts = connection.retry.begin();
    loop {
        match attempt(connection, &attempts) {
            Err(Error::Netlink(netlink::Error::Interrupted)) if attempts.again() => {}
            Err(Error::Snapshot(
                SnapshotError::Interrupted { .. } | SnapshotError::Incomplete { .. },
            )) if attempts.again() => {}
            Err(Error::Netlink(error) | Error::Snapshot(SnapshotError::Netlink(error)))
                if error.ask_again() && attempts.again_after_loss() => {}
            Err(Error::Commit(error)) if is_late(&error) && attempts.again() => {}
            Err(Error::Commit(error))
                if error.outcome == Outcome::Unknown
                    && unknown.is_none()
                    && attempts.again_after_loss() =>
            {
                unknown = Some(Error::Commit(error));
            }
            done => return done.map_err(|error| unknown.unwrap_or(error)),
        }
    }
}

/// Whether what was read is no longer so: somebody changed it, an element timed out, or a rule added one. A tree of
/// intervals also answers so for a tick after somebody else has changed it.
pub(super) fn is_late(error: &CommitError) -> bool {
    error.generation_moved()
        || error.failures.iter().any(|failure| {
            let operation = failure.operation.as_ref();
            let said = match operation.filter(|done| done.kind == "element") {
                Some(done) if done.verb == "delete" => libc::ENOENT,
                Some(_) => libc::EEXIST,
                None => return false,
            };
            failure.errno.number() == said
        })
}

/// What is to be read of what is there.
pub(in crate::nft) fn scope_of(desired: &Snapshot, options: PlanOptions) -> Scope<'static> {
    match options.remove_other_tables {
        true => desired.scope().clone(),
        false => narrowest(desired),
    }
}

/// The smallest scope that all tables of a snapshot are in.
fn narrowest(snapshot: &Snapshot) -> Scope<'static> {
    let mut tables = snapshot.tables().map(|table| table.table());
    let Some(first) = tables.next() else {
        return snapshot.scope().clone();
    };
    let mut scope = Scope::table(first.family(), first.name()).into_owned();
    for table in tables {
        scope.table = None;
        if table.family() != scope.family {
            return Scope::all();
        }
    }
    scope
}
