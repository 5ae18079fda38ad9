//! Alternating rounds.

use std::cmp::Ordering;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::time::{ClockId, clock_gettime};

/// Medians over the rounds of one contender.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The contender's name.
    pub name: String,
    /// CPU time of the thread, in user space and in the kernel, including programs that it ran.
    pub cpu: Duration,
    /// The CPU time that 99 of 100 rounds did not exceed.
    pub cpu_p99: Duration,
    /// Fraction of the CPU time of all rounds that was spent in the kernel, from 0 to 1. Many kernels estimate it
    /// by sampling at clock ticks: if all rounds together take less than some tenths of a second, it means little.
    pub kernel: f64,
    /// Wall-clock time.
    pub wall: Duration,
    /// Wall-clock time that 99 of 100 rounds did not exceed.
    pub wall_p99: Duration,
    /// The median over the rounds of this contender's CPU time as a multiple of the first
    /// contender's in the same round. The first contender is the baseline; its ratio is 1.
    pub ratio: f64,
}

/// A contender: a name, and its work in each round.
pub type Contender<'a, E> = (&'a str, &'a mut dyn FnMut() -> Result<(), E>);

/// The measurements of one contender's rounds.
#[derive(Debug, Clone, Default)]
pub(super) struct Samples {
    cpu: Vec<Duration>,
    wall: Vec<Duration>,
    in_user: Duration,
    in_kernel: Duration,
}

/// Whether a turn counts or warms up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recorded {
    Yes,
    No,
}

impl Recorded {
    /// Records a round unless it is the first one, which warms up.
    pub(super) const fn after_first_round(round: usize) -> Self {
        if round > 0 { Self::Yes } else { Self::No }
    }
}

impl Samples {
    /// Runs and measures a turn.
    pub(super) fn take<T, E>(
        &mut self,
        recorded: Recorded,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let spent = spent();
        let clock = cpu_time();
        let started = Instant::now();
        let done = work()?;
        let (wall, cpu) = (started.elapsed(), cpu_time().saturating_sub(clock));
        if recorded == Recorded::Yes {
            let [user, kernel] = self::spent();
            self.in_user += user.saturating_sub(spent[0]);
            self.in_kernel += kernel.saturating_sub(spent[1]);
            self.cpu.push(cpu);
            self.wall.push(wall);
        }
        Ok(done)
    }

    /// Returns the results with ratios to a baseline, round by round.
    pub(super) fn relative_to(&self, name: &str, baseline: &Self) -> Measured {
        self.measured(name, &self.cpu, &baseline.cpu)
    }

    /// Returns the same with ratios of wall-clock time.
    pub(super) fn relative_to_by_clock(&self, name: &str, baseline: &Self) -> Measured {
        self.measured(name, &self.wall, &baseline.wall)
    }

    fn measured(&self, name: &str, own: &[Duration], baseline: &[Duration]) -> Measured {
        let pairs = own.iter().zip(baseline);
        let ratios = pairs.map(|(own, baseline)| multiple(*own, *baseline));
        let of = |times: &[Duration], percent| {
            percentile(times.to_vec(), percent, Ord::cmp).unwrap_or_default()
        };
        Measured {
            name: name.to_owned(),
            cpu: of(&self.cpu, 50),
            cpu_p99: of(&self.cpu, 99),
            kernel: share(self.in_user, self.in_kernel),
            wall: of(&self.wall, 50),
            wall_p99: of(&self.wall, 99),
            ratio: percentile(ratios.collect(), 50, f64::total_cmp).unwrap_or(f64::NAN),
        }
    }
}

fn multiple(own: Duration, baseline: Duration) -> f64 {
    own.as_secs_f64() / baseline.as_secs_f64().max(1e-9)
}

/// Returns the kernel's fraction of a time.
fn share(user: Duration, kernel: Duration) -> f64 {
    let all = (user + kernel).as_secs_f64();
    if all > 0.0 {
        kernel.as_secs_f64() / all
    } else {
        0.0
    }
}

