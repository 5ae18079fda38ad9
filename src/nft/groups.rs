//! Changes in groups: the groups that the kernel rejects are skipped, and the rest is committed.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bstr::BString;
use chainwright_sys::nf_tables::{
    NFT_CHAIN_BINDING, NFT_MSG_NEWCHAIN, NFT_MSG_NEWRULE, NFT_MSG_NEWSET, NFT_SET_ANONYMOUS,
    NFTA_CHAIN_FLAGS, NFTA_CHAIN_ID, NFTA_SET_FLAGS, NFTA_SET_ID,
};

use super::commit::{CommitError, Failure, MAX_PRINTED};
use super::conditional_commit::Guard;
use super::connection::Connection;
use super::declare::Field;
use super::explain::describe;
use super::generation::Generation;
use super::references::{IdKind, MessageItem, NameKind, each_mention};
use super::transaction::{IdAllocator, Transaction, has_handle};
use super::{Family, Operation};
use crate::netlink::Message;

/// Transactions that are committed as one, each for a separate purpose: a service, a tenant, a source of configuration.
/// If the kernel rejects operations, their groups are skipped, and all others are committed.
///
/// ```
/// # fn main() -> Result<(), chainwright::Error> {
/// # chainwright_testing::Sandbox::new()?.run(|| {
/// use chainwright::nft::expr::Immediate;
/// use chainwright::nft::{Chain, Connection, Family, TransactionGroups, Rule, Table, Transaction};
///
/// let mut base = Transaction::new();
/// base.add(&Table::new(Family::INET, "proxy"))?;
/// let mut groups = TransactionGroups::new();
/// groups.add("base", base);
/// for (service, target) in [("web", "pods"), ("mail", "none"), ("dns", "pods")] {
///     let mut tx = Transaction::new();
///     tx.add(&Chain::new(Family::INET, "proxy", service))?;
///     tx.add(&Chain::new(Family::INET, "proxy", "pods"))?;
///     tx.add(&Rule::new(Family::INET, "proxy", service).with(&Immediate::jump(target)))?;
///     groups.add(service, tx);
/// }
/// let committed = Connection::open()?.commit_groups(&groups)?;
/// assert_eq!(committed.committed, [&"base", &"web", &"dns"]);
/// let [skipped] = &committed.skipped[..] else { panic!() };
/// assert_eq!(*skipped.key, "mail");
/// let words = skipped.failures[0].operation.as_ref().unwrap().to_string();
/// assert_eq!(words, "add rule inet proxy mail #2");
/// # Ok::<(), chainwright::Error>(()) })?
/// # }
/// ```
///
/// The groups are applied in the order in which they were added. A group can use objects created by earlier ones; if an
/// earlier one is skipped, so is this one, with [`caused_by`](SkippedGroup::caused_by) naming it. The ids of sets, chains
/// and rules within a transaction are local to each group, so groups can be written independently.
#[derive(Debug, Clone)]
pub struct TransactionGroups<K> {
    groups: Vec<(K, Transaction)>,
    expected: Option<Generation>,
}

impl<K> Default for TransactionGroups<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> TransactionGroups<K> {
    /// Creates an empty list of groups.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            groups: Vec::new(),
            expected: None,
        }
    }

    /// Appends a group. The caller chooses the key, which identifies the group in the result. A generation expected by
    /// the transaction itself is ignored.
    pub fn add(&mut self, key: K, transaction: Transaction) -> &mut Self {
        self.groups.push((key, transaction));
        self
    }

    /// Makes the commit conditional on a generation, like [`Transaction::expect_generation`].
    pub const fn expect_generation(&mut self, generation: Generation) -> &mut Self {
        self.expected = Some(generation);
        self
    }

    /// Returns the number of groups.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.groups.len()
    }

    /// Returns `true` if there are no groups.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Iterates over the groups.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&K, &Transaction)> {
        self.groups.iter().map(|(key, tx)| (key, tx))
    }
}

/// The result of committing [`TransactionGroups`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "some groups may have been skipped"]
pub struct CommittedGroups<'g, K> {
    /// The committed groups, all in one transaction, in order.
    pub committed: Vec<&'g K>,
    /// The skipped groups, in order; nothing in them was committed.
    pub skipped: Vec<SkippedGroup<'g, K>>,
    /// The generation created by the commit. `None` if nothing was changed, or if the kernel's message was lost,
    /// because the receive buffer was full or the message was too large for the kernel's buffer (a rule of some
    /// kilobytes).
    pub generation: Option<Generation>,
    /// Number of attempts sent to the kernel.
    pub attempts: u32,
}

