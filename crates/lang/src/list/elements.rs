//! Formats set elements one by one.

use std::fmt::Write as _;

use bstr::ByteSlice;

use super::Options;
use crate::constant::escaped;
use crate::print::Printer;
use crate::read::set::SetReader;
use crate::syntax::Element;
use chainwright::nft::{ElementRef, SetFlags, SetRef, SnapshotSet};

/// Returns the elements of a set in nft's language and order, with ranges and prefixes as one element each:
/// `10.0.0.0/8 . 80-90 comment "x"`, `"eth0" : jump web`.
///
/// The set's data types determine how values are printed; they are nft's types, stored in the kernel. An element that
/// nft's language cannot represent is a comment with its bytes: `# key 0x…`.
pub fn elements<'s>(
    set: SnapshotSet<'s>,
    options: &'s Options,
) -> Box<dyn Iterator<Item = String> + 's> {
    let reader = SetReader::named(&set, options.nft_version);
    let each = reader.each().into_iter();
    Box::new(each.map(move |(element, read)| line(&element, read.as_ref(), options)))
}

/// Formats one kernel element of a set. A range in an interval set has two elements: one with its first value, one
/// with the value after its last: `from 10.0.0.0`, `before 11.0.0.0`.
#[must_use]
pub fn element(set: &SetRef<'_>, element: &ElementRef<'_>, options: &Options) -> String {
    let flags = set.flags().unwrap_or_default();
    let read = SetReader::of_view(set, options.nft_version).one(element);
    let line = line(element, read.as_ref(), options);
    let is_bound = flags.contains(SetFlags::INTERVAL) && !flags.contains(SetFlags::CONCAT);
    match (
        is_bound && !element.is_catch_all(),
        element.is_interval_end(),
    ) {
        (true, true) => format!("before {line}"),
        (true, false) => format!("from {line}"),
        (false, _) => line,
    }
}

fn line(element: &ElementRef<'_>, read: Option<&Element>, options: &Options) -> String {
    let mut line = String::new();
    let mut printer = Printer::new(&mut line, options);
    printer.in_line = true;
    if read.is_some_and(|read| printer.element(read).is_ok()) {
        return line;
    }
    // Writing to a string does not fail.
    let mut text = String::from("# key ");
    let hex = |text: &mut String, bytes: &[u8]| {
        text.push_str("0x");
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
    };
    match element.key_bytes() {
        Some(key) => hex(&mut text, key),
        None => text.push('*'),
    }
    if let Some(end) = element.key_end_bytes() {
        text.push('-');
        hex(&mut text, end);
    }
    if let Some(data) = element.data() {
        let _ = write!(
            text,
            " : {}",
            escaped(format!("{data:?}").as_bytes().as_bstr())
        );
    }
    if let Some(object) = element.object() {
        let _ = write!(text, " : {}", escaped(object));
    }
    if let Some(comment) = element.comment() {
        let _ = write!(text, " comment {}", escaped(comment));
    }
    text
}
