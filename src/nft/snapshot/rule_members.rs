//! The objects that belong to a rule: anonymous sets and the chains that are bound to it. The kernel creates and
//! deletes them with the rule, and assigns their names; so two rules are equal if the contents of these objects are.

use std::collections::HashMap;

use bstr::BStr;

use super::compare::{Compare, in_newer_form};
use super::{SnapshotChain, SnapshotSet, SnapshotTable};
use crate::nft::expr::{Data, Decoded, ExpressionRef, Expressions, Immediate, ObjectType, Verdict};
use crate::nft::{ChainFlags, ElementRef, RuleRef, SetFlags, SetRef};

/// Maximum nesting of bound chains: the depth of the kernel's jump stack.
pub(super) const DEPTH: usize = 16;

/// A reference of a rule or an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::nft) enum ObjectReference<'m> {
    Chain(&'m BStr),
    Set(&'m BStr),
    Object(ObjectType, &'m BStr),
    Flowtable(&'m BStr),
}

/// The objects of a table that belong to its rules.
#[derive(Default)]
pub(super) struct RuleObjects<'s> {
    sets: HashMap<&'s BStr, SnapshotSet<'s>>,
    chains: HashMap<&'s BStr, SnapshotChain<'s>>,
}

/// The objects that belong to one rule.
#[derive(Default)]
pub(super) struct RuleParts<'s> {
    pub(super) sets: Vec<SnapshotSet<'s>>,
    /// Each precedes the chains that are bound to its rules.
    pub(super) chains: Vec<SnapshotChain<'s>>,
}

/// Returns `true` if a set is deleted with the rule that names it.
pub(super) fn is_anonymous(set: &SetRef<'_>) -> bool {
    let flags = set.flags().unwrap_or_default();
    flags.contains(SetFlags::ANONYMOUS)
}

/// Returns `true` if the kernel generated the name of an anonymous set, for `nft` and similar tools. A meter is
/// anonymous, too, but has a name from its user.
pub(super) fn is_numbered(name: &BStr) -> bool {
    let patterns: [&[u8]; 3] = [b"__set", b"__map", b"__objmap"];
    patterns.iter().any(|pattern| name.starts_with(pattern))
}

/// Returns `true` if a chain is deleted with the rule that jumps to it.
pub(super) fn is_bound(chain: &SnapshotChain<'_>) -> bool {
    let flags = chain.chain().flags().unwrap_or_default();
    flags.contains(ChainFlags::BINDING)
}

impl<'d> ObjectReference<'d> {
    /// Decodes an expression that can have a reference; `None` for others and malformed ones.
    pub(in crate::nft) fn decode<'r>(expression: &ExpressionRef<'r>) -> Option<Decoded<'r>> {
        let name: &[u8] = expression.name;
        match name {
            b"immediate" | b"lookup" | b"dynset" | b"objref" | b"flow_offload" => {
                expression.decode().ok()
            }
            _ => None,
        }
    }

    /// Returns the reference of an expression, if it has one.
    pub(in crate::nft) fn of(expression: &'d Decoded<'_>) -> Option<Self> {
        Some(match expression {
            Decoded::Immediate(Immediate {
                data: Some(Data::Verdict(Verdict::Jump(chain) | Verdict::Goto(chain))),
                ..
            }) => ObjectReference::Chain(BStr::new(&**chain)),
            Decoded::Lookup(lookup) => ObjectReference::Set(BStr::new(&**lookup.set.as_ref()?)),
            Decoded::Dynset(dynset) => {
                ObjectReference::Set(BStr::new(&**dynset.set_name.as_ref()?))
            }
            Decoded::Objref(objref) => match (&objref.set_name, &objref.imm_name) {
                (Some(set), _) => ObjectReference::Set(BStr::new(&**set)),
                (None, Some(name)) => {
                    ObjectReference::Object(objref.imm_type.unwrap_or_default(), BStr::new(&**name))
                }
                (None, None) => return None,
            },
            Decoded::FlowOffload(flow) => {
                ObjectReference::Flowtable(BStr::new(&**flow.table_name.as_ref()?))
            }
            _ => return None,
        })
    }
}

/// Removes the name of the reference from an expression.
fn nameless(mut expression: Decoded<'_>) -> Decoded<'_> {
    match &mut expression {
        Decoded::Immediate(immediate) => {
            let verdict = match &immediate.data {
                Some(Data::Verdict(Verdict::Goto(_))) => Verdict::GotoId(0),
                _ => Verdict::JumpId(0),
            };
            immediate.data = Some(Data::Verdict(verdict));
        }
        Decoded::Lookup(lookup) => lookup.set = None,
        Decoded::Dynset(dynset) => dynset.set_name = None,
        Decoded::Objref(objref) => objref.set_name = None,
        _ => {}
    }
    expression
}

/// Decodes the expressions of a rule that can have a reference.
fn referring<'r>(rule: &RuleRef<'r>) -> impl Iterator<Item = Decoded<'r>> {
    let expressions = rule.expressions().into_iter().flatten();
    let expressions = expressions.map_while(Result::ok);
    expressions.filter_map(|expression| ObjectReference::decode(&expression))
}

/// Visits the references of a rule itself.
pub(super) fn each_name(rule: &RuleRef<'_>, visit: &mut dyn FnMut(ObjectReference<'_>)) {
    for decoded in referring(rule) {
        if let Some(name) = ObjectReference::of(&decoded) {
            visit(name);
        }
    }
}

