//! Matches that count, measure or are random. The rule alone does not determine their result.

use super::super::field::Field;
use super::super::path_state::{PathState, Undetermined};
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

/// Queries a condition at this moment, described by the match's text.
fn assume_once(
    path_state: &mut PathState,
    what: &str,
    extension: &Match,
) -> Result<bool, Undetermined> {
    path_state.once(
        format!("{what} of `{}`", super::description(extension)),
        None,
    )
}

pub(super) fn statistic(
    path_state: &mut PathState,
    statistic: Statistic,
) -> Result<bool, Undetermined> {
    let description = super::description(&Match::Statistic(statistic));
    let probability = match statistic.mode {
        StatisticMode::Random { probability } => f64::from(probability) / CERTAIN,
        StatisticMode::Nth { every, .. } => 1.0 / f64::from(every.max(1)),
    };
    let is = path_state.once(
        format!("chosen by `{}`", description.replace("! ", "")),
        Some(probability),
    )?;
    Ok(is != statistic.invert)
}

pub(super) fn limit(path_state: &mut PathState, limit: &Limit) -> Result<bool, Undetermined> {
    assume_once(path_state, "within the rate", &Match::Limit(*limit))
}

pub(super) fn hashlimit(
    path_state: &mut PathState,
    hashlimit: &Hashlimit,
) -> Result<bool, Undetermined> {
    let of = match hashlimit.above {
        true => "above the rate",
        false => "within the rate",
    };
    assume_once(path_state, of, &Match::Hashlimit(hashlimit.clone()))
}

pub(super) fn connlimit(
    path_state: &mut PathState,
    connlimit: &Connlimit,
) -> Result<bool, Undetermined> {
    assume_once(
        path_state,
        "within the limit",
        &Match::Connlimit(*connlimit),
    )
}

pub(super) fn quota(path_state: &mut PathState, quota: Quota) -> Result<bool, Undetermined> {
    let left = path_state.once(
        format!("the quota of {} bytes is not used up", quota.bytes),
        None,
    )?;
    Ok(left != quota.invert)
}

pub(super) fn rateest(path_state: &mut PathState, rateest: &Rateest) -> Result<bool, Undetermined> {
    assume_once(
        path_state,
        "the estimated rate satisfies the comparison",
        &Match::Rateest(rateest.clone()),
    )
}

/// Tests `-m nfacct`: an accounting object without a quota matches.
pub(super) fn nfacct(path_state: &mut PathState, nfacct: &Nfacct) -> Result<bool, Undetermined> {
    path_state.once(
        format!(
            "the accounting object {} has no quota or is over it",
            nfacct.name
        ),
        None,
    )
}

pub(super) fn time(path_state: &mut PathState, time: &Time) -> Result<bool, Undetermined> {
    path_state.always(format!(
        "the time is one of `{}`",
        super::description(&Match::Time(*time))
    ))
}

pub(super) fn cpu(path_state: &mut PathState, cpu: &Cpu) -> Result<bool, Undetermined> {
    let is = path_state.is(Field::Meta(MetaKey::CPU), Test::Is(cpu.cpu.into()))?;
    Ok(is != cpu.invert)
}
