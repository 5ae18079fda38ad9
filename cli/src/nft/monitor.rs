//! `nft monitor`: prints changes, and the rules that packets meet.

use std::os::fd::{AsFd as _, BorrowedFd};

use chainwright::nft::live::{
    Change, EventObject, Item, Monitor, MonitorOptions, TracedItem, Tracer, TracerOptions,
};
use chainwright::nft::{Connection, Scope, Snapshot};
use chainwright_lang::{EventFilter, EventFormatter, Formatted, format_trace};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::Session;
use crate::output::{Error, Printable, causes, note, say};
use crate::script_report::line;

impl Session<'_> {
    /// Prints changes, rules that packets meet, or both, until the reader closes the output.
    pub(super) fn monitor(&mut self, watched: EventFilter) -> Result<(), Error> {
        let mut changes = match watched.is_trace() {
            true => None,
            false => Some(Changes {
                monitor: MonitorOptions::default().open_if_loaded()?,
                formatter: self.formatter()?,
            }),
        };
        let mut traces = match watched.is_trace() || watched.is_all() {
            true => Some(Traces {
                tracer: TracerOptions::default().open_if_loaded()?,
                nft: Connection::open_if_loaded()?,
                rules: None,
            }),
            false => None,
        };
        while self.out.has_reader() {
            let mut has_received = false;
            if let Some(changes) = &mut changes
                && let Some(item) = changes.monitor.try_receive()?
            {
                has_received = true;
                self.print_item(&watched, changes, item)?;
            }
            if let Some(traces) = &mut traces
                && let Some(item) = traces.tracer.try_receive()?
            {
                has_received = true;
                self.format_trace(traces, item)?;
            }
            match has_received {
                true => self.out.flush()?,
                false => {
                    let changes = changes.as_ref().map(|changes| changes.monitor.as_fd());
                    let traces = traces.as_ref().map(|traces| traces.tracer.as_fd());
                    wait(changes.into_iter().chain(traces))?;
                }
            }
        }
        Ok(())
    }

    /// Prints a change.
    fn print_item(
        &mut self,
        watched: &EventFilter,
        changes: &mut Changes,
        item: Item,
    ) -> Result<(), Error> {
        let formatter = &mut changes.formatter;
        match item {
            Item::Change(change) if self.json || watched.is_json() => {
                self.print_change_json(watched, formatter, &change)?;
            }
            Item::Change(change) => self.print_change(watched, formatter, &change)?,
            Item::Lost(lost) => {
                note(&lost.to_string());
                *formatter = self.formatter()?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Prints a rule that a packet met: as text, because nft has no JSON for it.
    fn format_trace(&mut self, traces: &mut Traces, item: TracedItem) -> Result<(), Error> {
        let step = match item {
            TracedItem::Step(step) => step,
            TracedItem::Lost(lost) => {
                note(&format!("steps were lost: {lost}"));
                return Ok(());
            }
            TracedItem::Malformed(malformed) => {
                note(&causes(&malformed));
                return Ok(());
            }
            _ => return Ok(()),
        };
        let step = step.view();
        let Traces { nft, rules, .. } = traces;
        let is_known = match (&*rules, step.rule()) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(rules), Some(_)) => rules.generation() == Some(nft.generation()?),
        };
        if !is_known {
            *rules = Some(nft.snapshot_once(Scope::all())?);
        }
        let Some(rules) = rules else {
            return Ok(());
        };
        for line in format_trace(rules, &step, &self.options) {
            writeln!(self.out, "{}", Printable(&line))?;
        }
        Ok(())
    }

    fn formatter(&self) -> Result<EventFormatter, Error> {
        let mut nft = Connection::open_if_loaded()?;
        Ok(EventFormatter::new(&mut nft, self.options.clone())?)
    }

    fn print_change(
        &mut self,
        watched: &EventFilter,
        formatter: &mut EventFormatter,
        change: &Change,
    ) -> Result<(), Error> {
        let mut formatted = formatter.format(change);
        for (event, formatted) in change.events().zip(&mut formatted) {
            // For a deleted rule, nft prints only its handle.
            if let (Formatted::Line(line), Ok(EventObject::Rule(_))) =
                (&mut *formatted, event.object())
                && event.is_deletion()
            {
                line.body.clear();
            }
            if watched.admits(&event)
                && let Some(line) = line(&event, formatted, self.args.format.handles, &self.sets)
            {
                writeln!(self.out, "{}", Printable(&line))?;
            }
        }
        if watched.is_all() {
            let name = change.thread_name().map(ToString::to_string);
            writeln!(
                self.out,
                "# new generation {} by process {} ({})",
                change.generation(),
                change.thread_id().unwrap_or_default(),
                Printable(&name.unwrap_or_default()),
            )?;
        }
        Ok(())
    }

    fn print_change_json(
        &mut self,
        watched: &EventFilter,
        formatter: &mut EventFormatter,
        change: &Change,
    ) -> Result<(), Error> {
        let formatted = formatter.format_json(change);
        for (event, formatted) in change.events().zip(formatted) {
            match formatted {
                Formatted::Line(line) if watched.admits(&event) => writeln!(self.out, "{line}")?,
                Formatted::Inexpressible if watched.admits(&event) => say(&format!("# {event}")),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Waits until one of the sockets can be read.
pub(crate) fn wait<'f>(sockets: impl Iterator<Item = BorrowedFd<'f>>) -> Result<(), Error> {
    let mut sockets: Vec<_> = sockets
        .map(|socket| PollFd::new(socket, PollFlags::POLLIN))
        .collect();
    match poll(&mut sockets, PollTimeout::NONE) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(Error::Other(format!("cannot wait: {error}"))),
    }
}

/// Receives changes and prints them in nft's language.
pub(crate) struct Changes {
    pub(crate) monitor: Monitor,
    pub(crate) formatter: EventFormatter,
}

/// Receives the steps of traced packets, and looks up the rules that they meet.
struct Traces {
    tracer: Tracer,
    nft: Connection,
    /// Read when the first packet is reported.
    rules: Option<Snapshot>,
}
