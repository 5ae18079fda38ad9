//! Times in the kernel's units.

use std::fmt;

use super::declare::milliseconds;

milliseconds! {
    /// A time in milliseconds, converted from a [`Duration`](std::time::Duration) by `into()`; views
    /// return a `Duration`.
    pub struct Milliseconds: u64;
}

/// Formats the time as `nft` does: `1d2h30m`.
impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(mut left) = *self;
        for (unit, length) in [
            ("d", 86_400_000),
            ("h", 3_600_000),
            ("m", 60_000),
            ("s", 1000),
        ] {
            if left >= length {
                write!(f, "{}{unit}", left / length)?;
                left %= length;
            }
        }
        if left > 0 || self.0 == 0 {
            write!(f, "{left}ms")?;
        }
        Ok(())
    }
}

milliseconds! {
    /// A time in milliseconds, at most 49 days.
    pub struct Milliseconds32: u32;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_rounded_up_and_never_wrap() {
        for (time, long, short) in [
            (Duration::ZERO, 0, 0),
            (Duration::from_nanos(1), 1, 1),
            (Duration::from_millis(1_500), 1_500, 1_500),
            (Duration::from_micros(1_500), 2, 2),
            (Duration::from_secs(5_000_000), 5_000_000_000, u32::MAX),
            (Duration::MAX, u64::MAX, u32::MAX),
        ] {
            assert_eq!(Milliseconds::from(time), Milliseconds(long));
            assert_eq!(Milliseconds32::from(time), Milliseconds32(short));
        }
        assert_eq!(
            Duration::from(Milliseconds(1_500)),
            Duration::from_millis(1_500)
        );
    }
}
