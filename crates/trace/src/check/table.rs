//! A table's sets and chains, as its rules use them.

use std::collections::{HashMap, HashSet};

use bstr::{BStr, BString, ByteSlice};
use chainwright::netlink::Malformed;
use chainwright::nft::expr::{Data, Decoded, ExpressionRef, ExpressionView, ObjectType, Verdict};
use chainwright::nft::{
    DataType, ElementRef, Family, RuleRef, SetFlags, SnapshotSet, SnapshotTable,
};

use super::variables::Writes;

/// What is known about the elements of a set.
#[derive(Debug)]
pub(super) enum Contents {
    /// Never changes. `text` identifies the elements.
    Constant { text: BString },
    /// Only changes with the ruleset.
    Named,
    /// Rules, timeouts or the state of elements change the result of a lookup.
    Changing,
}

/// A set.
#[derive(Debug)]
pub(super) struct SetContext {
    pub(super) key_length: usize,
    pub(super) data_type: Option<DataType>,
    pub(super) data_length: usize,
    pub(super) contents: Contents,
}

/// Uses of a table's sets, objects and flowtables by its rules.
#[derive(Debug, Default)]
pub(super) struct Uses<'s> {
    /// Sets that rules look up.
    pub(super) looked_up: HashSet<&'s BStr>,
    /// Sets that rules change.
    pub(super) written: HashSet<&'s BStr>,
    /// Objects, by type and name.
    pub(super) objects: HashSet<(u32, &'s BStr)>,
    pub(super) flowtables: HashSet<&'s BStr>,
    /// Whether all expressions were read.
    pub(super) is_complete: bool,
}

/// A table.
#[derive(Debug)]
pub(super) struct TableContext<'s> {
    pub(super) family: Family,
    pub(super) table: SnapshotTable<'s>,
    pub(super) uses: Uses<'s>,
    sets: HashMap<&'s BStr, SetContext>,
    changes: Changes<'s>,
}

impl<'s> TableContext<'s> {
    pub(super) fn read(table: SnapshotTable<'s>) -> Self {
        let uses = Uses::read(&table);
        let sets = table.sets().map(|set| {
            let is_written = uses.written.contains(set.set().name());
            (set.set().name(), SetContext::read(&set, is_written))
        });
        let sets = sets.collect();
        Self {
            family: table.table().family(),
            changes: Changes::read(&table),
            table,
            uses,
            sets,
        }
    }

    pub(super) fn set(&self, name: &BStr) -> Option<&SetContext> {
        self.sets.get(name)
    }

    /// Returns the changes of packet data by a rule after which the next rule may follow: not those of the chains to
    /// which it goes without returning.
    pub(super) fn writes(&self, rule: &RuleRef<'s>) -> Writes {
        let mut writes = Writes::default();
        for expression in rule.expressions().into_iter().flatten() {
            let Ok(expression) = expression else {
                writes.all = true;
                continue;
            };
            add_writes(&expression, &mut writes);
            let view = expression.view();
            let called = match view.ok().and_then(|view| target(&self.table, &view)) {
                Some(Target::Verdict(Verdict::Jump(to))) => {
                    self.changes.chains.get(BStr::new(&**to))
                }
                Some(Target::Map(name)) => self.changes.maps.get(name),
                _ => None,
            };
            if let Some(called) = called {
                writes.add(called);
            }
        }
        writes
    }
}

impl<'s> Uses<'s> {
    fn read(table: &SnapshotTable<'s>) -> Self {
        let mut uses = Self {
            is_complete: true,
            ..Self::default()
        };
        for chain in table.chains() {
            for rule in chain.rules() {
                for expression in rule.expressions().into_iter().flatten() {
                    match expression.map(|expression| expression.view()) {
                        Ok(Ok(view)) => uses.add(&view),
                        _ => uses.is_complete = false,
                    }
                }
            }
        }
        for set in table.sets() {
            let Some(kind) = set.set().object_type() else {
                continue;
            };
            let objects = set.elements().filter_map(|element| element.object());
            uses.objects.extend(objects.map(|name| (kind.0, name)));
        }
        uses
    }