/// A group that was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedGroup<'g, K> {
    /// The group's key.
    pub key: &'g K,
    /// The operations that the kernel rejected; their indices refer to the group's own transaction.
    pub failures: Vec<Failure>,
    /// Other skipped groups that would have created objects to which the rejected operations refer. The kernel might
    /// have accepted this group together with them.
    pub caused_by: Vec<&'g K>,
}

impl Connection {
    /// Commits groups as one transaction, without the groups whose operations the kernel rejects and the groups that
    /// depend on those. If the kernel rejects operations of every group, nothing is committed.
    ///
    /// The kernel reports all rejected operations at once. If they belong to several groups, all but the first are
    /// tried once more without the others, because operations of the first may have caused their failure. So groups
    /// that are rejected independently take up to four attempts in total, and each further level of groups that depend
    /// on them takes one more: at most two per group, plus one. An attempt takes as long as a commit of all remaining
    /// groups.
    ///
    /// # Errors
    /// Same as [`commit`](Self::commit), for errors not caused by a group: the generation changed, the caller lacks
    /// permission, the kernel rejected the whole without naming an operation, or its reply was lost. Then nothing is
    /// committed, unless the [outcome](CommitError::outcome) is [`Unknown`](super::Outcome::Unknown). The indices of
    /// operations count through all groups that were sent.
    pub fn commit_groups<'g, K>(
        &mut self,
        groups: &'g TransactionGroups<K>,
    ) -> Result<CommittedGroups<'g, K>, CommitError> {
        commit(self, groups, |connection, tx, attempt| match attempt {
            Attempt::Check => connection.check(tx).map(|()| None),
            Attempt::Commit => connection.commit_returning_generation(tx),
        })
    }
}

impl Guard {
    /// Like [`Connection::commit_groups`], if the tables are unchanged since they were read. The generation
    /// [expected](TransactionGroups::expect_generation) by the groups is ignored in favor of the guard's own.
    ///
    /// # Errors
    /// Same as [`Connection::commit_groups`] and [`commit`](Self::commit).
    pub fn commit_groups<'g, K>(
        &mut self,
        connection: &mut Connection,
        groups: &'g TransactionGroups<K>,
    ) -> Result<CommittedGroups<'g, K>, CommitError> {
        commit(
            connection,
            groups,
            |connection, tx, attempt| match attempt {
                Attempt::Check => self.check(connection, tx).map(|()| None),
                Attempt::Commit => self.commit_returning_generation(connection, tx),
            },
        )
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    /// Only checks, because some groups must be tried again.
    Check,
    Commit,
}

/// The state of a group.
#[derive(Debug, Clone, Default)]
struct Group {
    /// The rejected operations.
    failures: Option<Vec<Failure>>,
    /// Whether it failed together with another group and is tried again.
    retry_pending: bool,
    had_second_chance: bool,
}

fn commit<'g, K>(
    connection: &mut Connection,
    groups: &'g TransactionGroups<K>,
    mut send: impl FnMut(
        &mut Connection,
        &mut Transaction,
        Attempt,
    ) -> Result<Option<Generation>, CommitError>,
) -> Result<CommittedGroups<'g, K>, CommitError> {
    // Only the failures of the result get a reason, not those of each attempt.
    let diagnoses = std::mem::replace(&mut connection.diagnoses, false);
    let attempted = attempt(groups, |tx, attempt| send(connection, tx, attempt));
    connection.diagnoses = diagnoses;
    let (mut states, generation, attempts) = attempted?;
    if diagnoses {
        let transactions = groups.iter().map(|(_, transaction)| transaction);
        let skipped = (states.iter_mut().zip(transactions))
            .filter_map(|(state, transaction)| Some((state.failures.as_mut()?, transaction)));
        for (failures, transaction) in skipped.take(MAX_PRINTED) {
            connection.diagnose(transaction, failures);
        }
    }
    Ok(outcome(groups, states, generation, attempts))
}

/// The states of the groups at the end, the committed generation, and the number of attempts.
type Attempted = (Vec<Group>, Option<Generation>, u32);

