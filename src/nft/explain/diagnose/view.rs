//! The part of a ruleset that decides whether the kernel accepts an operation: read from the kernel, and changed by the
//! operations of a transaction.

use std::collections::{BTreeMap, HashMap, HashSet};

use bstr::{BStr, BString, ByteSlice as _};
use chainwright_sys::netlink::NLM_F_REPLACE;
use chainwright_sys::nf_tables::{
    NFT_MSG_DELCHAIN, NFT_MSG_DELFLOWTABLE, NFT_MSG_DELOBJ, NFT_MSG_DELRULE, NFT_MSG_DELSET,
    NFT_MSG_DELSETELEM, NFT_MSG_DELTABLE, NFT_MSG_DESTROYCHAIN, NFT_MSG_DESTROYFLOWTABLE,
    NFT_MSG_DESTROYOBJ, NFT_MSG_DESTROYRULE, NFT_MSG_DESTROYSET, NFT_MSG_DESTROYSETELEM,
    NFT_MSG_DESTROYTABLE, NFT_MSG_NEWCHAIN, NFT_MSG_NEWFLOWTABLE, NFT_MSG_NEWOBJ, NFT_MSG_NEWRULE,
    NFT_MSG_NEWSET, NFT_MSG_NEWSETELEM, NFT_MSG_NEWTABLE, NFTA_CHAIN_HANDLE, NFTA_CHAIN_HOOK,
    NFTA_CHAIN_ID, NFTA_CHAIN_TYPE, NFTA_FLOWTABLE_NAME, NFTA_FLOWTABLE_TABLE, NFTA_OBJ_NAME,
    NFTA_OBJ_TABLE, NFTA_RULE_CHAIN_ID, NFTA_RULE_EXPRESSIONS, NFTA_RULE_HANDLE, NFTA_RULE_ID,
    NFTA_RULE_TABLE, NFTA_SET_DATA_LEN, NFTA_SET_DATA_TYPE, NFTA_SET_DESC, NFTA_SET_DESC_SIZE,
    NFTA_SET_ELEM_LIST_ELEMENTS, NFTA_SET_ELEM_LIST_SET, NFTA_SET_ELEM_LIST_SET_ID,
    NFTA_SET_ELEM_LIST_TABLE, NFTA_SET_FLAGS, NFTA_SET_ID, NFTA_SET_KEY_LEN, NFTA_SET_NAME,
    NFTA_SET_TABLE, NFTA_TABLE_HANDLE, NFTA_TABLE_NAME, NFTA_TABLE_OWNER,
};

use super::placement::{AllowedContext, allowed_context};
use super::{MAX_DEPTH, MAX_USERS, did_you_mean, kind_words};
use crate::escape::Escaped;
use crate::netlink::{Attributes, Message};
use crate::nft::declare::Field as _;
use crate::nft::expr::{Data, Decoded, ExpressionIter, ExpressionRef, Verdict};
use crate::nft::references::NameKind;
use crate::nft::{
    ChainRef, Connection, DataType, ElementRef, Family, Hook, Name, Scope, SetFlags, Snapshot,
};

/// The attribute with the table's name, in all messages.
pub(super) const TABLE: u16 = NFTA_TABLE_NAME;
/// The attribute with the object's name, in messages of sets, elements, stateful objects and flowtables.
pub(super) const NAME: u16 = NFTA_SET_NAME;
pub(super) const CHAIN_NAME: u16 = chainwright_sys::nf_tables::NFTA_CHAIN_NAME;
pub(super) const RULE_CHAIN: u16 = chainwright_sys::nf_tables::NFTA_RULE_CHAIN;
pub(super) const ELEMENTS_SET_ID: u16 = NFTA_SET_ELEM_LIST_SET_ID;

const _: () = {
    assert!(NFTA_RULE_TABLE == TABLE && NFTA_SET_TABLE == TABLE && NFTA_OBJ_TABLE == TABLE);
    assert!(NFTA_SET_ELEM_LIST_TABLE == TABLE && NFTA_FLOWTABLE_TABLE == TABLE);
    assert!(NFTA_SET_ELEM_LIST_SET == NAME && NFTA_OBJ_NAME == NAME && NFTA_FLOWTABLE_NAME == NAME);
};

