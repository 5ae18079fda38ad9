//! A change in parts, of which those that the kernel refuses are set aside and the rest is committed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bstr::BString;
use chainwright_sys::nf_tables::{
    NFT_CHAIN_BINDING, NFT_MSG_NEWCHAIN, NFT_MSG_NEWRULE, NFT_MSG_NEWSET, NFT_SET_ANONYMOUS,
    NFTA_CHAIN_FLAGS, NFTA_CHAIN_ID, NFTA_SET_FLAGS, NFTA_SET_ID,
};

use super::commit::{CommitError, Failure};
use super::connection::Connection;
use super::declare::Field;
use super::explain::describe;
use super::generation::Generation;
use super::guard::Guard;
use super::mentions::{Found, Named, Sort, each_mention};
use super::transaction::{Numbers, Transaction, gets_a_handle};
use super::{Family, Operation};
use crate::netlink::Message;

/// Transactions that are committed as one, each for something of its own: a service, a tenant, a source of
/// configuration. When the kernel refuses operations, the groups that they are of are set aside, and all others are
/// committed.
///
/// ```
/// # fn main() -> Result<(), chainwright::Error> {
/// # chainwright_testing::Sandbox::new()?.run(|| {
/// use chainwright::nft::expr::Immediate;
/// use chainwright::nft::{Chain, Connection, Family, Groups, Rule, Table, Transaction};
///
/// let mut base = Transaction::new();
/// base.add(&Table::new(Family::INET, "proxy"))?;
/// let mut groups = Groups::new();
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
/// let [aside] = &committed.set_aside[..] else { panic!() };
/// assert_eq!(*aside.key, "mail");
/// let words = aside.failures[0].operation.as_ref().unwrap().to_string();
/// assert_eq!(words, "add rule inet proxy mail #2");
/// # Ok::<(), chainwright::Error>(()) })?
/// # }
/// ```
///
/// The groups are carried out in the order in which they were added. What one makes, those behind it can use; if it
/// is set aside, so are they, and say [because of](SetAside::because_of) which. The numbers that sets, chains and
/// rules have within a transaction are each group's own: a group that was written by itself needs to know of no other.
#[derive(Debug, Clone)]
pub struct Groups<K> {
    groups: Vec<(K, Transaction)>,
    expected: Option<Generation>,
}

impl<K> Default for Groups<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> Groups<K> {
    /// No groups.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            groups: Vec::new(),
            expected: None,
        }
    }

    /// Adds a group behind the others. The key is the caller's: by it the group is named in what came of it. What
    /// generation its transaction expects does not matter.
    pub fn add(&mut self, key: K, transaction: Transaction) -> &mut Self {
        self.groups.push((key, transaction));
        self
    }

    /// Makes the commit conditional on a generation, as [`Transaction::expect_generation`].
    pub const fn expect_generation(&mut self, generation: Generation) -> &mut Self {
        self.expected = Some(generation);
        self
    }

    /// How many groups there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The groups.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&K, &Transaction)> {
        self.groups.iter().map(|(key, tx)| (key, tx))
    }
}

/// What came of [`Groups`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "groups may have been set aside"]
pub struct CommittedGroups<'g, K> {
    /// The groups that were committed, all in one transaction, in their order.
    pub committed: Vec<&'g K>,
    /// Those of which nothing was, in their order.
    pub set_aside: Vec<SetAside<'g, K>>,
    /// The generation that the commit made. `None` if nothing was changed; and if the kernel's word of it was lost, in a
    /// receive buffer that was full or because it was too large for the kernel's message (a rule of some kilobytes).
    pub generation: Option<Generation>,
    /// How many times the kernel was asked.
    pub attempts: u32,
}

/// A group that was not committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside<'g, K> {
    /// Its key.
    pub key: &'g K,
    /// What the kernel refused of it; operations are counted within the group's own transaction, from 0.
    pub failures: Vec<Failure>,
    /// Other groups that were set aside, which were to make what the refused operations refer to: they would perhaps
    /// have been taken with them.
    pub because_of: Vec<&'g K>,
}

