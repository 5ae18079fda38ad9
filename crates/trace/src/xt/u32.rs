//! `-m u32`: 32-bit numbers in the packet.

use super::super::field::Field;
use super::super::flow::{Flow, Undetermined};
use super::super::value::{Test, Value};
use chainwright::nft::expr::PayloadBase;
use chainwright::xt::matches::u32::{U32, U32Step, U32Test};

/// Whether all tests hold, or not all if inverted. A read behind the packet's end fails the test.
pub(super) fn u32(flow: &mut Flow, tests: &U32) -> Result<bool, Undetermined> {
    let mut all = true;
    for test in &tests.tests {
        if !is_true(flow, test)? {
            all = false;
            break;
        }
    }
    Ok(all != tests.invert)
}

fn is_true(flow: &mut Flow, test: &U32Test) -> Result<bool, Undetermined> {
    // Base of the following offsets.
    let mut base = 0_u32;
    let Some(mut value) = number_at(flow, test.start)? else {
        return Ok(false);
    };
    for step in &test.steps {
        match *step {
            U32Step::And(mask) => value = value.masked(mask.into(), 0),
            U32Step::Left(by) => {
                let by = by.min(32);
                value = Value::known(0, 32).with_part(by, &value.part(0, 32 - by));
            }
            U32Step::Right(by) => {
                let by = by.min(32);
                value = Value::known(0, 32).with_part(0, &value.part(by, 32 - by));
            }
            U32Step::At(offset) => {
                let Some(moved) = flow.known(&value) else {
                    return Err(Undetermined::unknown(
                        "u32 reads at an unknown offset from the packet",
                    ));
                };
                let moved = base.checked_add(moved as u32);
                let Some((moved, place)) =
                    moved.and_then(|moved| Some((moved, moved.checked_add(offset)?)))
                else {
                    return Ok(false);
                };
                base = moved;
                match number_at(flow, place)? {
                    Some(number) => value = number,
                    None => return Ok(false),
                }
            }
        }
    }
    let ranges: Vec<(u128, u128)> = test
        .ranges
        .iter()
        .filter(|range| range.start() <= range.end())
        .map(|range| ((*range.start()).into(), (*range.end()).into()))
        .collect();
    flow.ask(&value, Test::Among(&ranges))
}

/// Returns the number at an offset from the network header; `None` behind the packet's end.
fn number_at(flow: &mut Flow, place: u32) -> Result<Option<Value>, Undetermined> {
    let Some(end) = place.checked_add(4) else {
        return Ok(None);
    };
    let length = Field::Length;
    if flow.is(length, Test::Within(0, u128::from(end) - 1))? {
        return Ok(None);
    }
    let header = flow.network_header();
    if end <= header {
        return flow.header(PayloadBase::NETWORK, place, 4);
    }
    // With options or extension headers, the start of the transport header is unknown.
    match flow.is(Field::HasOptions, Test::Is(0))? {
        true if place >= header => flow.header(PayloadBase::TRANSPORT, place - header, 4),
        _ => Err(Undetermined::unknown(
            "u32 reads after a header of unknown length",
        )),
    }
}