/// A table, by family and name.
pub(super) type Key = (Family, BString);

#[derive(Default)]
pub(super) struct TableView {
    /// Netlink port of the owner.
    pub(super) owner: Option<u32>,
}

/// The attachment of a base chain.
#[derive(Clone)]
pub(super) struct BaseChain {
    pub(super) chain_type: BString,
    pub(super) hook: u32,
    pub(super) priority: i32,
    /// Number of its devices.
    pub(super) devices: usize,
}

impl BaseChain {
    /// Returns the attachment in a chain's attributes; `None` for a chain without a hook.
    pub(super) fn of(attributes: Attributes<'_>) -> Option<Self> {
        let hook = Hook::decode(attributes.clone().find(NFTA_CHAIN_HOOK)?)?;
        let several = hook.devices.iter().flat_map(|devices| devices.iter());
        Some(Self {
            chain_type: attributes
                .clone()
                .find(NFTA_CHAIN_TYPE)
                .map_or_else(|| "filter".into(), name),
            hook: hook.number?,
            priority: hook.priority?,
            devices: several.count() + usize::from(hook.device.is_some()),
        })
    }
}

#[derive(Default)]
pub(super) struct ChainView {
    pub(super) base: Option<BaseChain>,
    rules: Vec<RuleView>,
}

impl ChainView {
    fn of(chain: &ChainRef<'_>) -> Self {
        Self {
            base: BaseChain::of(chain.attributes()),
            rules: Vec::new(),
        }
    }
}

/// The objects that a rule refers to, and the expressions that are not allowed everywhere.
#[derive(Default)]
pub(super) struct RuleView {
    handle: Option<u64>,
    /// The encoded expressions that are not allowed everywhere.
    placed: Vec<BString>,
    /// Target chains.
    pub(super) jumps: Vec<BString>,
    /// The sets that it uses, by [`set_key`].
    sets: Vec<BString>,
    /// The names that it refers to, without those of anonymous sets and chains.
    pub(super) names: Vec<(NameKind, BString)>,
}

impl RuleView {
    pub(super) fn of(attributes: Attributes<'_>) -> Self {
        let mut rule = Self {
            handle: attributes
                .clone()
                .find(NFTA_RULE_HANDLE)
                .and_then(u64::decode),
            ..Self::default()
        };
        for expression in expressions(attributes) {
            rule.add(&expression);
        }
        rule
    }

    fn add(&mut self, expression: &ExpressionRef<'_>) {
        let mut set = |name: Option<crate::nft::Name<'_>>, id| {
            let Some(name) = name else { return };
            if !is_template(&name) {
                self.names.push((NameKind::Set, name.as_bstr().into()));
            }
            self.sets.push(set_key(name.as_bstr(), id));
        };
        match expression.name.as_bytes() {
            b"immediate" | b"lookup" | b"dynset" | b"objref" | b"flow_offload" => {}
            _ => {
                // The families do not differ in which expressions are restricted.
                let is_placed = allowed_context(Family::IP, expression).is_some();
                return self.placed.extend(is_placed.then(|| expression.raw.into()));
            }
        }
        match expression.decode() {
            Ok(Decoded::Immediate(immediate)) => {
                let target = immediate.data.as_ref().and_then(jump);
                if let Some(target) = target {
                    if !target.starts_with(b"#") {
                        self.names.push((NameKind::Chain, target.clone()));
                    }
                    self.jumps.push(target);
                }
            }
            Ok(Decoded::Lookup(lookup)) => set(lookup.set, lookup.set_id),
            Ok(Decoded::Dynset(dynset)) => set(dynset.set_name, dynset.set_id),
            Ok(Decoded::Objref(objref)) => {
                set(objref.set_name, objref.set_id);
                let name = objref.imm_name.map(|name| name.as_bstr().into());
                self.names.extend(name.map(|name| (NameKind::Object, name)));
            }
            Ok(Decoded::FlowOffload(flow)) => {
                let name = flow.table_name.map(|name| name.as_bstr().into());
                self.names
                    .extend(name.map(|name| (NameKind::Flowtable, name)));
                self.placed.push(expression.raw.into());
            }
            _ => {}
        }
    }
}

