//! Replacing a table with a new one.

use chainwright_sys::x_tables::{xt_counters, xt_counters_info};
use zerocopy::{FromZeros, IntoBytes};

use super::connection::failed;
use super::{Connection, Counters, Error, ExtensionKind, Operation, Replacement};
use crate::errno::Errno;

impl Connection {
    /// Replaces the table that was read with the new one, atomically for all packets.
    ///
    /// The new table's counters start at zero. The kernel returns the old table's counters at the time
    /// of the replacement; this then adds the preserved ones and the given ones to the new table, so
    /// that no packet is lost from the sum. A reader in between sees counters that are too small.
    ///
    /// # Concurrent changes
    /// The kernel only compares the *number* of entries with that of the table that was read. It does
    /// not detect another table with the same number of entries, whose changes are then lost.
    /// Therefore hold the [lock](super::Lock) of the legacy tools from before the read until after
    /// this call.
    ///
    /// # Errors
    /// Unless noted otherwise, the table is unchanged:
    /// - [`Error::Changed`] if the table no longer has the number of entries that it had when it was
    ///   read: read it again;
    /// - [`Error::UnknownExtension`] if the kernel does not have a match or target of the new table;
    /// - [`Error::Refused`] if the kernel refuses the new table;
    /// - [`Error::NoPermission`], [`Error::NotBuilt`] or [`Error::NoSuchTable`];
    /// - [`Error::AlreadySent`] if this replacement, or a clone of it, has already replaced a table:
    ///   its counters refer to entries that no longer exist;
    /// - [`Error::WrongFamily`] if the connection is for another family;
    /// - [`Error::CountersLost`]: the table **was replaced**, but its counters stay at zero;
    /// - [`Error::System`].
    pub fn replace(&self, replacement: &mut Replacement) -> Result<(), Error> {
        let family = self.family();
        let table = *replacement.name();
        let info = *replacement.info();
        let span = tracing::debug_span!("legacy replace", %family, %table);
        let _entered = span.enter();
        if !replacement.mark_sent() {
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

    /// Sends `SET_REPLACE` without the counters: the baseline of the replace benchmark. It can be
    /// repeated with the same replacement, as long as no other process replaces the table.
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    #[doc(hidden)]
    pub fn replace_baseline(&self, replacement: &mut Replacement) -> Result<(), Error> {
        self.set_replace(replacement)?;
        replacement.allow_resend();
        Ok(())
    }

    /// Sends `SET_REPLACE` and returns the old table's counters.
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

    /// Converts the kernel's error into the reason for the refusal.
    fn refused(&self, replacement: &Replacement, errno: Errno) -> Error {
        let family = self.family();
        let table = *replacement.name();
        match errno.number() {
            libc::EAGAIN => Error::Changed { family, table },
            libc::EPERM | libc::EACCES | libc::ENOPROTOOPT => {
                failed(family, Operation::Replace, errno)
            }
            // `EPROTOTYPE`: an extension of that name exists, but not in that revision or for that
            // family. `ENOENT`: an unknown table, match or target.
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

    /// Finds the first match or target that the kernel does not have.
    fn unknown_extension(&self, replacement: &Replacement) -> Option<Error> {
        let table = replacement.to_table().ok()?;
        let mut checked = std::collections::HashSet::new();
        for rule in table.chains().flat_map(|chain| chain.rules()) {
            let matches = rule.matches().flatten();
            let matches = matches.map(|extension| (ExtensionKind::Match, extension));
            let target = rule.raw_target().ok();
            let target = target.map(|extension| (ExtensionKind::Target, extension));
            for (kind, extension) in matches.chain(target) {
                let (name, revision) = (extension.name(), extension.revision());
                if name.is_empty() || !checked.insert((kind, name, revision)) {
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

// The counters directly follow the header, two words each; on 32 bits no table can be opened.
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<xt_counters_info>().is_multiple_of(size_of::<u64>()));
    assert!(size_of::<xt_counters>() == 2 * size_of::<u64>());
};
