//! Packets: their traces, and the state that they change.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bstr::BStr;
use chainwright_sys::nf_tables::{
    NFT_DYNSET_OP_DELETE, NFT_DYNSET_OP_UPDATE, NFT_LIMIT_PKT_BYTES, NFT_MSG_NEWOBJ,
    NFT_OBJECT_COUNTER, NFT_OBJECT_LIMIT, NFT_QUOTA_F_DEPLETED, NFTA_COUNTER_BYTES,
    NFTA_COUNTER_PACKETS, NFTA_DATA_VALUE, NFTA_DYNSET_EXPR, NFTA_DYNSET_EXPRESSIONS,
    NFTA_DYNSET_OP, NFTA_DYNSET_TIMEOUT, NFTA_EXPR_DATA, NFTA_LAST_MSECS, NFTA_LAST_SET,
    NFTA_LIMIT_BURST, NFTA_LIMIT_RATE, NFTA_LIMIT_TYPE, NFTA_LIMIT_UNIT, NFTA_QUOTA_BYTES,
    NFTA_QUOTA_CONSUMED, NFTA_QUOTA_FLAGS,
};
use chainwright_trace::{
    ElementBytes, End, Node, Options, Outcome, Packet, Rules, StateChange, StateOwner, Trace,
};
use hashbrown::HashMap;

use super::FakeKernel;
use super::events::QueuedEvent;
use super::listed::{self, Detail};
use super::set::list_of_expressions;
use super::socket::Shared;
use super::state::{Bucket, BucketKey, Chain, Data, Devices, Element, Key, RuleSlot, State, Table};
use super::stateful::{change, in_expression, number};
use super::wire::{AttributeBuffer, ParsedAttributes, Policy, U32, U64};
use chainwright::iptables::Backend;
use chainwright::netlink::Attributes;
use chainwright::nft::{Family, Scope, Snapshot, SnapshotError};

/// Errors of [`FakeKernel::send`](crate::FakeKernel::send). After an error nothing has changed.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The descriptions of the packet and of the machine do not determine the outcome.
    #[error("the description leaves open: {0}")]
    Open(String),

    /// A rule cannot be evaluated, for this reason.
    #[error("the packet cannot be traced: {0}")]
    NotTraced(String),

    /// No connection to the fake kernel could be opened.
    #[error("cannot connect to the fake kernel: {0}")]
    Connect(#[source] io::Error),

    /// The ruleset could not be read.
    #[error(transparent)]
    Read(#[from] SnapshotError),
}

chainwright::debug_as_message!(SendError);

impl From<SendError> for chainwright::Error {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Read(error) => error.into(),
            error => Self::other(error, chainwright::ErrorKind::Invalid),
        }
    }
}

const DYNSET: &[(u16, Policy)] = &[
    (NFTA_DYNSET_OP, U32),
    (NFTA_DYNSET_TIMEOUT, U64),
    (NFTA_DYNSET_EXPR, Policy::Any),
    (NFTA_DYNSET_EXPRESSIONS, Policy::Any),
];
const LIMIT: &[(u16, Policy)] = &[
    (NFTA_LIMIT_RATE, U64),
    (NFTA_LIMIT_UNIT, U64),
    (NFTA_LIMIT_BURST, U32),
    (NFTA_LIMIT_TYPE, U32),
];
const NANOSECONDS: u128 = 1_000_000_000;

