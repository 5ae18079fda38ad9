//! `-m u32`: 32-bit numbers in the packet.

use super::super::field::Field;
use super::super::path_state::{PathState, Undetermined};
use super::super::value::{Test, Value};
use chainwright::nft::expr::PayloadBase;
use chainwright::xt::matches::u32::{U32, U32Step, U32Test};

/// Returns whether all tests hold, or not all if inverted. A read beyond the packet's end fails the
/// test.
pub(super) fn u32(path_state: &mut PathState, tests: &U32) -> Result<bool, Undetermined> {
    let mut all = true;
    for test in &tests.tests {
        if !is_true(path_state, test)? {
            all = false;
            break;
        }
    }
    Ok(all != tests.invert)
}

fn is_true(path_state: &mut PathState, test: &U32Test) -> Result<bool, Undetermined> {
    // Base of the following offsets.
    let mut base = 0_u32;
    let Some(mut value) = number_at(path_state, test.start)? else {
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
                let Some(moved) = path_state.known(&value) else {
                    return Err(Undetermined::unknown(
                        "u32 reads at an unknown offset from the packet",
                    ));
                };
                let moved = base.checked_add(moved as u32);
                let Some((moved, position)) =
                    moved.and_then(|moved| Some((moved, moved.checked_add(offset)?)))
                else {
                    return Ok(false);
                };
                base = moved;
                match number_at(path_state, position)? {
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
    path_state.test_value(&value, Test::Among(&ranges))
}

/// Returns the number at an offset from the network header; `None` beyond the packet's end.
fn number_at(path_state: &mut PathState, position: u32) -> Result<Option<Value>, Undetermined> {
    let Some(end) = position.checked_add(4) else {
        return Ok(None);
    };
    let length = Field::Length;
    if path_state.is(length, Test::Within(0, u128::from(end) - 1))? {
        return Ok(None);
    }
    let header = path_state.network_header();
    if end <= header {
        return path_state.header(PayloadBase::NETWORK, position, 4);
    }
    // With options or extension headers, the start of the transport header is unknown.
    match path_state.is(Field::HasOptions, Test::Is(0))? {
        true if position >= header => {
            path_state.header(PayloadBase::TRANSPORT, position - header, 4)
        }
        _ => Err(Undetermined::unknown(
            "u32 reads after a header of unknown length",
        )),
    }
}