pub(super) struct SetView {
    pub(super) flags: SetFlags,
    pub(super) key_length: Option<u32>,
    pub(super) data_length: Option<u32>,
    pub(super) has_verdicts: bool,
    pub(super) has_size: bool,
    /// Chains that its elements jump to, by the elements' keys.
    jumps: BTreeMap<BString, BString>,
}

impl SetView {
    pub(super) fn of(attributes: Attributes<'_>) -> Self {
        let number = |kind| attributes.clone().find(kind).and_then(u32::decode);
        let flags = attributes
            .clone()
            .find(NFTA_SET_FLAGS)
            .and_then(SetFlags::decode);
        let data_type = number(NFTA_SET_DATA_TYPE);
        Self {
            flags: flags.unwrap_or_default(),
            key_length: number(NFTA_SET_KEY_LEN),
            data_length: number(NFTA_SET_DATA_LEN),
            has_verdicts: data_type == Some(DataType::VERDICT.0),
            has_size: (attributes.clone().find(NFTA_SET_DESC))
                .is_some_and(|nested| Attributes::new(nested).find(NFTA_SET_DESC_SIZE).is_some()),
            jumps: BTreeMap::new(),
        }
    }

    /// Notes the chain that an element jumps to, if it does.
    fn note(&mut self, element: &ElementRef<'_>) {
        let target = element.to_builder().data.as_ref().and_then(jump);
        let key = || element.key_bytes().unwrap_or_default().into();
        self.jumps.extend(target.map(|target| (key(), target)));
    }

    pub(super) fn is_map(&self) -> bool {
        self.flags.intersects(SetFlags::MAP | SetFlags::OBJECT)
    }
}

/// Returns a name without the trailing NUL.
pub(super) fn name(payload: &[u8]) -> BString {
    payload.strip_suffix(&[0]).unwrap_or(payload).into()
}

/// Returns `true` if the kernel replaces this name by a unique one.
fn is_template(name: &[u8]) -> bool {
    name.contains(&b'%')
}

/// Returns the key of a set: its name, or its number in the transaction if the kernel chooses the name.
pub(super) fn set_key(name: &BStr, id: Option<u32>) -> BString {
    match id {
        Some(id) if is_template(name) => format!("#{id}").into(),
        _ => name.into(),
    }
}

/// Returns the chain to which a verdict jumps: its name, or its number in the transaction.
pub(super) fn jump(data: &Data<'_>) -> Option<BString> {
    match data {
        Data::Verdict(Verdict::Jump(name) | Verdict::Goto(name)) => Some(name.as_bstr().into()),
        Data::Verdict(Verdict::JumpId(id) | Verdict::GotoId(id)) => Some(format!("#{id}").into()),
        _ => None,
    }
}

pub(super) fn expressions(
    attributes: Attributes<'_>,
) -> impl Iterator<Item = ExpressionRef<'_>> + Clone {
    let list = attributes.clone().find(NFTA_RULE_EXPRESSIONS);
    ExpressionIter::new(list.unwrap_or_default()).map_while(Result::ok)
}

/// A ruleset, in part.
#[derive(Default)]
pub(in crate::nft) struct View {
    /// Whether the tables were read, so that what is not here does not exist.
    pub(super) is_complete: bool,
    pub(super) tables: BTreeMap<Key, TableView>,
    pub(super) chains: BTreeMap<(Key, BString), ChainView>,
    pub(super) sets: BTreeMap<(Key, BString), SetView>,
    /// Stateful objects and flowtables.
    others: HashSet<(Key, NameKind, BString)>,
    /// The netlink port of the connection.
    pub(super) port: u32,
    /// The reasons why tables became invalid, by error number, with the operation's index. The kernel keeps a rule that
    /// makes its table invalid until the end of the transaction, and refuses further additions with the same error.
    pub(super) invalid: HashMap<(Key, i32), (usize, String)>,
}

