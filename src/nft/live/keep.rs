//! Keeps tables in a desired state.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use super::Mirror;
use crate::Error;
use crate::nft::snapshot::{is_outdated, scope_of};
use crate::nft::{Connection, Plan, PlanOptions, Snapshot, SnapshotError};

/// Longest time of a single wait for a change.
const WAIT: Duration = Duration::from_secs(3600);

impl Connection {
    /// Makes the kernel's tables match the desired ones, a [`Ruleset`](crate::nft::Ruleset) or a snapshot, and restores
    /// them whenever another program changes them, with the fewest operations, in one transaction.
    ///
    /// It calls `each` with the committed plan: of the first comparison, even if it is empty, and of each later repair.
    /// If `each` breaks, the function returns; otherwise it waits for the next change.
    ///
    /// It compares with a [`Mirror`], so that a repair takes time in proportion to the change. Use a `Mirror` directly
    /// to limit the time of waiting, or to know who made a change.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = chainwright_testing::Sandbox::new()?;
    /// # sandbox.run(|| -> Result<(), chainwright::Error> {
    /// use std::ops::ControlFlow;
    /// use chainwright::nft::{Connection, Family, PlanOptions, Ruleset, Table, Transaction};
    ///
    /// let mut desired = Transaction::new();
    /// desired.add(&Table::new(Family::INET, "guard"))?;
    /// let desired = Ruleset::of(&desired)?;
    ///
    /// let mut repairs = 0;
    /// let mut rival = Connection::open()?;
    /// Connection::open()?.keep(&desired, PlanOptions::default(), |plan| {
    ///     if repairs == 2 {
    ///         return ControlFlow::Break(plan.to_string());
    ///     }
    ///     repairs += 1;
    ///     let mut tx = Transaction::new();
    ///     tx.delete(&Table::new(Family::INET, "guard")).expect("a short name");
    ///     rival.commit(&tx).expect("the table exists");
    ///     ControlFlow::Continue(())
    /// })?;
    /// # Ok(()) })??;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`Mirror::open`], of [`plan`](Self::plan) and of [`commit`](Self::commit). If others commit first,
    /// or the ruleset keeps changing, it tries again.
    pub fn keep<'d, B>(
        self,
        desired: impl Into<Cow<'d, Snapshot>>,
        options: PlanOptions,
        mut each: impl FnMut(&Plan) -> ControlFlow<B>,
    ) -> Result<B, Error> {
        let desired = Arc::new(desired.into().into_owned());
        let mut mirror = Mirror::open(self, &scope_of(&desired, options))?;
        let mut is_first = true;
        loop {
            let plan = mirror.plan(&desired, options)?;
            if !plan.is_empty() {
                match mirror.connection().commit(plan.transaction()) {
                    Ok(()) => {}
                    Err(error) if is_outdated(&error) => {
                        mirror.update()?; // the other program's change has arrived
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            if (is_first || !plan.is_empty())
                && let ControlFlow::Break(done) = each(&plan)
            {
                return Ok(done);
            }
            is_first = false;
            match mirror.wait(WAIT) {
                // The next comparison reads everything again.
                Ok(_)
                | Err(SnapshotError::Interrupted { .. } | SnapshotError::Incomplete { .. }) => {}
                Err(SnapshotError::Netlink(error)) => return Err(error.into()),
            }
        }
    }
}
