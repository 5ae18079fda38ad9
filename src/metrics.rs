//! Metrics of a ruleset: counters, sizes and totals, as values and in Prometheus' text format.
//!
//! [`Metrics`] collects the samples of a snapshot, and of legacy tables. `docs/metrics.md` describes each metric.
//!
//! ```
//! use chainwright::metrics::Metrics;
//! use chainwright::nft::{Chain, Family, Ruleset, Scope, Table, Transaction};
//!
//! let mut tx = Transaction::new();
//! tx.add(&Table::new(Family::INET, "edge"))?.add(&Chain::new(Family::INET, "edge", "in"))?;
//! let mut metrics = Metrics::default();
//! metrics.add_snapshot(&Ruleset::of(&tx)?.to_snapshot(&Scope::all()), &|_| true);
//! let chains = metrics.samples().find(|sample| sample.metric.name == "chainwright_table_chains");
//! assert_eq!(chains.map(|sample| sample.value), Some(1));
//! let line = "chainwright_table_chains{backend=\"nft\",family=\"inet\",table=\"edge\"} 1\n";
//! assert!(metrics.to_string().contains(line));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use bstr::{BStr, ByteSlice};

use crate::escape::Escaped;
#[cfg(feature = "iptables")]
use crate::legacy;
use crate::nft::expr::{Counter, Decoded, Match};
use crate::nft::stateful::ObjectData;
use crate::nft::{
    ElementFilter, ElementRef, RuleRef, Snapshot, SnapshotChain, SnapshotTable, is_meter,
};

/// The content type of the text format, for HTTP.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum MetricType {
    /// It only increases, unless it is reset or its object is recreated.
    Counter,
    /// It increases and decreases.
    Gauge,
}

impl fmt::Display for MetricType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        })
    }
}

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// Its name, which does not change.
    pub name: &'static str,
    /// Its type.
    pub metric_type: MetricType,
    /// What it measures.
    pub help: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
}

/// The largest number of metrics with the same labels.
const SERIES: usize = 3;

/// Metrics that have the same labels and the same objects.
struct Group {
    labels: &'static [&'static str],
    metrics: &'static [(&'static str, MetricType, &'static str)],
}

macro_rules! groups {
    ($($group:ident $labels:tt { $($kind:ident $name:literal: $help:literal,)* })*) => {
        #[derive(Clone, Copy)]
        enum Of {
            $($group,)*
        }

        const GROUPS: &[Group] = &[
            $(Group {
                labels: &$labels,
                metrics: &[$((concat!("chainwright_", $name), MetricType::$kind, $help),)*],
            },)*
        ];
    };
}

groups! {
    Rules ["backend", "family", "table", "chain", "comment"] {
        Counter "rule_packets_total": "Packets that rules with this comment counted",
        Counter "rule_bytes_total": "Bytes that rules with this comment counted",
    }
    Policies ["backend", "family", "table", "chain", "policy"] {
        Counter "policy_packets_total": "Packets to which a base chain applied its policy",
        Counter "policy_bytes_total": "Bytes of packets to which a base chain applied its policy",
    }
    Counters ["family", "table", "counter"] {
        Counter "counter_packets_total": "Packets that a named counter counted",
        Counter "counter_bytes_total": "Bytes that a named counter counted",
    }
    Quotas ["family", "table", "quota"] {
        Gauge "quota_used_bytes": "Bytes that a named quota counted",
        Gauge "quota_limit_bytes": "Limit of a named quota",
    }
    Sets ["family", "table", "set"] {
        Gauge "set_elements": "Number of elements of a named set or map; a range is one element",
    }
    Sizes ["family", "table", "set"] {
        Gauge "set_max_elements": "Declared maximum number of elements of a named set or map",
    }
    Tables ["backend", "family", "table"] {
        Gauge "table_chains": "Number of chains of a table",
        Gauge "table_rules": "Number of rules of a table",
        Gauge "table_sets": "Number of named sets and maps of a table",
    }
    Generation [] {
        Gauge "nft_generation": "Generation of nf_tables: each transaction increases it",
    }
    Complete [] {
        Gauge "complete": "1 if all selected tables were read, those of nf_tables in one generation, otherwise 0",
    }
    Drift [] {
        Gauge "drift": "1 if the ruleset differs from the file, otherwise 0",
        Gauge "drift_tables": "Number of tables that differ from the file",
    }
}

