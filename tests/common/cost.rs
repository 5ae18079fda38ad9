//! Measures the cost of an operation, and checks that it grows no faster than the input.

use std::time::Duration;

use allocation_counter::measure;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// The cost of an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// CPU time of this thread in user space, without the kernel's.
    pub(crate) time: Duration,
    /// Peak memory in bytes.
    pub(crate) memory: u64,
}

/// Measures the cost of a function.
pub(crate) fn cost(work: impl FnOnce()) -> Cost {
    let used = || {
        let usage = getrusage(UsageWho::RUSAGE_THREAD).unwrap();
        Duration::from_micros(usage.user_time().num_microseconds() as u64)
    };
    let before = used();
    let memory = measure(work).bytes_max;
    Cost {
        time: used() - before,
        memory,
    }
}

/// The shortest time, because other programs use this machine; the memory of the first.
pub(crate) fn least(costs: &[Cost]) -> Cost {
    Cost {
        time: costs.iter().map(|cost| cost.time).min().unwrap(),
        memory: costs[0].memory,
    }
}

/// Checks that a fourfold input costs at most seven times as much.
#[track_caller]
pub(crate) fn assert_grows_with_its_size(what: &str, once: Cost, four_times: Cost) {
    assert_time_grows_with_its_size(what, once, four_times);
    let memory = once.memory;
    assert!(
        four_times.memory < 7 * memory.max(1 << 20),
        "{what}: {memory} bytes, then {} for four times as much",
        four_times.memory
    );
}

/// The same for the time only.
#[track_caller]
pub(crate) fn assert_time_grows_with_its_size(what: &str, once: Cost, four_times: Cost) {
    let floor = Duration::from_millis(20);
    assert!(
        four_times.time < 7 * once.time.max(floor),
        "{what}: {:?}, then {:?} for four times as much",
        once.time,
        four_times.time
    );
}
