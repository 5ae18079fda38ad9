//! Compiles stateful statements (counters, limits, quotas …) of rules, elements and objects to the kernel's
//! expressions.

use chainwright::nft::expr::{
    Connlimit, ConnlimitFlags, Counter, Decoded, Last, Limit, LimitFlags, LimitType, Log, LogFlags,
    LogLevel, Quota, QuotaFlags, Synproxy, SynproxyFlags,
};

use super::syntax::Statement;
use super::units;

/// Default burst of a packet rate, in packets.
const BURST: u32 = 5;

/// Returns the stateful expression of a statement; `None` for any other statement.
pub(super) fn instruction(statement: &Statement) -> Option<Decoded<'static>> {
    Some(match statement {
        // nft does not send a value of zero.
        Statement::Counter { packets, bytes } => Decoded::Counter(Counter {
            packets: Some(*packets).filter(|count| *count > 0),
            bytes: Some(*bytes).filter(|count| *count > 0),
            ..Counter::default()
        }),
        Statement::Limit {
            rate,
            unit,
            burst,
            bytes,
            over,
        } => {
            let burst = match (*burst, bytes) {
                (0, false) => BURST,
                (burst, _) => burst,
            };
            Decoded::Limit(Limit {
                limit_type: Some(match bytes {
                    true => LimitType::BYTES,
                    false => LimitType::PACKETS,
                }),
                flags: Some(match over {
                    true => LimitFlags::INV,
                    false => LimitFlags::empty(),
                }),
                burst: (burst > 0).then_some(burst),
                ..Limit::packets(*rate, units::seconds(unit)?, burst)
            })
        }
        Statement::Quota { bytes, used, over } => Decoded::Quota(Quota {
            bytes: Some(*bytes),
            consumed: Some(*used),
            flags: Some(match over {
                true => QuotaFlags::INV,
                false => QuotaFlags::empty(),
            }),
            ..Quota::default()
        }),
        Statement::Connections { count, over } => Decoded::Connlimit(Connlimit {
            count: Some(*count),
            flags: Some(match over {
                true => ConnlimitFlags::INV,
                false => ConnlimitFlags::empty(),
            }),
            ..Connlimit::default()
        }),
        Statement::Last(ago) => Decoded::Last(match ago {
            Some(ago) => Last::ago(*ago),
            None => Last::never(),
        }),
        Statement::Log {
            prefix,
            group,
            snaplen,
            queue_threshold,
            level,
            flags,
        } => Decoded::Log(Log {
            prefix: prefix.clone().map(Into::into),
            group: *group,
            snaplen: *snaplen,
            queue_threshold: *queue_threshold,
            level: level.map(LogLevel),
            flags: (*flags != 0).then(|| LogFlags::from_bits_retain(*flags)),
            ..Log::default()
        }),
        Statement::Synproxy {
            mss,
            window_scale,
            timestamp,
            sack_permitted,
        } => {
            let mut flags = SynproxyFlags::empty();
            let all = [
                (mss.is_some(), SynproxyFlags::MSS),
                (window_scale.is_some(), SynproxyFlags::WSCALE),
                (*timestamp, SynproxyFlags::TIMESTAMP),
                (*sack_permitted, SynproxyFlags::SACK_PERM),
            ];
            for (is_set, flag) in all {
                if is_set {
                    flags |= flag;
                }
            }
            Decoded::Synproxy(Synproxy {
                mss: Some(mss.unwrap_or_default()),
                wscale: Some(window_scale.unwrap_or_default()),
                flags: Some(flags),
                ..Synproxy::default()
            })
        }
        _ => return None,
    })
}