impl Connection {
    /// Commits groups as one transaction, without those that hold operations which the kernel refuses, and those that
    /// depend on them. If it refuses something of all of them, nothing is committed.
    ///
    /// The kernel names all operations that it refuses at once. Where those are of several groups, all but the first
    /// get a second chance without the others: what the first did before it failed may be why they did. So groups
    /// that are refused by themselves take up to four attempts, however many they are, and each further level of groups
    /// that depend on them one more: at most two for each group, and one. An attempt takes as long as a commit of all
    /// that is left.
    ///
    /// # Errors
    /// As [`commit`](Self::commit), if the groups are not to blame: the generation moved, the caller may not commit,
    /// the kernel refuses the whole and names no operation, or its answer was lost. Nothing is committed then, but
    /// where the [outcome](CommitError::outcome) is [`Unknown`](super::Outcome::Unknown). Operations are counted
    /// through all groups that were sent.
    pub fn commit_groups<'g, K>(
        &mut self,
        groups: &'g Groups<K>,
    ) -> Result<CommittedGroups<'g, K>, CommitError> {
        commit(groups, |tx, attempt| match attempt {
            Attempt::Check => self.check(tx).map(|()| None),
            Attempt::Commit => self.commit_numbered(tx),
        })
    }
}

impl Guard {
    /// As [`Connection::commit_groups`], if the tables still are as they were read. Which generation the groups
    /// [expect](Groups::expect_generation) does not matter: the guard has its own.
    ///
    /// # Errors
    /// As that, and as [`commit`](Self::commit).
    pub fn commit_groups<'g, K>(
        &mut self,
        connection: &mut Connection,
        groups: &'g Groups<K>,
    ) -> Result<CommittedGroups<'g, K>, CommitError> {
        commit(groups, |tx, attempt| match attempt {
            Attempt::Check => self.check(connection, tx).map(|()| None),
            Attempt::Commit => self.commit_numbered(connection, tx),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    /// Only tried: groups are to be added again.
    Check,
    Commit,
}

/// How it stands with a group.
#[derive(Debug, Clone, Default)]
struct Group {
    /// What was refused of it.
    failures: Option<Vec<Failure>>,
    /// It failed beside another one, and is to be tried once more.
    is_suspect: bool,
    had_second_chance: bool,
}

fn commit<K>(
    groups: &Groups<K>,
    mut send: impl FnMut(&mut Transaction, Attempt) -> Result<Option<Generation>, CommitError>,
) -> Result<CommittedGroups<'_, K>, CommitError> {
    let mut states = vec![Group::default(); groups.len()];
    let mut attempts = 0;
    // Each attempt sets a group aside, or gives one its second chance, or is the last.
    let generation = loop {
        let (mut transaction, starts) = join(groups, &states);
        let attempt = match states.iter().any(|group| group.is_suspect) {
            true => Attempt::Check,
            false => Attempt::Commit,
        };
        let sent = match transaction.is_empty() {
            // Of nothing the kernel need not be asked.
            true => Ok(None),
            false => {
                attempts += 1;
                send(&mut transaction, attempt)
            }
        };
        match sent {
            Ok(generation) if attempt == Attempt::Commit => break generation,
            Ok(_) => {
                for group in states.iter_mut().filter(|group| group.is_suspect) {
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
                    group.is_suspect = !is_first && !group.had_second_chance;
                    group.failures = Some(failures);
                    is_first = false;
                }
            }
            Err(error) => return Err(error),
        }
    };
    Ok(outcome(groups, states, generation, attempts))
}

/// What is left as one transaction, and for each operation of it the group.
fn join<K>(groups: &Groups<K>, states: &[Group]) -> (Transaction, Vec<usize>) {
    let bytes = groups.iter().map(|(_, tx)| tx.byte_length()).sum();
    let mut joined = Transaction::with_capacity(bytes);
    let mut numbers = Numbers::default();
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

/// What was refused of which groups, in their order.
fn by_group<K>(
    groups: &Groups<K>,
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
        // Then a set or chain without a name was made that no rule uses, which is seen only in the end.
        for (number, (_, transaction)) in groups.iter().enumerate() {
            let unused = unused(transaction);
            if states[number].failures.is_none() && !unused.is_empty() {
                let failures = unused.into_iter().map(|operation| Failure {
                    operation: Some(operation),
                    ..whole.clone()
                });
                refused.insert(number, failures.collect());
            }
        }
    }
    refused
}

