//! Retry policies: how often, for how long and at which intervals to retry.

use std::time::{Duration, Instant};

/// A retry policy: how often, for how long and at which intervals to retry after interference, such as a ruleset that
/// changes during a read or between read and commit, a lock that is held, or a lost reply of the kernel.
///
/// Each of these handles has one policy, initially [`Retry::DEFAULT`], for all its operations:
/// [`nft::Connection`], [`nft::Pool`], [`nft::live::Mirror`], `iptables::Iptables` and `legacy::Connection`.
/// `with_retry` returns the handle with another policy, `set_retry` sets it, and `retry` returns it.
/// Retrying ends when one of the limits is reached; the error is then that of the last attempt.
///
/// ```
/// # use std::time::Duration;
/// use chainwright::Retry;
/// assert_eq!(Retry::ONCE.attempts, 1);
/// let patient = Retry::within(Duration::from_secs(60));
/// let gentle = Retry { longest_pause: Duration::from_millis(100), ..patient };
/// # assert_eq!(gentle.deadline, Some(Duration::from_secs(60)));
/// ```
///
/// [`nft::Connection`]: crate::nft::Connection::with_retry
/// [`nft::Pool`]: crate::nft::Pool::with_retry
/// [`nft::live::Mirror`]: crate::nft::live::Mirror::with_retry
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// The most attempts, including the first. There is always one.
    pub attempts: u32,
    /// The time after the first attempt in which further ones may start. It does not interrupt an attempt: one more
    /// starts when the time is up. `None` for no such limit.
    pub deadline: Option<Duration>,
    /// The pause before the second attempt. Each pause is twice as long as the one before it.
    pub pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// The number of attempts that may fail because a reply of the kernel was lost. Such losses have other causes than
    /// concurrent changes: a reply that is lost repeatedly will be lost again.
    pub losses: u32,
}

impl Retry {
    /// A single attempt.
    pub const ONCE: Self = Self {
        attempts: 1,
        ..Self::DEFAULT
    };

    /// No limit, except on lost replies.
    pub const FOREVER: Self = Self {
        deadline: None,
        ..Self::DEFAULT
    };

    /// The default: 10 seconds, with pauses of 50 microseconds to 4 milliseconds.
    ///
    /// Measured against a rival that commits without a pause, one attempt in 200 succeeded, when the
    /// rival was descheduled; the slowest took half a second.
    pub const DEFAULT: Self = Self {
        attempts: u32::MAX,
        deadline: Some(Duration::from_secs(10)),
        pause: Duration::from_micros(50),
        longest_pause: Duration::from_millis(4),
        losses: 16,
    };

    /// Retries for this long.
    #[must_use]
    pub const fn within(time: Duration) -> Self {
        Self {
            deadline: Some(time),
            ..Self::DEFAULT
        }
    }

    /// Makes up to this many attempts, without a time limit.
    #[must_use]
    pub const fn times(attempts: u32) -> Self {
        Self {
            attempts,
            deadline: None,
            ..Self::DEFAULT
        }
    }