impl Group {
    fn metrics(&self) -> impl Iterator<Item = Metric> + use<> {
        let labels = self.labels;
        self.metrics
            .iter()
            .map(move |&(name, metric_type, help)| Metric {
                name,
                metric_type,
                help,
                labels,
            })
    }
}

/// Returns all metrics, in the order in which they are printed.
pub fn metrics() -> impl Iterator<Item = Metric> {
    GROUPS.iter().flat_map(Group::metrics)
}

/// The value of a metric for one object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample<'m> {
    /// The metric.
    pub metric: Metric,
    /// The values of its labels, in their order. Control characters, backslashes and bytes that are not UTF-8 are
    /// escaped.
    pub labels: &'m [String],
    /// The value.
    pub value: u64,
}

/// The samples of one group: values by labels.
type Rows = BTreeMap<Vec<String>, [u64; SERIES]>;

/// The samples of a ruleset. `Display` writes Prometheus' text format.
#[derive(Debug, Clone)]
pub struct Metrics {
    groups: [Rows; GROUPS.len()],
}

impl Default for Metrics {
    /// Creates it without samples.
    fn default() -> Self {
        Self {
            groups: std::array::from_fn(|_| Rows::new()),
        }
    }
}

/// Selects rules by their comments.
pub type CommentFilter<'f> = dyn Fn(&BStr) -> bool + 'f;

fn text(name: &[u8]) -> String {
    Escaped(name.as_bstr()).to_string()
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

impl Metrics {
    /// Adds values; values with the same labels are summed.
    fn add<const N: usize>(&mut self, group: Of, labels: Vec<String>, values: [u64; N]) {
        let row = self.groups[group as usize].entry(labels).or_default();
        for (sum, value) in row.iter_mut().zip(values) {
            *sum = sum.saturating_add(value);
        }
    }

    /// Adds a snapshot: its tables, counters, quotas and sets, and rules with a counter whose comment `comments`
    /// accepts. The comment is that of `nft`, otherwise that of iptables' match `comment`. If a rule has several
    /// counters, the last one counts.
    ///
    /// The number of elements is omitted for sets whose elements the snapshot [lacks](Snapshot::lacks_elements).
    pub fn add_snapshot(&mut self, snapshot: &Snapshot, comments: &CommentFilter<'_>) {
        if let Some(generation) = snapshot.generation() {
            let number = generation.number();
            self.add(Of::Generation, Vec::new(), [number.into()]);
        }
        for table in snapshot.tables() {
            self.add_table(&table, comments);
        }
    }

    fn add_table(&mut self, table: &SnapshotTable<'_>, comments: &CommentFilter<'_>) {
        let (family, name) = (
            table.table().family().to_string(),
            text(table.table().name()),
        );
        let labels = |name_of: &[u8]| vec![family.clone(), name.clone(), text(name_of)];
        let [mut chains, mut rules, mut sets] = [0; 3];
        for chain in table.chains() {
            chains += 1;
            rules += number(chain.rules().len());
            self.add_chain(&family, &name, &chain, comments);
        }
        for set in table.sets() {
            let view = set.set();
            // The sets of `meter` are anonymous, but have names.
            if ElementFilter::of(&view) == ElementFilter::ANONYMOUS && !is_meter(&view) {
                continue;
            }
            sets += 1;
            if !set.is_left_out() {
                self.add(Of::Sets, labels(view.name()), [number(set.element_count())]);
            }
            if let Some(size) = view.description().and_then(|description| description.size) {
                self.add(Of::Sizes, labels(view.name()), [size.into()]);
            }
        }
        for object in table.objects() {
            match object.data() {
                Some(ObjectData::Counter(counter)) => {
                    self.add(Of::Counters, labels(object.name()), counts(&counter));
                }
                Some(ObjectData::Quota(quota)) => {
                    let values = [quota.consumed, quota.bytes].map(Option::unwrap_or_default);
                    self.add(Of::Quotas, labels(object.name()), values);
                }
                _ => {}
            }
        }
        let labels = vec!["nft".to_owned(), family, name];
        self.add(Of::Tables, labels, [chains, rules, sets]);
    }

    fn add_chain(
        &mut self,
        family: &str,
        table: &str,
        chain: &SnapshotChain<'_>,
        comments: &CommentFilter<'_>,
    ) {
        let view = chain.chain();
        let labels = |last: String| {
            let [backend, family, table] = ["nft", family, table].map(str::to_owned);
            vec![backend, family, table, text(view.name()), last]
        };
        if let (Some(policy), Some(counters)) = (view.policy(), view.counters()) {
            let values = [counters.packets, counters.bytes].map(Option::unwrap_or_default);
            self.add(Of::Policies, labels(policy.to_string()), values);
        }
        for rule in chain.rules() {
            if let Some(comment) = rule_comment(&rule)
                && comments(comment.as_ref())
                && let Some(counter) = rule_counter(&rule)
            {
                self.add(Of::Rules, labels(text(&comment)), counts(&counter));
            }
        }
    }

    /// Adds a legacy table: the counters of its policies, and of rules whose comment `comments` accepts.
    #[cfg(feature = "iptables")]
    pub fn add_legacy(&mut self, table: &legacy::Table, comments: &CommentFilter<'_>) {
        let family = crate::nft::Family::from(table.family()).to_string();
        let labels = || {
            vec![
                "legacy".to_owned(),
                family.clone(),
                text(table.name().as_ref()),
            ]
        };
        let [mut chains, mut rules] = [0; 2];
        for chain in table.chains() {
            chains += 1;
            rules += number(chain.rule_count());
            let labels = |last: String| {
                let mut labels = labels();
                labels.extend([text(chain.name()), last]);
                labels
            };
            if let Some(builtin) = chain.builtin() {
                let (policy, counters) = (builtin.policy, builtin.counters);
                let policy = policy.name().to_ascii_lowercase();
                let values = [counters.packets, counters.bytes];
                self.add(Of::Policies, labels(policy), values);
            }
            for rule in chain.rules() {
                let mut matches = rule.matches().flatten();
                if let Some(found) = matches.find(|one| one.name() == "comment")
                    && let comment = until_nul(found.data())
                    && comments(comment)
                {
                    let counters = rule.counters();
                    let values = [counters.packets, counters.bytes];
                    self.add(Of::Rules, labels(text(comment)), values);
                }
            }
        }
        self.add(Of::Tables, labels(), [chains, rules, 0]);
    }

    /// Adds the number of tables that differ from a desired ruleset.
    pub fn add_drift(&mut self, different_tables: usize) {
        let different = number(different_tables);
        self.add(Of::Drift, Vec::new(), [different.min(1), different]);
    }

    /// Adds whether everything was read.
    pub fn add_completeness(&mut self, is_complete: bool) {
        self.add(Of::Complete, Vec::new(), [is_complete.into()]);
    }

    /// Iterates over the samples, by metric.
    pub fn samples(&self) -> impl Iterator<Item = Sample<'_>> {
        let groups = GROUPS.iter().zip(&self.groups);
        groups.flat_map(|(group, rows)| {
            let metrics = group.metrics().enumerate();
            metrics.flat_map(|(number, metric)| {
                rows.iter().map(move |(labels, values)| Sample {
                    metric,
                    labels,
                    value: values[number],
                })
            })
        })
    }
}

