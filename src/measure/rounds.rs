//! Alternating rounds.

use std::cmp::Ordering;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::time::{ClockId, clock_gettime};

/// What one contender needed: medians over the rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The contender's name.
    pub name: String,
    /// CPU time of the thread, in user space and in the kernel, with that of programs that it ran.
    pub cpu: Duration,
    /// The CPU time that 99 of 100 rounds did not exceed.
    pub cpu_p99: Duration,
    /// Time on the clock.
    pub wall: Duration,
    /// Time on the clock that 99 of 100 rounds did not exceed.
    pub wall_p99: Duration,
    /// The median over the rounds of this contender's CPU time as a multiple of the first
    /// contender's in the same round. The first contender is the floor; its ratio is 1.
    pub ratio: f64,
}

/// A contender: a name, and what it does in each round.
pub type Contender<'a, E> = (&'a str, &'a mut dyn FnMut() -> Result<(), E>);

/// Runs the contenders in turn, round by round, and gives the medians. The first round of each
/// warms up and does not count. The order alternates from round to round, so that none always
/// runs in another's wake.
///
/// # Errors
/// The first error of a contender.
pub fn alternate<E>(
    rounds: usize,
    contenders: &mut [Contender<'_, E>],
) -> Result<Vec<Measured>, E> {
    alternate_prepared(rounds, &mut || Ok(()), contenders)
}

/// As [`alternate`], with a preparation before each turn of each contender that does not count.
///
/// # Errors
/// The first error of a contender or of a preparation.
pub fn alternate_prepared<E>(
    rounds: usize,
    prepare: &mut dyn FnMut() -> Result<(), E>,
    contenders: &mut [Contender<'_, E>],
) -> Result<Vec<Measured>, E> {
    let mut cpu = vec![Vec::with_capacity(rounds); contenders.len()];
    let mut wall = cpu.clone();
    for round in 0..=rounds {
        for turn in 0..contenders.len() {
            let index = if round % 2 == 0 {
                turn
            } else {
                contenders.len() - 1 - turn
            };
            prepare()?;
            let (clock, started) = (cpu_time(), Instant::now());
            contenders[index].1()?;
            let (used, passed) = (cpu_time().saturating_sub(clock), started.elapsed());
            if round > 0 {
                cpu[index].push(used);
                wall[index].push(passed);
            }
        }
    }
    let ratios = |index: usize| {
        let pairs = cpu[index].iter().zip(&cpu[0]);
        let ratios = pairs.map(|(own, floor)| own.as_secs_f64() / floor.as_secs_f64().max(1e-9));
        median(ratios.collect(), f64::total_cmp).unwrap_or(f64::NAN)
    };
    Ok(contenders
        .iter()
        .enumerate()
        .map(|(index, (name, _))| Measured {
            name: (*name).to_owned(),
            cpu: median(cpu[index].clone(), Ord::cmp).unwrap_or_default(),
            cpu_p99: percentile(cpu[index].clone(), 99, Ord::cmp).unwrap_or_default(),
            wall: median(wall[index].clone(), Ord::cmp).unwrap_or_default(),
            wall_p99: percentile(wall[index].clone(), 99, Ord::cmp).unwrap_or_default(),
            ratio: ratios(index),
        })
        .collect())
}

/// Runs something once, as a multiple of a floor that was measured before: for what takes too long to be
/// run in rounds.
///
/// # Errors
/// What it returns.
pub fn once<E>(
    name: &str,
    floor: &Measured,
    work: impl FnOnce() -> Result<(), E>,
) -> Result<Measured, E> {
    let (clock, started) = (cpu_time(), Instant::now());
    work()?;
    let (cpu, wall) = (cpu_time().saturating_sub(clock), started.elapsed());
    Ok(Measured {
        name: name.to_owned(),
        cpu,
        cpu_p99: cpu,
        wall,
        wall_p99: wall,
        ratio: cpu.as_secs_f64() / floor.cpu.as_secs_f64().max(1e-9),
    })
}

/// CPU time that the calling thread has used, in user space and in the kernel, and that of the
/// programs that it started and waited for.
fn cpu_time() -> Duration {
    let thread = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .map(Duration::from)
        .unwrap_or_default();
    let children = getrusage(UsageWho::RUSAGE_CHILDREN)
        .map(|usage| [usage.user_time(), usage.system_time()])
        .unwrap_or([TimeVal::zero(); 2]);
    children.iter().fold(thread, |sum, time| {
        sum + Duration::from_micros(time.num_microseconds().unsigned_abs())
    })
}

fn median<T: Copy>(values: Vec<T>, order: impl FnMut(&T, &T) -> Ordering) -> Option<T> {
    percentile(values, 50, order)
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
    fn every_contender_runs_once_a_round_and_once_before() {
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
