//! Decides when the guard checks and when it backs off, from the times of events, without a clock or a kernel.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Options for the guard's reaction to other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackoffOptions {
    /// A burst ends when nothing has touched guarded chains for this time: then the guard checks again. `systemctl
    /// restart iptables` makes some twenty commits, tens of milliseconds apart.
    pub burst_gap: Duration,
    /// In a burst that does not end, the guard checks after this time anyway.
    pub longest_burst: Duration,
    /// Largest number of repairs within [`period`](Self::period). If one more would be needed, another program keeps
    /// removing what the guard restores: the guard backs off for [`backoff_time`](Self::backoff_time).
    pub repairs: usize,
    /// See [`repairs`](Self::repairs).
    pub period: Duration,
    /// The time for which the guard backs off.
    pub backoff_time: Duration,
    /// The wait before the first retry after a failure. It doubles with each further failure.
    pub retry_interval: Duration,
    /// Longest wait after a failure.
    pub longest_retry: Duration,
}

impl Default for BackoffOptions {
    /// Returns the defaults: a burst ends after 100 milliseconds, with a check after a second at the latest; 30 repairs
    /// a minute, or a minute's rest; retries after 50 milliseconds to 5 seconds.
    fn default() -> Self {
        Self {
            burst_gap: Duration::from_millis(100),
            longest_burst: Duration::from_secs(1),
            repairs: 30,
            period: Duration::from_secs(60),
            backoff_time: Duration::from_secs(60),
            retry_interval: Duration::from_millis(50),
            longest_retry: Duration::from_secs(5),
        }
    }
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is present.
    Complete,
    /// Missing items were restored.
    Repaired,
    /// The check or the repair failed.
    Failed,
    /// Something is missing, and the guard backed off.
    BackedOff,
}

/// Decides when to check, and whether to restore missing items.
///
/// The first check is due at once. A [change](Self::changed) by another program makes a check due at once, too; if that
/// check led to a repair, changes that closely follow are checked when they have stopped.
///
/// ```
/// use std::time::{Duration, Instant};
/// use chainwright_kube::guard::{Outcome, Backoff, BackoffOptions};
///
/// let start = Instant::now();
/// let mut backoff = Backoff::new(BackoffOptions::default(), start);
/// assert!(backoff.is_due(start));
/// backoff.record_check(start, Outcome::Complete);
/// assert_eq!(backoff.deadline(), None);
/// backoff.changed(start + Duration::from_secs(7));
/// assert!(backoff.is_due(start + Duration::from_secs(7)));
/// ```
#[derive(Debug)]
pub struct Backoff {
    options: BackoffOptions,
    /// The time at which the next check is due.
    next_check: Option<Instant>,
    /// Time of the last change, or repair, of a running burst.
    burst: Option<Instant>,
    /// Time of the first change in the burst that was not checked.
    first_unchecked: Option<Instant>,
    /// Times of the repairs that still count.
    repairs: VecDeque<Instant>,
    /// Until when the guard backs off.
    backed_off_until: Option<Instant>,
    failures: u32,
}

impl Backoff {
    /// Creates a backoff whose first check is due at once.
    #[must_use]
    pub const fn new(options: BackoffOptions, now: Instant) -> Self {
        Self {
            options,
            next_check: Some(now),
            burst: None,
            first_unchecked: None,
            repairs: VecDeque::new(),
            backed_off_until: None,
            failures: 0,
        }
    }

    /// Records that another program touched guarded chains, or may have.
    pub fn changed(&mut self, now: Instant) {
        if self.backed_off_until.is_some() {
            return; // a check follows when that ends
        }
        let quiet = self.options.burst_gap;
        match self.burst {
            Some(last) if self.first_unchecked.is_some() || now.duration_since(last) < quiet => {
                self.burst = Some(now);
                let first_unchecked = *self.first_unchecked.get_or_insert(now);
                self.next_check =
                    Some((now + quiet).min(first_unchecked + self.options.longest_burst));
            }
            // After a failure, another program's changes do not make the retry earlier.
            _ if self.failures > 0 => {}
            _ => self.next_check = Some(now),
        }
    }

