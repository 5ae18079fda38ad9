//! How often, for how long and how patiently something is tried again.

use std::time::{Duration, Instant};

/// For how long, and how patiently, what others spoilt is tried again: a ruleset that changes while it is
/// read or between reading and committing, a lock that is held, a reply of the kernel's that was lost.
///
/// It is the same everywhere: each handle has one, [`Retry::DEFAULT`] until another is said, and what is done over
/// it keeps to that. `with_retry` gives the handle with another one, `set_retry` sets it, and `retry` tells it: of
/// [`nft::Connection`], [`nft::Pool`], [`nft::live::Mirror`], [`iptables::Iptables`] and [`legacy::Connection`].
/// It ends when one of its limits is reached; the error then says why the last attempt failed.
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
/// [`iptables::Iptables`]: crate::iptables::Iptables::with_retry
/// [`legacy::Connection`]: crate::legacy::Connection::with_retry
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// How many attempts there are at most, the first included. There is always one.
    pub attempts: u32,
    /// How long after the first attempt was begun the last one is. An attempt is not broken off for it:
    /// that which is begun when the time is up is the last. `None` for no such limit.
    pub deadline: Option<Duration>,
    /// How long the pause before the second attempt is. Each is twice as long as the one before it.
    pub pause: Duration,
    /// How long a pause is at most.
    pub longest_pause: Duration,
    /// How many of the attempts may end because a reply of the kernel's was lost, which has other
    /// causes than a rival: what is lost again and again will be lost.
    pub losses: u32,
}

impl Retry {
    /// One attempt.
    pub const ONCE: Self = Self {
        attempts: 1,
        ..Self::DEFAULT
    };

    /// Without end, but for lost replies.
    pub const FOREVER: Self = Self {
        deadline: None,
        ..Self::DEFAULT
    };

    /// Where nothing else is said: for 10 seconds, with pauses of 50 microseconds to 4 milliseconds.
    ///
    /// Against a rival that commits without a pause, one attempt in 200 was seen to go through, when the
    /// rival lost its processor; the unluckiest took half a second.
    pub const DEFAULT: Self = Self {
        attempts: u32::MAX,
        deadline: Some(Duration::from_secs(10)),
        pause: Duration::from_micros(50),
        longest_pause: Duration::from_millis(4),
        losses: 16,
    };

    /// For as long as this.
    #[must_use]
    pub const fn within(time: Duration) -> Self {
        Self {
            deadline: Some(time),
            ..Self::DEFAULT
        }
    }

    /// So many times, however long that takes.
    #[must_use]
    pub const fn times(attempts: u32) -> Self {
        Self {
            attempts,
            deadline: None,
            ..Self::DEFAULT
        }
    }

    /// Begins the first attempt.
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
        attempts.look();
        attempts
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Gives a handle the ways to say how patient it is, and to ask; what its policy is for is said of it. The policy is
/// at the end of this path of fields; if it is also for others, `then` is a method that tells them.
macro_rules! retrying {
    ($(#[$of:meta])+ $Handle:ident, $($field:ident).+ $(, then $then:ident)?) => {
        impl $Handle {
            /// The same with another policy for what is tried again.
            ///
            $(#[$of])+
            #[must_use]
            pub fn with_retry(mut self, retry: $crate::Retry) -> Self {
                self.set_retry(retry);
                self
            }

            /// Sets the policy of [`with_retry`](Self::with_retry).
            pub fn set_retry(&mut self, retry: $crate::Retry) {
                self.$($field).+ = retry;
                $(self.$then();)?
            }

            /// The policy of [`with_retry`](Self::with_retry).
            #[must_use]
            pub const fn retry(&self) -> $crate::Retry {
                self.$($field).+
            }
        }
    };
}
pub(crate) use retrying;

/// Attempts that are being made.
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
    /// How many have been begun.
    #[doc(hidden)]
    pub const fn made(&self) -> u32 {
        self.made
    }

    /// Whether the present one is the last, however it ends.
    pub(crate) const fn is_last(&self) -> bool {
        self.last
    }

    /// How long ago the first was begun.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Begins another, after a pause; `false` if there is none.
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
        self.look();
        true
    }

    /// As [`again`](Self::again), where a reply was lost.
    #[doc(hidden)]
    #[cold]
    pub fn again_after_loss(&mut self) -> bool {
        self.lost += 1;
        self.lost < self.retry.losses && self.again()
    }

    fn look(&mut self) {
        let late = |time| self.start.elapsed() >= time;
        self.last = (self.made >= self.retry.attempts && self.retry.attempts != u32::MAX)
            || self.retry.deadline.is_some_and(late);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many attempts are made, when each fails.
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
    fn as_many_as_are_allowed() {
        assert_eq!(made(Retry::ONCE), 1);
        assert_eq!(made(Retry::times(0)), 1);
        assert_eq!(made(Retry::times(5)), 5);
    }

    #[test]
    fn the_one_that_is_begun_when_the_time_is_up_is_the_last() {
        assert_eq!(made(Retry::within(Duration::ZERO)), 1);
        let time = Duration::from_millis(20);
        let mut attempts = Retry {
            longest_pause: Duration::from_secs(3600),
            pause: Duration::from_secs(3600),
            ..Retry::within(time)
        }
        .begin();
        // The pause is no longer than the time that is left.
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
        pauses.pop(); // behind the last
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
    fn losses_have_a_limit_of_their_own() {
        let mut attempts = Retry { losses: 3, ..SWIFT }.begin();
        for _ in 0..1000 {
            assert!(attempts.again());
        }
        assert!(attempts.again_after_loss());
        assert!(attempts.again_after_loss());
        assert!(!attempts.again_after_loss());
        // But one attempt is one attempt.
        assert!(
            !Retry {
                losses: 3,
                ..Retry::ONCE
            }
            .begin()
            .again_after_loss()
        );
        assert!(!Retry { losses: 0, ..SWIFT }.begin().again_after_loss());
    }
}