    fn add(&mut self, view: &ExpressionView<'s>) {
        match view {
            ExpressionView::Lookup(lookup) => self.looked_up.extend(lookup.set()),
            ExpressionView::Dynset(dynset) => self.written.extend(dynset.set_name()),
            ExpressionView::Objref(objref) => {
                self.looked_up.extend(objref.set_name());
                let named = objref.imm_type().zip(objref.imm_name());
                self.objects
                    .extend(named.map(|(kind, name)| (kind.0, name)));
            }
            ExpressionView::FlowOffload(offload) => self.flowtables.extend(offload.table_name()),
            ExpressionView::Opaque(_) => self.is_complete = false,
            _ => {}
        }
    }
}

impl SetContext {
    fn read(set: &SnapshotSet<'_>, is_written: bool) -> Self {
        let set_ref = set.set();
        let flags = set_ref.flags().unwrap_or_default();
        let is_changing = is_written || flags.intersects(SetFlags::EVAL | SetFlags::TIMEOUT);
        let contents = match is_changing || set.elements().any(|one| has_state(&one)) {
            true => Contents::Changing,
            false if is_constant(flags) => Contents::Constant {
                text: contents_text(set),
            },
            false => Contents::Named,
        };
        Self {
            key_length: set_ref.key_length().unwrap_or_default() as usize,
            data_type: set_ref.data_type(),
            data_length: set_ref.data_length().unwrap_or_default() as usize,
            contents,
        }
    }
}

/// Returns `true` if the result of a lookup may depend on the state of an element.
fn has_state(element: &ElementRef<'_>) -> bool {
    let one = element.expression();
    let one = one.as_ref().map(|one| one.get());
    let several = element.expressions().into_iter().flatten();
    let mut all = one.into_iter().chain(several);
    let is_count = |expression: Result<ExpressionRef<'_>, Malformed>| {
        let decoded = expression.and_then(|expression| expression.decode());
        matches!(decoded, Ok(Decoded::Counter(_) | Decoded::Last(_)))
    };
    element.timeout().is_some() || !all.all(is_count)
}

/// Returns a text that identifies the elements of a set.
pub(super) fn contents_text(set: &SnapshotSet<'_>) -> BString {
    let elements = set.elements().map(|element| {
        let (key, end) = (element.key_bytes(), element.key_end_bytes());
        let is_end = element.is_interval_end();
        let value = (element.data(), element.object());
        format!("{key:?}{end:?}{is_end}{value:?};")
    });
    let mut elements: Vec<String> = elements.collect();
    elements.sort_unstable();
    let flags = set.set().flags().unwrap_or_default();
    format!("{flags:?} {}", elements.concat()).into()
}

