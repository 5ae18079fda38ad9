//! What stays below a bound, or goes beyond it: rates, quotas, numbers of connections. Where each stands the kernel alone
//! knows.

use super::{Machine, Went};
use crate::flow::Open;
use chainwright::nft::expr::{
    Connlimit, ConnlimitFlags, Decoded, ExpressionRef, Limit, LimitFlags, LimitType, Quota,
    QuotaFlags,
};

/// A bound.
pub(super) struct Bound {
    /// What is said of it where the packet is beyond.
    words: String,
    /// Whether the rule goes on beyond it, and not below.
    inverted: bool,
}

impl Bound {
    pub(super) fn limit(limit: &Limit) -> Self {
        let what = match limit.limit_type == Some(LimitType::BYTES) {
            true => "bytes",
            false => "packets",
        };
        let unit = match limit.unit.unwrap_or_default() {
            1 => "second".to_owned(),
            60 => "minute".to_owned(),
            3600 => "hour".to_owned(),
            86400 => "day".to_owned(),
            604_800 => "week".to_owned(),
            other => format!("{other} seconds"),
        };
        let rate = limit.rate.unwrap_or_default();
        Self {
            words: format!("the rate of {rate} {what} a {unit} is exceeded"),
            inverted: limit.flags.unwrap_or_default().contains(LimitFlags::INV),
        }
    }

    pub(super) fn quota(quota: &Quota) -> Self {
        let bytes = quota.bytes.unwrap_or_default();
        Self {
            words: format!("the quota of {bytes} bytes is used up"),
            inverted: quota.flags.unwrap_or_default().contains(QuotaFlags::INV),
        }
    }

    pub(super) fn connlimit(connlimit: &Connlimit) -> Self {
        let count = connlimit.count.unwrap_or_default();
        let flags = connlimit.flags.unwrap_or_default();
        Self {
            words: format!("there are more than {count} connections"),
            inverted: flags.contains(ConnlimitFlags::INV),
        }
    }

    /// That of an expression, if that is one.
    pub(super) fn of(expression: &Decoded<'_>) -> Option<Self> {
        match expression {
            Decoded::Limit(limit) => Some(Self::limit(limit)),
            Decoded::Quota(quota) => Some(Self::quota(quota)),
            Decoded::Connlimit(connlimit) => Some(Self::connlimit(connlimit)),
            _ => None,
        }
    }

    /// The same, of something that is named.
    pub(super) fn with(mut self, whose: impl std::fmt::Display) -> Self {
        self.words = format!("{} {whose}", self.words);
        self
    }
}

impl<'s> Machine<'_, 's> {
    /// An expression that has a bound of its own.
    pub(super) fn bound(&mut self, expression: &ExpressionRef<'s>) -> Result<Went<'s>, Open> {
        let decoded = expression.decode().ok();
        match decoded.as_ref().and_then(Bound::of) {
            Some(bound) => self.bounded(bound),
            None => Err(Open::unknown("an expression is malformed")),
        }
    }

    /// Goes on below a bound, or beyond it if that is turned round.
    pub(super) fn bounded(&mut self, bound: Bound) -> Result<Went<'s>, Open> {
        let is_beyond = self.flow.once(bound.words, None)?;
        Ok(Went::on_if(is_beyond == bound.inverted))
    }
}
