//! Trace engine: processes hooks, chains and rules, one branch after the other.

use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::chain_position::{Frame, Rule};
use super::convert::enter;
use super::field::Field;
use super::legacy as entries;
use super::nft::{Continuation, Evaluator};
use super::packet::{Direction, Hook, Node, Packet, State};
use super::path_state::{Alternative, Effect, PathState, TraceContext, Undetermined};
use super::persistent_list::PersistentList;
use super::registers::Registers;
use super::rules::{Base, ChainOf, Options, Rules, TRACKING};
use super::sets::SetChange;
use super::steps::{
    End, HookVerdict, Outcome, RuleAt, RuleVerdict, StateChange, StateOwner, Step, Trace,
};
use super::value::Test;
use chainwright::nft::Priority;
use chainwright::nft::expr::Verdict;

/// Maximum call depth of chains; deeper calls are treated as a loop.
const MAX_CALL_DEPTH: usize = 4096;

/// Traces a packet.
pub(super) fn trace(rules: &Rules<'_>, packet: &Packet, node: &Node, options: &Options) -> Trace {
    let mut left = options.rules;
    let mut trace = Trace {
        ends: Vec::new(),
        is_truncated: false,
    };
    let mut waiting = vec![Branch::new(packet, node, options)];
    while let Some(mut branch) = waiting.pop() {
        loop {
            if left == 0 {
                trace.is_truncated = true;
                let why = format!("more than {} rules were evaluated", options.rules);
                trace.ends.push(branch.end(Outcome::NotFollowed(why)));
                break;
            }
            match branch.advance(rules, &mut left) {
                Ok(None) => {}
                Ok(Some(outcome)) => {
                    trace.ends.push(branch.end(outcome));
                    break;
                }
                Err(Undetermined::Unknown(why)) => {
                    branch.record_step(RuleVerdict::Unknown(why.clone()), true);
                    trace.ends.push(branch.end(Outcome::Unknown(why)));
                    break;
                }
                Err(Undetermined::Split(alternatives)) => {
                    let there = trace.ends.len() + waiting.len();
                    if there + alternatives.len() > options.branches {
                        trace.is_truncated = true;
                        let why = format!("more than {} branches", options.branches);
                        trace.ends.push(branch.end(Outcome::NotFollowed(why)));
                    } else {
                        waiting.extend(branch.split(alternatives));
                    }
                    break;
                }
            }
        }
    }
    trace
}

/// A branch of the trace.
#[derive(Debug, Clone)]
struct Branch<'s> {
    path_state: PathState,
    registers: Registers,
    changes: Vec<SetChange>,
    /// Output interface from the packet's description.
    out: Option<BString>,
    /// Whether the packet was received from outside.
    came_in: bool,
    /// Whether the packet will come in again over `lo`.
    comes_back: bool,
    at: Progress,
    base: Option<Arc<Base<'s>>>,
    frames: Vec<Frame<'s>>,
    rule: Option<Rule<'s>>,
    steps: PersistentList<Step>,
    state_changes: PersistentList<StateChange>,
    hooks: Vec<HookVerdict>,
}

/// Progress of a packet at a hook.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// Number of base chains passed.
    chains: usize,
    tracked: bool,
    /// Number of NAT chains passed, while the packet is in one.
    nat: Option<usize>,
    translated: bool,
}

impl<'s> Branch<'s> {
    fn new(packet: &Packet, node: &Node, options: &Options) -> Self {
        let came_in = matches!(packet.direction, Direction::In | Direction::Forwarded);
        let hook = match came_in {
            true => Hook::Prerouting,
            false => Hook::Output,
        };
        let place = Arc::new(TraceContext {
            node: node.clone(),
            direction: packet.direction,
            sets_may_differ: !options.assume_static_sets,
        });
        let mut path_state = PathState::new(packet.family, hook, place);
        enter(&mut path_state, packet);
        match packet.direction {
            Direction::In | Direction::Forwarded => {
                path_state.set_interface(true, packet.in_interface.as_deref().map(|name| &**name));
            }
            Direction::Out => {
                path_state
                    .set_interface(false, packet.out_interface.as_deref().map(|name| &**name));
            }
            Direction::Local => path_state.set_interface(false, Some(b"lo")),
        }
        Self {
            path_state,
            registers: Registers::new(),
            changes: Vec::new(),
            out: packet.out_interface.clone(),
            came_in,
            comes_back: false,
            at: Progress::default(),
            base: None,
            frames: Vec::new(),
            rule: None,
            steps: PersistentList::new(),
            state_changes: PersistentList::new(),
            hooks: Vec::new(),
        }
    }