/// Visits the references of an element of a set.
pub(super) fn each_mention_of(
    set: &SetRef<'_>,
    element: &ElementRef<'_>,
    visit: &mut dyn FnMut(ObjectReference<'_>),
) {
    if let Some(name) = element.object() {
        visit(ObjectReference::Object(
            set.object_type().unwrap_or_default(),
            name,
        ));
    }
    if let Some(Data::Verdict(Verdict::Jump(chain) | Verdict::Goto(chain))) = element.data() {
        visit(ObjectReference::Chain(BStr::new(&*chain)));
    }
}

fn append_part(key: &mut Vec<u8>, part: &[u8]) {
    key.extend_from_slice(&(part.len() as u64).to_ne_bytes());
    key.extend_from_slice(part);
}

impl<'s> RuleObjects<'s> {
    pub(super) fn of(table: &SnapshotTable<'s>) -> Self {
        let sets = table.sets().map(|set| (set.set(), set));
        let sets = sets.filter(|(view, _)| is_anonymous(view));
        let chains = table.chains().filter(is_bound);
        Self {
            sets: sets.map(|(view, set)| (view.name(), set)).collect(),
            chains: chains.map(|chain| (chain.chain().name(), chain)).collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sets.is_empty() && self.chains.is_empty()
    }

    /// Returns `true` if an object belongs to this rule.
    pub(super) fn has_parts_of(&self, rule: &RuleRef<'_>) -> bool {
        !self.is_empty()
            && referring(rule).any(|decoded| match ObjectReference::of(&decoded) {
                Some(ObjectReference::Set(name)) => self.sets.contains_key(name),
                Some(ObjectReference::Chain(name)) => self.chains.contains_key(name),
                _ => false,
            })
    }

    /// Returns the comparison key of a rule in its chain.
    pub(super) fn key(&self, compare: Compare, rule: &RuleRef<'_>) -> Vec<u8> {
        let mut key = Vec::new();
        self.write_key(compare, rule, &mut key, 0);
        key
    }

    fn write_key(&self, compare: Compare, rule: &RuleRef<'_>, key: &mut Vec<u8>, depth: usize) {
        append_part(key, &compare.rule_around(rule));
        let mut expressions = Expressions::new();
        let mut contents = Vec::new();
        let listed = rule.expressions().into_iter().flatten();
        for expression in listed.map_while(Result::ok) {
            let Ok(decoded) = expression.decode() else {
                expressions.push_raw(&expression);
                continue;
            };
            let decoded = compare.expression(decoded);
            let inside = match ObjectReference::of(&decoded) {
                Some(ObjectReference::Set(name)) => self.sets.get(name).map(|set| {
                    write_set_key(compare, set, &mut contents);
                }),
                Some(ObjectReference::Chain(name)) => self.chains.get(name).map(|chain| {
                    let rules = chain.rules().take_while(|_| depth < DEPTH);
                    rules.for_each(|rule| self.write_key(compare, &rule, &mut contents, depth + 1));
                    append_part(&mut contents, b"end");
                }),
                _ => None,
            };
            expressions.push_decoded(&match inside {
                Some(()) => nameless(decoded),
                None => decoded,
            });
        }
        append_part(key, in_newer_form(expressions).as_bytes());
        append_part(key, &contents);
    }

    /// Visits the references of a rule, and those of the objects that belong to it.
    pub(super) fn each_mention(
        &self,
        rule: &RuleRef<'_>,
        visit: &mut dyn FnMut(ObjectReference<'_>),
    ) {
        self.mentions(rule, visit, 0);
    }

    fn mentions(
        &self,
        rule: &RuleRef<'_>,
        visit: &mut dyn FnMut(ObjectReference<'_>),
        depth: usize,
    ) {
        for decoded in referring(rule) {
            let Some(mention) = ObjectReference::of(&decoded) else {
                continue;
            };
            match mention {
                ObjectReference::Set(name) if self.sets.contains_key(name) => {
                    let set = self.sets[name];
                    let view = set.set();
                    for element in set.elements() {
                        each_mention_of(&view, &element, visit);
                    }
                }
                ObjectReference::Chain(name) if self.chains.contains_key(name) => {
                    let rules = self.chains[name].rules().take_while(|_| depth < DEPTH);
                    rules.for_each(|rule| self.mentions(&rule, visit, depth + 1));
                }
                mention => visit(mention),
            }
        }
    }

    /// Returns the objects that belong to a rule.
    pub(super) fn parts(&self, rule: &RuleRef<'_>) -> RuleParts<'s> {
        let mut parts = RuleParts::default();
        if !self.is_empty() {
            self.collect(rule, &mut parts, 0);
        }
        parts
    }

    fn collect(&self, rule: &RuleRef<'_>, parts: &mut RuleParts<'s>, depth: usize) {
        for decoded in referring(rule) {
            match ObjectReference::of(&decoded) {
                Some(ObjectReference::Set(name)) => parts.sets.extend(self.sets.get(name)),
                Some(ObjectReference::Chain(name)) if depth < DEPTH => {
                    if let Some(chain) = self.chains.get(name) {
                        parts.chains.push(*chain);
                        chain
                            .rules()
                            .for_each(|rule| self.collect(&rule, parts, depth + 1));
                    }
                }
                _ => {}
            }
        }
    }
}

fn write_set_key(compare: Compare, set: &SnapshotSet<'_>, key: &mut Vec<u8>) {
    let view = set.set();
    append_part(key, &compare.set_but_name(&view));
    if !is_numbered(view.name()) {
        append_part(key, view.name());
    }
    let mut elements: Vec<_> = set
        .elements()
        .map(|element| compare.element(&element))
        .collect();
    // The order of a hash table is arbitrary.
    elements.sort_unstable();
    append_part(key, &(elements.len() as u64).to_ne_bytes());
    for element in elements {
        append_part(key, &element);
    }
}