fn counts(counter: &Counter) -> [u64; 2] {
    [counter.packets, counter.bytes].map(Option::unwrap_or_default)
}

/// Returns the last counter of a rule.
#[doc(hidden)]
#[must_use]
pub fn rule_counter(rule: &RuleRef<'_>) -> Option<Counter> {
    let expressions = rule.expressions()?.flatten();
    let counter = expressions.filter(|one| one.is::<Counter>()).last()?;
    match counter.decode() {
        Ok(Decoded::Counter(counter)) => Some(counter),
        _ => None,
    }
}

/// Returns the last counter of an element.
#[doc(hidden)]
#[must_use]
pub fn element_counter(element: &ElementRef<'_>) -> Option<Counter> {
    let counter = |decoded: Decoded<'_>| match decoded {
        Decoded::Counter(counter) => Some(counter),
        _ => None,
    };
    let one = element.expression();
    let one = one.and_then(|one| counter(one.decode().ok()?));
    let all = element.expressions().into_iter().flatten().flatten();
    let all = all.filter_map(|one| counter(one.decode().ok()?));
    all.last().or(one)
}

/// Returns the comment of a rule: that of `nft`, otherwise that of iptables' match `comment`.
#[doc(hidden)]
#[must_use]
pub fn rule_comment<'a>(rule: &RuleRef<'a>) -> Option<Cow<'a, BStr>> {
    if let Some(comment) = rule.comment() {
        return Some(Cow::Borrowed(comment));
    }
    let expressions = rule.expressions()?.flatten();
    let mut matches = expressions.filter(|one| one.is::<Match<'_>>());
    matches.find_map(|one| match one.decode() {
        Ok(Decoded::Match(one)) if one.name.as_deref() == Some("comment".into()) => {
            Some(Cow::Owned(until_nul(&one.info?).to_owned()))
        }
        _ => None,
    })
}