    /// Returns the time at which the next check is due; `None` if that is not before the next change.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        self.next_check
    }

    /// Returns `true` if a check is due now.
    #[must_use]
    pub fn is_due(&self, now: Instant) -> bool {
        self.next_check.is_some_and(|next_check| next_check <= now)
    }

    /// Returns `true` if missing items may be restored now. If not, the guard must back off: [`Outcome::BackedOff`].
    pub fn may_repair(&mut self, now: Instant) -> bool {
        let within = self.options.period;
        while let Some(first) = self.repairs.front()
            && now.duration_since(*first) >= within
        {
            self.repairs.pop_front();
        }
        self.repairs.len() < self.options.repairs
    }

    /// Returns `true` if a check now would be one at the end of a burst.
    #[must_use]
    pub const fn is_trailing(&self) -> bool {
        self.first_unchecked.is_some()
    }

    /// Records a check and its result.
    pub fn record_check(&mut self, now: Instant, outcome: Outcome) {
        (self.next_check, self.first_unchecked, self.backed_off_until) = (None, None, None);
        match outcome {
            Outcome::Complete => {
                self.failures = 0;
                self.burst = None;
            }
            Outcome::Repaired => {
                self.failures = 0;
                self.burst = Some(now);
                self.repairs.push_back(now);
            }
            Outcome::Failed => {
                self.burst = None;
                self.failures = self.failures.saturating_add(1);
                self.next_check = Some(now + self.pause());
            }
            Outcome::BackedOff => {
                self.burst = None;
                self.repairs.clear();
                let end = now + self.options.backoff_time;
                (self.backed_off_until, self.next_check) = (Some(end), Some(end));
            }
        }
    }

    /// Returns the wait after the failures so far.
    #[must_use]
    pub fn pause(&self) -> Duration {
        let doubled = self.failures.saturating_sub(1).min(31);
        let pause = self.options.retry_interval.saturating_mul(1 << doubled);
        pause.min(self.options.longest_retry)
    }

    /// Returns the options it was created with.
    #[must_use]
    pub const fn options(&self) -> &BackoffOptions {
        &self.options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: BackoffOptions = BackoffOptions {
        burst_gap: ms(100),
        longest_burst: ms(1000),
        repairs: 4,
        period: ms(60_000),
        backoff_time: ms(30_000),
        retry_interval: ms(50),
        longest_retry: ms(300),
    };

    const fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    /// A simulated node with one guarded item.
    struct Node {
        start: Instant,
        backoff: Backoff,
        is_complete: bool,
        /// The checks made, with their times.
        done: Vec<(u64, Outcome)>,
    }

    impl Node {
        fn new() -> Self {
            let start = Instant::now();
            let mut node = Self {
                start,
                backoff: Backoff::new(OPTIONS, start),
                is_complete: false,
                done: Vec::new(),
            };
            node.run(0);
            node
        }

        fn at(&self, time: u64) -> Instant {
            self.start + ms(time)
        }

        /// Makes all checks that are due by then.
        fn run(&mut self, until: u64) {
            while let Some(due) = self.backoff.deadline()
                && due <= self.at(until)
            {
                assert!(self.backoff.is_due(due));
                let outcome = match (self.is_complete, self.backoff.may_repair(due)) {
                    (true, _) => Outcome::Complete,
                    (false, true) => Outcome::Repaired,
                    (false, false) => Outcome::BackedOff,
                };
                self.is_complete |= outcome == Outcome::Repaired;
                self.backoff.record_check(due, outcome);
                let time = due.duration_since(self.start).as_millis();
                self.done.push((u64::try_from(time).unwrap(), outcome));
            }
        }

        /// Another program changes something, and removes the item.
        fn flush(&mut self, time: u64) {
            self.run(time);
            self.is_complete = false;
            self.backoff.changed(self.at(time));
            self.run(time);
        }
    }

    #[test]
    fn a_single_flush_is_repaired_immediately() {
        let mut node = Node::new();
        node.flush(5000);
        node.run(90_000);
        assert_eq!(
            node.done,
            [(0, Outcome::Repaired), (5000, Outcome::Repaired)]
        );
        assert_eq!(node.backoff.deadline(), None);
    }

    #[test]
    fn a_burst_is_repaired_at_its_beginning_and_at_its_end() {
        let mut node = Node::new();
        for commit in 0..22 {
            node.flush(5000 + 25 * commit);
        }
        node.run(90_000);
        let end = 5000 + 25 * 21 + 100;
        assert_eq!(
            node.done[1..],
            [(5000, Outcome::Repaired), (end, Outcome::Repaired)]
        );
    }

    #[test]
    fn endless_bursts_are_checked_after_a_limit() {
        let mut node = Node::new();
        for commit in 0..250 {
            node.flush(5000 + 10 * commit);
        }
        let times: Vec<_> = node.done[1..].iter().map(|(time, _)| *time).collect();
        // The second change is the first one that is delayed.
        assert_eq!(times, [5000, 6010, 7010]);
    }

    #[test]
    fn harmless_changes_start_no_burst() {
        let mut node = Node::new();
        node.run(1000);
        node.backoff.changed(node.at(5000));
        node.run(5000);
        node.flush(5001);
        assert_eq!(
            node.done[1..],
            [(5000, Outcome::Complete), (5001, Outcome::Repaired)]
        );
    }

    #[test]
    fn backs_off_and_recovers() {
        let mut node = Node::new();
        for time in 1..=5 {
            node.flush(time * 5000);
        }
        use Outcome::{BackedOff, Repaired};
        let outcomes: Vec<_> = node.done.iter().map(|(_, outcome)| *outcome).collect();
        assert_eq!(
            outcomes,
            [Repaired, Repaired, Repaired, Repaired, BackedOff]
        );
        assert_eq!(node.done[4].0, 20_000);
        // Nothing is done until the rest is over.
        node.run(49_999);
        assert_eq!(node.done.len(), 5);
        node.run(50_000);
        assert_eq!(node.done[5], (50_000, Repaired));
    }

    #[test]
    fn old_repairs_do_not_count() {
        let mut node = Node::new();
        for time in 1..=20 {
            node.flush(time * 20_000);
        }
        assert!(
            node.done
                .iter()
                .all(|(_, outcome)| *outcome == Outcome::Repaired)
        );
    }

    #[test]
    fn retry_interval_grows_with_failures() {
        let start = Instant::now();
        let mut backoff = Backoff::new(OPTIONS, start);
        let mut now = start;
        let mut pauses = Vec::new();
        for _ in 0..5 {
            backoff.record_check(now, Outcome::Failed);
            // Changes by others do not make the retry earlier.
            backoff.changed(now);
            let next = backoff.deadline().unwrap();
            pauses.push(next.duration_since(now));
            now = next;
        }
        assert_eq!(pauses, [50, 100, 200, 300, 300].map(ms));
        backoff.record_check(now, Outcome::Complete);
        assert_eq!(backoff.deadline(), None);
        backoff.record_check(now, Outcome::Failed);
        assert_eq!(backoff.deadline(), Some(now + ms(50)));
    }
}
