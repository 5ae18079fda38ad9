//! A node's iptables tables in one backend: reading, changing, saving and restoring them.

mod change;
mod one_chain;
mod own;

use std::sync::Arc;
use std::time::Duration;

pub(super) use change::Change;
use change::{Done, change_legacy, change_nft, connection};
pub(super) use one_chain::OneChain;

use super::builtin::builtins;
use super::edit::{Edit, Editor, TableEdit};
use super::in_use::in_nft;
use super::nft::Profile;
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
use crate::retry::retrying;
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
    /// Whether errors suggest names, for which names of chains are read.
    hints: bool,
    /// The generation of nf_tables that the last change made.
    made: Option<Generation>,
}

retrying! {
    /// It is for reading and changing what others change meanwhile. How long a lock is waited for is said to
    /// [`with_lock`](Self::with_lock).
    Iptables, retry, then pass_retry_on
}

#[derive(Debug)]
enum Inner {
    Nft {
        connection: Box<NftConnection>,
        profile: Profile,
    },
    Legacy {
        /// For each family the way to its tables, or that there is none.
        connections: Box<[Result<LegacyConnection, LegacyError>; 2]>,
        policy: LockPolicy,
        wait: Retry,
    },
}

impl Iptables {
    /// The tables in nf_tables of the calling thread's network namespace.
    ///
    /// The kernel loads nf_tables where it is not loaded yet; who only looks asks
    /// [`nft::is_loaded`](crate::nft::is_loaded) first.
    ///
    /// # Errors
    /// Those of opening a netlink socket.
    pub fn nft() -> Result<Self, Error> {
        Ok(Self::over(NftConnection::open()?))
    }

    /// The tables in the nf_tables that a connection leads to: that of another network namespace, or one in memory
    /// (`nft::live::FakeKernel`).
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

    /// The legacy tables of the calling thread's network namespace. Changes are made under the lock
    /// of the legacy tools ([`LockPolicy::Standard`]), for which they wait up to 5 seconds; see
    /// [`with_lock`](Self::with_lock).
    ///
    /// # Errors
    /// [`LegacyError::NotBuilt`] or [`LegacyError::NoPermission`], if neither family's can be had.
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

    /// The tables of this backend.
    ///
    /// # Errors
    /// As [`nft`](Self::nft) and [`legacy`](Self::legacy).
    pub fn open(backend: Backend) -> Result<Self, Error> {
        match backend {
            Backend::Nft => Self::nft(),
            Backend::Legacy => Self::legacy(),
        }
    }

    /// The same, with rules written in another form. Legacy tables have but one.
    #[must_use]
    pub fn with_profile(mut self, new: Profile) -> Self {
        if let Inner::Nft { profile, .. } = &mut self.inner {
            *profile = new;
        }
        self
    }

    /// The same, with another lock for changes of legacy tables. nf_tables need none.
    ///
    /// The lock is one file of the host, while tables belong to network namespaces: in a namespace of
    /// one's own [`LockPolicy::None`] spares waiting for the host's tools; a container that changes the
    /// host's tables must see the host's file, or name it by [`LockPolicy::Path`].
    #[must_use]
    pub fn with_lock(mut self, new: LockPolicy, limit: Retry) -> Self {
        if let Inner::Legacy { policy, wait, .. } = &mut self.inner {
            (*policy, *wait) = (new, limit);
        }
        self
    }

    /// The same, with errors that suggest no names: it then reads no more than a change needs.
    pub(super) fn without_hints(mut self) -> Self {
        self.hints = false;
        self
    }

    /// Takes the lock for all changes until [`release`](Self::release), where changes need one.
    pub(super) fn hold(&mut self) -> Result<Option<Held>, Error> {
        let Inner::Legacy { policy, wait, .. } = &mut self.inner else {
            return Ok(None);
        };
        let lock = Lock::take(policy, *wait)?;
        let policy = std::mem::replace(policy, LockPolicy::None);
        Ok(Some(Held { lock, policy }))
    }