/// Returns the contender whose turn it is, in an order that alternates from round to round.
pub(super) const fn turn_of(contenders: usize, round: usize, turn: usize) -> usize {
    if round.is_multiple_of(2) {
        turn
    } else {
        contenders - 1 - turn
    }
}

/// Runs the contenders in turn, round by round, and returns the medians. The first round of each warms up and does
/// not count. The order alternates from round to round, so that no contender always runs after the same one.
///
/// # Errors
/// The first error of a contender.
pub fn alternate<E>(
    rounds: usize,
    contenders: &mut [Contender<'_, E>],
) -> Result<Vec<Measured>, E> {
    alternate_prepared(rounds, &mut || Ok(()), contenders)
}

/// Like [`alternate`], with a preparation before each turn that does not count.
///
/// # Errors
/// The first error of a contender or of a preparation.
pub fn alternate_prepared<E>(
    rounds: usize,
    prepare: &mut dyn FnMut() -> Result<(), E>,
    contenders: &mut [Contender<'_, E>],
) -> Result<Vec<Measured>, E> {
    let mut samples = vec![Samples::default(); contenders.len()];
    for round in 0..=rounds {
        let recorded = Recorded::after_first_round(round);
        for turn in 0..contenders.len() {
            let index = turn_of(contenders.len(), round, turn);
            prepare()?;
            samples[index].take(recorded, || contenders[index].1())?;
        }
    }
    let all = contenders.iter().zip(&samples);
    Ok(all
        .map(|((name, _), own)| own.relative_to(name, &samples[0]))
        .collect())
}

/// Runs something once, and measures it as a multiple of an earlier baseline: for operations that take too long for
/// rounds.
///
/// # Errors
/// The error that it returns.
pub fn once<E>(
    name: &str,
    baseline: &Measured,
    work: impl FnOnce() -> Result<(), E>,
) -> Result<Measured, E> {
    let mut samples = Samples::default();
    samples.take(Recorded::Yes, work)?;
    let measured = samples.relative_to(name, &samples);
    Ok(Measured {
        ratio: multiple(measured.cpu, baseline.cpu),
        ..measured
    })
}

/// Returns the CPU time that the calling thread has used, in user space and in the kernel, and that of the programs
/// that it started and waited for.
fn cpu_time() -> Duration {
    let thread = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .map(Duration::from)
        .unwrap_or_default();
    let [user, kernel] = usage(UsageWho::RUSAGE_CHILDREN);
    thread + user + kernel
}

/// Returns the same as accounted by the kernel, in user space and in the kernel.
fn spent() -> [Duration; 2] {
    let [thread, children] = [UsageWho::RUSAGE_THREAD, UsageWho::RUSAGE_CHILDREN].map(usage);
    [thread[0] + children[0], thread[1] + children[1]]
}

fn usage(who: UsageWho) -> [Duration; 2] {
    let times = getrusage(who).map(|usage| [usage.user_time(), usage.system_time()]);
    let times = times.unwrap_or([TimeVal::zero(); 2]);
    times.map(|time| Duration::from_micros(time.num_microseconds().unsigned_abs()))
}

fn percentile<T: Copy>(
    mut values: Vec<T>,
    percent: usize,
    order: impl FnMut(&T, &T) -> Ordering,
) -> Option<T> {
    values.sort_by(order);
    values.get(values.len() * percent / 100).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contenders_run_once_per_round_and_once_to_warm_up() {
        let (mut a, mut b) = (0, 0);
        let measured = alternate::<()>(
            5,
            &mut [
                ("a", &mut || {
                    a += 1;
                    Ok(())
                }),
                ("b", &mut || {
                    b += 1;
                    Ok(())
                }),
            ],
        )
        .unwrap();
        assert_eq!((a, b), (6, 6));
        assert_eq!(measured[0].name, "a");
        assert!((measured[0].ratio - 1.0).abs() < 1e-9);
        assert_eq!(
            alternate(1, &mut [("x", &mut || Err("no"))]).unwrap_err(),
            "no"
        );
    }
}
