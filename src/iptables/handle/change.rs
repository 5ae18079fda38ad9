//! A single attempt of a change, on either backend.

use crate::Retry;
use crate::iptables::builtin::{builtin, builtins};
use crate::iptables::edit::Editor;
use crate::iptables::nft::{Finished, Profile, Session as NftSession, extensions};
use crate::iptables::{Error, Family, legacy};
use crate::legacy::{
    Connection as LegacyConnection, Error as LegacyError, Hook as LegacyHook, Table as LegacyTable,
};
use crate::netlink;
use crate::nft::{
    CommitError, Connection as NftConnection, Generation, Outcome, Ruleset, Transaction,
};
use crate::retry::Attempts;

/// How to carry out a change.
#[derive(Debug, Clone, Copy)]
pub(in crate::iptables) struct Change<'c> {
    /// Whether to apply it, or only to test it: on nf_tables the kernel tests it, too.
    pub(in crate::iptables) apply: bool,
    /// Whether to track new rules, so that they can be found again.
    pub(in crate::iptables) tracking: bool,
    /// Tables that are replaced entirely, including policies: legacy ones need not be read.
    pub(in crate::iptables) replaced: &'c [(Family, &'c str)],
    /// Whether applying it twice has the same result: if the outcome of a commit is unknown, it is then
    /// applied again.
    pub(in crate::iptables) repeatable: bool,
}

/// The outcome of an attempt.
pub(super) enum AttemptResult<R> {
    /// Applied, with the new generation of nf_tables.
    Yes(R, Option<Generation>),
    /// Another process changed the tables meanwhile.
    Conflict,
    /// The change must be repeated with new rules tracked.
    Tracking,
}

pub(super) fn change_nft<R>(
    connection: &mut NftConnection,
    profile: Profile,
    hints: bool,
    tables: &[(Family, String)],
    change: Change<'_>,
    attempts: &Attempts,
    edit: &mut dyn FnMut(&mut dyn Editor) -> Result<R, Error>,
) -> Result<AttemptResult<R>, Error> {
    let mut session = NftSession::new(
        Some(&mut *connection),
        profile,
        tables,
        change.tracking,
        attempts,
    );
    session.hints = hints;
    let result = edit(&mut session);
    if session.wants_tracking() {
        return Ok(AttemptResult::Tracking);
    }
    let value = match result {
        Ok(value) => value,
        // Two listings of different generations may contradict one another.
        Err(error) if matches!(error.of_reading(), Some(netlink::Error::Interrupted)) => {
            return Ok(AttemptResult::Conflict);
        }
        Err(_) if session.is_stale() => return Ok(AttemptResult::Conflict),
        Err(error) => return Err(error),
    };
    // Without a commit nothing verifies that the state is still as read.
    if session.is_empty() && session.is_stale() {
        return Ok(AttemptResult::Conflict);
    }
    let Finished {
        mut transaction,
        guard,
        lines,
    } = session.finish()?;
    let sent = match (guard, change.apply) {
        (Some(mut guard), true) => guard.commit_returning_generation(connection, &mut transaction),
        (Some(mut guard), false) => guard.check(connection, &mut transaction).map(|()| None),
        (None, true) => connection.commit_returning_generation(&mut transaction),
        (None, false) => connection.check(&transaction).map(|()| None),
    };
    match sent {
        Ok(generation) => Ok(AttemptResult::Yes(value, generation)),
        Err(error) if error.generation_moved() => Ok(AttemptResult::Conflict),
        Err(error) => Err(refused(Some(connection), error, &transaction, &lines)),
    }
}

/// Applies a change to an empty ruleset, without a kernel, and returns the result.
pub(in crate::iptables) fn of_empty<R>(
    profile: Profile,
    tables: &[(Family, String)],
    edit: impl FnOnce(&mut dyn Editor) -> Result<R, Error>,
) -> Result<Ruleset, Error> {
    let attempts = Retry::ONCE.begin();
    let mut session = NftSession::new(None, profile, tables, true, &attempts);
    edit(&mut session)?;
    let Finished {
        transaction, lines, ..
    } = session.finish()?;
    Ruleset::of(&transaction).map_err(|error| refused(None, error, &transaction, &lines))
}

