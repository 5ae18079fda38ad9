//! Finds the reason why the kernel refused an operation: compares it with the ruleset and with the operations before
//! it. The kernel reports only an error number for most of these.
//!
//! The conditions are those of `net/netfilter/nf_tables_api.c` and of the `validate` functions of the expressions
//! (`nft_nat.c`, `nft_masq.c`, `nft_reject_inet.c`, …), Linux 6.18.

use bstr::{BString, ByteSlice as _};
use chainwright_sys::netlink::NLM_F_EXCL;
use chainwright_sys::nf_tables::{
    NFT_MSG_DELCHAIN, NFT_MSG_DELFLOWTABLE, NFT_MSG_DELOBJ, NFT_MSG_DELSET, NFT_MSG_DELSETELEM,
    NFT_MSG_NEWCHAIN, NFT_MSG_NEWFLOWTABLE, NFT_MSG_NEWOBJ, NFT_MSG_NEWRULE, NFT_MSG_NEWSET,
    NFT_MSG_NEWSETELEM, NFT_MSG_NEWTABLE, NFTA_CHAIN_POLICY, NFTA_FLOWTABLE_HOOK,
    NFTA_SET_ELEM_LIST_ELEMENTS, NFTA_SET_TIMEOUT, NFTA_TABLE_FLAGS,
};

use super::Operation;
use crate::errno::Errno;
use crate::escape::Escaped;
use crate::netlink::{Attributes, Message};
use crate::nft::declare::Field as _;
use crate::nft::expr::{Data, Decoded, ExpressionRef};
use crate::nft::references::NameKind;
use crate::nft::{
    Element, ElementFlags, ElementRef, Family, FlowtableHook, Hook, Name, Priority, SetFlags,
    TableFlags,
};
use crate::suggest::nearest;

mod placement;
mod view;

use placement::{IP, allowed_context, any_of, base_words, chain_types, families, hook, hooks};
pub(in crate::nft) use view::View;
use view::{BaseChain, ChainView, Key, RuleView, SetView};

/// Largest number of levels of jumps that the kernel allows (`NFT_JUMP_STACK_SIZE`).
const MAX_DEPTH: usize = 16;
/// Largest number of users of an object that a reason names.
const MAX_USERS: usize = 3;

/// Returns `true` if the reason for this error number may be found in the ruleset.
pub(in crate::nft) fn is_diagnosable(errno: Errno, operation: Option<&Operation>) -> bool {
    match errno.number() {
        libc::EPERM
        | libc::ENOENT
        | libc::EEXIST
        | libc::EBUSY
        | libc::EOPNOTSUPP
        | libc::ELOOP
        | libc::EMLINK
        | libc::EINVAL
        | libc::ENFILE
        | libc::EAFNOSUPPORT => operation.is_some(),
        _ => false,
    }
}

/// Returns `true` if the rules matter for this failure.
pub(in crate::nft) fn needs_rules(errno: Errno, operation: &Operation) -> bool {
    match errno.number() {
        libc::EBUSY => operation.verb == "delete" && !matches!(operation.kind, "rule" | "element"),
        libc::EOPNOTSUPP | libc::EINVAL | libc::ELOOP | libc::EMLINK => operation.kind == "rule",
        _ => false,
    }
}

/// Returns the reason why the kernel refused an operation, and the way out; `None` if it is not known. `view` is the
/// ruleset before the operation.
pub(in crate::nft) fn reason(
    view: &mut View,
    index: usize,
    message: &Message<'_>,
    errno: Errno,
) -> Option<String> {
    let (header, bytes) = message.nfgenmsg().ok()?;
    let operation = Refused {
        index,
        kind: message.kind as u8,
        is_create: message.flags & NLM_F_EXCL != 0,
        family: Family(header.family),
        attributes: Attributes::new(bytes),
        errno: errno.number(),
    };
    operation.of_table(view).or_else(|| match operation.kind {
        NFT_MSG_NEWTABLE => operation.of_new_table(view),
        NFT_MSG_NEWCHAIN => operation.of_new_chain(view),
        NFT_MSG_NEWRULE => operation.of_new_rule(view, message),
        NFT_MSG_NEWSET => operation.of_new_set(view),
        NFT_MSG_NEWSETELEM => operation.of_elements(view),
        NFT_MSG_DELSETELEM => operation.of_deleted_elements(view),
        NFT_MSG_NEWFLOWTABLE => operation.of_new_flowtable(),
        NFT_MSG_DELCHAIN | NFT_MSG_DELSET | NFT_MSG_DELOBJ | NFT_MSG_DELFLOWTABLE => {
            operation.of_deletion(view)
        }
        _ => None,
    })
}

