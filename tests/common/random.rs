//! Reproducible pseudo-random numbers.

use std::time::Duration;

/// splitmix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// The same numbers in each run, unless the environment sets another seed. Prints the seed.
    pub(crate) fn new() -> Self {
        let seed = std::env::var("SEED").map_or(1, |seed| seed.parse().unwrap());
        println!("SEED={seed}");
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// A random duration below this one.
    pub(crate) fn within(&mut self, end: Duration) -> Duration {
        let part = (self.next() >> 32) as u32;
        end.mul_f64(f64::from(part) / f64::from(u32::MAX))
    }

    /// True once in this many times on average.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn of<'t, T>(&mut self, all: &'t [T]) -> &'t T {
        &all[self.below(all.len())]
    }

    pub(crate) fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        self.of(all).clone()
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}
