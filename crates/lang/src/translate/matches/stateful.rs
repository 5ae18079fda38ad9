//! Matches that count, or that depend on the time.

use super::super::build::{Statement, any, binary, compared, field, is, meta, span, test, word};
use super::super::{Statements, Untranslatable, prefix_of};
use super::{extension, inexact, network};
use crate::protocols;
use crate::syntax::{Expr, Operator, Relation};
use chainwright::iptables::Rule;
use chainwright::nft::expr::{MetaKey, NumgenType};
use chainwright::xt::matches::connlimit::Connlimit;
use chainwright::xt::matches::hashlimit::{Hashlimit, HashlimitKeys, HashlimitRate};
use chainwright::xt::matches::limit::Limit;
use chainwright::xt::matches::quota::Quota;
use chainwright::xt::matches::statistic::{Statistic, StatisticMode};
use chainwright::xt::matches::time::Time;
use chainwright::xt::{Family, Mask, Match};

const UNITS: [(u64, &str); 4] = [
    (86_400, "day"),
    (3_600, "hour"),
    (60, "minute"),
    (1, "second"),
];

fn unit(seconds: u64) -> Option<&'static str> {
    let unit = UNITS.iter().find(|(length, _)| *length == seconds);
    unit.map(|(_, name)| *name)
}

pub(super) fn limit(limit: Limit, one: &Match) -> Statements {
    let (rate, seconds) = limit.rate();
    // The kernel rejects a burst of 0 in iptables rules, and treats it as 5 in nft rules.
    let unit = unit(seconds.into()).filter(|_| limit.burst != 0);
    Ok(vec![Statement::Limit {
        rate,
        unit: unit.ok_or_else(|| extension(one))?,
        burst: limit.burst,
        over: false,
    }])
}

/// Updates the element of a key, which holds the state of its packets.
fn per_key(
    name: &str,
    mut keys: Vec<Expr>,
    timeout: Option<u64>,
    state: Statement,
) -> Result<Statement, Untranslatable> {
    let name = super::super::name(name.into())?;
    let key = match keys.len() {
        1 => keys.remove(0),
        _ => Expr::Concat(keys),
    };
    Ok(Statement::Meter {
        name,
        key,
        timeout,
        state: Box::new(state),
    })
}

fn masked_address(name: &str, prefix: Option<u8>, family: Family) -> Option<Expr> {
    let address = field(network(family), name);
    let Some(bits) = prefix else {
        return Some(address);
    };
    let mask = Mask::prefix(family, bits)?.address();
    Some(binary(Operator::And, address, word(mask)))
}

pub(super) fn hashlimit(limit: &Hashlimit, rule: &Rule, family: Family, one: &Match) -> Statements {
    if limit.interval.is_some() {
        return Err(inexact(
            one,
            "nft does not measure a rate without limiting it",
        ));
    }
    let HashlimitRate::Packets { period, burst } = limit.rate else {
        return Err(inexact(one, "the kernel's match rounds rates in bytes"));
    };
    let mut keys = Vec::new();
    let protocol = rule.protocol.filter(|protocol| !protocol.invert);
    let ports = match protocol.map(|protocol| protocol.number) {
        Some(6) => Some(&protocols::TCP),
        Some(17) => Some(&protocols::UDP),
        Some(33) => Some(&protocols::DCCP),
        Some(132) => Some(&protocols::SCTP),
        Some(136) => Some(&protocols::UDPLITE),
        _ => None,
    };
    let port = |name| {
        let why = "the ports of a packet need a protocol that has ports";
        let protocol = ports.ok_or_else(|| inexact(one, why))?;
        Ok(field(protocol, name))
    };
    for (flag, is_source, is_port) in [
        (HashlimitKeys::DESTINATION_IP, false, false),
        (HashlimitKeys::DESTINATION_PORT, false, true),
        (HashlimitKeys::SOURCE_IP, true, false),
        (HashlimitKeys::SOURCE_PORT, true, true),
    ] {
        if limit.keys.contains(flag) {
            keys.push(match (is_source, is_port) {
                (false, true) => port("dport")?,
                (true, true) => port("sport")?,
                (true, false) => masked_address("saddr", limit.source_prefix, family)
                    .ok_or_else(|| extension(one))?,
                (false, false) => masked_address("daddr", limit.destination_prefix, family)
                    .ok_or_else(|| extension(one))?,
            });
        }
    }
    // The shortest unit in which the rate is exact, as far as the kernel's period is.
    let mut units = UNITS.iter().map(|(seconds, name)| {
        (
            seconds * 1_000_000 / period,
            seconds * 1_000_000 % period,
            *name,
        )
    });
    let (mut rate, _, mut unit) = units.next().unwrap_or((0, 0, ""));
    for (number, _, name) in units.take_while(|(number, rest, _)| *number > 0 && number >= rest) {
        (rate, unit) = (number, name);
    }
    if rate == 0 {
        return Err(extension(one));
    }
    let burst = u32::try_from(burst).ok().filter(|burst| *burst != 0);
    let state = Statement::Limit {
        rate,
        unit,
        burst: burst.ok_or_else(|| extension(one))?,
        over: limit.above,
    };
    match keys.is_empty() {
        true => Ok(vec![state]),
        // nft has no syntax for a fraction of a second here.
        false => {
            let timeout = u64::from(limit.expire).div_ceil(1000);
            let name = limit.name.to_string();
            Ok(vec![per_key(&name, keys, Some(timeout), state)?])
        }
    }
}

