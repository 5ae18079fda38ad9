//! Matches that count, measure or are random. The rule alone does not determine their result.

use super::super::field::Field;
use super::super::flow::{Flow, Undetermined};
use super::super::value::Test;
use chainwright::nft::expr::MetaKey;
use chainwright::xt::Match;
use chainwright::xt::matches::connlimit::Connlimit;
use chainwright::xt::matches::cpu::Cpu;
use chainwright::xt::matches::hashlimit::Hashlimit;
use chainwright::xt::matches::limit::Limit;
use chainwright::xt::matches::nfacct::Nfacct;
use chainwright::xt::matches::quota::Quota;
use chainwright::xt::matches::rateest::Rateest;
use chainwright::xt::matches::statistic::{Statistic, StatisticMode};
use chainwright::xt::matches::time::Time;

/// Probability 1 in `statistic`.
const CERTAIN: f64 = (1_u64 << 31) as f64;

/// Asks a question about this moment, in the words of the match.
fn asks(flow: &mut Flow, what: &str, extension: &Match) -> Result<bool, Undetermined> {
    flow.once(format!("{what} of `{}`", super::words(extension)), None)
}

pub(super) fn statistic(flow: &mut Flow, statistic: Statistic) -> Result<bool, Undetermined> {
    let words = super::words(&Match::Statistic(statistic));
    let probability = match statistic.mode {
        StatisticMode::Random { probability } => f64::from(probability) / CERTAIN,
        StatisticMode::Nth { every, .. } => 1.0 / f64::from(every.max(1)),
    };
    let is = flow.once(
        format!("chosen by `{}`", words.replace("! ", "")),
        Some(probability),
    )?;
    Ok(is != statistic.invert)
}

pub(super) fn limit(flow: &mut Flow, limit: &Limit) -> Result<bool, Undetermined> {
    asks(flow, "within the rate", &Match::Limit(*limit))
}

pub(super) fn hashlimit(flow: &mut Flow, hashlimit: &Hashlimit) -> Result<bool, Undetermined> {
    let of = match hashlimit.above {
        true => "above the rate",
        false => "within the rate",
    };
    asks(flow, of, &Match::Hashlimit(hashlimit.clone()))
}

pub(super) fn connlimit(flow: &mut Flow, connlimit: &Connlimit) -> Result<bool, Undetermined> {
    asks(flow, "within the limit", &Match::Connlimit(*connlimit))
}

pub(super) fn quota(flow: &mut Flow, quota: Quota) -> Result<bool, Undetermined> {
    let left = flow.once(
        format!("the quota of {} bytes is not used up", quota.bytes),
        None,
    )?;
    Ok(left != quota.invert)
}

pub(super) fn rateest(flow: &mut Flow, rateest: &Rateest) -> Result<bool, Undetermined> {
    asks(
        flow,
        "the estimated rate is that",
        &Match::Rateest(rateest.clone()),
    )
}

/// An accounting object without a quota matches.
pub(super) fn nfacct(flow: &mut Flow, nfacct: &Nfacct) -> Result<bool, Undetermined> {
    flow.once(
        format!(
            "the accounting object {} has no quota or is over it",
            nfacct.name
        ),
        None,
    )
}

pub(super) fn time(flow: &mut Flow, time: &Time) -> Result<bool, Undetermined> {
    flow.always(format!(
        "the time is one of `{}`",
        super::words(&Match::Time(*time))
    ))
}

pub(super) fn cpu(flow: &mut Flow, cpu: &Cpu) -> Result<bool, Undetermined> {
    let is = flow.is(Field::Meta(MetaKey::CPU), Test::Is(cpu.cpu.into()))?;
    Ok(is != cpu.invert)
}