    /// Returns a copy of the branch for each alternative, in reverse, so that the first one ends on top of the stack.
    fn split(self, alternatives: Vec<Alternative>) -> impl Iterator<Item = Self> {
        alternatives
            .into_iter()
            .rev()
            .filter_map(move |alternative| {
                let mut part = self.clone();
                part.path_state.take(&alternative).then_some(part)
            })
    }

    /// Advances by an expression or match, by a rule, or to the next chain.
    fn advance(
        &mut self,
        rules: &Rules<'s>,
        left: &mut usize,
    ) -> Result<Option<Outcome>, Undetermined> {
        match &self.rule {
            Some(Rule::Nft { .. }) => self.expressions(),
            Some(Rule::Legacy { .. }) => self.entry(),
            None if self.frames.is_empty() => self.next_chain(rules),
            None => {
                *left -= 1;
                Ok(self.next_rule())
            }
        }
    }

    /// Enters the next chain of the hook, or the next hook.
    fn next_chain(&mut self, rules: &Rules<'s>) -> Result<Option<Outcome>, Undetermined> {
        self.path_state.begin();
        let family = self.path_state.family;
        let hook = self.path_state.hook;
        let at = rules.at(family, hook);
        if let Some(nat) = self.at.nat {
            // Within the NAT chains.
            let destination = is_destination(hook);
            match at.nat.get(nat) {
                Some(base) if !self.is_nat_done(destination) => {
                    self.note_order(&at.nat, nat);
                    self.at.nat = Some(nat + 1);
                    self.enter(base.clone());
                }
                _ => {
                    if !self.is_nat_done(destination) {
                        self.path_state.leave(destination);
                    }
                    self.at.nat = None;
                    self.at.translated = true;
                }
            }
            return Ok(None);
        }
        let chain = at.chains.get(self.at.chains);
        let priority = chain.map_or(i32::MAX, |base| base.priority);
        let tracks = matches!(hook, Hook::Prerouting | Hook::Output);
        let nat = match tracks {
            true => Priority::DSTNAT.0,
            false => Priority::SRCNAT.0,
        };
        if !self.at.tracked && tracks && priority > TRACKING {
            self.path_state.track();
            self.at.tracked = true;
        } else if !self.at.translated && hook != Hook::Forward && priority > nat {
            self.begin_translation(rules, is_destination(hook))?;
        } else if let Some(base) = chain {
            self.note_order(&at.chains, self.at.chains);
            if priority == TRACKING && tracks || priority == nat && rules.translates(family) {
                self.path_state.note(format!(
                    "it is unknown whether a chain of priority {priority} at {hook} runs before the kernel's own processing; \
                     this trace assumes that it does"
                ));
            }
            let base = base.clone();
            self.at.chains += 1;
            self.enter(base);
        } else {
            return self.next_hook();
        }
        self.path_state.end();
        Ok(None)
    }