/// An operation that the kernel refused.
struct Refused<'m> {
    index: usize,
    kind: u8,
    is_create: bool,
    family: Family,
    attributes: Attributes<'m>,
    errno: i32,
}

impl<'m> Refused<'m> {
    fn find(&self, kind: u16) -> Option<&'m [u8]> {
        self.attributes.clone().find(kind)
    }

    /// Returns the name in the first attribute of most messages.
    fn table(&self) -> Option<Key> {
        Some((self.family, view::name(self.find(view::TABLE)?)))
    }

    /// Returns the name in the second attribute of most messages.
    fn name(&self) -> Option<BString> {
        self.find(view::NAME).map(view::name)
    }

    const fn is_addition(&self) -> bool {
        matches!(
            self.kind,
            NFT_MSG_NEWCHAIN
                | NFT_MSG_NEWRULE
                | NFT_MSG_NEWSET
                | NFT_MSG_NEWSETELEM
                | NFT_MSG_NEWOBJ
                | NFT_MSG_NEWFLOWTABLE
        )
    }

    /// Explains that the operation's table does not exist, or belongs to another process.
    fn of_table(&self, view: &View) -> Option<String> {
        let key = self.table()?;
        let name = Escaped(key.1.as_bstr());
        match (self.errno, view.tables.get(&key)) {
            (libc::EPERM, Some(table)) => {
                let owner = table.owner.filter(|owner| *owner != view.port)?;
                Some(format!(
                    "the table {} {name} belongs to the process with netlink port {owner}: only that process can \
                     change it, until it closes its socket",
                    self.family
                ))
            }
            (libc::ENOENT, None) if self.kind != NFT_MSG_NEWTABLE && view.is_complete => {
                let mut others = view.tables.keys().filter(|(_, other)| *other == key.1);
                let hint = match others.next() {
                    Some((family, _)) => format!("; there is a table {family} {name}"),
                    None => {
                        let known = view
                            .tables
                            .keys()
                            .filter(|(family, _)| *family == self.family);
                        did_you_mean(&key.1, known.map(|(_, name)| name))
                    }
                };
                let remedy = match self.is_addition() {
                    true => "; add it first, earlier in the same transaction",
                    false => "",
                };
                Some(format!(
                    "the table {} {name} does not exist{hint}{remedy}",
                    self.family
                ))
            }
            _ => None,
        }
    }

    fn of_new_table(&self, view: &View) -> Option<String> {
        let key = self.table()?;
        let name = Escaped(key.1.as_bstr());
        let there = view.tables.get(&key)?;
        let flags = self.find(NFTA_TABLE_FLAGS).and_then(TableFlags::decode);
        let flags = flags.unwrap_or_default();
        match self.errno {
            libc::EEXIST if self.is_create => Some(format!(
                "the table {} {name} already exists; `add` accepts an existing table",
                self.family
            )),
            libc::EOPNOTSUPP if flags.contains(TableFlags::OWNER) && there.owner.is_none() => {
                Some(format!(
                    "the table {} {name} exists without an owner, and cannot get one; delete it first, earlier in \
                     the same transaction",
                    self.family
                ))
            }
            libc::EOPNOTSUPP if !flags.contains(TableFlags::OWNER) && there.owner.is_some() => {
                Some(format!(
                    "the table {} {name} has an owner: keep its flag `owner`",
                    self.family
                ))
            }
            _ => None,
        }
    }

    fn of_new_chain(&self, view: &View) -> Option<String> {
        let table = self.table()?;
        let name = self.find(view::CHAIN_NAME).map(view::name)?;
        let text = Escaped(name.as_bstr());
        let family = self.family;
        let new = BaseChain::of(self.attributes.clone());
        let there = view.chains.get(&(table, name.clone()));
        match (self.errno, there, &new) {
            (libc::EEXIST, Some(_), _) if self.is_create => Some(format!(
                "the chain {text} already exists; `add` accepts an existing chain"
            )),
            (libc::EEXIST, Some(ChainView { base: None, .. }), Some(_)) => Some(format!(
                "the chain {text} exists without a hook, and cannot get one later; delete it first, earlier in the \
                 same transaction, or use another name"
            )),
            (
                libc::EEXIST | libc::EOPNOTSUPP,
                Some(ChainView {
                    base: Some(old), ..
                }),
                Some(new),
            ) if (old.hook, old.priority, &old.chain_type)
                != (new.hook, new.priority, &new.chain_type) =>
            {
                let words = |base: &BaseChain| {
                    format!(
                        "{} with priority {}",
                        base_words(family, base),
                        base.priority
                    )
                };
                Some(format!(
                    "the chain {text} exists as {}, and cannot become {}; add it as it is, or delete it first, earlier \
                     in the same transaction",
                    words(old),
                    words(new)
                ))
            }
            (libc::EOPNOTSUPP, None | Some(ChainView { base: None, .. }), None)
                if self.find(NFTA_CHAIN_POLICY).is_some() =>
            {
                Some(format!(
                    "only base chains have a policy, and the chain {text} has no hook; add a hook, or leave the policy out \
                 and end the chain with a rule"
                ))
            }
            (libc::EOPNOTSUPP | libc::ENOENT | libc::EINVAL, None, Some(new)) => {
                self.of_base_chain(new)
            }
            _ => None,
        }
    }

    /// Explains that the family has no such base chains.
    fn of_base_chain(&self, new: &BaseChain) -> Option<String> {
        let (family, types) = (self.family, chain_types(self.family));
        let chain_type = Escaped(new.chain_type.as_bstr());
        let names = || any_of(types.iter().map(|(name, _)| *name));
        let Some((_, allowed)) = types.iter().find(|(name, _)| new.chain_type == *name) else {
            let hint = did_you_mean(&new.chain_type, types.iter().map(|(name, _)| name));
            return Some(format!(
                "the family {family} has no chains of type {chain_type}, only {}{hint}",
                names()
            ));
        };
        if self.errno != libc::EOPNOTSUPP {
            let is_on_devices = family == Family::NETDEV && self.errno == libc::EINVAL;
            return (is_on_devices && new.devices == 0).then(|| {
                "before Linux 6.4, and with the flag `offload`, a chain in the family netdev needs a device; add it \
                 with `with_devices` (nft: `device eth0`)"
                    .to_owned()
            });
        }
        if !allowed.contains(&new.hook) {
            return Some(format!(
                "{chain_type} chains in the family {family} have the hooks {}, not {}",
                hooks(family, allowed),
                hook(family, new.hook)
            ));
        }
        // Connection tracking runs at -200; without it there is nothing to translate.
        (new.chain_type == "nat" && new.priority <= -200).then(|| {
            format!(
                "a nat chain must run after connection tracking, so its priority must be greater than -200, not {}; the \
                 usual ones are {} (dstnat) and {} (srcnat)",
                new.priority,
                Priority::DSTNAT.0,
                Priority::SRCNAT.0
            )
        })
    }

    fn of_new_rule(&self, view: &mut View, message: &Message<'_>) -> Option<String> {
        let table = self.table()?;
        let chain = self.find(view::RULE_CHAIN).map(view::name);
        let rule = RuleView::of(self.attributes.clone());
        if let (libc::ENOENT, Some(chain)) = (self.errno, &chain)
            && !view.chains.contains_key(&(table.clone(), chain.clone()))
            && view.is_complete
        {
            return Some(view.no_such_yet(&table, NameKind::Chain, chain));
        }
        let expressions = view::expressions(self.attributes.clone());
        let found = match self.errno {
            libc::ENOENT => self.missing_in_rule(view, &table, &rule),
            libc::EOPNOTSUPP | libc::EINVAL => {
                let jump = rule.jumps.iter().filter(|_| self.errno == libc::EOPNOTSUPP);
                let mut base = jump.filter_map(|name| {
                    let there = view.chains.get(&(table.clone(), name.clone()))?;
                    there.base.as_ref().map(|base| (name, base))
                });
                match base.next() {
                    Some((name, base)) => Some(format!(
                        "the chain {} is {}: a rule can jump only to a chain without a hook; move its rules to such a \
                         chain, and jump to that from both",
                        Escaped(name.as_bstr()),
                        base_words(self.family, base)
                    )),
                    None => expressions
                        .clone()
                        .find_map(|expression| self.of_expression(view, &table, &expression)),
                }
            }
            _ => None,
        };
        if found.is_some() {
            return found;
        }
        let outside = expressions
            .filter_map(|expression| allowed_context(self.family, &expression))
            .find(|context| !context.families.contains(&self.family));
        if let Some(context) = outside {
            return Some(format!(
                "`{}` exists only in tables of the family {}, not {}; use such a table",
                context.expression,
                families(context.families),
                self.family
            ));
        }
        if let Some(earlier) = self.of_invalid_table(view, &table) {
            return Some(earlier);
        }
        // An operation that the kernel already accepted is not the cause.
        let is_known = view.misplaced(&table).is_none();
        view.apply(message);
        let found = match self.errno {
            libc::EOPNOTSUPP | libc::EINVAL if is_known => self.misplaced(view, &table),
            libc::ELOOP | libc::EMLINK => view.looping(&table, &chain?).map(|path| {
                let path: Vec<_> = path.iter().map(|name| Escaped(name).to_string()).collect();
                let words = path.join(" → ");
                match path.first() == path.last() {
                    true => format!(
                        "the jumps form a loop: {words}; remove one of these jumps, or move the shared rules to a \
                         chain of their own"
                    ),
                    false => format!(
                        "the jumps nest deeper than the kernel allows ({MAX_DEPTH}): {words}; join some of these chains"
                    ),
                }
            }),
            _ => None,
        };
        if let Some(reason) = &found {
            let known = (self.index, reason.clone());
            view.invalid.insert((table.clone(), self.errno), known);
        }
        found.or_else(|| {
            view::expressions(self.attributes.clone())
                .find_map(|expression| self.of_set_in_expression(view, &table, &expression))
        })
    }

    /// Explains that an earlier operation made the table invalid.
    fn of_invalid_table(&self, view: &View, table: &Key) -> Option<String> {
        let (index, reason) = view.invalid.get(&(table.clone(), self.errno))?;
        Some(format!(
            "operation #{index} made the table invalid: {reason}"
        ))
    }

    /// Explains that an object to which the rule refers does not exist.
    fn missing_in_rule(&self, view: &View, table: &Key, rule: &RuleView) -> Option<String> {
        if !view.is_complete {
            return None;
        }
        let named = rule.names.iter();
        let mut missing = named.filter(|(kind, name)| !view.has(table, *kind, name));
        let (kind, name) = missing.next()?;
        Some(view.no_such_yet(table, *kind, name))
    }

    /// Explains that an expression of the rule does not fit the set that it uses, or that its own attributes are wrong.
    fn of_expression(
        &self,
        view: &View,
        table: &Key,
        expression: &ExpressionRef<'_>,
    ) -> Option<String> {
        let set_of = |name: &Option<Name<'_>>, id| view.set_of(table, name, id);
        match (self.errno, expression.decode().ok()?) {
            (libc::EINVAL, Decoded::Lookup(lookup)) => {
                let (name, set) = set_of(&lookup.set, lookup.set_id)?;
                (lookup.dreg.is_some() && !set.is_map()).then(|| {
                    format!(
                        "the rule uses {name} as a map, but it is a set and has no data; declare it as a map (nft: \
                         `type … : verdict`), or match against it without a map"
                    )
                })
            }
            (libc::EOPNOTSUPP, Decoded::Dynset(dynset)) => {
                let (name, set) = set_of(&dynset.set_name, dynset.set_id)?;
                if dynset.timeout.is_some() && !set.flags.contains(SetFlags::TIMEOUT) {
                    Some(format!(
                        "the rule adds elements with a timeout to the set {name}, which has none; declare the set with \
                         the flag `timeout`"
                    ))
                } else {
                    set.flags.contains(SetFlags::INTERVAL).then(|| {
                        format!(
                            "the set {name} has the flag `interval`: rules cannot add elements to it; use a set \
                             without that flag"
                        )
                    })
                }
            }
            (libc::EINVAL, Decoded::Limit(limit)) if limit.rate.unwrap_or(0) == 0 => Some(
                "a limit of 0 never matches, and the kernel refuses it; use a rate of at least 1"
                    .to_owned(),
            ),
            (libc::EINVAL, Decoded::Limit(limit)) if limit.unit == Some(0) => {
                Some("a limit needs a period of at least one second".to_owned())
            }
            _ => None,
        }
    }

    /// Explains refusals that occur only on some kernels and for some sets; used if no other reason was found.
    fn of_set_in_expression(
        &self,
        view: &View,
        table: &Key,
        expression: &ExpressionRef<'_>,
    ) -> Option<String> {
        match (self.errno, expression.decode().ok()?) {
            (libc::EINVAL, Decoded::Lookup(lookup)) if lookup.dreg.is_none() => {
                let (name, set) = view.set_of(table, &lookup.set, lookup.set_id)?;
                set.flags.contains(SetFlags::MAP).then(|| {
                    format!(
                        "the rule uses {name} as a set, but it is a map; use its data (nft: `vmap @{name}` or `map \
                         @{name}`; before Linux 6.5 that is required)"
                    )
                })
            }
            (libc::EOPNOTSUPP, Decoded::Dynset(dynset)) => {
                let (name, set) = view.set_of(table, &dynset.set_name, dynset.set_id)?;
                let is_dynamic = set.flags.intersects(SetFlags::EVAL | SetFlags::TIMEOUT);
                let is_fixed = set.has_size || set.key_length.is_some_and(|length| length <= 2);
                (is_fixed && !is_dynamic).then(|| {
                    format!(
                        "rules cannot add elements to the set {name}; declare it with the flag `dynamic`"
                    )
                })
            }
            _ => None,
        }
    }

    /// Explains that a rule is not allowed in a chain that packets reach from a base chain.
    fn misplaced(&self, view: &View, table: &Key) -> Option<String> {
        let (base_name, base, chain, context) = view.misplaced(table)?;
        let family = self.family;
        let mut allowed = match context.chain_type {
            Some(chain_type) => format!("{chain_type} chains"),
            None => "chains".to_owned(),
        };
        if !context.hooks.is_empty() {
            allowed += &format!(" at {}", hooks(family, context.hooks));
        }
        let base_text = Escaped(base_name);
        let is = base_words(family, base);
        let where_it_is = match chain == base_name {
            true => format!("the chain {base_text} is {is}"),
            false => format!(
                "the chain {} is reached from {base_text}, {is}",
                Escaped(chain)
            ),
        };
        Some(format!(
            "`{}` is allowed only in {allowed}, and {where_it_is}; put the rule in such a chain",
            context.expression
        ))
    }

    fn of_new_set(&self, view: &View) -> Option<String> {
        let (table, name) = (self.table()?, self.name()?);
        let new = SetView::of(self.attributes.clone());
        let text = Escaped(name.as_bstr());
        if self.errno == libc::EEXIST {
            let old = view.sets.get(&(table, name.clone()))?;
            if self.is_create {
                return Some(format!(
                    "the set {text} already exists; `add` accepts an existing set"
                ));
            }
            let difference = match () {
                () if old.key_length != new.key_length => format!(
                    "keys of {} bytes, not {}",
                    old.key_length.unwrap_or(0),
                    new.key_length.unwrap_or(0)
                ),
                () if old.is_map() != new.is_map() => match old.is_map() {
                    true => "data: it is a map, not a set".to_owned(),
                    false => "no data: it is a set, not a map".to_owned(),
                },
                () if old.data_length != new.data_length => "data of another length".to_owned(),
                () if old.flags != new.flags => {
                    format!(
                        "the flags {}, not {}",
                        flag_words(old.flags),
                        flag_words(new.flags)
                    )
                }
                () => "other properties".to_owned(),
            };
            return Some(format!(
                "the set {text} exists with {difference}; add it as it is, or delete it first, earlier in the same \
                 transaction"
            ));
        }
        match new.key_length {
            Some(length) if !(1..=64).contains(&length) => Some(format!(
                "the keys of the set {text} have {length} bytes; keys have 1 to 64 bytes"
            )),
            _ if self.find(NFTA_SET_TIMEOUT).is_some()
                && !new.flags.contains(SetFlags::TIMEOUT) =>
            {
                Some(format!(
                    "the set {text} has a timeout, but lacks the flag `timeout`; add the flag"
                ))
            }
            _ => None,
        }
    }

    fn of_elements(&self, view: &View) -> Option<String> {
        let (table, name) = (self.table()?, self.name()?);
        let id = self.find(view::ELEMENTS_SET_ID).and_then(u32::decode);
        let text = Escaped(name.as_bstr());
        let Some(set) = view
            .sets
            .get(&(table.clone(), view::set_key(name.as_bstr(), id)))
        else {
            let is_missing = self.errno == libc::ENOENT && view.is_complete;
            return is_missing.then(|| view.no_such_yet(&table, NameKind::Set, &name));
        };
        let list = Attributes::new(self.find(NFTA_SET_ELEM_LIST_ELEMENTS)?);
        let elements = list.map_while(Result::ok);
        let elements = elements.filter_map(|one| ElementRef::parse(one.payload).ok());
        let mut elements = elements.map(|element| element.to_builder());
        let is_interval = set.flags.contains(SetFlags::INTERVAL);
        match self.errno {
            libc::EEXIST if is_interval => Some(format!(
                "the set {text} already contains a range that overlaps; delete that first, earlier in the same \
                 transaction, or use `change_ranges`, which reads the set and checks this"
            )),
            libc::EEXIST if set.is_map() && !self.is_create => Some(format!(
                "the map {text} already contains the key with other data; delete the element first, earlier in the \
                 same transaction"
            )),
            libc::EEXIST => Some(format!(
                "the set {text} already contains the element; `add` accepts existing elements"
            )),
            libc::EINVAL | libc::EOPNOTSUPP | libc::ENOENT => {
                let own = elements
                    .find_map(|element| self.of_element(view, &table, &text, set, &element));
                own.or_else(|| self.of_invalid_table(view, &table))
            }
            libc::ENFILE => Some(format!(
                "the set {text} is full; delete elements first, or declare the set with a greater size"
            )),
            libc::EBUSY if set.flags.contains(SetFlags::CONSTANT) => Some(format!(
                "the set {text} has the flag `constant`: its elements cannot change once a rule uses it; make a set \
                 without that flag"
            )),
            _ => None,
        }
    }

    /// Explains that an element to delete is not in the set, or that there is no such set.
    fn of_deleted_elements(&self, view: &View) -> Option<String> {
        let (table, name) = (self.table()?, self.name()?);
        if self.errno != libc::ENOENT || !view.is_complete {
            return None;
        }
        Some(match view.has(&table, NameKind::Set, &name) {
            true => format!(
                "the set {} does not have the element; `destroy` ignores missing elements (Linux 6.3)",
                Escaped(name.as_bstr())
            ),
            false => view.no_such(&table, NameKind::Set, &name),
        })
    }

    /// Explains that an element does not fit its set.
    fn of_element(
        &self,
        view: &View,
        table: &Key,
        set_name: &impl std::fmt::Display,
        set: &SetView,
        element: &Element<'_>,
    ) -> Option<String> {
        let expected = set.key_length.unwrap_or(0) as usize;
        if self.errno == libc::EINVAL
            && let Some(key) = element.key.as_ref().and_then(Data::as_value)
            && key.len() != expected
        {
            return Some(format!(
                "the key {} has {} bytes, but the keys of {set_name} have {expected}; it is a value of another type",
                crate::nft::Bytes::borrowed(key),
                key.len()
            ));
        }
        let target = element.data.as_ref().and_then(view::jump);
        if let Some(target) = target.filter(|target| !target.starts_with(b"#")) {
            let chain = view.chains.get(&(table.clone(), target.clone()));
            match (self.errno, chain.map(|chain| &chain.base)) {
                (libc::ENOENT, None) if view.is_complete => {
                    return Some(view.no_such_yet(table, NameKind::Chain, &target));
                }
                (libc::EOPNOTSUPP, Some(Some(base))) => {
                    return Some(format!(
                        "the chain {} is {}: an element can jump only to a chain without a hook; use such a chain",
                        Escaped(target.as_bstr()),
                        base_words(self.family, base)
                    ));
                }
                _ => {}
            }
        }
        if self.errno != libc::EINVAL {
            return None;
        }
        let value = element.data.as_ref().and_then(Data::as_value);
        let data = element.data.is_some();
        let flags = element.flags.unwrap_or_default();
        let is_end = flags.contains(ElementFlags::INTERVAL_END);
        if data && !set.is_map() {
            return Some(format!(
                "the element has data, but {set_name} is a set, not a map; leave the data out, or declare a map"
            ));
        }
        if !data && set.is_map() && element.object.is_none() && !is_end {
            return Some(format!(
                "{set_name} is a map, but the element has no data; add the data that the key maps to"
            ));
        }
        if let (Some(length), Some(bytes)) = (set.data_length, value)
            && !set.has_verdicts
            && bytes.len() != length as usize
        {
            return Some(format!(
                "the data has {} bytes, but the data of {set_name} has {length}",
                bytes.len()
            ));
        }
        if set.has_verdicts && value.is_some() {
            return Some(format!(
                "{set_name} maps to verdicts, but the element's data is a value"
            ));
        }
        if element.timeout.is_some() && !set.flags.contains(SetFlags::TIMEOUT) {
            return Some(format!(
                "the element has a timeout, but {set_name} lacks the flag `timeout`; declare the set with it"
            ));
        }
        let is_range = element.key_end.is_some() || is_end;
        (is_range && !set.flags.contains(SetFlags::INTERVAL)).then(|| {
            format!(
                "the element is a range, but {set_name} lacks the flag `interval`; declare the set with it"
            )
        })
    }

    fn of_new_flowtable(&self) -> Option<String> {
        let hook = self
            .find(NFTA_FLOWTABLE_HOOK)
            .and_then(FlowtableHook::decode)?;
        if !IP.contains(&self.family) {
            return Some(format!(
                "flowtables exist only in tables of the family {}, not {}; use such a table",
                families(IP),
                self.family
            ));
        }
        let is_elsewhere = hook.number.is_some_and(|number| number != Hook::INGRESS);
        is_elsewhere.then(|| "the hook of a flowtable is ingress (number 0); use that".to_owned())
    }

    /// Explains that the object to delete does not exist, or is in use.
    fn of_deletion(&self, view: &View) -> Option<String> {
        let table = self.table()?;
        let (kind, attribute) = match self.kind {
            NFT_MSG_DELCHAIN => (NameKind::Chain, view::CHAIN_NAME),
            NFT_MSG_DELSET => (NameKind::Set, view::NAME),
            NFT_MSG_DELOBJ => (NameKind::Object, view::NAME),
            _ => (NameKind::Flowtable, view::NAME),
        };
        let name = self.find(attribute).map(view::name)?;
        match self.errno {
            libc::ENOENT if view.is_complete && !view.has(&table, kind, &name) => {
                let missing = view.no_such(&table, kind, &name);
                return Some(format!(
                    "{missing}; `destroy` ignores what does not exist (Linux 6.3)"
                ));
            }
            libc::EBUSY => {}
            _ => return None,
        }
        let (shown, users) = view.users(&table, kind, &name);
        let more = match users - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!shown.is_empty()).then(|| {
            format!(
                "the {} {} is still in use by {}{more}; delete that first, earlier in the same transaction",
                kind_words(kind),
                Escaped(name.as_bstr()),
                shown.join(", ")
            )
        })
    }
}

const fn kind_words(kind: NameKind) -> &'static str {
    match kind {
        NameKind::Table => "table",
        NameKind::Chain => "chain",
        NameKind::Set => "set",
        NameKind::Object => "object",
        NameKind::Flowtable => "flowtable",
    }
}

fn flag_words(flags: SetFlags) -> String {
    let names: Vec<_> = flags
        .iter_names()
        .map(|(name, _)| name.to_ascii_lowercase())
        .collect();
    match names.is_empty() {
        true => "(none)".to_owned(),
        false => names.join(", "),
    }
}

/// Suggests the name that is nearest to a missing one.
fn did_you_mean<'n>(
    name: &[u8],
    known: impl Iterator<Item = &'n (impl AsRef<[u8]> + ?Sized + 'n)>,
) -> String {
    let known = known.filter_map(|name| name.as_ref().to_str().ok());
    match nearest(name, known) {
        Some(near) => format!("; did you mean {near}?"),
        None => String::new(),
    }
}