/// Converts the kernel's refusal to an error with the line that caused it, or the missing extension.
fn refused(
    connection: Option<&mut NftConnection>,
    error: CommitError,
    transaction: &Transaction,
    lines: &[u32],
) -> Error {
    let failures = error.failures.iter().filter_map(|failure| {
        let index = failure.operation.as_ref()?.index;
        Some((lines.get(index).copied().unwrap_or(0), failure, index))
    });
    // Operations may come after those of later lines.
    let Some((line, failure, index)) = failures.min_by_key(|(line, ..)| *line) else {
        return Error::Commit(Box::new(error));
    };
    if error.outcome != Outcome::NothingApplied {
        return Error::Commit(Box::new(error));
    }
    let unknown = connection.and_then(|nft| unknown_extension(nft, transaction, index));
    if let Some(unknown) = unknown {
        return if line > 0 {
            unknown.at(line as usize)
        } else {
            unknown
        };
    }
    if line == 0 {
        return Error::Commit(Box::new(error));
    }
    Error::Refused {
        line: line as usize,
        text: String::new().into(),
        failure: failure.to_string(),
    }
}

/// Returns the first extension in an operation's rule that the kernel lacks.
fn unknown_extension(
    connection: &mut NftConnection,
    transaction: &Transaction,
    index: usize,
) -> Option<Error> {
    let (family, extensions) = extensions(transaction.payload(index)?)?;
    extensions.into_iter().find_map(|(kind, name, revision)| {
        let known = connection.has_extension(family, kind, &name, revision);
        matches!(known, Ok(false)).then(|| Error::UnknownExtension {
            kind,
            name,
            revision,
        })
    })
}

pub(super) fn change_legacy<R>(
    connections: &[Result<LegacyConnection, LegacyError>; 2],
    names: &[(Family, String)],
    change: Change<'_>,
    edit: &mut dyn FnMut(&mut dyn Editor) -> Result<R, Error>,
) -> Result<AttemptResult<R>, Error> {
    let mut tables = Vec::with_capacity(names.len());
    // For each table that is replaced entirely, its number of entries.
    let mut blank = Vec::with_capacity(names.len());
    // Unused tables are created once everything else has succeeded.
    let mut unused = Vec::new();
    for (family, name) in names {
        let connection = connection(connections, *family)?;
        let hooks =
            builtins(name).map(|all| all.iter().fold(0, |hooks, one| hooks | 1 << one.hook));
        if let Some(hooks) = hooks
            && let Some(table) = connection.initial_table(name, hooks)?
        {
            unused.push(tables.len());
            tables.push((*family, table));
            blank.push(None);
            continue;
        }
        let mut entries = None;
        let mut table = LegacyTable::empty(connection.family());
        if change.replaced.contains(&(*family, name.as_str())) {
            let (nothing, number) = connection.instantiate_blank(name)?;
            let known = |hook: LegacyHook| builtin(name, hook.chain_name()).is_some();
            if nothing.info().hooks().all(known) {
                (table, entries) = (nothing, Some(number));
            }
        }
        if entries.is_none() {
            connection.instantiate_and_read_into(name, &mut table)?;
        }
        tables.push((*family, table));
        blank.push(entries);
    }
    let mut session = legacy::Session::new(&tables);
    let value = edit(&mut session)?;
    let replacements = session.finish()?;
    if !change.apply {
        return Ok(AttemptResult::Yes(value, None));
    }
    for (family, table) in unused.into_iter().filter_map(|place| tables.get(place)) {
        if !connection(connections, *family)?.instantiate_if_equal(table)? {
            return Ok(AttemptResult::Conflict);
        }
    }
    let mut applied = Vec::new();
    let replacements = replacements.into_iter().zip(blank);
    for (((family, replacement), blank), (_, name)) in replacements.zip(names) {
        let Some(mut replacement) = replacement else {
            continue;
        };
        if let Some(entries) = blank {
            replacement = replacement.in_place_of(entries);
        }
        match connection(connections, family)?.replace(&mut replacement) {
            Ok(()) => applied.push(format!("{family} {name}")),
            Err(LegacyError::Changed { .. }) if applied.is_empty() => {
                return Ok(AttemptResult::Conflict);
            }
            Err(error) if applied.is_empty() => return Err(error.into()),
            Err(error) => {
                return Err(Error::PartlyApplied {
                    applied,
                    error: Box::new(error.into()),
                });
            }
        }
    }
    Ok(AttemptResult::Yes(value, None))
}

/// Returns the connection to a family's legacy tables.
pub(super) fn connection(
    connections: &[Result<LegacyConnection, LegacyError>; 2],
    family: Family,
) -> Result<&LegacyConnection, Error> {
    let index = match family {
        Family::Ipv4 => 0,
        Family::Ipv6 => 1,
    };
    connections[index]
        .as_ref()
        .map_err(|error| error.clone().into())
}