impl View {
    /// Reads the names of all tables, and the objects of these; their rules and verdict maps only if those matter.
    pub(in crate::nft) fn read<'t>(
        nft: &mut Connection,
        tables: impl IntoIterator<Item = &'t (Family, BString)>,
        with_rules: bool,
    ) -> Self {
        let mut view = Self {
            port: nft.port(),
            ..Self::default()
        };
        let read = view.read_tables(nft).and_then(|()| {
            let mut tables = tables.into_iter();
            tables.try_for_each(|table| view.read_table(nft, table, with_rules))
        });
        view.is_complete = read.is_ok();
        view
    }

    /// Copies a whole ruleset.
    pub(in crate::nft) fn of(snapshot: &Snapshot) -> Self {
        let mut view = Self {
            is_complete: true,
            ..Self::default()
        };
        for listed in snapshot.tables() {
            let table = listed.table();
            let key = (table.family(), BString::from(table.name()));
            let named = |name: &BStr| (key.clone(), BString::from(name));
            let owner = table.owner();
            view.tables.insert(key.clone(), TableView { owner });
            for listed in listed.chains() {
                let mut chain = ChainView::of(&listed.chain());
                let rules = listed.rules().map(|rule| RuleView::of(rule.attributes()));
                chain.rules.extend(rules);
                view.chains.insert(named(listed.chain().name()), chain);
            }
            for listed in listed.sets() {
                let mut set = SetView::of(listed.set().attributes());
                listed.elements().for_each(|element| set.note(&element));
                view.sets.insert(named(listed.set().name()), set);
            }
            let objects = listed
                .objects()
                .map(|object| (NameKind::Object, object.name()));
            let flowtables = listed.flowtables();
            let flowtables = flowtables.map(|flowtable| (NameKind::Flowtable, flowtable.name()));
            let others = objects.chain(flowtables);
            view.others
                .extend(others.map(|(kind, name)| (key.clone(), kind, BString::from(name))));
        }
        view
    }

    fn read_tables(&mut self, nft: &mut Connection) -> Result<(), crate::netlink::Error> {
        nft.tables(Scope::all())?.for_each(|table| {
            let owner = table.owner();
            let key = (table.family(), table.name().into());
            self.tables.insert(key, TableView { owner });
        })
    }

    fn read_table(
        &mut self,
        nft: &mut Connection,
        table: &Key,
        with_rules: bool,
    ) -> Result<(), crate::netlink::Error> {
        if !self.tables.contains_key(table) {
            return Ok(());
        }
        let scope = || Scope::table(table.0, table.1.as_slice());
        let key = |name: &BStr| (table.clone(), BString::from(name));
        nft.chains(scope())?.for_each(|chain| {
            self.chains.insert(key(chain.name()), ChainView::of(&chain));
        })?;
        nft.sets(scope())?.for_each(|set| {
            let view = SetView::of(set.attributes());
            self.sets.insert(key(set.name()), view);
        })?;
        let others = &mut self.others;
        nft.objects(scope())?.for_each(|object| {
            others.insert((table.clone(), NameKind::Object, object.name().into()));
        })?;
        nft.flowtables(scope())?.for_each(|flowtable| {
            others.insert((table.clone(), NameKind::Flowtable, flowtable.name().into()));
        })?;
        if !with_rules {
            return Ok(());
        }
        nft.rules(scope())?.for_each(|rule| {
            if let Some(chain) = self.chains.get_mut(&key(rule.chain())) {
                chain.rules.push(RuleView::of(rule.attributes()));
            }
        })?;
        let sets = self.sets.iter_mut().filter(|((of, _), _)| of == table);
        for ((_, name), set) in sets.filter(|(_, set)| set.has_verdicts) {
            let mut elements = nft.elements(table.0, table.1.as_slice(), name.as_slice())?;
            while let Some(element) = elements.try_next()? {
                set.note(&element);
            }
        }
        Ok(())
    }

    /// Applies an operation.
    pub(in crate::nft) fn apply(&mut self, message: &Message<'_>) {
        let _ = self.try_apply(message);
    }

    fn try_apply(&mut self, message: &Message<'_>) -> Option<()> {
        let (header, bytes) = message.nfgenmsg().ok()?;
        let attributes = Attributes::new(bytes);
        let find = |kind| attributes.clone().find(kind);
        let family = Family(header.family);
        let Some(table) = find(TABLE).map(|table| (family, name(table))) else {
            if find(NFTA_TABLE_HANDLE).is_some() {
                return self.forget();
            }
            if [NFT_MSG_DELTABLE, NFT_MSG_DESTROYTABLE].contains(&(message.kind as u8)) {
                self.retain(|(other, _)| family != Family::UNSPEC && *other != family);
            }
            return None;
        };
        let named = |kind| Some((table.clone(), name(find(kind)?)));
        match message.kind as u8 {
            NFT_MSG_NEWTABLE => {
                let owner = find(NFTA_TABLE_OWNER).and_then(u32::decode);
                self.tables.entry(table).or_insert(TableView { owner });
            }
            NFT_MSG_DELTABLE | NFT_MSG_DESTROYTABLE => self.retain(|other| *other != table),
            // A new name takes effect at the end.
            NFT_MSG_NEWCHAIN if find(NFTA_CHAIN_HANDLE).is_some() => {}
            NFT_MSG_NEWCHAIN => {
                let id = find(NFTA_CHAIN_ID).and_then(u32::decode);
                let by_id = || Some((table.clone(), format!("#{}", id?).into()));
                let base = BaseChain::of(attributes.clone());
                let chain = self.chains.entry(named(CHAIN_NAME).or_else(by_id)?);
                let chain = chain.or_default();
                chain.base = chain.base.take().or(base);
            }
            NFT_MSG_DELCHAIN | NFT_MSG_DESTROYCHAIN => match named(CHAIN_NAME) {
                Some(key) if find(NFTA_CHAIN_HOOK).is_none() => _ = self.chains.remove(&key),
                Some(_) => {} // it deletes devices of the chain
                None => return self.forget(),
            },
            NFT_MSG_NEWRULE => {
                let id = find(NFTA_RULE_CHAIN_ID).and_then(u32::decode);
                let by_id = || Some((table.clone(), format!("#{}", id?).into()));
                let chain = self.chains.get_mut(&named(RULE_CHAIN).or_else(by_id)?)?;
                let rule = RuleView::of(attributes.clone());
                if message.flags & NLM_F_REPLACE != 0 {
                    chain.rules.retain(|other| other.handle != rule.handle);
                }
                chain.rules.push(rule);
            }
            NFT_MSG_DELRULE | NFT_MSG_DESTROYRULE => {
                let handle = find(NFTA_RULE_HANDLE).and_then(u64::decode);
                if handle.is_none() && find(NFTA_RULE_ID).is_some() {
                    return self.forget(); // which rule it deletes is not known
                }
                let stays = |rule: &RuleView| handle.is_some() && rule.handle != handle;
                match named(RULE_CHAIN) {
                    Some(key) => self.chains.get_mut(&key)?.rules.retain(stays),
                    None => {
                        let start = (table.clone(), BString::default());
                        let chains = self.chains.range_mut(start..);
                        for (_, chain) in chains.take_while(|((of, _), _)| *of == table) {
                            chain.rules.retain(stays);
                        }
                    }
                }
            }
            NFT_MSG_NEWSET => {
                let id = find(NFTA_SET_ID).and_then(u32::decode);
                let key = set_key(name(find(NAME)?).as_bstr(), id);
                let set = SetView::of(attributes.clone());
                self.sets.entry((table, key)).or_insert(set);
            }
            NFT_MSG_DELSET | NFT_MSG_DESTROYSET => match named(NAME) {
                Some(key) => _ = self.sets.remove(&key),
                None => return self.forget(),
            },
            NFT_MSG_NEWSETELEM => {
                let id = find(ELEMENTS_SET_ID).and_then(u32::decode);
                let key = set_key(name(find(NAME)?).as_bstr(), id);
                let set = self.sets.get_mut(&(table, key))?;
                if set.has_verdicts {
                    let list = Attributes::new(find(NFTA_SET_ELEM_LIST_ELEMENTS)?);
                    let elements = list.map_while(Result::ok);
                    elements
                        .filter_map(|element| ElementRef::parse(element.payload).ok())
                        .for_each(|element| set.note(&element));
                }
            }
            NFT_MSG_DELSETELEM | NFT_MSG_DESTROYSETELEM => {
                let set = self.sets.get_mut(&named(NAME)?)?;
                match find(NFTA_SET_ELEM_LIST_ELEMENTS) {
                    None => set.jumps.clear(),
                    Some(list) => {
                        for element in Attributes::new(list).map_while(Result::ok) {
                            let element = ElementRef::parse(element.payload).ok()?;
                            let key = element.key_bytes().unwrap_or_default();
                            set.jumps.remove(key.as_bstr());
                        }
                    }
                }
            }
            NFT_MSG_NEWOBJ | NFT_MSG_NEWFLOWTABLE => {
                let kind = NameKind::by(message.kind as u8)?;
                self.others.insert((table, kind, name(find(NAME)?)));
            }
            NFT_MSG_DELOBJ
            | NFT_MSG_DESTROYOBJ
            | NFT_MSG_DELFLOWTABLE
            | NFT_MSG_DESTROYFLOWTABLE => {
                let kind = NameKind::by(message.kind as u8)?;
                self.others.remove(&(table, kind, name(find(NAME)?)));
            }
            _ => {}
        }
        Some(())
    }

    /// Notes that an operation had an unknown effect: the absence of an object is no reason from here on.
    fn forget(&mut self) -> Option<()> {
        self.is_complete = false;
        None
    }

    /// Keeps only some tables, with their content.
    fn retain(&mut self, keep: impl Fn(&Key) -> bool) {
        self.tables.retain(|table, _| keep(table));
        self.chains.retain(|(table, _), _| keep(table));
        self.sets.retain(|(table, _), _| keep(table));
        self.others.retain(|(table, ..)| keep(table));
    }

    /// Returns the set that an expression names, with its name as text.
    pub(super) fn set_of(
        &self,
        table: &Key,
        name: &Option<Name<'_>>,
        id: Option<u32>,
    ) -> Option<(String, &SetView)> {
        let name: &BStr = name.as_deref()?.as_bstr();
        let set = self.sets.get(&(table.clone(), set_key(name, id)))?;
        Some((Escaped(name).to_string(), set))
    }

    /// Returns `true` if there is such an object.
    pub(super) fn has(&self, table: &Key, kind: NameKind, name: &BString) -> bool {
        let key = || (table.clone(), name.clone());
        match kind {
            NameKind::Table => self.tables.contains_key(table),
            NameKind::Chain => self.chains.contains_key(&key()),
            NameKind::Set => self.sets.contains_key(&key()),
            kind => self.others.contains(&(table.clone(), kind, name.clone())),
        }
    }

    /// Explains that an object does not exist.
    pub(super) fn no_such(&self, table: &Key, kind: NameKind, name: &BString) -> String {
        let of_table = |(of, name)| (of == table).then_some(name);
        let hint = match kind {
            NameKind::Chain => did_you_mean(name, self.chains_of(table).map(|(name, _)| name)),
            NameKind::Set => {
                let sets = self.sets.keys().map(|(of, name)| (of, name));
                did_you_mean(name, sets.filter_map(of_table))
            }
            kind => {
                let others = self.others.iter().filter(|(_, of, _)| *of == kind);
                let others = others.map(|(of, _, name)| (of, name));
                did_you_mean(name, others.filter_map(of_table))
            }
        };
        format!(
            "the table {} {} has no {} {}{hint}",
            table.0,
            Escaped(table.1.as_bstr()),
            kind_words(kind),
            Escaped(name.as_bstr())
        )
    }

    /// Explains that an object does not exist that an addition refers to.
    pub(super) fn no_such_yet(&self, table: &Key, kind: NameKind, name: &BString) -> String {
        let missing = self.no_such(table, kind, name);
        format!("{missing}; add it first, earlier in the same transaction")
    }

    /// Returns the chains to which a rule jumps.
    fn next<'v>(&'v self, table: &'v Key, rule: &'v RuleView) -> impl Iterator<Item = &'v BString> {
        let sets = rule.sets.iter();
        let sets = sets.filter_map(|set| self.sets.get(&(table.clone(), set.clone())));
        rule.jumps
            .iter()
            .chain(sets.flat_map(|set| set.jumps.values()))
    }

    /// Finds an expression that is not allowed in a chain that packets reach from a base chain: the base chain, the
    /// chain with the rule, and where the expression would be allowed.
    pub(super) fn misplaced<'v>(
        &'v self,
        table: &'v Key,
    ) -> Option<(&'v BStr, &'v BaseChain, &'v BStr, AllowedContext)> {
        for (base_name, chain) in self.chains_of(table) {
            let Some(base) = &chain.base else { continue };
            let (mut seen, mut rest) = (HashSet::from([base_name]), vec![base_name]);
            while let Some(name) = rest.pop() {
                let Some(chain) = self.chains.get(&(table.clone(), name.clone())) else {
                    continue;
                };
                for rule in &chain.rules {
                    for raw in &rule.placed {
                        let expression = ExpressionIter::new(raw).next()?.ok()?;
                        if let Some(context) = allowed_context(table.0, &expression)
                            && !context.allows(base)
                        {
                            return Some((base_name.as_bstr(), base, name.as_bstr(), context));
                        }
                    }
                    let next = self.next(table, rule).filter(|next| seen.insert(next));
                    rest.extend(next.collect::<Vec<_>>());
                }
            }
        }
        None
    }

    /// Returns a path of jumps that the kernel refuses, from this chain or from a base chain: it ends where it begins, or
    /// is too long.
    pub(super) fn looping<'v>(
        &'v self,
        table: &'v Key,
        chain: &'v BString,
    ) -> Option<Vec<&'v BStr>> {
        let base = self
            .chains_of(table)
            .filter(|(_, chain)| chain.base.is_some());
        let starts = std::iter::once(chain).chain(base.map(|(name, _)| name));
        let mut seen = HashMap::new();
        starts.into_iter().find_map(|start| {
            let mut path = vec![start.as_bstr()];
            self.descends(table, start, &mut path, &mut seen)
                .then_some(path)
        })
    }

    /// Whether jumps from the last chain of the path form a loop or nest too deeply; then that is the path. `seen` has
    /// the greatest depths from which chains were followed.
    fn descends<'v>(
        &'v self,
        table: &'v Key,
        from: &'v BString,
        path: &mut Vec<&'v BStr>,
        seen: &mut HashMap<&'v BString, usize>,
    ) -> bool {
        if path.len() > MAX_DEPTH {
            return true;
        }
        let depth = seen.entry(from).or_insert(0);
        if *depth >= path.len() {
            return false;
        }
        *depth = path.len();
        let Some(chain) = self.chains.get(&(table.clone(), from.clone())) else {
            return false;
        };
        for next in chain.rules.iter().flat_map(|rule| self.next(table, rule)) {
            let loop_start = path.iter().position(|name| *name == next.as_bstr());
            path.push(next.as_bstr());
            if let Some(start) = loop_start {
                path.drain(..start);
                return true;
            }
            if self.descends(table, next, path, seen) {
                return true;
            }
            path.pop();
        }
        false
    }

    /// Describes the first rules and maps that refer to an object, and counts all.
    pub(super) fn users(
        &self,
        table: &Key,
        kind: NameKind,
        name: &BString,
    ) -> (Vec<String>, usize) {
        let (mut shown, mut number) = (Vec::new(), 0);
        let mut add = |user: &dyn Fn() -> String| {
            number += 1;
            if shown.len() < MAX_USERS {
                shown.push(user());
            }
        };
        for (chain, view) in self.chains_of(table) {
            let chain = Escaped(chain.as_bstr());
            for rule in &view.rules {
                let mut names = rule.names.iter();
                if names.any(|(of, other)| *of == kind && other == name) {
                    add(&|| match rule.handle {
                        Some(handle) => {
                            format!("the rule with handle {handle} in the chain {chain}")
                        }
                        None => format!("a rule in the chain {chain}"),
                    });
                }
            }
        }
        if kind == NameKind::Chain {
            let sets = self.sets.iter().filter(|((of, _), _)| of == table);
            for ((_, map), set) in sets {
                if set.jumps.values().any(|target| target == name) {
                    add(&|| format!("an element of the map {}", Escaped(map.as_bstr())));
                }
            }
        }
        (shown, number)
    }

    /// Iterates over the chains of a table.
    fn chains_of<'v>(
        &'v self,
        table: &'v Key,
    ) -> impl Iterator<Item = (&'v BString, &'v ChainView)> {
        self.chains
            .range((table.clone(), BString::default())..)
            .take_while(move |((of, _), _)| of == table)
            .map(|((_, name), chain)| (name, chain))
    }
}