fn attempt<K>(
    groups: &TransactionGroups<K>,
    mut send: impl FnMut(&mut Transaction, Attempt) -> Result<Option<Generation>, CommitError>,
) -> Result<Attempted, CommitError> {
    let mut states = vec![Group::default(); groups.len()];
    let mut attempts = 0;
    // Each attempt skips a group, or retries one, or is the last.
    let generation = loop {
        let (mut transaction, starts) = join(groups, &states);
        let attempt = match states.iter().any(|group| group.retry_pending) {
            true => Attempt::Check,
            false => Attempt::Commit,
        };
        let sent = match transaction.is_empty() {
            // An empty transaction need not be sent.
            true => Ok(None),
            false => {
                attempts += 1;
                send(&mut transaction, attempt)
            }
        };
        match sent {
            Ok(generation) if attempt == Attempt::Commit => break generation,
            Ok(_) => {
                for group in states.iter_mut().filter(|group| group.retry_pending) {
                    *group = Group {
                        had_second_chance: true,
                        ..Group::default()
                    };
                }
            }
            Err(error) if error.is_refusal() => {
                let refused = by_group(groups, &states, &starts, &error);
                if refused.is_empty() {
                    return Err(error);
                }
                let mut is_first = true;
                for (number, failures) in refused {
                    let group = &mut states[number];
                    group.retry_pending = !is_first && !group.had_second_chance;
                    group.failures = Some(failures);
                    is_first = false;
                }
            }
            Err(error) => return Err(error),
        }
    };
    Ok((states, generation, attempts))
}

/// Joins the remaining groups into one transaction; also returns the group of each of its operations.
fn join<K>(groups: &TransactionGroups<K>, states: &[Group]) -> (Transaction, Vec<usize>) {
    let bytes = groups.iter().map(|(_, tx)| tx.byte_length()).sum();
    let mut joined = Transaction::with_capacity(bytes);
    let mut numbers = IdAllocator::default();
    let mut of = Vec::new();
    for (number, (_, transaction)) in groups.iter().enumerate() {
        if states[number].failures.is_none() {
            joined.join(transaction, &mut numbers);
            of.resize(joined.len(), number);
        }
    }
    if let Some(generation) = groups.expected {
        joined.expect_generation(generation);
    }
    (joined, of)
}

/// Returns the rejected operations by group.
fn by_group<K>(
    groups: &TransactionGroups<K>,
    states: &[Group],
    of: &[usize],
    error: &CommitError,
) -> BTreeMap<usize, Vec<Failure>> {
    let mut refused = BTreeMap::<usize, Vec<Failure>>::new();
    for failure in &error.failures {
        let Some(operation) = &failure.operation else {
            continue;
        };
        let Some(&number) = of.get(operation.index) else {
            continue;
        };
        let start = of.partition_point(|&group| group < number);
        let failure = Failure {
            operation: Some(Operation {
                index: operation.index - start,
                ..operation.clone()
            }),
            ..failure.clone()
        };
        refused.entry(number).or_default().push(failure);
    }
    if let (true, Some(whole)) = (refused.is_empty(), error.failures.first())
        && whole.errno.number() == libc::EINVAL
    {
        // The kernel detects only at the end that an anonymous set or a bound chain is used by no rule.
        for (number, (_, transaction)) in groups.iter().enumerate() {
            let unused = unused(transaction);
            if states[number].failures.is_none() && !unused.is_empty() {
                let failures = unused.into_iter().map(|operation| Failure {
                    operation: Some(operation),
                    hint: Some(Cow::Borrowed(UNUSED)),
                    ..whole.clone()
                });
                refused.insert(number, failures.collect());
            }
        }
    }
    refused
}

/// Explains why the kernel refuses an anonymous set or a bound chain.
pub(super) const UNUSED: &str =
    "no rule of the transaction uses it; add the rule that does, or leave it out";