impl FakeKernel {
    /// Sends a packet through the rules: traces it as [`Rules::trace`] does, and changes the state that Linux would
    /// change. Returns the packet's steps and outcome. Listings then have the new state:
    ///
    /// - counters, quotas and `last`: of rules, of elements, and named ones; counters of base chains;
    /// - elements that rules add, update or delete, with their timeouts and expressions.
    ///
    /// Rates (`limit`) have a state too: their tokens return as time passes ([`advance`](Self::advance)). Everything
    /// else is part of the description: no connections are tracked between packets, so that a packet that belongs to
    /// one has it in [`Packet::connection`]. The rules of `arp`, `bridge` and `netdev` tables, and those of chains of
    /// devices, see no packets.
    ///
    /// ```
    /// use chainwright_lang::Script;
    /// use chainwright_testing::FakeKernel;
    /// use chainwright_trace::{Direction, Node, Outcome, Packet};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let rules = "table inet filter { set knocked { type ipv4_addr; flags dynamic,timeout; timeout 30s; }
    ///     chain input { type filter hook input priority 0; policy drop;
    ///         tcp dport 7000 update @knocked { ip saddr }
    ///         tcp dport 22 ip saddr @knocked counter accept; }; }";
    /// let kernel = FakeKernel::new();
    /// let script = Script::parse("rules.nft", rules)?;
    /// kernel.connect()?.commit(script.transaction(None)?.transaction())?;
    ///
    /// let mut packet = Packet::tcp(Direction::In, "192.0.2.1:4000".parse()?, "192.0.2.2:22".parse()?);
    /// packet.length = Some(60);
    /// let mut outcome = |port| {
    ///     packet.destination_port = Some(port);
    ///     kernel.send(&packet, &Node::default()).map(|end| end.outcome)
    /// };
    /// assert_eq!(outcome(22)?, Outcome::Dropped);
    /// assert_eq!(outcome(7000)?, Outcome::Dropped); // and the source address is in the set
    /// assert_eq!(outcome(22)?, Outcome::Delivered);
    /// kernel.advance(std::time::Duration::from_secs(30));
    /// assert_eq!(outcome(22)?, Outcome::Dropped);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`SendError::Open`] if the packet or the node lacks a field that a rule reads, or the length that a rule counts,
    /// or if the outcome depends on chance (`numgen`) or on tracked connections (`ct count`).
    /// [`SendError::NotTraced`] for an expression that traces do not support, and for a packet that meets more than ten
    /// rates and quotas: each splits the trace. After an error nothing has changed.
    pub fn send(&self, packet: &Packet, node: &Node) -> Result<End, SendError> {
        self.shared.change(|state, events| {
            let snapshot = self.snapshot(state)?;
            let mut options = Options::default();
            options.assume_static_sets = true;
            let rules = Rules::new().with_nft(&snapshot);
            let trace = rules.trace(packet, node, &options);
            let (end, after) = state.one_of(trace, packet, events)?;
            *state = after;
            Ok(end)
        })
    }

    /// Lists a state.
    fn snapshot(&self, state: &State) -> Result<Snapshot, SendError> {
        let kernel = Self {
            shared: Shared::new(self.shared.namespace, Devices::default(), state.clone()),
        };
        let mut connection = kernel.connect().map_err(SendError::Connect)?;
        Ok(connection.snapshot(Scope::all())?)
    }
}

impl State {
    /// Returns the end that agrees with this state, and the state after it.
    fn one_of(
        &self,
        trace: Trace,
        packet: &Packet,
        events: &mut Vec<QueuedEvent>,
    ) -> Result<(End, Self), SendError> {
        let mut possible = Vec::new();
        for end in trace.ends {
            let (mut after, mut sent) = (self.clone(), Vec::new());
            match after.follow(&end, packet, &mut sent) {
                Ok(false) => {}
                followed => possible.push((end, followed.map(|_| (after, sent)))),
            }
        }
        for (end, _) in &possible {
            if let Outcome::Unknown(why) | Outcome::NotFollowed(why) = &end.outcome {
                return Err(SendError::NotTraced(why.clone()));
            }
        }
        if possible.len() > 1 {
            let ends: Vec<_> = possible.iter().map(|(end, _)| end).collect();
            return Err(SendError::Open(differences(&ends)));
        }
        // The ends cover all cases.
        let Some((end, followed)) = possible.pop() else {
            return Err(SendError::NotTraced(
                "no branch agrees with the state".to_owned(),
            ));
        };
        let (after, sent) = followed?;
        *events = sent;
        Ok((end, after))
    }

