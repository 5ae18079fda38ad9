//! Writes stateful statements and times.

use serde::Serialize;

use super::Writer;
use crate::print::statement::bytes;
use crate::syntax::Statement;

/// Stateful statements of an element.
#[derive(Debug, Default, Serialize)]
pub(crate) struct States {
    #[serde(skip_serializing_if = "Option::is_none")]
    counter: Option<Option<Counts>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quota: Option<Quota>,
    #[serde(rename = "ct count", skip_serializing_if = "Option::is_none")]
    connections: Option<Connections>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<Option<Used>>,
}

impl States {
    pub(crate) const fn is_empty(&self) -> bool {
        self.counter.is_none()
            && self.limit.is_none()
            && self.quota.is_none()
            && self.connections.is_none()
            && self.last.is_none()
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Counts {
    packets: i64,
    bytes: i64,
}

impl Counts {
    pub(crate) const fn new(packets: u64, bytes: u64) -> Self {
        Self {
            packets: packets.cast_signed(),
            bytes: bytes.cast_signed(),
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Limit {
    pub(crate) rate: i64,
    pub(crate) burst: u32,
    pub(crate) per: &'static str,
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) inv: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate_unit: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) burst_unit: Option<&'static str>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Quota {
    val: i64,
    val_unit: &'static str,
    #[serde(skip_serializing_if = "is_false")]
    inv: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    used_unit: Option<&'static str>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Connections {
    val: u32,
    #[serde(skip_serializing_if = "is_false")]
    inv: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Used {
    used: u64,
}

/// nft's number for a timeout that never expires: its maximum of milliseconds, in whole seconds.
pub(crate) const NEVER: u64 = u64::MAX / 1000;

/// Converts to whole seconds; at least 1, because 0 means no timeout.
pub(crate) fn seconds(milliseconds: u64) -> u64 {
    match milliseconds {
        1..=999 => 1,
        milliseconds => milliseconds / 1000,
    }
}

/// Converts the timeout of a set.
pub(crate) fn timeout(time: std::time::Duration) -> u64 {
    let milliseconds = u64::try_from(time.as_millis());
    milliseconds.map_or(u64::MAX, seconds)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
pub(crate) const fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Writer<'_> {
    fn counts(self, packets: u64, bytes: u64) -> Option<Counts> {
        (!self.stateless).then(|| Counts::new(packets, bytes))
    }

    /// Selects the stateful statements.
    pub(crate) fn states(self, statements: &[Statement]) -> States {
        let mut states = States::default();
        for statement in statements {
            match *statement {
                Statement::Counter { packets, bytes } => {
                    states.counter = Some(self.counts(packets, bytes));
                }
                Statement::Limit {
                    rate,
                    unit,
                    burst,
                    bytes: of_bytes,
                    over,
                } => {
                    let ((rate, rate_unit), (burst, burst_unit)) = match of_bytes {
                        true => {
                            let (rate, rate_unit) = bytes(rate);
                            let (burst, burst_unit) = bytes(u64::from(burst));
                            let burst = burst as u32; // no more than it was
                            ((rate, Some(rate_unit)), (burst, Some(burst_unit)))
                        }
                        false => ((rate, None), (burst, None)),
                    };
                    states.limit = Some(Limit {
                        rate: rate.cast_signed(),
                        burst,
                        per: unit,
                        inv: over,
                        rate_unit,
                        burst_unit,
                    });
                }
                Statement::Quota {
                    bytes: allowed,
                    used,
                    over,
                } => {
                    let (val, val_unit) = bytes(allowed);
                    let used = (used > 0 && !self.stateless).then(|| bytes(used));
                    states.quota = Some(Quota {
                        val: val.cast_signed(),
                        val_unit,
                        inv: over,
                        used: used.map(|(used, _)| used.cast_signed()),
                        used_unit: used.map(|(_, unit)| unit),
                    });
                }
                Statement::Connections { count, over } => {
                    states.connections = Some(Connections {
                        val: count,
                        inv: over,
                    });
                }
                Statement::Last(ago) => {
                    let used = ago.filter(|_| !self.stateless);
                    states.last = Some(used.map(|used| Used { used }));
                }
                _ => {}
            }
        }
        states
    }
}
