//! The numbers of ports.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Allocates the numbers of ports.
#[derive(Debug, Default)]
pub(super) struct IdAllocator {
    /// Numbers that nothing in the kernel uses any more, and since when, in the order in which they were given up.
    pub(super) free: VecDeque<(Option<Instant>, u32)>,
    /// Numbers that no port uses any more, but elements in the kernel do until the next commit.
    pub(super) released: Vec<u32>,
    pub(super) next: u32,
}

impl IdAllocator {
    /// Upper bound: elements with numbers from here on were written by other programs, as a group's number is twice its
    /// port's.
    pub(super) const END: u32 = 1 << 30;
    /// The time for which a number stays unused, because packets in flight may have looked it up.
    pub(super) const QUARANTINE: Duration = Duration::from_secs(1);

    pub(super) fn take(&mut self) -> u32 {
        if let Some(&(since, id)) = self.free.front()
            && !Self::is_quarantined(since)
        {
            self.free.pop_front();
            return id;
        }
        self.next += 1;
        self.next - 1
    }

    pub(super) fn is_quarantined(since: Option<Instant>) -> bool {
        since.is_some_and(|since| since.elapsed() < Self::QUARANTINE)
    }

    /// Numbers that packets in flight may have looked up.
    pub(super) fn recent(&self) -> impl Iterator<Item = u32> {
        let quarantined = self
            .free
            .iter()
            .filter(|(since, _)| Self::is_quarantined(*since));
        quarantined
            .map(|(_, id)| *id)
            .chain(self.released.iter().copied())
    }

    /// Records that these numbers are gone from the kernel.
    pub(super) fn free(&mut self, gone: Vec<u32>) {
        let now = Some(Instant::now());
        self.free.extend(gone.into_iter().map(|id| (now, id)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_ids_are_quarantined() {
        let mut ids = IdAllocator::default();
        let id = ids.take();
        ids.released.push(id);
        // The commit takes long.
        std::thread::sleep(IdAllocator::QUARANTINE);
        assert_ne!(ids.take(), id);
        let released = std::mem::take(&mut ids.released);
        ids.free(released);
        assert_ne!(ids.take(), id);
        assert_eq!(ids.recent().collect::<Vec<_>>(), [id]);
        std::thread::sleep(IdAllocator::QUARANTINE);
        assert_eq!(ids.take(), id);
    }
}
