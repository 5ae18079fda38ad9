//! Replacing a table by a new one.

use chainwright_sys::x_tables::{xt_counters, xt_counters_info};
use zerocopy::{FromZeros, IntoBytes};

use super::connection::failed;
use super::{Connection, Counters, Error, ExtensionKind, Operation, Replacement};
use crate::errno::Errno;

impl Connection {
    /// Replaces the table that was read by the new one: at once for every packet.
    ///
    /// The kernel gives the old table's counters as they were at that moment. What shall be kept of
    /// them, and counters that were given, is then added to the new table's, which start with zero,
    /// so that no packet is lost from the sum. In between a look shows counters that are too small.
    ///
    /// # Somebody else may change the table too
    /// The kernel compares the *number* of entries with that of the table that was read, and nothing
    /// else: another table with as many entries goes unnoticed, and what was changed in it is lost. So
    /// hold the [lock](super::Lock) that the legacy tools take, from before the read until after this.
    ///
    /// # Errors
    /// The table is as it was, unless it is said otherwise:
    /// - [`Error::Changed`] if the table has another number of entries than when it was read: read it
    ///   again;
    /// - [`Error::UnknownExtension`] if the kernel does not have a match or target of the new table;
    /// - [`Error::Refused`] if the kernel does not take the new table;
    /// - [`Error::NoPermission`], [`Error::NotBuilt`] or [`Error::NoSuchTable`];
    /// - [`Error::AlreadySent`] if it, or a clone of it, has replaced a table before: the counters are
    ///   those of other entries now;
    /// - [`Error::WrongFamily`] if the connection is for the tables of another family;
    /// - [`Error::CountersLost`]: the table **was replaced**, but its counters stay at zero;
    /// - [`Error::System`].
    pub fn replace(&self, replacement: &mut Replacement) -> Result<(), Error> {
        let family = self.family();
        let table = *replacement.name();
        let info = *replacement.info();
        let span = tracing::debug_span!("legacy replace", %family, %table);
        let _entered = span.enter();
        if !replacement.claim() {
            return Err(Error::AlreadySent { family, table });
        }
        let old = self
            .set_replace(replacement)
            .inspect_err(|_| replacement.release())?;
        tracing::debug!(
            entries = info.num_entries(),
            bytes = info.size(),
            "replaced a legacy table"
        );

        if replacement.starts_at_zero() {
            return Ok(());
        }
        let mut argument = xt_counters_info::new_zeroed();
        argument.name = *table.padded();
        argument.num_counters = info.num_entries();
        let mut argument = argument.as_bytes().to_vec();
        argument.reserve_exact(info.num_entries() as usize * size_of::<xt_counters>());
        let any = replacement.counters(&old, |Counters { packets, bytes }| {
            argument.extend_from_slice(&packets.to_ne_bytes());
            argument.extend_from_slice(&bytes.to_ne_bytes());
        });
        if !any {
            return Ok(());
        }
        self.socket()
            .add_counters(&argument)
            .map_err(|errno| Error::CountersLost {
                family,
                table,
                errno,
            })
    }

    /// The bare `SET_REPLACE`, without the counters: what replacing a table is measured against. It
    /// can be done again with the same replacement, as long as nobody else replaces the table.
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    #[doc(hidden)]
    pub fn floor_of_replace(&self, replacement: &mut Replacement) -> Result<(), Error> {
        self.set_replace(replacement)?;
        replacement.was_sent();
        Ok(())
    }

    /// `SET_REPLACE`; the old table's counters.
    fn set_replace(&self, replacement: &mut Replacement) -> Result<Vec<xt_counters>, Error> {
        let family = self.family();
        if replacement.family() != family {
            return Err(Error::WrongFamily {
                family,
                replacement: replacement.family(),
            });
        }
        let mut old = vec![xt_counters::new_zeroed(); replacement.replaced_entries() as usize];
        let sent = self.socket().replace(replacement.argument(), &mut old);
        sent.map_err(|errno| self.refused(replacement, errno))?;
        Ok(old)
    }

    /// Why the kernel did not take it.
    fn refused(&self, replacement: &Replacement, errno: Errno) -> Error {
        let family = self.family();
        let table = *replacement.name();
        match errno.number() {
            libc::EAGAIN => Error::Changed { family, table },
            libc::EPERM | libc::EACCES | libc::ENOPROTOOPT => {
                failed(family, Operation::Replace, errno)
            }
            // There is an extension of that name, but not with that revision or for that family; the
            // kernel says the same of a table, a match and a target that it does not have.
            libc::EPROTOTYPE | libc::ENOENT => match self.unknown_extension(replacement) {
                Some(error) => error,
                None => match self.is_in_use(table) {
                    Ok(false) => Error::NoSuchTable { family, table },
                    _ => Error::Refused {
                        family,
                        table,
                        errno,
                    },
                },
            },
            _ => Error::Refused {
                family,
                table,
                errno,
            },
        }
    }

    /// The first match or target that the kernel does not know.
    fn unknown_extension(&self, replacement: &Replacement) -> Option<Error> {
        let table = replacement.to_table().ok()?;
        let mut asked = std::collections::HashSet::new();
        for rule in table.chains().flat_map(|chain| chain.rules()) {
            let matches = rule.matches().flatten();
            let matches = matches.map(|extension| (ExtensionKind::Match, extension));
            let target = rule.raw_target().ok();
            let target = target.map(|extension| (ExtensionKind::Target, extension));
            for (kind, extension) in matches.chain(target) {
                let (name, revision) = (extension.name(), extension.revision());
                if name.is_empty() || !asked.insert((kind, name, revision)) {
                    continue;
                }
                let known = match kind {
                    ExtensionKind::Match => self.match_revision(name, revision),
                    ExtensionKind::Target => self.target_revision(name, revision),
                };
                if let Ok(false) = known {
                    return Some(Error::UnknownExtension {
                        family: self.family(),
                        kind,
                        name: name.to_owned(),
                        revision,
                    });
                }
            }
        }
        None
    }
}

// The counters follow the head directly, and are two words each; with 32 bits no table is opened.
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<xt_counters_info>().is_multiple_of(size_of::<u64>()));
    assert!(size_of::<xt_counters>() == 2 * size_of::<u64>());
};