/// The sets and chains without a name that a transaction makes and no rule of it uses.
fn unused(transaction: &Transaction) -> Vec<Operation> {
    let mut used = HashSet::new();
    let is_rule = |message: &Message<'_>| message.kind as u8 == NFT_MSG_NEWRULE;
    for message in transaction.messages().filter(is_rule) {
        each_mention(&message, &mut |_, found| {
            if let Found::Meant(sort, number) = found {
                used.insert((sort, number));
            }
        });
    }
    let number =
        |message: &Message<'_>, kind: u16| u32::decode(message.attributes().ok()?.find(kind)?);
    let mut unused = Vec::new();
    for (index, message) in transaction.messages().enumerate() {
        let (sort, flags, flag, id) = match message.kind as u8 {
            NFT_MSG_NEWSET => (Sort::Set, NFTA_SET_FLAGS, NFT_SET_ANONYMOUS, NFTA_SET_ID),
            NFT_MSG_NEWCHAIN => (
                Sort::Chain,
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
    groups: &Groups<K>,
    states: Vec<Group>,
    generation: Option<Generation>,
    attempts: u32,
) -> CommittedGroups<'_, K> {
    let mut committed = Vec::new();
    let mut aside = Vec::new();
    for (number, state) in states.into_iter().enumerate() {
        match state.failures {
            None => committed.push(number),
            Some(failures) => aside.push((number, failures)),
        }
    }
    let missed: Vec<_> = (aside.iter())
        .map(|(number, failures)| missed_by(&groups.groups[*number].1, failures))
        .collect();
    // Who was to make it, of those that were set aside.
    let mut makers: HashMap<Path, Vec<usize>> = HashMap::new();
    if missed.iter().any(|missed| !missed.is_empty()) {
        for (number, _) in &aside {
            for path in made_by(&groups.groups[*number].1) {
                makers.entry(path).or_default().push(*number);
            }
        }
        // What others made is there.
        for number in &committed {
            for path in made_by(&groups.groups[*number].1) {
                makers.remove(&path);
            }
        }
    }
    let set_aside = aside
        .into_iter()
        .zip(missed)
        .map(|((number, failures), missed)| {
            let makers = missed.iter().filter_map(|path| makers.get(path));
            // What it makes itself, it has from nobody else.
            let others = makers.filter(|makers| !makers.contains(&number)).flatten();
            let others: BTreeSet<usize> = others.copied().collect();
            SetAside {
                key: &groups.groups[number].0,
                failures,
                because_of: others
                    .into_iter()
                    .map(|other| &groups.groups[other].0)
                    .collect(),
            }
        });
    let set_aside = set_aside.collect();
    let committed = committed.into_iter().map(|number| &groups.groups[number].0);
    CommittedGroups {
        committed: committed.collect(),
        set_aside,
        generation,
        attempts,
    }
}

/// What names a table, or something in one.
type Path = (Family, Named, Vec<BString>);

/// What a transaction was to make.
fn made_by(transaction: &Transaction) -> HashSet<Path> {
    let made = transaction.messages().filter_map(|message| {
        let kind = message.kind as u8;
        let makes = gets_a_handle(kind) && kind != NFT_MSG_NEWRULE;
        let named = Named::by(kind).filter(|_| makes)?;
        let operation = describe(0, &message);
        Some((operation.family, named, operation.path))
    });
    made.collect()
}

/// What the refused operations refer to, if it was for that that they were refused.
fn missed_by(transaction: &Transaction, failures: &[Failure]) -> HashSet<Path> {
    let is_absence = |failure: &&Failure| failure.errno.number() == libc::ENOENT;
    let mut refused = failures
        .iter()
        .filter(is_absence)
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
            if let Found::Name(named, name) = found {
                missed.insert((family, named, vec![table.clone(), name.to_owned()]));
            }
        });
        missed.insert((family, Named::Table, vec![table]));
        if let Some(named) = Named::by(message.kind as u8) {
            missed.insert((family, named, path));
        }
    }
    missed
}
