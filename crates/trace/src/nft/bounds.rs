//! Expressions with bounds: rates, quotas, connection counts. Only the kernel knows their current state.

use super::{Continuation, Evaluator};
use crate::path_state::Undetermined;
use crate::steps::StateOwner;
use chainwright::nft::expr::{
    Connlimit, ConnlimitFlags, Decoded, ExpressionRef, Limit, LimitFlags, LimitType, Quota,
    QuotaFlags,
};

/// A bound.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    /// Description of the state beyond the bound.
    description: String,
    /// Whether the rule matches beyond the bound instead of below it.
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
            description: format!("the rate of {rate} {what} per {unit} is exceeded"),
            inverted: limit.flags.unwrap_or_default().contains(LimitFlags::INV),
        }
    }

    pub(super) fn quota(quota: &Quota) -> Self {
        let bytes = quota.bytes.unwrap_or_default();
        Self {
            description: format!("the quota of {bytes} bytes is used up"),
            inverted: quota.flags.unwrap_or_default().contains(QuotaFlags::INV),
        }
    }

    pub(super) fn connlimit(connlimit: &Connlimit) -> Self {
        let count = connlimit.count.unwrap_or_default();
        let flags = connlimit.flags.unwrap_or_default();
        Self {
            description: format!("more than {count} connections"),
            inverted: flags.contains(ConnlimitFlags::INV),
        }
    }

    /// Returns the bound of an expression, if it has one.
    pub(super) fn of(expression: &Decoded<'_>) -> Option<Self> {
        match expression {
            Decoded::Limit(limit) => Some(Self::limit(limit)),
            Decoded::Quota(quota) => Some(Self::quota(quota)),
            Decoded::Connlimit(connlimit) => Some(Self::connlimit(connlimit)),
            _ => None,
        }
    }

    /// Adds the name of its owner to the description.
    pub(super) fn with(mut self, whose: impl std::fmt::Display) -> Self {
        self.description = format!("{} {whose}", self.description);
        self
    }
}

impl<'s> Evaluator<'_, 's> {
    /// Evaluates an expression with a bound.
    pub(super) fn bound(
        &mut self,
        expression: &ExpressionRef<'s>,
    ) -> Result<Continuation<'s>, Undetermined> {
        let decoded = expression.decode().ok();
        match decoded.as_ref().and_then(Bound::of) {
            Some(bound) => self.bounded(bound, StateOwner::Rule),
            None => Err(Undetermined::unknown("malformed expression")),
        }
    }

    /// Continues below the bound, or beyond it if it is inverted.
    pub(super) fn bounded(
        &mut self,
        bound: Bound,
        owner: StateOwner,
    ) -> Result<Continuation<'s>, Undetermined> {
        let is_beyond = self.path_state.once(bound.description, None)?;
        self.state_owners.push((owner, Some(is_beyond)));
        Ok(Continuation::on_if(is_beyond == bound.inverted))
    }
}
