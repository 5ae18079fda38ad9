//! Making a ruleset what is desired, beside others who change it.

use std::collections::HashSet;

use bstr::BString;

use super::{Plan, PlanOptions, Restored, Snapshot};
use crate::Error;
use crate::netlink;
use crate::nft::commit::CommitError;
use crate::nft::{Connection, Family, Outcome, Scope};

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
        let scope = match options.remove_other_tables {
            true => desired.scope().clone(),
            false => narrowest(desired),
        };
        let now = self.snapshot(scope)?;
        let port = self.socket.port()?;
        let closed: HashSet<(Family, BString)> = now
            .tables()
            .map(|table| table.table())
            .filter(|table| table.owner().is_some_and(|owner| owner != port))
            .map(|table| (table.family(), table.name().to_owned()))
            .collect();
        let mut plan = now.plan_without(desired, options, &closed, &mut Restored::default())?;
        plan.owned_by_others.extend(closed);
        plan.owned_by_others.sort();
        Ok(plan)
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
    /// # let sandbox = chainwright::netns::Sandbox::new()?;
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
    /// Those of [`plan`](Self::plan) and [`commit`](Self::commit). A kernel before 6.2 refuses (`EBUSY`) to
    /// delete a chain or an object together with the element that leads to it: there
    /// [`Snapshot::restore`] makes the table anew.
    #[tracing::instrument(level = "debug", skip_all, fields(bytes = desired.byte_length()))]
    pub fn reconcile(&mut self, desired: &Snapshot, options: PlanOptions) -> Result<Plan, Error> {
        // Of a commit of which it could not be known whether it was done. Done twice it is the same.
        let mut unknown = None;
        let mut attempts = self.retry().begin();
        loop {
            let done = self.plan(desired, options).and_then(|plan| {
                self.commit(plan.transaction())?;
                Ok(plan)
            });
            match done {
                Err(Error::Netlink(netlink::Error::Interrupted)) if attempts.again() => {}
                Err(Error::Netlink(error)) if error.ask_again() && attempts.again_after_loss() => {}
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
}

/// Whether what was read is no longer so: somebody changed it, or time did.
fn is_late(error: &CommitError) -> bool {
    error.generation_moved()
        || error.failures.iter().any(|failure| {
            let operation = failure.operation.as_ref();
            failure.errno.number() == libc::ENOENT
                && operation.is_some_and(|done| done.verb == "delete" && done.kind == "element")
        })
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
