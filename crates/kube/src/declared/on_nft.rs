//! Checks and creates declared chains in nf_tables, in one transaction.

use std::collections::HashSet;

use super::complete::{Completion, missing};
use super::{Declared, Error, Found, Item, RequiredChain};
use chainwright::iptables::nft::{Unwritable, chain, decode, encode};
use chainwright::iptables::{Backend, Entry, Rule, SetError, builtin};
use chainwright::nft::{
    CommitError, Connection, Guard, Outcome, RuleFilter, Table, TableFlags, Transaction,
};
use chainwright::{netlink, nft};

/// The reason for which an attempt ended early.
pub(crate) enum Attempt {
    /// The ruleset changed: start again.
    Again,
    /// An error for the caller.
    Failed(Error),
}

impl From<netlink::Error> for Attempt {
    fn from(error: netlink::Error) -> Self {
        match error {
            netlink::Error::Interrupted => Self::Again,
            error => Self::Failed(error.into()),
        }
    }
}

impl From<CommitError> for Attempt {
    fn from(error: CommitError) -> Self {
        if error.generation_moved() {
            Self::Again
        } else {
            Self::Failed(Error::Commit(Box::new(error)))
        }
    }
}

impl From<netlink::MessageError> for Attempt {
    fn from(error: netlink::MessageError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Unwritable> for Attempt {
    fn from(error: Unwritable) -> Self {
        Self::Failed(error.into())
    }
}

impl From<SetError> for Attempt {
    fn from(error: SetError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Error> for Attempt {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The outcome of a successful attempt.
enum WorkResult<T> {
    /// A commit through the guard.
    Committed(T),
    /// A read only; the result is valid if the guard still holds.
    Read(T),
}

/// The intended result of a commit whose outcome is unknown, and its error.
type Unknown<T> = Option<(T, CommitError)>;

/// Plans a change on one state of the tables and commits it; starts again if they changed meanwhile. Commits nothing if
/// the plan is empty.
pub(crate) fn change<T: Clone>(
    declared: &Declared,
    nft: &mut Connection,
    mut plan: impl FnMut(&mut Connection, &Guard) -> Result<(Transaction, T), Attempt>,
) -> Result<T, Error> {
    let mut unknown = None;
    let done = attempt(declared, nft, |nft, guard| {
        let (mut transaction, done) = plan(nft, guard)?;
        if transaction.is_empty() {
            return Ok(WorkResult::Read(intended_result(&unknown).unwrap_or(done)));
        }
        commit(nft, guard, &mut transaction, done, &mut unknown)
    });
    done.map_err(|error| contended(error, unknown))
}

/// Runs `work` on one state of the tables; starts again if they changed meanwhile.
fn attempt<T>(
    declared: &Declared,
    nft: &mut Connection,
    mut work: impl FnMut(&mut Connection, &mut Guard) -> Result<WorkResult<T>, Attempt>,
) -> Result<T, Error> {
    let scopes = declared.scopes();
    let mut attempts = nft.retry().begin();
    loop {
        let mut guard = nft.guard_for_attempt(&attempts, &scopes)?;
        match work(nft, &mut guard) {
            Ok(WorkResult::Committed(done)) => return Ok(done),
            Ok(WorkResult::Read(done)) if guard.is_unchanged(nft)? => return Ok(done),
            Ok(WorkResult::Read(_)) | Err(Attempt::Again) => {}
            Err(Attempt::Failed(Error::Read(error)))
                if error.is_retryable() && attempts.retry_after_loss() =>
            {
                continue;
            }
            Err(Attempt::Failed(error)) => return Err(error),
        }
        if !attempts.again() {
            let attempts = attempts.made();
            return Err(Error::Contended { attempts });
        }
    }
}

/// Commits the transaction. If the outcome is unknown, the caller reads the tables again, once.
fn commit<T>(
    nft: &mut Connection,
    guard: &mut Guard,
    transaction: &mut Transaction,
    done: T,
    unknown: &mut Unknown<T>,
) -> Result<WorkResult<T>, Attempt> {
    match guard.commit(nft, transaction) {
        Ok(()) => Ok(WorkResult::Committed(done)),
        Err(error) if error.outcome == Outcome::Unknown && unknown.is_none() => {
            *unknown = Some((done, error));
            Err(Attempt::Again)
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the result of the commit whose outcome was unknown, now that nothing remains to be done.
fn intended_result<T: Clone>(unknown: &Unknown<T>) -> Option<T> {
    unknown.as_ref().map(|(done, _)| done.clone())
}

/// Replaces an error that implies that nothing was applied if the outcome of a commit is unknown.
fn contended<T>(error: Error, unknown: Unknown<T>) -> Error {
    match unknown {
        Some((_, unknown)) => Error::Commit(Box::new(unknown)),
        None => error,
    }
}

impl Declared {
    pub(super) fn check_nft(&self, nft: &mut Connection) -> Result<Vec<Item>, Error> {
        attempt(self, nft, |nft, guard| {
            Ok(WorkResult::Read(self.plan(nft, guard)?.1))
        })
    }

    pub(super) fn ensure_nft(&self, nft: &mut Connection) -> Result<Vec<Item>, Error> {
        change(self, nft, |nft, guard| {
            let (transaction, missing) = self.plan(nft, guard)?;
            if !transaction.is_empty() {
                self.allow(&missing, Backend::Nft, || nft.is_in_current_namespace())?;
            }
            Ok((transaction, missing))
        })
    }

    /// Returns the transaction that makes everything complete, and the items that it creates.
    fn plan(
        &self,
        nft: &mut Connection,
        guard: &Guard,
    ) -> Result<(Transaction, Vec<Item>), Attempt> {
        let mut tx = Transaction::new();
        let mut all = Vec::new();
        let mut completions = Vec::with_capacity(self.chains.len());
        let mut made = HashSet::new();
        for wanted in &self.chains {
            let rules = wanted.resolved()?;
            let found = Found::find_in_kernel(nft, guard, wanted, &rules)?;
            let name = (wanted.table_key(), &*wanted.chain);
            let make = !found.exists && made.insert(name);
            if make {
                tx.add(&Table::new(wanted.family.into(), &*wanted.table))?
                    .add(&chain(wanted.family, &wanted.table, &wanted.chain))?;
            }
            let completion = Completion::of(wanted, &found);
            all.extend(missing(wanted, make, &completion));
            completions.push((wanted, rules, completion));
        }
        // All chains exist by now, so rules can jump to any of them.
        for (wanted, rules, completion) in &completions {
            for &handle in &completion.delete {
                wanted.delete(&mut tx, handle)?;
            }
            for &index in &completion.put {
                let rule = encode(wanted.family, &wanted.table, &wanted.chain, &rules[index])?;
                match wanted.position {
                    super::InsertPosition::Head => tx.insert(&rule)?,
                    super::InsertPosition::End => tx.add(&rule)?,
                };
            }
        }
        Ok((tx, all))
    }
}

impl Found {
    /// Looks up a chain and the declared rules in it.
    pub(crate) fn find_in_kernel(
        nft: &mut Connection,
        guard: &Guard,
        wanted: &RequiredChain,
        rules: &[Rule],
    ) -> Result<Self, Attempt> {
        let family = nft::Family::from(wanted.family);
        let (table_name, chain_name) = (&*wanted.table, &*wanted.chain);
        let ineffective = |chain: Option<&str>, reason| {
            Attempt::Failed(Error::Ineffective {
                family,
                table: table_name.to_owned(),
                chain: chain.map(str::to_owned),
                reason,
            })
        };
        let table = nft.table(family, table_name)?;
        let flags = table.and_then(|table| table.flags()).unwrap_or_default();
        if flags.contains(TableFlags::DORMANT) {
            return Err(ineffective(None, "the table is dormant"));
        }
        let Some(chain) = nft.chain(family, table_name, chain_name)? else {
            return Ok(Self::default());
        };
        if let Some(builtin) = builtin(table_name, chain_name)
            && !builtin.is(&chain)
        {
            let reason =
                "the chain is not attached to the hook of the built-in chain with its name";
            return Err(ineffective(Some(chain_name), reason));
        }
        let mut found = Self {
            exists: true,
            references: chain.references().unwrap_or(0),
            ..Self::default()
        };
        let listed = nft.rules(RuleFilter::chain(family, table_name, chain_name))?;
        let listed = listed.for_each(|encoded| {
            found.total += 1;
            let Ok(Entry { rule, .. }) = decode(&encoded) else {
                return;
            };
            let which = rules.iter().position(|wanted| wanted.means_the_same(&rule));
            found
                .rules
                .extend(which.map(|which| (which, encoded.handle())));
        });
        guard.check_dump(listed)?;
        Ok(found)
    }
}

impl RequiredChain {
    pub(crate) fn delete(
        &self,
        tx: &mut Transaction,
        handle: u64,
    ) -> Result<(), netlink::MessageError> {
        let mut rule = nft::Rule::new(self.family.into(), &*self.table, &*self.chain);
        rule.handle = Some(handle);
        tx.delete(&rule).map(drop)
    }
}