/// The set of a rule has a name that no other rule has: the rule's number in a text, or a hash of a single rule.
pub(super) fn connlimit(limit: &Connlimit, rule: &Rule, number: u32, family: Family) -> Statements {
    let name = if limit.destination { "daddr" } else { "saddr" };
    let mask = limit.mask.address();
    let address = field(network(family), name);
    let state = Statement::Connections {
        count: limit.limit,
        over: !limit.upto,
    };
    let whole = match family {
        Family::Ipv4 => 32,
        Family::Ipv6 => 128,
    };
    let key = match prefix_of(mask) {
        Some(0) => return Ok(vec![state]),
        Some(bits) if bits == whole => address,
        _ => binary(Operator::And, address, word(mask)),
    };
    let name = match number {
        // The hash FNV-1a.
        0 => rule
            .to_string()
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| {
                (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
            }),
        number => number,
    };
    let name = format!("connlimit{name}");
    Ok(vec![per_key(&name, vec![key], None, state)?])
}

/// An nft quota no longer matches when all its bytes are used up.
pub(super) fn quota(quota: Quota, one: &Match) -> Statements {
    let bytes = quota.bytes.checked_add(1).filter(|bytes| *bytes < 1 << 63);
    Ok(vec![Statement::Quota {
        bytes: bytes.ok_or_else(|| inexact(one, "nft's quotas are smaller"))?,
        over: quota.invert,
    }])
}

/// Probability 1.
const CERTAIN: u32 = 1 << 31;

pub(super) fn statistic(statistic: Statistic) -> Statements {
    match statistic.mode {
        StatisticMode::Random { probability } => match (probability == 0, probability >= CERTAIN) {
            (true, _) | (_, true) if (probability == 0) == statistic.invert => Ok(Vec::new()),
            (true, _) | (_, true) => Err(Untranslatable::Never),
            _ => {
                let random = meta(MetaKey::PRANDOM);
                let below = binary(Operator::And, random, word(CERTAIN - 1));
                let relation = match statistic.invert {
                    true => Relation::GreaterOrEqual,
                    false => Relation::Less,
                };
                Ok(vec![compared(below, relation, word(probability))])
            }
        },
        StatisticMode::Nth { every, packet } => {
            let counter = Expr::Numgen {
                kind: NumgenType::INCREMENTAL,
                modulus: every,
                offset: 0,
            };
            Ok(vec![is(counter, statistic.invert, word(packet))])
        }
    }
}

const LAST_SECOND: u32 = 86_399;

/// nft reads times in words in the time zone of the program, so they are numbers here: seconds of UTC.
pub(super) fn time(time: &Time, one: &Match) -> Statements {
    let mut tests = Vec::new();
    if time.monthdays & 0xffff_fffe != 0xffff_fffe {
        return Err(inexact(one, "nft has no days of a month"));
    }
    if time.kernel_time_zone {
        return Err(inexact(one, "nft has no time zone of the kernel"));
    }
    match (time.date_start, time.date_stop) {
        (0, stop) if stop >= i32::MAX.cast_unsigned() => {}
        (start, stop) if start > stop => return Err(Untranslatable::Never),
        (start, stop) => tests.push(test(meta(MetaKey::TIME_NS), span(start, stop))),
    }
    let (start, stop) = (time.daytime_start, time.daytime_stop);
    let is_next_day = start >= stop;
    match (start, stop) {
        (0, stop) if stop >= LAST_SECOND => {}
        (start, stop) if start < stop => {
            tests.push(test(meta(MetaKey::TIME_HOUR), span(start, stop)));
        }
        // All times except those between.
        (start, stop) if start - stop > 1 => {
            tests.push(is(
                meta(MetaKey::TIME_HOUR),
                true,
                span(stop + 1, start - 1),
            ));
        }
        _ => {}
    }
    const ALL_DAYS: u8 = 0xfe;
    if time.weekdays & ALL_DAYS != ALL_DAYS {
        if time.contiguous && is_next_day {
            return Err(inexact(one, "nft compares the day of the packet alone"));
        }
        let days = (1..=7).filter(|day| time.weekdays >> day & 1 != 0);
        let days: Vec<_> = days.map(|day| word(day % 7)).collect();
        match days.is_empty() {
            true => return Err(Untranslatable::Never),
            false => tests.push(test(meta(MetaKey::TIME_DAY), any(days))),
        }
    }
    Ok(tests)
}
