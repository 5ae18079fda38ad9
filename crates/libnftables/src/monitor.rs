//! `monitor`: prints changes, and the rules that packets meet.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use chainwright::internal::message_with_causes;
use chainwright::nft::live::{
    Change, EventObject, Item, Monitor, MonitorOptions, TracedItem, Tracer, TracerOptions,
};
use chainwright::nft::{Connection, Scope, Snapshot};
use chainwright_lang::{EventFilter, EventFormatter, Formatted, Printable, format_trace};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::context::{Context, Error, Out};
use crate::echo::line;

impl Context {
    /// Prints changes, rules that packets meet, or both, until the reader closes the output.
    pub(crate) fn monitor(&self, watched: EventFilter, out: &mut Out<'_>) -> Result<(), Error> {
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
        while out.0.has_reader() {
            let mut has_received = false;
            if let Some(changes) = &mut changes
                && let Some(item) = changes.monitor.try_receive()?
            {
                has_received = true;
                self.print_item(&watched, changes, item, out)?;
            }
            if let Some(traces) = &mut traces
                && let Some(item) = traces.tracer.try_receive()?
            {
                has_received = true;
                self.format_trace(traces, item, out)?;
            }
            match has_received {
                true => out.flush()?,
                false => {
                    let changes = changes.as_ref().map(|changes| changes.monitor.as_fd());
                    let traces = traces.as_ref().map(|traces| traces.tracer.as_fd());
                    wait(changes.into_iter().chain(traces)).map_err(Error::Wait)?;
                }
            }
        }
        Ok(())
    }

    /// Prints a change.
    fn print_item(
        &self,
        watched: &EventFilter,
        changes: &mut Changes,
        item: Item,
        out: &mut Out<'_>,
    ) -> Result<(), Error> {
        let formatter = &mut changes.formatter;
        match item {
            Item::Change(change) if self.json || watched.is_json() => {
                self.print_change_json(watched, formatter, &change, out)?;
            }
            Item::Change(change) => self.print_change(watched, formatter, &change, out)?,
            Item::Lost(lost) => {
                out.0.note(&lost.to_string());
                *formatter = self.formatter()?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Prints a rule that a packet met: as text, because nft has no JSON for it.
    fn format_trace(
        &self,
        traces: &mut Traces,
        item: TracedItem,
        out: &mut Out<'_>,
    ) -> Result<(), Error> {
        let step = match item {
            TracedItem::Step(step) => step,
            TracedItem::Lost(lost) => {
                out.0.note(&format!("steps were lost: {lost}"));
                return Ok(());
            }
            TracedItem::Malformed(malformed) => {
                out.0.note(&message_with_causes(&malformed));
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
            writeln!(out, "{}", Printable(&line))?;
        }
        Ok(())
    }

    fn formatter(&self) -> Result<EventFormatter, Error> {
        let mut nft = Connection::open_if_loaded()?;
        Ok(EventFormatter::new(&mut nft, self.options.clone())?)
    }

    fn print_change(
        &self,
        watched: &EventFilter,
        formatter: &mut EventFormatter,
        change: &Change,
        out: &mut Out<'_>,
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
                && let Some(line) =
                    line(&event, formatted, self.options.handles, &self.describe_rule)
            {
                writeln!(out, "{}", Printable(&line))?;
            }
        }
        if watched.is_all() {
            let name = change.thread_name().map(ToString::to_string);
            writeln!(
                out,
                "# new generation {} by process {} ({})",
                change.generation(),
                change.thread_id().unwrap_or_default(),
                Printable(&name.unwrap_or_default()),
            )?;
        }
        Ok(())
    }

    fn print_change_json(
        &self,
        watched: &EventFilter,
        formatter: &mut EventFormatter,
        change: &Change,
        out: &mut Out<'_>,
    ) -> Result<(), Error> {
        let formatted = formatter.format_json(change);
        for (event, formatted) in change.events().zip(formatted) {
            match formatted {
                Formatted::Line(line) if watched.admits(&event) => writeln!(out, "{line}")?,
                Formatted::Inexpressible if watched.admits(&event) => {
                    out.0.note(&format!("not expressible in JSON: {event}"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Waits until one of the sockets can be read.
///
/// # Errors
/// That of poll(2).
pub fn wait<'f>(sockets: impl Iterator<Item = BorrowedFd<'f>>) -> io::Result<()> {
    let mut sockets: Vec<_> = sockets
        .map(|socket| PollFd::new(socket, PollFlags::POLLIN))
        .collect();
    match poll(&mut sockets, PollTimeout::NONE) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Receives changes and prints them in nft's language.
#[derive(Debug)]
pub struct Changes {
    /// Receives them.
    pub monitor: Monitor,
    /// Knows the ruleset that they change.
    pub formatter: EventFormatter,
}

/// Receives the steps of traced packets, and looks up the rules that they meet.
struct Traces {
    tracer: Tracer,
    nft: Connection,
    /// Read when the first packet is reported.
    rules: Option<Snapshot>,
}
