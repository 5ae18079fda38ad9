//! Parses flowtables.

use super::error::Diagnostic;
use super::parser::{Ending, Parser};
use super::script::InTable;
use super::tree::{Command, Object, Verb};

use crate::syntax::Span;
use chainwright::nft::{Devices, Family, Flowtable, FlowtableFlags};

impl Parser<'_> {
    /// Parses a flowtable, after the keyword.
    pub(crate) fn flowtable(
        &mut self,
        verb: Verb,
        at: &InTable,
        start: Span,
    ) -> Result<Command, Diagnostic> {
        let name = self.name("a flowtable")?;
        let span = self.since(start);
        let mut flags = FlowtableFlags::default();
        let mut priority = None;
        let mut devices = None;
        if self.at_sign("{") {
            self.block(|this| this.flowtable_entry(&mut priority, &mut devices, &mut flags))?;
        }
        let mut flowtable = match (priority, devices) {
            (None, None) => Flowtable::named(at.family, at.table.clone(), name),
            // Without devices, the flowtable itself is deleted.
            (_, None) if matches!(verb, Verb::Delete | Verb::Destroy) => {
                Flowtable::named(at.family, at.table.clone(), name)
            }
            (priority, devices) => {
                let (priority, devices) = (priority.unwrap_or(0), devices.unwrap_or_default());
                Flowtable::new(at.family, at.table.clone(), name, priority, devices)
            }
        };
        if !flags.is_empty() {
            flowtable.flags = Some(flags);
        }
        Ok(Command {
            verb,
            object: Object::Flowtable(flowtable),
            span,
        })
    }

    fn flowtable_entry(
        &mut self,
        priority: &mut Option<i32>,
        devices: &mut Option<Devices<'static>>,
        flags: &mut FlowtableFlags,
    ) -> Result<Ending, Diagnostic> {
        const ENTRIES: [&str; 4] = ["hook", "devices", "counter", "flags"];
        match self.at_any(&ENTRIES) {
            Some("hook") => {
                self.advance();
                self.expect("ingress")?;
                *priority = Some(self.priority(Family::NETDEV, "ingress")?);
            }
            Some("devices") => *devices = Some(self.devices()?),
            Some("counter") => {
                self.advance();
                *flags |= FlowtableFlags::COUNTER;
                return Ok(Ending::Any);
            }
            Some(_) => {
                self.advance();
                self.expect("offload")?;
                *flags |= FlowtableFlags::HW_OFFLOAD;
            }
            None => return Err(self.no_entry("a flowtable", &ENTRIES)),
        }
        Ok(Ending::Line)
    }
}
