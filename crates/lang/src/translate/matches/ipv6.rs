//! Matches of IPv6 extension headers.

use super::super::build::{Statement, exists, option, test, word};
use super::super::{Statements, Untranslatable};
use super::{extension, transport::within};
use crate::syntax::Expr;
use chainwright::nft::expr::ExthdrOp;
use chainwright::xt::matches::HeaderOptions;
use chainwright::xt::matches::frag::Frag;
use chainwright::xt::matches::mh::Mh;
use chainwright::xt::matches::rt::Rt;
use chainwright::xt::{Match, Negatable};

fn field(header: &str, name: &str) -> Expr {
    option(ExthdrOp::IPV6, header, name)
}

/// Returns the tests of a header; without any, one that the packet has the header.
fn or_exists(tests: Vec<Statement>, header: &str) -> Vec<Statement> {
    match tests.is_empty() {
        true => vec![exists(ExthdrOp::IPV6, header, true)],
        false => tests,
    }
}

/// Translates a header's length in bytes, which the header has in units of 8 bytes without the first.
fn length(header: &str, length: Negatable<u32>) -> Statements {
    let units = length.value.checked_sub(8).filter(|rest| rest % 8 == 0);
    match units.map(|rest| rest / 8).filter(|units| *units < 256) {
        Some(units) => within(
            field(header, "hdrlength"),
            (units, units),
            255,
            length.invert,
        ),
        None if length.invert => Ok(Vec::new()),
        None => Err(Untranslatable::Never),
    }
}

pub(super) fn options(header: &str, options: &HeaderOptions, one: &Match) -> Statements {
    if !options.options.is_empty() {
        return Err(extension(one));
    }
    let tests = options.length.map(|length| self::length(header, length));
    Ok(or_exists(tests.transpose()?.unwrap_or_default(), header))
}

pub(super) fn frag(frag: &Frag) -> Statements {
    let mut tests = Vec::new();
    if let Some(ids) = frag.ids {
        tests.extend(within(
            field("frag", "id"),
            ids.value,
            u32::MAX,
            ids.invert,
        )?);
    }
    let mut is = |name, value| tests.push(test(field("frag", name), word(value)));
    if frag.reserved {
        // The kernel requires that they are 0.
        is("reserved", 0);
        is("reserved2", 0);
    }
    if frag.first {
        is("frag-off", 0);
    }
    if let Some(more) = frag.more {
        is("more-fragments", u8::from(more));
    }
    Ok(or_exists(tests, "frag"))
}

pub(super) fn rt(rt: &Rt, one: &Match) -> Statements {
    if rt.reserved || !rt.addresses.is_empty() {
        return Err(extension(one));
    }
    let mut tests = Vec::new();
    if let Some(kind) = rt.kind {
        let range = (kind.value, kind.value);
        tests.extend(within(field("rt", "type"), range, 255, kind.invert)?);
    }
    if let Some(left) = rt.segments_left {
        tests.extend(within(
            field("rt", "seg-left"),
            left.value,
            255,
            left.invert,
        )?);
    }
    if let Some(length) = rt.length {
        tests.extend(self::length("rt", length)?);
    }
    Ok(or_exists(tests, "rt"))
}

pub(super) fn mh(mh: Mh) -> Statements {
    match (mh.first, mh.last, mh.invert) {
        (0, u8::MAX, false) => Ok(or_exists(Vec::new(), "mh")),
        (first, last, invert) => within(
            field("mh", "type"),
            (first.into(), last.into()),
            255,
            invert,
        ),
    }
}
