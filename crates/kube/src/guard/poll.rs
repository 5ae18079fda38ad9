//! Whether legacy tables changed, asked without reading them.

use std::time::{Duration, Instant};

use super::GuardOptions;
use crate::declared::Declared;
use chainwright::iptables::Family;
use chainwright::legacy::{Connection, Info};

/// Asks for the sizes of tables. None is made for it.
#[derive(Debug)]
pub(super) struct Poll {
    tables: Vec<(Family, String)>,
    /// By family; none where there is nothing to ask, or they could not be opened.
    connections: [Option<Connection>; 2],
    /// What the tables were like when they were looked at; not known after they were changed here.
    known: Option<Vec<Option<Info>>>,
    interval: Duration,
    next: Instant,
    /// The next poll if nobody tells of a change before.
    regular: Instant,
    /// Whether somebody told of a change since the last poll.
    is_told: bool,
    /// At so many polls they are looked at whole.
    whole: u32,
    /// How many polls are left until then.
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
                let is_asked = tables.iter().any(|(of, _)| *of == family);
                is_asked.then(|| Connection::open(family.into()).ok())?
            }),
            tables,
            known: None,
            interval: options.poll,
            next: now + options.poll,
            regular: now + options.poll,
            is_told: false,
            whole: options.whole.max(1),
            left: options.whole.max(1),
        }
    }

    pub(super) const fn next(&self) -> Instant {
        self.next
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.next <= now
    }

    /// Somebody replaced a table. It is polled when nobody has for so long, at the regular time at the latest: between the
    /// commands of a script a repair would be in their way, and make one fail that does not wait for the lock.
    pub(super) fn told(&mut self, now: Instant, quiet: Duration) {
        self.next = (now + quiet).min(self.regular);
        self.is_told = true;
    }

    /// Whether the tables are to be looked at. What cannot be asked is.
    pub(super) fn differs(&mut self, now: Instant) -> bool {
        self.regular = now + self.interval;
        self.next = self.regular;
        self.left = self.left.saturating_sub(1);
        // One that leaves the size the same is told of, too.
        let is_told = std::mem::take(&mut self.is_told);
        if self.left == 0 || is_told {
            self.left = self.whole;
            return true;
        }
        self.known.is_none() || self.ask() != self.known
    }

    /// They are looked at now.
    pub(super) fn remember(&mut self) {
        self.known = self.ask();
    }

    /// They were changed here.
    pub(super) fn forget(&mut self) {
        self.known = None;
    }

    fn ask(&self) -> Option<Vec<Option<Info>>> {
        let ask = |(family, table): &(Family, String)| {
            let connection = match family {
                Family::Ipv4 => &self.connections[0],
                Family::Ipv6 => &self.connections[1],
            };
            let info = connection.as_ref()?.info(table).ok()?;
            Some(info.in_use())
        };
        self.tables.iter().map(ask).collect()
    }
}
