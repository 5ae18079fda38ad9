//! The guard's counters, with a recorder like that of a program.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use chainwright::iptables::Backend;
use chainwright_kube::kubelet::Kubelet;
use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

use super::{flush, ready, repaired, sandbox, short_intervals, start};

/// The count for each name, and the number of recorded values.
static COUNTED: OnceLock<Arc<Mutex<BTreeMap<String, u64>>>> = OnceLock::new();

struct Counting(Arc<Mutex<BTreeMap<String, u64>>>);

struct One {
    name: String,
    all: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl One {
    fn add(&self, value: u64) {
        *self
            .all
            .lock()
            .unwrap()
            .entry(self.name.clone())
            .or_default() += value;
    }
}

impl CounterFn for One {
    fn increment(&self, value: u64) {
        self.add(value);
    }

    fn absolute(&self, _: u64) {
        unreachable!("no counter is absolute");
    }
}

impl HistogramFn for One {
    fn record(&self, seconds: f64) {
        assert!(seconds > 0.0);
        self.add(1);
    }
}

impl Counting {
    fn one(&self, key: &Key) -> Arc<One> {
        Arc::new(One {
            name: key.name().to_owned(),
            all: self.0.clone(),
        })
    }
}

impl Recorder for Counting {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.one(key))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.one(key))
    }
}

/// Other tests of this process count, too: compare the increase.
#[test]
fn repairs_are_counted() {
    let all = COUNTED.get_or_init(|| {
        let all = Arc::default();
        metrics::set_global_recorder(Counting(Arc::clone(&all))).unwrap();
        all
    });
    let sandbox = sandbox();
    let (running, events) = start(
        &sandbox,
        Kubelet::new().declared(),
        Backend::Nft,
        short_intervals(),
    );
    ready(&events);
    let value = |name: &str| all.lock().unwrap().get(name).copied().unwrap_or_default();
    let names = [
        "chainwright_guard_repairs_total",
        "chainwright_guard_vanished_total",
        "chainwright_guard_repair_seconds",
    ];
    let before = names.map(value);
    flush(&sandbox, "flusher", "filter");
    repaired(&events);
    running.stop();
    let after = names.map(value);
    let added: Vec<_> = std::iter::zip(before, after).map(|(b, a)| a - b).collect();
    assert!(added[0] >= 1 && added[1] >= 3 && added[2] >= 1, "{added:?}");
}