    /// Gives it back.
    pub(super) fn release(&mut self, held: Option<Held>) {
        if let (
            Some(Held {
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

    /// The same, with other names of protocols, services, users, … in texts than the system's
    /// ([`Names::system`](crate::xt::Names::system), as they are now).
    #[must_use]
    pub fn with_names(mut self, names: Arc<Names>) -> Self {
        self.names = names;
        self
    }

    /// Has its connections be as patient as it is.
    fn pass_retry_on(&mut self) {
        match &mut self.inner {
            Inner::Nft { connection, .. } => connection.set_retry(self.retry),
            Inner::Legacy { connections, .. } => {
                for connection in connections.iter_mut().flatten() {
                    connection.set_retry(self.retry);
                }
            }
        }
    }

    /// The way to sets.
    pub(super) const fn sets(&self) -> &Sets {
        &self.sets
    }

    /// The names in texts.
    pub(super) fn names(&self) -> Arc<Names> {
        self.names.clone()
    }

    /// Whether `-j NFLOG` is written as nf_tables' own expression `log`.
    pub(super) fn has_native_log(&self) -> bool {
        matches!(&self.inner, Inner::Nft { profile, .. } if *profile >= Profile::V1_8_8)
    }

    /// Where the tables live.
    #[must_use]
    pub const fn backend(&self) -> Backend {
        match self.inner {
            Inner::Nft { .. } => Backend::Nft,
            Inner::Legacy { .. } => Backend::Legacy,
        }
    }

    /// The names of the tables that are in use. Where the kernel has no legacy tables of the family there are none.
    ///
    /// # Errors
    /// Those of listing tables.
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

    /// Reads tables: those of these names that are there, or all if none is named. Creates none.
    ///
    /// Those of nf_tables are of one generation.
    ///
    /// # Errors
    /// Those of reading.
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
                    // There are none.
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

    /// Makes a legacy table that is not in use yet, as iptables' programs do with each that they look at. In nf_tables it
    /// does nothing.
    pub(super) fn make_legacy(&self, family: Family, table: &str) -> Result<(), Error> {
        if let Inner::Legacy { connections, .. } = &self.inner {
            connection(connections, family)?.instantiate(table)?;
        }
        Ok(())
    }

    /// Changes a table. All of it happens at once, or nothing.
    ///
    /// `edit` says what is to be done. It may be called again, when somebody else changed the tables in
    /// the meantime, or when it looks for rules in a chain that it has changed before; what it did is
    /// then forgotten. When it returns an error, nothing is changed.
    /// Rules that it does not touch stay as they are, byte for byte, with their counters.
    ///
    /// A table that is not there is made. On nf_tables what was read is what the change is applied to,
    /// or it is begun again. The legacy tables are read and replaced under the lock of
    /// [`with_lock`](Self::with_lock).
    ///
    /// # Errors
    /// What `edit` returns; [`Error::Commit`], [`Error::Legacy`]; [`Error::Contended`] ([`with_retry`](Self::with_retry)).
    pub fn update<R>(
        &mut self,
        family: Family,
        table: &str,
        mut edit: impl FnMut(&mut TableEdit<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.update_tables(&[(family, table)], |tables| edit(&mut tables.at(0)))
    }

    /// Changes several tables, also of both families.
    ///
    /// On nf_tables all of it happens at once, or nothing. Legacy tables are replaced one after the
    /// other, in the order of the list: each at once.
    ///
    /// # Errors
    /// As [`update`](Self::update), and [`Error::Partly`] on legacy tables.
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

    /// Has the kernel only look at each change from now on, or carry it out again; whether it can: of legacy tables it
    /// cannot.
    #[doc(hidden)]
    pub const fn only_check(&mut self, yes: bool) -> bool {
        match &mut self.inner {
            Inner::Nft { connection, .. } => {
                connection.only_check(yes);
                true
            }
            Inner::Legacy { .. } => false,
        }
    }

    /// Carries out a change, as often as it takes.
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
        // Of a commit of which it could not be known whether it was done.
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
                Ok(Done::Yes(value, generation)) => {
                    self.made = generation;
                    return Ok(value);
                }
                // Somebody else is quicker: they are given time to finish.
                Ok(Done::Again) if attempts.again() => {}
                Ok(Done::Again) => {
                    return Err(unknown.unwrap_or(Error::Contended {
                        attempts: attempts.made(),
                    }));
                }
                Ok(Done::Tracking) => change.tracking = true,
                // Nothing was sent yet; it is read again.
                Err(error)
                    if error.of_reading().is_some_and(netlink::Error::ask_again)
                        && attempts.again_after_loss() => {}
                Err(Error::Commit(error))
                    if error.outcome == Outcome::Unknown
                        && unknown.is_none()
                        && change.repeatable
                        && attempts.again_after_loss() =>
                {
                    unknown = Some(Error::Commit(error));
                }
                Err(error) => return Err(unknown.unwrap_or(error)),
            }
        }
    }
}

/// The lock, and how changes take it otherwise.
pub(super) struct Held {
    lock: Lock,
    policy: LockPolicy,
}

impl Iptables {
    /// The datagram of a change of nf_tables, which is not made.
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
        let mut session = super::nft::Session::new(connection, *profile, &owned, false, &attempts);
        edit(&mut Edit::new(&mut session, &owned, &self.sets))?;
        Ok(session.finish()?.transaction.datagram(<[u8]>::to_vec))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_as_patient_as_the_handle() {
        let sandbox = chainwright_testing::Sandbox::new().unwrap();
        let handle = sandbox.run(Iptables::nft).unwrap().unwrap();
        let of = |handle: &Iptables| match &handle.inner {
            Inner::Nft { connection, .. } => connection.retry(),
            Inner::Legacy { .. } => unreachable!("it was opened over nf_tables"),
        };
        assert_eq!(
            (handle.retry(), of(&handle)),
            (Retry::DEFAULT, Retry::DEFAULT)
        );
        let handle = handle.with_retry(Retry::ONCE);
        assert_eq!((handle.retry(), of(&handle)), (Retry::ONCE, Retry::ONCE));
    }
}
