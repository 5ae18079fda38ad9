//! Reads, changes, saves and restores a node's iptables tables in one backend.

mod chain_reader;
mod change;
mod own_changes;

use std::sync::Arc;
use std::time::Duration;

pub(super) use chain_reader::OneChain;
use change::{AttemptResult, change_legacy, change_nft, connection};
pub(super) use change::{Change, of_empty};

use super::builtin::builtins;
use super::edit::{Edit, Editor, TableEdit};
use super::nft::Profile;
use super::read_only::in_nft;
use super::sets::{self, Sets};
use super::view::Tables;
use super::{Backend, Error, Family};
use crate::Retry;
use crate::legacy::{
    Connection as LegacyConnection, Error as LegacyError, Family as LegacyFamily, Lock, LockPolicy,
    Lookup,
};
use crate::netlink;
use crate::nft::{self, Connection as NftConnection, Generation, Outcome, Scope};
use crate::retry::impl_retry;
use crate::xt::Names;

/// The iptables tables of a network namespace in one backend.
///
/// ```
/// # use chainwright::netns;
/// # fn main() -> Result<(), chainwright::iptables::Error> {
/// # chainwright_testing::become_namespace_root().unwrap();
/// # let sandbox = chainwright_testing::Sandbox::new().unwrap();
/// # sandbox.run(|| {
/// use chainwright::iptables::{Family, Iptables, Rule};
///
/// let mut iptables = Iptables::nft()?;
/// iptables.update(Family::Ipv4, "nat", |table| {
///     table.ensure_chain("KUBE-MARK-MASQ")?;
///     let rule = Rule::parse(Family::Ipv4, "-j MARK --or-mark 0x4000").unwrap();
///     if !table.contains("KUBE-MARK-MASQ", &rule)? {
///         table.append("KUBE-MARK-MASQ", &rule)?;
///     }
///     Ok(())
/// })?;
///
/// let tables = iptables.read(Family::Ipv4, &["nat"])?;
/// let chain = tables.table("nat").unwrap().chain("KUBE-MARK-MASQ").unwrap();
/// let rule = chain.rules().next().unwrap().entry().unwrap().rule;
/// assert_eq!(rule.to_string(), "-j MARK --set-xmark 0x4000/0x4000");
/// # Ok(())
/// # }).unwrap()
/// # }
/// ```
#[derive(Debug)]
pub struct Iptables {
    inner: Inner,
    sets: Sets,
    names: Arc<Names>,
    retry: Retry,
    /// Whether errors suggest names, which takes reading the names of chains.
    hints: bool,
    /// The nf_tables generation that the last change created.
    made: Option<Generation>,
}

impl_retry! {
    /// It covers reads and changes that collide with other processes' changes. The wait for a lock is a parameter of
    /// [`with_lock`](Self::with_lock).
    Iptables, retry, then propagate_retry
}

#[derive(Debug)]
enum Inner {
    Nft {
        connection: Box<NftConnection>,
        profile: Profile,
    },
    Legacy {
        /// For each family, the connection to its tables, or the error from opening it.
        connections: Box<[Result<LegacyConnection, LegacyError>; 2]>,
        policy: LockPolicy,
        wait: Retry,
    },
}

impl Iptables {
    /// Opens the nf_tables tables of the calling thread's network namespace.
    ///
    /// This loads the module nf_tables if necessary; callers that only read check
    /// [`nft::is_loaded`](crate::nft::is_loaded) first.
    ///
    /// # Errors
    /// Errors of opening a netlink socket.
    pub fn nft() -> Result<Self, Error> {
        Ok(Self::over(NftConnection::open()?))
    }

    /// Uses the nf_tables behind a connection, for instance that of another network namespace.
    #[must_use]
    pub fn over(connection: NftConnection) -> Self {
        Self {
            inner: Inner::Nft {
                connection: Box::new(connection),
                profile: Profile::default(),
            },
            sets: sets::open(),
            names: Names::system(),
            retry: Retry::DEFAULT,
            hints: true,
            made: None,
        }
    }

