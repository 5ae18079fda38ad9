//! Detects changes of legacy tables without reading them.

use std::time::{Duration, Instant};

use super::GuardOptions;
use crate::declared::Declared;
use chainwright::iptables::Family;
use chainwright::legacy::{Connection, Info};

/// Queries the sizes of tables, without creating one.
#[derive(Debug)]
pub(super) struct Poll {
    tables: Vec<(Family, String)>,
    /// By family; `None` if there is nothing to query, or the tables could not be opened.
    connections: [Option<Connection>; 2],
    /// The tables' state at the last check; `None` after the guard changed them.
    last_sizes: Option<Vec<Option<Info>>>,
    interval: Duration,
    next: Instant,
    /// The next poll if no change is reported before.
    regular: Instant,
    /// Whether a change was reported since the last poll.
    is_reported: bool,
    /// After this many polls the tables are checked completely.
    full_read_every: u32,
    /// Number of polls left until then.
    left: u32,
}

impl Poll {
    pub(super) fn new(declared: &Declared, options: &GuardOptions, now: Instant) -> Self {
        let tables = declared.tables().into_iter();
        let tables: Vec<_> = tables
            .map(|(family, table)| (family, table.to_owned()))
            .collect();
        Self {
            connections: Family::ALL.map(|family| {
                let is_guarded = tables.iter().any(|(of, _)| *of == family);
                is_guarded.then(|| Connection::open(family.into()).ok())?
            }),
            tables,
            last_sizes: None,
            interval: options.poll,
            next: now + options.poll,
            regular: now + options.poll,
            is_reported: false,
            full_read_every: options.full_read_every.max(1),
            left: options.full_read_every.max(1),
        }
    }

    pub(super) const fn next(&self) -> Instant {
        self.next
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.next <= now
    }

    /// Records that a program replaced a table. The next poll follows when no table has been replaced for `quiet`, at
    /// the regular time at the latest: a repair between the commands of a script would hold the lock, and a command
    /// that does not wait for the lock would fail.
    pub(super) fn report_change(&mut self, now: Instant, quiet: Duration) {
        self.next = (now + quiet).min(self.regular);
        self.is_reported = true;
    }

    /// Returns `true` if the tables must be checked. Tables that cannot be queried must always be checked.
    pub(super) fn differs(&mut self, now: Instant) -> bool {
        self.regular = now + self.interval;
        self.next = self.regular;
        self.left = self.left.saturating_sub(1);
        // A change that keeps the size is reported too.
        let is_reported = std::mem::take(&mut self.is_reported);
        if self.left == 0 || is_reported {
            self.left = self.full_read_every;
            return true;
        }
        self.last_sizes.is_none() || self.query_sizes() != self.last_sizes
    }

    /// Remembers the tables' state, just before a check.
    pub(super) fn remember(&mut self) {
        self.last_sizes = self.query_sizes();
    }

    /// Forgets the tables' state, after the guard changed them.
    pub(super) fn clear(&mut self) {
        self.last_sizes = None;
    }

    fn query_sizes(&self) -> Option<Vec<Option<Info>>> {
        let query_sizes = |(family, table): &(Family, String)| {
            let connection = match family {
                Family::Ipv4 => &self.connections[0],
                Family::Ipv6 => &self.connections[1],
            };
            let info = connection.as_ref()?.info(table).ok()?;
            Some(info.in_use())
        };
        self.tables.iter().map(query_sizes).collect()
    }
}
