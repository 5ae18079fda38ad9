//! Decodes stateful expressions of rules, set elements and objects.

use crate::constant::quotable;
use crate::syntax::Statement;
use crate::units;
use chainwright::nft::expr::{self, ConnlimitFlags};
use chainwright::nft::expr::{Decoded, LimitFlags, LimitType, QuotaFlags, SynproxyFlags};

/// Decodes a stateful expression of a rule or an element.
pub(crate) fn stateful_statement(expression: &Decoded<'_>) -> Option<Statement> {
    if !expression.unknown().is_empty() {
        return None;
    }
    Some(match expression {
        Decoded::Counter(counter) => Statement::Counter {
            packets: counter.packets.unwrap_or_default(),
            bytes: counter.bytes.unwrap_or_default(),
        },
        Decoded::Limit(limit) => limit_statement(limit)?,
        Decoded::Quota(quota) => quota_statement(quota),
        Decoded::Connlimit(connlimit) => {
            let flags = connlimit.flags.unwrap_or_default();
            Statement::Connections {
                count: connlimit.count.unwrap_or_default(),
                over: flags.contains(ConnlimitFlags::INV),
            }
        }
        Decoded::Last(last) => {
            let is_set = last.set.unwrap_or_default() != 0;
            Statement::Last(last.msecs.filter(|_| is_set))
        }
        Decoded::Log(log) => Statement::Log {
            prefix: match log.prefix.as_deref() {
                Some(prefix) => Some(quotable(prefix)?.to_owned()),
                None => None,
            },
            group: log.group,
            snaplen: log.snaplen,
            queue_threshold: log.queue_threshold,
            level: log.level.map(|level| level.0),
            flags: log.flags.unwrap_or_default().bits(),
        },
        Decoded::Synproxy(synproxy) => synproxy_statement(synproxy)?,
        _ => return None,
    })
}

pub(crate) fn limit_statement(limit: &expr::Limit) -> Option<Statement> {
    let bytes = match limit.limit_type.unwrap_or_default() {
        LimitType::PACKETS => false,
        LimitType::BYTES => true,
        _ => return None,
    };
    // nft only has names for these units.
    let unit = units::time(limit.unit?)?;
    Some(Statement::Limit {
        rate: limit.rate.unwrap_or_default(),
        unit,
        burst: limit.burst.unwrap_or_default(),
        bytes,
        over: limit.flags.unwrap_or_default().contains(LimitFlags::INV),
    })
}

pub(crate) fn quota_statement(quota: &expr::Quota) -> Statement {
    Statement::Quota {
        bytes: quota.bytes.unwrap_or_default(),
        used: quota.consumed.unwrap_or_default(),
        over: quota.flags.unwrap_or_default().contains(QuotaFlags::INV),
    }
}

pub(crate) fn synproxy_statement(synproxy: &expr::Synproxy) -> Option<Statement> {
    let flags = synproxy.flags.unwrap_or_default();
    let supported = SynproxyFlags::MSS
        | SynproxyFlags::WSCALE
        | SynproxyFlags::TIMESTAMP
        | SynproxyFlags::SACK_PERM;
    supported.contains(flags).then_some(())?;
    let both = flags.intersects(SynproxyFlags::MSS | SynproxyFlags::WSCALE);
    Some(Statement::Synproxy {
        // nft prints both or none.
        mss: both.then_some(synproxy.mss.unwrap_or_default()),
        window_scale: both.then_some(synproxy.wscale.unwrap_or_default()),
        timestamp: flags.contains(SynproxyFlags::TIMESTAMP),
        sack_permitted: flags.contains(SynproxyFlags::SACK_PERM),
    })
}