/// Returns the anonymous sets and bound chains that a transaction creates and no rule of it uses.
pub(super) fn unused(transaction: &Transaction) -> Vec<Operation> {
    let mut used = HashSet::new();
    let is_rule = |message: &Message<'_>| message.kind as u8 == NFT_MSG_NEWRULE;
    for message in transaction.messages().filter(is_rule) {
        each_mention(&message, &mut |_, found| {
            if let MessageItem::Reference(sort, number) = found {
                used.insert((sort, number));
            }
        });
    }
    let number =
        |message: &Message<'_>, kind: u16| u32::decode(message.attributes().ok()?.find(kind)?);
    let mut unused = Vec::new();
    for (index, message) in transaction.messages().enumerate() {
        let (sort, flags, flag, id) = match message.kind as u8 {
            NFT_MSG_NEWSET => (IdKind::Set, NFTA_SET_FLAGS, NFT_SET_ANONYMOUS, NFTA_SET_ID),
            NFT_MSG_NEWCHAIN => (
                IdKind::Chain,
                NFTA_CHAIN_FLAGS,
                NFT_CHAIN_BINDING,
                NFTA_CHAIN_ID,
            ),
            _ => continue,
        };
        let is_unnamed = number(&message, flags).is_some_and(|flags| flags & flag != 0);
        let is_used = number(&message, id).is_some_and(|id| used.contains(&(sort, id)));
        if is_unnamed && !is_used {
            unused.push(describe(index, &message));
        }
    }
    unused
}

fn outcome<K>(
    groups: &TransactionGroups<K>,
    states: Vec<Group>,
    generation: Option<Generation>,
    attempts: u32,
) -> CommittedGroups<'_, K> {
    let mut committed = Vec::new();
    let mut failed = Vec::new();
    for (number, state) in states.into_iter().enumerate() {
        match state.failures {
            None => committed.push(number),
            Some(failures) => failed.push((number, failures)),
        }
    }
    let missed: Vec<_> = (failed.iter())
        .map(|(number, failures)| missing_references(&groups.groups[*number].1, failures))
        .collect();
    // The skipped groups that would have created the missing objects.
    let mut makers: HashMap<Path, Vec<usize>> = HashMap::new();
    if missed.iter().any(|missed| !missed.is_empty()) {
        for (number, _) in &failed {
            for path in created_by(&groups.groups[*number].1) {
                makers.entry(path).or_default().push(*number);
            }
        }
        // Objects created by committed groups exist.
        for number in &committed {
            for path in created_by(&groups.groups[*number].1) {
                makers.remove(&path);
            }
        }
    }
    let skipped = failed
        .into_iter()
        .zip(missed)
        .map(|((number, failures), missed)| {
            let makers = missed.iter().filter_map(|path| makers.get(path));
            // Objects that the group creates itself do not depend on others.
            let others = makers.filter(|makers| !makers.contains(&number)).flatten();
            let others: BTreeSet<usize> = others.copied().collect();
            SkippedGroup {
                key: &groups.groups[number].0,
                failures,
                caused_by: others
                    .into_iter()
                    .map(|other| &groups.groups[other].0)
                    .collect(),
            }
        });
    let skipped = skipped.collect();
    let committed = committed.into_iter().map(|number| &groups.groups[number].0);
    CommittedGroups {
        committed: committed.collect(),
        skipped,
        generation,
        attempts,
    }
}

/// Identifies a table, or an object in one.
type Path = (Family, NameKind, Vec<BString>);

/// Returns the objects that a transaction creates.
fn created_by(transaction: &Transaction) -> HashSet<Path> {
    let made = transaction.messages().filter_map(|message| {
        let kind = message.kind as u8;
        let makes = has_handle(kind) && kind != NFT_MSG_NEWRULE;
        let named = NameKind::by(kind).filter(|_| makes)?;
        let operation = describe(0, &message);
        Some((operation.family, named, operation.path))
    });
    made.collect()
}

/// Returns the objects to which the rejected operations refer, if they were rejected because of that.
fn missing_references(transaction: &Transaction, failures: &[Failure]) -> HashSet<Path> {
    let is_enoent = |failure: &&Failure| failure.errno.number() == libc::ENOENT;
    let mut refused = failures
        .iter()
        .filter(is_enoent)
        .filter_map(|failure| Some(failure.operation.as_ref()?.index))
        .peekable();
    let mut missed = HashSet::new();
    for (index, message) in transaction.messages().enumerate() {
        if refused.next_if_eq(&index).is_none() {
            continue;
        }
        let Operation { family, path, .. } = describe(index, &message);
        let Some(table) = path.first().cloned() else {
            continue;
        };
        each_mention(&message, &mut |_, found| {
            if let MessageItem::Name(named, name) = found {
                missed.insert((family, named, vec![table.clone(), name.to_owned()]));
            }
        });
        missed.insert((family, NameKind::Table, vec![table]));
        if let Some(named) = NameKind::by(message.kind as u8) {
            missed.insert((family, named, path));
        }
    }
    missed
}