    /// Makes the state changes of a path; returns `false` if the path contradicts the state.
    fn follow(
        &mut self,
        end: &End,
        packet: &Packet,
        events: &mut Vec<QueuedEvent>,
    ) -> Result<bool, SendError> {
        let length = || {
            let open =
                || SendError::Open("the length of the packet, which a rule counts".to_owned());
            packet.length.map(u64::from).ok_or_else(open)
        };
        for change in &end.changes {
            let exceeded = match &change.owner {
                StateOwner::Set { set, key, data } => {
                    let data = data.as_ref().map(known).transpose()?;
                    self.update(change, set.as_ref(), known(key)?, data);
                    None
                }
                _ => {
                    let (exceeded, depleted) = self.count(change, length()?)?;
                    events.extend(depleted.map(|attributes| QueuedEvent {
                        message: NFT_MSG_NEWOBJ,
                        flags: 0,
                        sequence: 0,
                        is_echoed: false,
                        // The packet's family, not the table's.
                        family: Family::from(packet.family).0,
                        attributes,
                    }));
                    exceeded
                }
            };
            if exceeded.is_some() && exceeded != change.exceeded {
                return Ok(false);
            }
        }
        for policy in &end.steps {
            if policy.rule.is_some() || policy.backend != Backend::Nft {
                continue;
            }
            let table = table_in(&mut self.tables, policy.family, policy.table.as_ref());
            let counters = table.and_then(|table| {
                let chain = table.chains.named(policy.chain.as_ref()).ok()?;
                table.chains.edit(chain).base.as_mut()?.counters.as_mut()
            });
            if let Some((packets, bytes)) = counters {
                *packets = packets.wrapping_add(1);
                *bytes = bytes.wrapping_add(length()?);
            }
        }
        Ok(true)
    }

    /// Lets an expression count a packet. Returns whether the packet exceeds its bound, and the quota object that the
    /// packet uses up.
    fn count(
        &mut self,
        change: &StateChange,
        length: u64,
    ) -> Result<(Option<bool>, Option<AttributeBuffer>), SendError> {
        let (mut exceeded, mut depleted) = (None, None);
        let Some(table) = table_in(&mut self.tables, change.family, change.table.as_ref()) else {
            return Ok((None, None));
        };
        let of_table = table.handle;
        let mut counting = Counting {
            length,
            now: self.time,
            buckets: &mut self.buckets,
        };
        match &change.owner {
            StateOwner::Object { object_type, name } => {
                let Ok(at) = table.objects.of_type(*object_type, name.as_ref()) else {
                    return Ok((None, None));
                };
                let object = table.objects.edit(at);
                let key = (of_table, object.handle, None, 0);
                match (&mut object.data, *object_type) {
                    (Data::Listed(attributes), NFT_OBJECT_COUNTER) => {
                        exceeded = counting.count(key, b"counter", attributes);
                    }
                    (Data::Listed(attributes), NFT_OBJECT_LIMIT) => {
                        exceeded = counting.count(key, b"limit", attributes);
                    }
                    (Data::Listed(_), _) => {}
                    (
                        Data::Quota {
                            bytes,
                            consumed,
                            flags,
                        },
                        _,
                    ) => {
                        *consumed = consumed.saturating_add(length);
                        exceeded = Some(consumed > bytes);
                        // The kernel reports once that the quota is used up.
                        if consumed >= bytes && *flags & NFT_QUOTA_F_DEPLETED == 0 {
                            *flags |= NFT_QUOTA_F_DEPLETED;
                            depleted =
                                Some(listed::object(table, &table.objects[at], Detail::Whole));
                        }
                    }
                }
            }
            StateOwner::Element {
                set,
                key,
                expression,
            } => {
                let key = Key {
                    key: key.as_ref().map(known).transpose()?.map(<[u8]>::to_vec),
                    is_end: false,
                };
                let Ok(at) = table.sets.named(set.as_ref()) else {
                    return Ok((None, None));
                };
                let set = table.sets.edit(at);
                let of_set = set.handle;
                let element = set.elements.get_mut(&key).map(Arc::make_mut);
                if let Some(element) = element
                    && let Some(payload) = element.expressions.get_mut(*expression)
                {
                    let key = (of_table, of_set, Some(element.number), *expression);
                    in_expression(payload, &mut |name, attributes| {
                        exceeded = counting.count(key, name, attributes);
                    });
                }
            }
            _ => {
                let key = (of_table, change.rule, None, change.expression);
                if let Some((chain, at)) = rule_in(table, change) {
                    chain.change_rule(at, Some(change.expression), &mut |name, attributes| {
                        exceeded = counting.count(key, name, attributes);
                    });
                }
            }
        }
        Ok((exceeded, depleted))
    }

