//! Reconciles a ruleset with a desired one, during changes by others.

use std::borrow::Cow;
use std::collections::HashSet;

use bstr::BString;

use super::{Plan, PlanOptions, Restored, Snapshot, SnapshotError};
use crate::nft::commit::CommitError;
use crate::nft::{Connection, Family, Outcome, Scope, TableRef};
use crate::retry::Attempts;
use crate::{Error, Retry};

impl Connection {
    /// Computes the transaction that makes the kernel's tables match the desired ones, a [`Ruleset`](crate::nft::Ruleset)
    /// or a snapshot: it reads the current ruleset and [compares](Snapshot::plan) it. It changes nothing.
    ///
    /// It skips tables that another process owns, because only the owner can change them: [`Plan::owned_by_others`]
    /// lists them.
    ///
    /// # Errors
    /// The errors of a [snapshot](Connection::snapshot).
    pub fn plan<'d>(
        &mut self,
        desired: impl Into<Cow<'d, Snapshot>>,
        options: PlanOptions,
    ) -> Result<Plan, Error> {
        let desired = desired.into();
        let now = self.snapshot(scope_of(&desired, options))?;
        let foreign = self.tables_of_other_owners(&now);
        self.plan_from(&now, &desired, options, foreign)
    }

    /// Makes the kernel's tables match the desired ones, a [`Ruleset`](crate::nft::Ruleset) or a snapshot, with the
    /// fewest operations, in one transaction. It does not touch unchanged objects, and sends nothing if there is no
    /// difference. Returns the committed plan.
    ///
    /// The transaction is conditional on the generation that was read: if another process changes the ruleset
    /// meanwhile, or an element to be deleted times out, it reads and compares everything again
    /// ([`with_retry`](Connection::with_retry)). It skips tables that another process owns: [`Plan::owned_by_others`]
    /// lists them.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = chainwright_testing::Sandbox::new()?;
    /// # sandbox.run(|| -> Result<(), chainwright::Error> {
    /// use chainwright::nft::{Chain, Connection, Family, PlanOptions, Ruleset, Table, Transaction};
    ///
    /// let mut desired = Transaction::new();
    /// desired.add(&Table::new(Family::INET, "guard"))?;
    /// desired.add(&Chain::new(Family::INET, "guard", "allowed"))?;
    /// let desired = Ruleset::of(&desired)?;
    /// let mut nft = Connection::open()?;
    /// nft.reconcile(&desired, PlanOptions::default())?;
    ///
    /// // Another program deletes the chain, and creates another one.
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
    /// The errors of [`plan`](Self::plan) and [`commit`](Self::commit). A kernel before 6.4 without its corrections
    /// (the kernels of Debian 11 and 12 have them) may refuse (`EBUSY`) to delete a chain or an object together with
    /// the map that refers to it: in this case [`Snapshot::restore`] recreates the table.
    pub fn reconcile<'d>(
        &mut self,
        desired: impl Into<Cow<'d, Snapshot>>,
        options: PlanOptions,
    ) -> Result<Plan, Error> {
        self.reconcile_snapshot(&desired.into(), options)
    }

    #[tracing::instrument(level = "debug", skip_all, fields(bytes = desired.byte_length()))]
    fn reconcile_snapshot(
        &mut self,
        desired: &Snapshot,
        options: PlanOptions,
    ) -> Result<Plan, Error> {
        let scope = scope_of(desired, options);
        retry_commit(self, self.retry(), |connection, attempts| {
            let mut guard = connection.guard_for_attempt(attempts, std::slice::from_ref(&scope))?;
            // The outer retry policy covers both: an attempt is a read and a commit.
            let now = connection.snapshot_as(&scope, Retry::ONCE)?;
            let foreign = connection.tables_of_other_owners(&now);
            let mut plan = connection.plan_from(&now, desired, options, foreign)?;
            guard.commit(connection, plan.transaction_mut())?;
            Ok(plan)
        })
    }

    /// Returns the tables that another process owns.
    pub(in crate::nft) fn tables_of_other_owners(
        &self,
        now: &Snapshot,
    ) -> HashSet<(Family, BString)> {
        now.owned_by_others(self.port())
    }

    /// Plans without the tables that others own.
    pub(in crate::nft) fn plan_from(
        &self,
        now: &Snapshot,
        desired: &Snapshot,
        options: PlanOptions,
        foreign: HashSet<(Family, BString)>,
    ) -> Result<Plan, Error> {
        let mut plan = now.plan_without(desired, options, &foreign, &mut Restored::default())?;
        plan.owned_by_others.extend(foreign);
        plan.owned_by_others.sort();
        Ok(plan)
    }
}

/// Borrows it, as the desired state of a plan.
impl<'a> From<&'a Snapshot> for Cow<'a, Snapshot> {
    fn from(snapshot: &'a Snapshot) -> Self {
        Cow::Borrowed(snapshot)
    }
}

impl Snapshot {
    /// Returns the tables that have another owner than this port.
    pub(super) fn owned_by_others(&self, port: u32) -> HashSet<(Family, BString)> {
        let tables = self.tables().map(|table| table.table());
        let foreign = tables.filter(|table| has_other_owner(table, port));
        foreign
            .map(|table| (table.family(), table.name().to_owned()))
            .collect()
    }
}

/// Returns `true` if a table has another owner than this port.
pub(super) fn has_other_owner(table: &TableRef<'_>, port: u32) -> bool {
    table.owner().is_some_and(|owner| owner != port)
}

/// Repeats an operation that reads a ruleset and then commits, while others commit first or replies are lost, as often
/// as `retry` allows.
pub(in crate::nft) fn retry_commit<T, R>(
    target: &mut T,
    retry: Retry,
    mut attempt: impl FnMut(&mut T, &Attempts) -> Result<R, Error>,
) -> Result<R, Error> {
    // A commit with an unknown outcome. Repeating it gives the same result.
    let mut unknown = None;
    let mut attempts = retry.begin();
    loop {
        match attempt(target, &attempts) {
            Err(Error::Snapshot(
                SnapshotError::Interrupted { .. } | SnapshotError::Incomplete { .. },
            )) if attempts.again() => {}
            Err(Error::Netlink(error) | Error::Snapshot(SnapshotError::Netlink(error)))
                if error.allows(&mut attempts) => {}
            Err(Error::Commit(error)) if is_outdated(&error) && attempts.again() => {}
            Err(Error::Commit(error))
                if error.outcome == Outcome::Unknown
                    && unknown.is_none()
                    && attempts.retry_after_loss() =>
            {
                unknown = Some(Error::Commit(error));
            }
            done => return done.map_err(|error| unknown.unwrap_or(error)),
        }
    }
}

/// Returns `true` if the ruleset that was read is outdated: another process changed it, an element timed out, or a rule
/// added one. An interval tree also returns these errors for a tick after a change by another process.
pub(in crate::nft) fn is_outdated(error: &CommitError) -> bool {
    error.generation_moved()
        || error.failures.iter().any(|failure| {
            let operation = failure.operation.as_ref();
            let expected_errno = match operation.filter(|done| done.kind == "element") {
                Some(done) if done.verb == "delete" => libc::ENOENT,
                Some(_) => libc::EEXIST,
                None => return false,
            };
            failure.errno.number() == expected_errno
        })
}

/// Returns the scope of the current ruleset to read.
pub(in crate::nft) fn scope_of(desired: &Snapshot, options: PlanOptions) -> Scope<'static> {
    match options.remove_other_tables {
        true => desired.scope().clone(),
        false => narrowest(desired),
    }
}

/// Returns the smallest scope with all tables of a snapshot.
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