    /// Opens the legacy tables of the calling thread's network namespace. Changes hold the lock
    /// of the legacy tools ([`LockPolicy::Standard`]), for which they wait up to 5 seconds; see
    /// [`with_lock`](Self::with_lock).
    ///
    /// # Errors
    /// [`LegacyError::NotBuilt`] or [`LegacyError::NoPermission`], if neither family's tables can be opened.
    pub fn legacy() -> Result<Self, Error> {
        let connections = [
            LegacyConnection::open(LegacyFamily::Ipv4),
            LegacyConnection::open(LegacyFamily::Ipv6),
        ];
        if let [Err(_), Err(_)] = &connections {
            let [first, _] = connections;
            return Err(first.err().map_or(
                Error::Unsupported {
                    what: "opening",
                    backend: Backend::Legacy,
                },
                Error::from,
            ));
        }
        Ok(Self {
            inner: Inner::Legacy {
                connections: Box::new(connections),
                policy: LockPolicy::Standard,
                wait: Retry::within(Duration::from_secs(5)),
            },
            sets: sets::open(),
            names: Names::system(),
            retry: Retry::DEFAULT,
            hints: true,
            made: None,
        })
    }

    /// Opens the tables of this backend.
    ///
    /// # Errors
    /// The errors of [`nft`](Self::nft) and [`legacy`](Self::legacy).
    pub fn open(backend: Backend) -> Result<Self, Error> {
        match backend {
            Backend::Nft => Self::nft(),
            Backend::Legacy => Self::legacy(),
        }
    }

    /// Sets the form in which rules are encoded. Legacy tables have only one.
    #[must_use]
    pub fn with_profile(mut self, new: Profile) -> Self {
        if let Inner::Nft { profile, .. } = &mut self.inner {
            *profile = new;
        }
        self
    }

    /// Sets the lock for changes of legacy tables, and how long to wait for it. nf_tables need none.
    ///
    /// The lock is one file of the host, while tables belong to network namespaces: in a private
    /// namespace [`LockPolicy::None`] avoids waiting for the host's tools; a container that changes the
    /// host's tables must see the host's file, or name it with [`LockPolicy::Path`].
    #[must_use]
    pub fn with_lock(mut self, new: LockPolicy, limit: Retry) -> Self {
        if let Inner::Legacy { policy, wait, .. } = &mut self.inner {
            (*policy, *wait) = (new, limit);
        }
        self
    }

    /// Turns off suggestions in errors: reads no more than a change needs.
    pub(super) fn without_hints(mut self) -> Self {
        self.hints = false;
        if let Inner::Nft { connection, .. } = &mut self.inner {
            connection.set_diagnoses(false);
        }
        self
    }

    /// Holds the lock across all changes until [`release`](Self::release), if the backend has one.
    pub(super) fn acquire_lock(&mut self) -> Result<Option<HeldLock>, Error> {
        let Inner::Legacy { policy, wait, .. } = &mut self.inner else {
            return Ok(None);
        };
        let lock = Lock::take(policy, *wait)?;
        let policy = std::mem::replace(policy, LockPolicy::None);
        Ok(Some(HeldLock { lock, policy }))
    }

    /// Releases the lock.
    pub(super) fn release(&mut self, held: Option<HeldLock>) {
        if let (
            Some(HeldLock {
                lock,
                policy: before,
            }),
            Inner::Legacy { policy, .. },
        ) = (held, &mut self.inner)
        {
            *policy = before;
            drop(lock);
        }
    }

    /// Sets the names of protocols, services, users, … in texts. The default is the system's current ones
    /// ([`Names::system`](crate::xt::Names::system)).
    #[must_use]
    pub fn with_names(mut self, names: Arc<Names>) -> Self {
        self.names = names;
        self
    }

    /// Passes the retry policy on to the connections.
    fn propagate_retry(&mut self) {
        match &mut self.inner {
            Inner::Nft { connection, .. } => connection.set_retry(self.retry),
            Inner::Legacy { connections, .. } => {
                for connection in connections.iter_mut().flatten() {
                    connection.set_retry(self.retry);
                }
            }
        }
    }

    /// Returns the connection to sets.
    pub(super) const fn sets(&self) -> &Sets {
        &self.sets
    }

    /// Returns the names in texts.
    pub(super) fn names(&self) -> Arc<Names> {
        self.names.clone()
    }

    /// Returns `true` if `-j NFLOG` is encoded as nf_tables' own expression `log`.
    pub(super) fn has_native_log(&self) -> bool {
        matches!(&self.inner, Inner::Nft { profile, .. } if *profile >= Profile::V1_8_8)
    }

    /// Returns the backend of the tables.
    #[must_use]
    pub const fn backend(&self) -> Backend {
        match self.inner {
            Inner::Nft { .. } => Backend::Nft,
            Inner::Legacy { .. } => Backend::Legacy,
        }
    }

