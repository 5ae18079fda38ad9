//! Formats the block of an object as one line.

use std::fmt::{self, Write as _};

use super::chain::are_quotable;
use super::{Options, Printer};
use chainwright::nft::{ChainRef, FlowtableRef, SnapshotSet, StatefulObjectRef, TableRef};

/// Formats the properties of a table: `flags dormant; comment "…"`.
pub(crate) fn table(table: &TableRef<'_>, options: &Options) -> Option<String> {
    line(options, |printer| {
        writeln!(printer.out, "{{")?;
        printer.table_flags(table.flags().unwrap_or_default())?;
        printer.comment(table.comment())?;
        writeln!(printer.out, "}}")
    })
}

/// Formats a chain without its rules.
pub(crate) fn chain(chain: &ChainRef<'_>, options: &Options) -> Option<String> {
    let is_printable = chain.policy().is_none_or(|policy| policy.name().is_some());
    let hook = chain.hook().unwrap_or_default();
    let are_printable = are_quotable(hook.devices.as_ref(), hook.device.as_deref());
    (is_printable && are_printable).then_some(())?;
    line(options, |printer| {
        writeln!(printer.out, "{{")?;
        printer.hook(chain)?;
        printer.comment(chain.comment())?;
        writeln!(printer.out, "}}")
    })
}

/// Formats a set without its elements.
pub(crate) fn set(set: &SnapshotSet<'_>, options: &Options) -> Option<String> {
    line(options, |printer| printer.set(set))
}

pub(crate) fn object(object: &StatefulObjectRef<'_>, options: &Options) -> Option<String> {
    line(options, |printer| printer.object(object))
}

pub(crate) fn flowtable(flowtable: &FlowtableRef<'_>, options: &Options) -> Option<String> {
    let hook = flowtable.hook().unwrap_or_default();
    are_quotable(hook.devices.as_ref(), None).then_some(())?;
    line(options, |printer| printer.flowtable(flowtable))
}

/// Joins the lines inside a block; `None` if nft's language cannot represent one of them.
fn line(
    options: &Options,
    write: impl FnOnce(&mut Printer<'_, &mut String>) -> fmt::Result,
) -> Option<String> {
    let mut block = String::new();
    let mut printer = Printer::new(&mut block, options);
    printer.in_line = true;
    write(&mut printer).ok()?;
    let mut line = String::new();
    let lines = block.lines().filter(|line| !line.is_empty());
    let last = lines.clone().count().checked_sub(1)?;
    for one in lines.skip(1).take(last.saturating_sub(1)) {
        let one = one.trim_matches(['\t', ' ', ';']);
        if one.starts_with('#') {
            return None;
        }
        if !line.is_empty() {
            line.push_str("; ");
        }
        line.push_str(one);
    }
    Some(line)
}