/// A chain, or a verdict map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Node<'n> {
    Chain(&'n BStr),
    Map(&'n BStr),
}

/// Where an expression leads.
enum Target<'v> {
    Verdict(Verdict<'v>),
    /// To the verdicts of this map.
    Map(&'v BStr),
}

fn target<'s>(table: &SnapshotTable<'s>, view: &ExpressionView<'s>) -> Option<Target<'s>> {
    match view {
        ExpressionView::Immediate(immediate) => match immediate.data()? {
            Data::Verdict(verdict) => Some(Target::Verdict(verdict)),
            _ => None,
        },
        ExpressionView::Lookup(lookup) if lookup.dreg().is_some() => {
            let name = lookup.set()?;
            let is_verdict = table.set(name)?.set().data_type() == Some(DataType::VERDICT);
            is_verdict.then_some(Target::Map(name))
        }
        _ => None,
    }
}

/// Returns the chains of a verdict map.
pub(super) fn map_chains(set: &SnapshotSet<'_>) -> HashSet<BString> {
    let targets = set.elements().filter_map(|element| match element.data()? {
        Data::Verdict(Verdict::Jump(to) | Verdict::Goto(to)) => Some(to.to_owned()),
        _ => None,
    });
    targets.map(|name| BString::from(&**name)).collect()
}

/// Returns the chain to which an expression leads itself, without a map.
pub(super) fn chain_of(view: &ExpressionView<'_>) -> Option<BString> {
    let ExpressionView::Immediate(immediate) = view else {
        return None;
    };
    match immediate.data()? {
        Data::Verdict(Verdict::Jump(to) | Verdict::Goto(to)) => Some(BString::from(&**to)),
        _ => None,
    }
}

/// Changes of packet data by chains and verdict maps, and by the chains to which these lead.
#[derive(Debug, Default)]
struct Changes<'s> {
    chains: HashMap<&'s BStr, Writes>,
    maps: HashMap<&'s BStr, Writes>,
}

impl<'s> Changes<'s> {
    fn of(&mut self, node: Node<'s>) -> &mut Writes {
        match node {
            Node::Chain(name) => self.chains.entry(name).or_default(),
            Node::Map(name) => self.maps.entry(name).or_default(),
        }
    }

    fn read(table: &SnapshotTable<'s>) -> Self {
        let mut changes = Self::default();
        let mut callers: HashMap<(bool, BString), HashSet<Node<'s>>> = HashMap::new();
        let mut waiting = Vec::new();
        for set in table.sets() {
            if set.set().data_type() == Some(DataType::VERDICT) {
                for chain in map_chains(&set) {
                    let node = Node::Map(set.set().name());
                    callers.entry((false, chain)).or_default().insert(node);
                }
            }
        }
        for chain in table.chains() {
            let node = Node::Chain(chain.chain().name());
            let mut own = Writes::default();
            for rule in chain.rules() {
                for expression in rule.expressions().into_iter().flatten() {
                    let Ok(expression) = expression else {
                        own.all = true;
                        continue;
                    };
                    add_writes(&expression, &mut own);
                    let view = expression.view();
                    let called = match view.ok().and_then(|view| target(table, &view)) {
                        Some(Target::Verdict(Verdict::Jump(to) | Verdict::Goto(to))) => {
                            (false, BString::from(&**to))
                        }
                        Some(Target::Map(name)) => (true, name.to_owned()),
                        _ => continue,
                    };
                    callers.entry(called).or_default().insert(node);
                }
            }
            if !own.is_empty() {
                waiting.push(node);
            }
            *changes.of(node) = own;
        }
        while let Some(node) = waiting.pop() {
            let writes = changes.of(node).clone();
            let key = match node {
                Node::Chain(name) => (false, name.to_owned()),
                Node::Map(name) => (true, name.to_owned()),
            };
            for caller in callers.get(&key).into_iter().flatten() {
                if changes.of(*caller).add(&writes) {
                    waiting.push(*caller);
                }
            }
        }
        changes
    }
}

/// Adds the packet data that an expression may change to `writes`.
pub(super) fn add_writes(expression: &ExpressionRef<'_>, writes: &mut Writes) {
    let name = expression.name.as_bytes();
    match name {
        b"payload" | b"meta" | b"ct" | b"exthdr" | b"objref" | b"target" => {}
        b"notrack" | b"flow_offload" => writes.ct = true,
        b"cmp" | b"range" | b"lookup" | b"bitwise" | b"byteorder" | b"immediate" | b"counter"
        | b"last" | b"log" | b"dup" | b"limit" | b"quota" | b"connlimit" | b"numgen" | b"hash"
        | b"dynset" | b"fib" | b"rt" | b"socket" | b"osf" | b"tunnel" | b"xfrm" | b"reject"
        | b"queue" | b"masq" | b"redir" | b"nat" | b"match" => {}
        _ => writes.all = true,
    }
    match expression.view() {
        Ok(ExpressionView::Payload(payload)) => writes.all |= payload.sreg().is_some(),
        Ok(ExpressionView::Exthdr(exthdr)) => writes.all |= exthdr.dreg().is_none(),
        Ok(ExpressionView::Ct(ct)) => writes.ct |= ct.sreg().is_some(),
        Ok(ExpressionView::Meta(meta)) if meta.sreg().is_some() => match meta.key() {
            Some(key) => _ = writes.meta.insert(key.0),
            None => writes.all = true,
        },
        Ok(ExpressionView::Objref(objref)) => match objref.imm_type() {
            Some(
                ObjectType::COUNTER | ObjectType::QUOTA | ObjectType::LIMIT | ObjectType::CONNLIMIT,
            ) => {}
            Some(ObjectType::CT_HELPER | ObjectType::CT_TIMEOUT | ObjectType::CT_EXPECT) => {
                writes.ct = true;
            }
            _ => writes.all = true,
        },
        Ok(ExpressionView::Target(target)) => {
            let is_harmless = target.name().is_some_and(|name| {
                [b"LOG".as_slice(), b"NFLOG", b"REJECT"].contains(&name.as_bytes())
            });
            writes.all |= !is_harmless;
        }
        Ok(_) => {}
        Err(_) => writes.all = true,
    }
}

/// Returns `true` if a set with these flags keeps its elements.
const fn is_constant(flags: SetFlags) -> bool {
    flags.contains(SetFlags::CONSTANT) || flags.contains(SetFlags::ANONYMOUS)
}