    /// Returns the names of the tables in use; none if the kernel has no legacy tables of the family.
    ///
    /// # Errors
    /// Errors of listing tables.
    pub fn tables_in_use(&mut self, family: Family) -> Result<Vec<String>, Error> {
        match &mut self.inner {
            Inner::Nft { connection, .. } => in_nft(connection, family),
            Inner::Legacy { connections, .. } => match connection(connections, family) {
                Err(Error::Legacy(LegacyError::NotBuilt { .. })) => Ok(Vec::new()),
                connection => {
                    let tables = connection?.tables()?;
                    Ok(tables.iter().map(ToString::to_string).collect())
                }
            },
        }
    }

    /// Reads the named tables that exist, or all if none is named. Creates no table.
    ///
    /// nf_tables tables come from a single generation.
    ///
    /// # Errors
    /// Read errors.
    pub fn read(&mut self, family: Family, names: &[&str]) -> Result<Tables, Error> {
        let (sets, text_names) = (self.sets.clone(), self.names());
        match &mut self.inner {
            Inner::Nft { connection, .. } => {
                let family_filter = nft::Family::from(family);
                let filter = match names {
                    [name] => Scope::table(family_filter, *name),
                    _ => Scope::family(family_filter),
                };
                Ok(Tables::of_snapshot(
                    family,
                    connection.snapshot(filter)?,
                    sets,
                    text_names,
                ))
            }
            Inner::Legacy { connections, .. } => {
                let mut tables = Vec::new();
                let connection = match connection(connections, family) {
                    // There are no tables.
                    Err(Error::Legacy(LegacyError::NotBuilt { .. })) => {
                        return Ok(Tables::of_legacy(family, tables, sets, text_names));
                    }
                    connection => connection?,
                };
                for name in connection.tables()? {
                    if !names.is_empty() && !names.iter().any(|wanted| name == *wanted) {
                        continue;
                    }
                    if let Lookup::InUse(table) = connection.read(name)? {
                        tables.push(table);
                    }
                }
                Ok(Tables::of_legacy(family, tables, sets, text_names))
            }
        }
    }

    /// Creates a legacy table that is not in use yet, as iptables' programs do with each table that they read. In
    /// nf_tables it does nothing.
    pub(super) fn make_legacy(&self, family: Family, table: &str) -> Result<(), Error> {
        if let Inner::Legacy { connections, .. } = &self.inner {
            connection(connections, family)?.instantiate(table)?;
        }
        Ok(())
    }