    /// Adds, updates or deletes an element of a set, as a rule's `dynset` does.
    fn update(
        &mut self,
        change: &StateChange,
        set: &BStr,
        key: &[u8],
        data: Option<&[u8]>,
    ) -> Option<()> {
        let table = table_in(&mut self.tables, change.family, change.table.as_ref())?;
        let (chain, at) = rule_in(table, change)?;
        let rule = Arc::clone(&chain.rules[at].rule);
        let mut expressions = Attributes::new(&rule.expressions).map_while(Result::ok);
        let dynset = Attributes::new(expressions.nth(change.expression)?.payload);
        let given = ParsedAttributes::read(dynset.find(NFTA_EXPR_DATA)?, DYNSET).ok()?;
        let set = table.sets.edit(table.sets.named(set).ok()?);
        let key = Key {
            key: Some(key.to_vec()),
            is_end: false,
        };
        let timeout = given.u64(NFTA_DYNSET_TIMEOUT).filter(|&time| time != 0);
        let timeout = timeout.unwrap_or(set.timeout);
        let op = given.u32(NFTA_DYNSET_OP)?;
        if op == NFT_DYNSET_OP_DELETE {
            if let Some(element) = set.elements.remove(&key) {
                table.release(&element.references);
            }
            return Some(());
        }
        if let Some(element) = set.elements.get_mut(&key) {
            if op == NFT_DYNSET_OP_UPDATE && element.timeout != 0 {
                match timeout {
                    // It is over at once.
                    0 => _ = set.elements.remove(&key),
                    _ => Arc::make_mut(element).expiration = timeout,
                }
            }
            return Some(());
        }
        let expressions = match (
            given.get(NFTA_DYNSET_EXPR),
            given.get(NFTA_DYNSET_EXPRESSIONS),
        ) {
            (Some(one), _) => vec![one.to_vec()],
            (None, Some(list)) => list_of_expressions(list)
                .map(|one| one.map(<[u8]>::to_vec))
                .collect::<Result<_, _>>()
                .ok()?,
            (None, None) => set.expressions.clone(),
        };
        let data = data.map(|data| {
            let mut out = AttributeBuffer::default();
            out.bytes(NFTA_DATA_VALUE, data);
            out.0
        });
        let element = Element {
            key: key.clone(),
            last: None,
            data,
            expressions,
            object: None,
            flags: 0,
            timeout,
            expiration: timeout,
            userdata: None,
            references: Vec::new(),
            number: set.added,
        };
        set.elements.insert(key, Arc::new(element));
        set.added += 1;
        Some(())
    }
}

/// Returns the table of this family and name.
fn table_in<'t>(tables: &'t mut [Arc<Table>], family: &str, name: &BStr) -> Option<&'t mut Table> {
    let is =
        |table: &&mut Arc<Table>| Family(table.family).name() == Some(family) && table.name == name;
    tables.iter_mut().find(is).map(Arc::make_mut)
}

/// Returns the chain of the rule that changed something, and the rule's index.
fn rule_in<'t>(table: &'t mut Table, change: &StateChange) -> Option<(&'t mut Chain, usize)> {
    let chain = table.chains.named(change.chain.as_ref()).ok()?;
    let chain = table.chains.edit(chain);
    let is = |slot: &RuleSlot| slot.rule.handle == change.rule;
    let at = chain.rules.iter().position(is)?;
    Some((chain, at))
}