    /// Notes that the kernel may evaluate the next chain first.
    fn note_order(&mut self, chains: &[Arc<Base<'s>>], place: usize) {
        let priority = |place: usize| chains.get(place).map(|base| base.priority);
        if let Some(same) = priority(place).filter(|same| priority(place + 1) == Some(*same)) {
            let hook = self.path_state.hook;
            self.path_state.note(format!(
                "the order of chains of priority {same} at {hook} is unknown; this trace assumes the order of \
                 the listing"
            ));
        }
    }

    fn begin_translation(
        &mut self,
        rules: &Rules<'s>,
        destination: bool,
    ) -> Result<(), Undetermined> {
        if rules.translates(self.path_state.family) && self.path_state.has_connection()? {
            let first = [State::New, State::Related].map(|state| (state.bit(), state.bit()));
            let state = self.path_state.state();
            if self.path_state.test_value(&state, Test::Among(&first))? {
                if !self.is_nat_done(destination) {
                    self.at.nat = Some(0);
                    return Ok(());
                }
            } else {
                self.path_state.translate_again(destination)?;
            }
        }
        self.at.translated = true;
        Ok(())
    }

    const fn is_nat_done(&self, destination: bool) -> bool {
        match destination {
            true => self.path_state.tracking.destination_nat_done,
            false => self.path_state.tracking.source_nat_done,
        }
    }

    /// Determines the next hook or the outcome.
    fn next_hook(&mut self) -> Result<Option<Outcome>, Undetermined> {
        // Evaluate it before any change, because the branch may split here.
        let for_this_machine = match self.path_state.hook {
            Hook::Prerouting | Hook::Output => self.path_state.is_for_this_machine()?,
            _ => false,
        };
        self.path_state.end();
        let hook = self.path_state.hook;
        self.hooks.push(HookVerdict { hook, passed: true });
        let next = match hook {
            Hook::Prerouting if for_this_machine => Hook::Input,
            Hook::Prerouting => Hook::Forward,
            Hook::Forward => Hook::Postrouting,
            Hook::Output => Hook::Postrouting,
            Hook::Input => return Ok(Some(Outcome::Delivered)),
            Hook::Postrouting if self.comes_back => Hook::Prerouting,
            Hook::Postrouting => {
                return Ok(Some(match self.came_in {
                    true => Outcome::Forwarded,
                    false => Outcome::Sent,
                }));
            }
        };
        let out = self.out.clone();
        match (hook, next) {
            (Hook::Output, _) if for_this_machine => {
                self.comes_back = true;
                self.path_state.set_interface(false, Some(b"lo"));
            }
            (Hook::Output, _) if self.path_state.tracking.diverted => {
                self.path_state
                    .set_interface(false, out.as_deref().map(|name| &**name));
            }
            (_, Hook::Forward) => {
                self.path_state
                    .set_interface(false, out.as_deref().map(|name| &**name));
                // The machine decrements the TTL.
                match self.path_state.number(Field::Ttl) {
                    Some(ttl @ 0..=1) => {
                        return Ok(Some(Outcome::Rejected(format!(
                            "icmp time-exceeded, because its time to live is {ttl}"
                        ))));
                    }
                    Some(ttl) => self.path_state.set_number(Field::Ttl, ttl - 1),
                    None => self.path_state.forget(Field::Ttl),
                }
            }
            (_, Hook::Prerouting) => {
                self.comes_back = false;
                self.path_state.tracking.looped = true;
                self.path_state.set_interface(true, Some(b"lo"));
                for at in 0..12 {
                    self.path_state.set_number(Field::Link(at), 0);
                }
            }
            _ => {}
        }
        self.path_state.hook = next;
        self.at = Progress::default();
        Ok(None)
    }

    /// Enters a base chain.
    fn enter(&mut self, base: Arc<Base<'s>>) {
        self.frames.push(Frame::of(&base.chain, 0));
        self.base = Some(base);
    }

    /// Moves to the next rule, or returns from the chain.
    fn next_rule(&mut self) -> Option<Outcome> {
        let frame = self.frames.last_mut();
        let next = frame.and_then(|frame| frame.next_rule(&mut self.path_state));
        match next {
            Some(rule) => {
                self.rule = Some(rule);
                None
            }
            None => self.back(),
        }
    }

    /// Returns to the calling chain, or applies the policy.
    fn back(&mut self) -> Option<Outcome> {
        self.frames.pop();
        if !self.frames.is_empty() {
            return None;
        }
        let base = self.base.take()?;
        let drops = base.chain.drops();
        let verdict = match drops {
            true => RuleVerdict::Drop,
            false => RuleVerdict::Accept,
        };
        // Report the base chain, regardless of the chain whose end was reached.
        let frame = Frame::of(&base.chain, 0);
        self.step(&frame, base.priority, None, verdict, true);
        drops.then(|| self.dropped(Outcome::Dropped))
    }

    fn dropped(&mut self, outcome: Outcome) -> Outcome {
        let hook = self.path_state.hook;
        self.hooks.push(HookVerdict {
            hook,
            passed: false,
        });
        outcome
    }

    /// Evaluates the expressions of a rule.
    fn expressions(&mut self) -> Result<Option<Outcome>, Undetermined> {
        loop {
            let table = self.frames.last().and_then(Frame::nft_table);
            let (Some(Rule::Nft { rest, .. }), Some(table)) = (&mut self.rule, table) else {
                return Ok(None);
            };
            let before = rest.clone();
            let (index, expression) = match rest.next() {
                None => {
                    self.record_step(RuleVerdict::Continue, true);
                    return Ok(None);
                }
                Some((_, Err(_))) => {
                    return Err(Undetermined::unknown("its expressions are malformed"));
                }
                Some((index, Ok(expression))) => (index, expression),
            };
            let rest = rest.clone();
            self.path_state.begin();
            let mut state_owners = Vec::new();
            let mut machine = Evaluator {
                path_state: &mut self.path_state,
                registers: &mut self.registers,
                changes: &mut self.changes,
                state_owners: &mut state_owners,
                table,
                rest,
            };
            let evaluated = machine.evaluate(&expression);
            if evaluated.is_ok() {
                self.record_state_changes(index, state_owners);
            }
            let concluded = match evaluated {
                Ok(Continuation::On) => {
                    self.path_state.end();
                    continue;
                }
                Ok(Continuation::Break) => {
                    self.path_state.end();
                    self.record_mismatch();
                    return Ok(None);
                }
                Ok(Continuation::Verdict(verdict)) => self.verdict(&verdict),
                Ok(Continuation::Effect(effect)) => self.effect(effect),
                Err(open) => Err(open),
            };
            match concluded {
                Ok(outcome) => {
                    self.path_state.end();
                    return Ok(outcome);
                }
                Err(open) => {
                    if let Some(Rule::Nft { rest, .. }) = &mut self.rule {
                        *rest = before;
                    }
                    return Err(open);
                }
            }
        }
    }

    /// Evaluates a legacy entry.
    fn entry(&mut self) -> Result<Option<Outcome>, Undetermined> {
        loop {
            let Some(Rule::Legacy { rule, evaluated }) = &mut self.rule else {
                return Ok(None);
            };
            let (rule, part) = (*rule, *evaluated);
            self.path_state.begin();
            let is = match part {
                0 => Some(entries::header(&mut self.path_state, &rule.header())?),
                _ => entries::part(&mut self.path_state, &rule, part - 1)?,
            };
            match is {
                Some(true) => {
                    self.path_state.end();
                    if let Some(Rule::Legacy { evaluated, .. }) = &mut self.rule {
                        *evaluated += 1;
                    }
                }
                Some(false) => {
                    self.path_state.end();
                    self.record_mismatch();
                    return Ok(None);
                }
                None => {
                    let outcome = match entries::target(&mut self.path_state, &rule)? {
                        entries::Target::Effect(effect) => self.effect(effect)?,
                        entries::Target::Chain(chain, goes) => {
                            let Some(table) = self.frames.last().and_then(Frame::legacy_table)
                            else {
                                return Err(Undetermined::unknown(
                                    "it jumps to a chain of another backend",
                                ));
                            };
                            let table = table.clone();
                            self.call(ChainOf::Legacy { table, chain }, goes)
                        }
                    };
                    self.path_state.end();
                    return Ok(outcome);
                }
            }
        }
    }

    /// Enters the target chain of a rule. `goes` is true for a goto, which does not return.
    fn call(&mut self, chain: ChainOf<'s>, goes: bool) -> Option<Outcome> {
        let name = chain.name().to_owned();
        let verdict = match goes {
            true => RuleVerdict::Goto(name),
            false => RuleVerdict::Jump(name),
        };
        self.record_step(verdict, true);
        let depth = self.frames.last().map_or(0, |frame| frame.depth + 1);
        if goes {
            self.frames.pop();
        }
        if depth >= MAX_CALL_DEPTH {
            return Some(Outcome::NotFollowed(
                "chains are nested too deeply".to_owned(),
            ));
        }
        self.frames.push(Frame::of(&chain, depth));
        None
    }

    fn verdict(&mut self, verdict: &Verdict<'s>) -> Result<Option<Outcome>, Undetermined> {
        let effect = match verdict {
            Verdict::Accept => Effect::Accept,
            Verdict::Drop => Effect::Drop,
            Verdict::Return => Effect::Return,
            Verdict::Continue | Verdict::Break => Effect::Continue,
            Verdict::Jump(name) | Verdict::Goto(name) => {
                let goes = matches!(verdict, Verdict::Goto(_));
                let Some(table) = self.frames.last().and_then(Frame::nft_table) else {
                    return Err(Undetermined::unknown(
                        "it jumps to a chain of another backend",
                    ));
                };
                let Some(chain) = table.table.chain(name.as_bytes()) else {
                    return Err(Undetermined::unknown(format!("no such chain: {name}")));
                };
                let chain = ChainOf::Nft {
                    table: table.clone(),
                    chain,
                    name: chain.chain().name(),
                    drops: false,
                };
                return Ok(self.call(chain, goes));
            }
            Verdict::JumpId(_) | Verdict::GotoId(_) | Verdict::Other { .. } => {
                return Err(Undetermined::unknown("its verdict is not supported"));
            }
        };
        self.effect(effect)
    }

    fn effect(&mut self, effect: Effect) -> Result<Option<Outcome>, Undetermined> {
        let (verdict, outcome) = match effect {
            Effect::Continue => (RuleVerdict::Continue, None),
            Effect::Accept => {
                self.record_step(RuleVerdict::Accept, true);
                self.frames.clear();
                self.base = None;
                return Ok(None);
            }
            Effect::Return => {
                self.record_step(RuleVerdict::Return, true);
                return Ok(self.back());
            }
            Effect::Drop => (RuleVerdict::Drop, Some(Outcome::Dropped)),
            Effect::Reject(with) => (
                RuleVerdict::Reject(with.clone()),
                Some(Outcome::Rejected(with)),
            ),
            Effect::Stolen(by) => (RuleVerdict::Stolen(by.clone()), Some(Outcome::Stolen(by))),
            Effect::Queue {
                first,
                queues,
                bypass,
            } => {
                let description = match queues {
                    0 | 1 => format!("{first}"),
                    _ => format!("{first}-{}", u32::from(first) + u32::from(queues) - 1),
                };
                if self
                    .path_state
                    .always(format!("a program listens on queue {description}"))?
                {
                    (
                        RuleVerdict::Queue(description.clone()),
                        Some(Outcome::Queued(description)),
                    )
                } else if bypass {
                    self.record_step(RuleVerdict::Queue(description), true);
                    self.frames.clear();
                    self.base = None;
                    return Ok(None);
                } else {
                    (RuleVerdict::Queue(description), Some(Outcome::Dropped))
                }
            }
        };
        self.record_step(verdict, true);
        Ok(outcome.map(|outcome| self.dropped(outcome)))
    }

    /// Records the state that an expression of the rule changed.
    fn record_state_changes(&mut self, expression: usize, owners: Vec<(StateOwner, Option<bool>)>) {
        let (Some(frame), Some(Rule::Nft { handle, .. })) = (self.frames.last(), &self.rule) else {
            return;
        };
        for (owner, exceeded) in owners {
            let (_, family, table, chain) = frame.names();
            self.state_changes.push(StateChange {
                family,
                table: table.to_owned(),
                chain: chain.to_owned(),
                rule: *handle,
                expression,
                owner,
                exceeded,
            });
        }
    }

    /// Records that the rule does not match. Its earlier actions remain in effect.
    fn record_mismatch(&mut self) {
        match self.path_state.current_actions.is_empty() {
            true => self.rule = None,
            false => self.record_step(RuleVerdict::Continue, false),
        }
    }

    /// Records that the rule was evaluated.
    fn record_step(&mut self, verdict: RuleVerdict, is_whole: bool) {
        let handle = match self.rule.take() {
            Some(Rule::Nft { handle, .. }) => Some(handle),
            Some(Rule::Legacy { .. }) => None,
            None => return,
        };
        let Some(frame) = self.frames.pop() else {
            return;
        };
        let at = RuleAt {
            handle,
            number: frame.taken,
        };
        let priority = self.base.as_ref().map_or(0, |base| base.priority);
        self.step(&frame, priority, Some(at), verdict, is_whole);
        self.frames.push(frame);
    }

    fn step(
        &mut self,
        frame: &Frame<'s>,
        priority: i32,
        rule: Option<RuleAt>,
        verdict: RuleVerdict,
        is_whole: bool,
    ) {
        let (backend, family, table, chain) = frame.names();
        self.steps.push(Step {
            backend,
            family,
            table: table.to_owned(),
            chain: chain.to_owned(),
            hook: self.path_state.hook,
            priority,
            rule,
            is_full_match: is_whole,
            actions: std::mem::take(&mut self.path_state.current_actions),
            verdict,
        });
    }

    /// Creates the result of the branch.
    fn end(mut self, outcome: Outcome) -> End {
        let mut steps: Vec<Step> = self.steps.backwards().cloned().collect();
        steps.reverse();
        let mut changes: Vec<_> = self.state_changes.backwards().cloned().collect();
        changes.reverse();
        let (assumptions, chances) = self.path_state.assumptions();
        let packet = self.path_state.final_packet();
        End {
            probability: self.path_state.probability,
            assumptions,
            chances,
            steps,
            changes,
            hooks: self.hooks,
            outcome,
            packet,
            notes: self
                .path_state
                .notes
                .iter()
                .map(|note| note.to_string())
                .collect(),
        }
    }
}

/// Returns `true` if a hook does destination NAT; otherwise it does source NAT.
const fn is_destination(hook: Hook) -> bool {
    matches!(hook, Hook::Prerouting | Hook::Output)
}