    /// Changes a table atomically.
    ///
    /// `edit` describes the changes. It may be called again if another process changed the tables in
    /// the meantime, or if it searches for rules in a chain that it has changed before; the changes of the
    /// previous call are then discarded. If it returns an error, nothing changes.
    /// Rules that it does not touch are preserved byte for byte, with their counters.
    ///
    /// A missing table is created. On nf_tables the change applies to the state that was read,
    /// or starts again. The legacy tables are read and replaced under the lock of
    /// [`with_lock`](Self::with_lock).
    ///
    /// # Errors
    /// The errors of `edit`; [`Error::Commit`], [`Error::Legacy`]; [`Error::Contended`]
    /// ([`with_retry`](Self::with_retry)).
    pub fn update<R>(
        &mut self,
        family: Family,
        table: &str,
        mut edit: impl FnMut(&mut TableEdit<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.update_tables(&[(family, table)], |tables| edit(&mut tables.at(0)))
    }

    /// Changes several tables, possibly of both families.
    ///
    /// On nf_tables the whole change is atomic. Legacy tables are replaced one after the
    /// other, in the order of the list, each atomically.
    ///
    /// # Errors
    /// The errors of [`update`](Self::update), and [`Error::PartlyApplied`] on legacy tables.
    pub fn update_tables<R>(
        &mut self,
        tables: &[(Family, &str)],
        mut edit: impl FnMut(&mut Edit<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let change = Change {
            apply: true,
            tracking: false,
            replaced: &[],
            repeatable: false,
        };
        self.change(tables, change, &mut edit)
    }

    /// Sets whether the kernel only checks further changes instead of applying them. Returns whether the backend
    /// supports this: legacy tables do not.
    #[doc(hidden)]
    pub const fn set_check_only(&mut self, yes: bool) -> bool {
        match &mut self.inner {
            Inner::Nft { connection, .. } => {
                connection.set_check_only(yes);
                true
            }
            Inner::Legacy { .. } => false,
        }
    }

    /// Carries out a change, with retries.
    pub(super) fn change<R>(
        &mut self,
        tables: &[(Family, &str)],
        mut change: Change<'_>,
        edit: &mut dyn FnMut(&mut Edit<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let mut owned: Vec<(Family, String)> = Vec::new();
        for (family, name) in tables {
            if self.backend() == Backend::Nft && builtins(name).is_none() {
                return Err(Error::no_such_table(name));
            }
            let one = (*family, (*name).to_owned());
            if !owned.contains(&one) {
                owned.push(one);
            }
        }
        self.made = None;
        // The error of a commit with an unknown outcome.
        let mut unknown = None;
        let mut attempts = self.retry.begin();
        loop {
            let result = match &mut self.inner {
                Inner::Nft {
                    connection,
                    profile,
                } => {
                    let mut edit =
                        |editor: &mut dyn Editor| edit(&mut Edit::new(editor, &owned, &self.sets));
                    let hints = self.hints;
                    change_nft(
                        connection, *profile, hints, &owned, change, &attempts, &mut edit,
                    )
                }
                Inner::Legacy {
                    connections,
                    policy,
                    wait,
                } => {
                    let _lock = if change.apply {
                        Some(Lock::take(policy, *wait)?)
                    } else {
                        None
                    };
                    let mut edit =
                        |editor: &mut dyn Editor| edit(&mut Edit::new(editor, &owned, &self.sets));
                    change_legacy(connections, &owned, change, &mut edit)
                }
            };
            match result {
                Ok(AttemptResult::Yes(value, generation)) => {
                    self.made = generation;
                    return Ok(value);
                }
                // Another process was faster: pause to let it finish.
                Ok(AttemptResult::Conflict) if attempts.again() => {}
                Ok(AttemptResult::Conflict) => {
                    return Err(unknown.unwrap_or(Error::Contended {
                        attempts: attempts.made(),
                    }));
                }
                Ok(AttemptResult::Tracking) => change.tracking = true,
                // Nothing was sent yet; read again.
                Err(error)
                    if error.of_reading().is_some_and(netlink::Error::is_retryable)
                        && attempts.retry_after_loss() => {}
                Err(Error::Commit(error))
                    if error.outcome == Outcome::Unknown
                        && unknown.is_none()
                        && change.repeatable
                        && attempts.retry_after_loss() =>
                {
                    unknown = Some(Error::Commit(error));
                }
                Err(error) => return Err(unknown.unwrap_or(error)),
            }
        }
    }
}

/// The held lock, and the lock policy to restore afterwards.
pub(super) struct HeldLock {
    lock: Lock,
    policy: LockPolicy,
}

impl Iptables {
    /// Encodes a change of nf_tables as a datagram without sending it.
    pub(super) fn datagram_of(
        &mut self,
        tables: &[(Family, &str)],
        edit: &mut dyn FnMut(&mut Edit<'_>) -> Result<(), Error>,
    ) -> Result<Vec<u8>, Error> {
        let Inner::Nft {
            connection,
            profile,
        } = &mut self.inner
        else {
            return Err(Error::Unsupported {
                what: "a datagram",
                backend: Backend::Legacy,
            });
        };
        let owned: Vec<_> = tables.iter().map(|(f, n)| (*f, (*n).to_owned())).collect();
        let attempts = Retry::ONCE.begin();
        let mut session =
            super::nft::Session::new(Some(connection), *profile, &owned, false, &attempts);
        edit(&mut Edit::new(&mut session, &owned, &self.sets))?;
        Ok(session.finish()?.transaction.datagram(<[u8]>::to_vec))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_inherit_the_retry_policy() {
        let sandbox = chainwright_testing::Sandbox::new().unwrap();
        let handle = sandbox.run(Iptables::nft).unwrap().unwrap();
        let of = |handle: &Iptables| match &handle.inner {
            Inner::Nft { connection, .. } => connection.retry(),
            Inner::Legacy { .. } => unreachable!("the handle was opened on nf_tables"),
        };
        assert_eq!(
            (handle.retry(), of(&handle)),
            (Retry::DEFAULT, Retry::DEFAULT)
        );
        let handle = handle.with_retry(Retry::ONCE);
        assert_eq!((handle.retry(), of(&handle)), (Retry::ONCE, Retry::ONCE));
    }
}