    /// Starts the first attempt.
    #[doc(hidden)]
    pub fn begin(&self) -> Attempts {
        let mut attempts = Attempts {
            retry: *self,
            start: Instant::now(),
            pause: self.pause,
            made: 1,
            lost: 0,
            last: false,
        };
        attempts.update_last();
        attempts
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Implements `with_retry`, `set_retry` and `retry` for a handle; the attributes document its policy. The path
/// of fields leads to the policy; the optional method `then` passes it on to other objects.
macro_rules! impl_retry {
    ($(#[$of:meta])+ $Handle:ident, $($field:ident).+ $(, then $then:ident)?) => {
        impl $Handle {
            /// Returns the handle with another retry policy.
            ///
            $(#[$of])+
            #[must_use]
            pub fn with_retry(mut self, retry: $crate::Retry) -> Self {
                self.set_retry(retry);
                self
            }

            /// Sets the retry policy; see [`with_retry`](Self::with_retry).
            pub fn set_retry(&mut self, retry: $crate::Retry) {
                self.$($field).+ = retry;
                $(self.$then();)?
            }

            /// Returns the retry policy; see [`with_retry`](Self::with_retry).
            #[must_use]
            pub const fn retry(&self) -> $crate::Retry {
                self.$($field).+
            }
        }
    };
}
pub(crate) use impl_retry;

/// The state of a series of attempts.
#[derive(Debug)]
pub struct Attempts {
    retry: Retry,
    start: Instant,
    /// The next pause.
    pause: Duration,
    made: u32,
    lost: u32,
    last: bool,
}

impl Attempts {
    /// Returns the number of attempts started.
    #[doc(hidden)]
    pub const fn made(&self) -> u32 {
        self.made
    }

    /// Returns `true` if the current attempt is the last one.
    pub(crate) const fn is_last(&self) -> bool {
        self.last
    }

    /// Returns the time since the first attempt started.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Starts another attempt after a pause; `false` if the limits allow none.
    #[doc(hidden)]
    #[cold]
    pub fn again(&mut self) -> bool {
        if self.last {
            return false;
        }
        let left = self
            .retry
            .deadline
            .map(|time| time.saturating_sub(self.elapsed()));
        let pause = self.pause.min(self.retry.longest_pause);
        std::thread::sleep(pause.min(left.unwrap_or(pause)));
        self.pause = pause.saturating_mul(2);
        self.made = self.made.saturating_add(1);
        self.update_last();
        true
    }

    /// Like [`again`](Self::again), after a lost reply.
    #[doc(hidden)]
    #[cold]
    pub fn retry_after_loss(&mut self) -> bool {
        self.lost += 1;
        self.lost < self.retry.losses && self.again()
    }

    fn update_last(&mut self) {
        let late = |time| self.start.elapsed() >= time;
        self.last = (self.made >= self.retry.attempts && self.retry.attempts != u32::MAX)
            || self.retry.deadline.is_some_and(late);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the attempts when each fails.
    fn made(retry: Retry) -> u32 {
        let mut attempts = retry.begin();
        while attempts.again() {}
        assert!(attempts.is_last());
        attempts.made()
    }

    const SWIFT: Retry = Retry {
        pause: Duration::ZERO,
        ..Retry::FOREVER
    };

    #[test]
    fn makes_the_allowed_number_of_attempts() {
        assert_eq!(made(Retry::ONCE), 1);
        assert_eq!(made(Retry::times(0)), 1);
        assert_eq!(made(Retry::times(5)), 5);
    }

    #[test]
    fn no_attempt_starts_after_the_deadline() {
        assert_eq!(made(Retry::within(Duration::ZERO)), 1);
        let time = Duration::from_millis(20);
        let mut attempts = Retry {
            longest_pause: Duration::from_secs(3600),
            pause: Duration::from_secs(3600),
            ..Retry::within(time)
        }
        .begin();
        // The pause is no longer than the remaining time.
        assert!(attempts.again());
        assert!(attempts.elapsed() >= time);
        assert!(attempts.is_last());
        assert!(!attempts.again());
        assert_eq!(attempts.made(), 2);
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let retry = Retry {
            pause: Duration::from_micros(3),
            longest_pause: Duration::from_micros(10),
            ..Retry::times(6)
        };
        let mut attempts = retry.begin();
        let mut pauses = vec![attempts.pause.min(retry.longest_pause)];
        while attempts.again() {
            pauses.push(attempts.pause.min(retry.longest_pause));
        }
        pauses.pop(); // after the last attempt
        assert_eq!(pauses.map_micros(), [3, 6, 10, 10, 10]);
    }

    trait Micros {
        fn map_micros(&self) -> Vec<u128>;
    }

    impl Micros for Vec<Duration> {
        fn map_micros(&self) -> Vec<u128> {
            self.iter().map(Duration::as_micros).collect()
        }
    }

    #[test]
    fn losses_have_a_separate_limit() {
        let mut attempts = Retry { losses: 3, ..SWIFT }.begin();
        for _ in 0..1000 {
            assert!(attempts.again());
        }
        assert!(attempts.retry_after_loss());
        assert!(attempts.retry_after_loss());
        assert!(!attempts.retry_after_loss());
        // A limit of one attempt takes precedence.
        assert!(
            !Retry {
                losses: 3,
                ..Retry::ONCE
            }
            .begin()
            .retry_after_loss()
        );
        assert!(!Retry { losses: 0, ..SWIFT }.begin().retry_after_loss());
    }
}