/// Returns the bytes of a key or of data.
fn known(bytes: &ElementBytes) -> Result<&[u8], SendError> {
    match bytes {
        ElementBytes::Known(bytes) => Ok(bytes),
        ElementBytes::Open(what) => Err(SendError::Open(format!(
            "{what}, from which a rule makes an element"
        ))),
    }
}

/// Describes the differences between paths.
fn differences(ends: &[&End]) -> String {
    let statements = |end: &End| [&end.assumptions[..], &end.chances[..]].concat();
    let all: Vec<_> = ends.iter().map(|end| statements(end)).collect();
    let own = |of: &Vec<String>| {
        let is_own = |one: &&String| !all.iter().all(|other| other.contains(one));
        let own: Vec<_> = of.iter().filter(is_own).map(String::as_str).collect();
        own.join("; ")
    };
    const MAX_PRINTED: usize = 4;
    let mut text: Vec<_> = all.iter().take(MAX_PRINTED).map(own).collect();
    if all.len() > MAX_PRINTED {
        text.push(format!("one of {} more", all.len() - MAX_PRINTED));
    }
    text.join(", or ")
}

/// A packet that expressions count.
struct Counting<'b> {
    length: u64,
    now: Duration,
    buckets: &'b mut Arc<HashMap<BucketKey, Bucket>>,
}

impl Counting<'_> {
    /// Lets an expression count the packet; returns whether the packet exceeds its bound.
    fn count(&mut self, key: BucketKey, name: &[u8], attributes: &mut [u8]) -> Option<bool> {
        match name {
            b"counter" => {
                change(attributes, NFTA_COUNTER_PACKETS, |packets| {
                    packets.wrapping_add(1)
                });
                change(attributes, NFTA_COUNTER_BYTES, |bytes| {
                    bytes.wrapping_add(self.length)
                });
                None
            }
            b"last" => {
                *number(attributes, NFTA_LAST_SET)? = 1_u32.to_be_bytes();
                change(attributes, NFTA_LAST_MSECS, |_| 0);
                None
            }
            b"quota" => {
                let bytes = u64::from_be_bytes(*number(attributes, NFTA_QUOTA_BYTES)?);
                let consumed = number(attributes, NFTA_QUOTA_CONSUMED)?;
                let now = u64::from_be_bytes(*consumed).saturating_add(self.length);
                // The kernel lists at most the quota.
                *consumed = now.min(bytes).to_be_bytes();
                if now >= bytes {
                    let flags = number(attributes, NFTA_QUOTA_FLAGS)?;
                    *flags = (u32::from_be_bytes(*flags) | NFT_QUOTA_F_DEPLETED).to_be_bytes();
                }
                Some(now > bytes)
            }
            b"limit" => {
                let limit = ParsedAttributes::read(attributes, LIMIT).ok()?;
                let rate = u128::from(limit.u64(NFTA_LIMIT_RATE)?.max(1));
                let unit = u128::from(limit.u64(NFTA_LIMIT_UNIT)?) * NANOSECONDS;
                let burst = u128::from(limit.u32(NFTA_LIMIT_BURST)?);
                let (cost, full) = match limit.u32(NFTA_LIMIT_TYPE)? {
                    NFT_LIMIT_PKT_BYTES => {
                        let cost = unit * u128::from(self.length) / rate;
                        (cost, unit.saturating_mul(rate + burst) / rate)
                    }
                    _ => (unit / rate, unit / rate * burst),
                };
                let bucket = Arc::make_mut(self.buckets).entry(key).or_insert(Bucket {
                    tokens: full,
                    at: self.now,
                });
                let since = self.now.saturating_sub(bucket.at).as_nanos();
                let tokens = bucket.tokens.saturating_add(since).min(full);
                bucket.at = self.now;
                bucket.tokens = tokens.checked_sub(cost).unwrap_or(tokens);
                Some(cost > tokens)
            }
            _ => None,
        }
    }
}