fn until_nul(text: &[u8]) -> &BStr {
    text.split(|byte| *byte == 0)
        .next()
        .unwrap_or_default()
        .as_bstr()
}

/// A label's value, escaped for the text format.
struct Quoted<'v>(&'v str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for part in self.0.split_inclusive(['\\', '"', '\n']) {
            match part.split_at_checked(part.len() - 1) {
                Some((before, "\\")) => write!(f, "{before}\\\\")?,
                Some((before, "\"")) => write!(f, "{before}\\\"")?,
                Some((before, "\n")) => write!(f, "{before}\\n")?,
                _ => f.write_str(part)?,
            }
        }
        f.write_str("\"")
    }
}

/// Writes Prometheus' text format, version 0.0.4.
impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = "";
        for sample in self.samples() {
            let Metric {
                name,
                metric_type,
                help,
                labels,
            } = sample.metric;
            if name != last {
                writeln!(f, "# HELP {name} {help}\n# TYPE {name} {metric_type}")?;
                last = name;
            }
            f.write_str(name)?;
            let mut before = "{";
            for (label, value) in labels.iter().zip(sample.labels) {
                write!(f, "{before}{label}={}", Quoted(value))?;
                before = ",";
            }
            let after = if labels.is_empty() { "" } else { "}" };
            writeln!(f, "{after} {}", sample.value)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_escaped() {
        for (name, quoted) in [
            (&b"a b"[..], r#""a b""#),
            (b"a\"b\"", r#""a\"b\"""#),
            (b"\\", r#""\\\\""#),
            (b"a\nb", r#""a\\nb""#),
            (b"\xff", r#""\\xff""#),
            ("größe".as_bytes(), r#""größe""#),
            (b"", r#""""#),
        ] {
            assert_eq!(Quoted(&text(name)).to_string(), quoted);
        }
        assert_eq!(Quoted("\n").to_string(), r#""\n""#);
    }

    #[test]
    fn values_with_equal_labels_are_summed() {
        let mut metrics = Metrics::default();
        let labels = || ["ip", "t", "c"].map(str::to_owned).to_vec();
        metrics.add(Of::Counters, labels(), [1, u64::MAX]);
        metrics.add(Of::Counters, labels(), [2, 1]);
        let values: Vec<_> = metrics.samples().map(|sample| sample.value).collect();
        assert_eq!(values, [3, u64::MAX]);
        assert_eq!(
            metrics.to_string(),
            "# HELP chainwright_counter_packets_total Packets that a named counter counted\n\
             # TYPE chainwright_counter_packets_total counter\n\
             chainwright_counter_packets_total{family=\"ip\",table=\"t\",counter=\"c\"} 3\n\
             # HELP chainwright_counter_bytes_total Bytes that a named counter counted\n\
             # TYPE chainwright_counter_bytes_total counter\n\
             chainwright_counter_bytes_total{family=\"ip\",table=\"t\",counter=\"c\"} 18446744073709551615\n"
        );
    }

    /// The page lists each metric with its type and labels, and no others.
    #[test]
    fn the_page_lists_all_metrics() {
        const PAGE: &str = include_str!("../docs/metrics.md");
        let rows: Vec<_> = PAGE
            .lines()
            .filter(|line| line.starts_with("| `chainwright_"))
            .map(|line| {
                line.split('|')
                    .map(str::trim)
                    .take(4)
                    .collect::<Vec<_>>()
                    .join("|")
            })
            .collect();
        let expected: Vec<_> = metrics()
            .map(|metric| {
                let labels: Vec<_> = metric
                    .labels
                    .iter()
                    .map(|label| format!("`{label}`"))
                    .collect();
                let Metric {
                    name, metric_type, ..
                } = metric;
                format!("|`{name}`|{metric_type}|{}", labels.join(", "))
            })
            .collect();
        assert_eq!(rows, expected);
        for (number, group) in GROUPS.iter().enumerate() {
            assert!(group.metrics.len() <= SERIES, "{number}");
        }
    }
}
