//! Builds graphs from texts that the kernel would reject, because of jumps to missing chains or loops.

use std::collections::HashMap;

use bstr::{BStr, BString, ByteSlice};
use chainwright_sys::nf_tables::{
    NFT_MSG_NEWCHAIN, NFT_MSG_NEWRULE, NFT_MSG_NEWSET, NFT_MSG_NEWSETELEM, NFT_MSG_NEWTABLE,
    NFTA_CHAIN_HOOK, NFTA_CHAIN_ID, NFTA_CHAIN_NAME, NFTA_CHAIN_POLICY, NFTA_CHAIN_TABLE,
    NFTA_CHAIN_TYPE, NFTA_HOOK_HOOKNUM, NFTA_HOOK_PRIORITY, NFTA_LIST_ELEM, NFTA_RULE_CHAIN,
    NFTA_RULE_CHAIN_ID, NFTA_RULE_EXPRESSIONS, NFTA_RULE_TABLE, NFTA_RULE_USERDATA,
    NFTA_SET_DATA_TYPE, NFTA_SET_ELEM_LIST_ELEMENTS, NFTA_SET_ELEM_LIST_SET,
    NFTA_SET_ELEM_LIST_SET_ID, NFTA_SET_ELEM_LIST_TABLE, NFTA_SET_FLAGS, NFTA_SET_ID,
    NFTA_SET_NAME, NFTA_SET_TABLE, NFTA_TABLE_FLAGS, NFTA_TABLE_NAME,
};
use chainwright_sys::nfnetlink::NFNL_SUBSYS_NFTABLES;

use super::build::{RuleTarget, base, each_target, of_verdict, until_nul};
use super::{EdgeKind, Graph, NodeKind, Table};
use chainwright::iptables::text::{Command, ParseError, Verb, words};
use chainwright::iptables::{Backend, Target, builtin, builtins};
use chainwright::netlink::{Attributes, Messages, NfGenMsg};
use chainwright::nft::expr::{Data, Expressions};
use chainwright::nft::userdata::{RULE_COMMENT, UserData};
use chainwright::nft::{DataType, ElementRef, Family, Policy, SetFlags, TableFlags};
use chainwright::xt;
use chainwright_lang::{Error as ScriptError, Script};

/// Error while building a graph from a text.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// The script does not compile.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// A line is not valid iptables-save output.
    #[error("line {line}: {error}")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// Parse error.
        error: ParseError,
    },
    /// A line is outside of a table, or its table is not one of iptables' tables.
    #[error("line {line}: {why}")]
    InvalidTable {
        /// Line number, from 1.
        line: usize,
        /// Error message.
        why: String,
    },
}

chainwright::debug_as_message!(TextError);

/// Map of a script, named or anonymous.
struct Map {
    table: usize,
    name: BString,
    is_anonymous: bool,
    /// Targets of its elements.
    targets: Vec<(EdgeKind, BString)>,
    elements: usize,
    is_looked_up: bool,
}

/// Identifies a set by its table and its ID in the batch or its name.
type SetKey = (usize, Result<u32, BString>);

impl Graph {
    /// Adds the tables, chains, rules, maps and elements that a script adds, even if they are inconsistent. Deletions
    /// and other changes are ignored.
    ///
    /// # Errors
    /// [`TextError::Script`].
    pub fn add_script(&mut self, script: &Script) -> Result<(), TextError> {
        let nothing = chainwright::nft::Snapshot::default();
        let change = script.transaction(Some(&nothing))?;
        let transaction = change.transaction();
        let mut found = Found::default();
        // Rules come last, because their targets may be declared later.
        for message in nft_messages(transaction.as_bytes()) {
            self.declare_in(&message, &mut found);
        }
        for map in found.maps.iter().filter(|map| !map.is_anonymous) {
            self.declare_map(map);
        }
        for message in nft_messages(transaction.as_bytes()) {
            if message.kind == NFT_MSG_NEWRULE {
                self.add_rule(&message, &mut found);
            }
        }
        Ok(())
    }

    /// Returns the table of this name, which is added if necessary.
    fn table_of(&mut self, family: Family, name: &BStr, found: &mut Found) -> usize {
        let key = (family, name.to_owned());
        if let Some(table) = found.tables.get(&key) {
            return *table;
        }
        let table = self.begin(Table {
            backend: Backend::Nft,
            family,
            name: name.to_owned(),
            dormant: false,
        });
        found.tables.insert(key, table);
        table
    }

    fn declare_in(&mut self, message: &NftMessage<'_>, found: &mut Found) {
        let of = |kind| message.text(kind);
        match message.kind {
            NFT_MSG_NEWTABLE => {
                if let Some(name) = of(NFTA_TABLE_NAME) {
                    let table = self.table_of(message.family, name, found);
                    if let Some(flags) = number(message.attributes, NFTA_TABLE_FLAGS) {
                        let flags = TableFlags::from_bits_retain(flags);
                        self.tables[table].dormant = flags.contains(TableFlags::DORMANT);
                    }
                }
            }
            NFT_MSG_NEWCHAIN => {
                let (Some(table), Some(name)) = (of(NFTA_CHAIN_TABLE), of(NFTA_CHAIN_NAME)) else {
                    return;
                };
                let table = self.table_of(message.family, table, found);
                let kind = match message.find(NFTA_CHAIN_HOOK) {
                    None => NodeKind::Chain,
                    Some(hook) => NodeKind::Base(base(
                        message.family,
                        of(NFTA_CHAIN_TYPE),
                        number(hook, NFTA_HOOK_HOOKNUM).unwrap_or_default(),
                        number(hook, NFTA_HOOK_PRIORITY).unwrap_or_default() as i32,
                        number(message.attributes, NFTA_CHAIN_POLICY).map(Policy),
                    )),
                };
                self.declare(table, name, kind);
                if let Some(id) = number(message.attributes, NFTA_CHAIN_ID) {
                    found.chains.insert((table, id), name.to_owned());
                }
            }
            NFT_MSG_NEWSET => {
                let (Some(table), Some(name)) = (of(NFTA_SET_TABLE), of(NFTA_SET_NAME)) else {
                    return;
                };
                if number(message.attributes, NFTA_SET_DATA_TYPE) != Some(DataType::VERDICT.0) {
                    return;
                }
                let table = self.table_of(message.family, table, found);
                let flags = number(message.attributes, NFTA_SET_FLAGS).unwrap_or_default();
                let is_anonymous = SetFlags::from_bits_retain(flags).contains(SetFlags::ANONYMOUS);
                let id = number(message.attributes, NFTA_SET_ID).filter(|_| is_anonymous);
                found.declare(table, name, id, is_anonymous);
            }
            NFT_MSG_NEWSETELEM => {
                let (Some(table), Some(name), Some(list)) = (
                    of(NFTA_SET_ELEM_LIST_TABLE),
                    of(NFTA_SET_ELEM_LIST_SET),
                    message.find(NFTA_SET_ELEM_LIST_ELEMENTS),
                ) else {
                    return;
                };
                let table = self.table_of(message.family, table, found);
                let id = number(message.attributes, NFTA_SET_ELEM_LIST_SET_ID);
                let Some(map) = found.map(table, name, id) else {
                    return;
                };
                let attributes = Attributes::new(list).map_while(Result::ok);
                // nft stores the index of an element as its attribute type.
                for element in attributes.filter(|one| one.kind >= NFTA_LIST_ELEM) {
                    let Ok(element) = ElementRef::parse(element.payload) else {
                        continue;
                    };
                    if element.is_interval_end() {
                        continue;
                    }
                    map.elements += 1;
                    if let Some(Data::Verdict(verdict)) = element.data()
                        && let Some(RuleTarget::Chain(how, to)) = of_verdict(&verdict)
                    {
                        map.targets.push((how, to.to_owned()));
                    }
                }
            }
            _ => {}
        }
    }

    fn declare_map(&mut self, map: &Map) {
        let node = self.declare(map.table, map.name.as_bstr(), NodeKind::Map);
        self.nodes[node].size = map.elements;
        self.add_map_edges(node, map);
    }

    /// Adds edges to the targets of a map's elements.
    fn add_map_edges(&mut self, node: usize, map: &Map) {
        for (how, to) in &map.targets {
            let to = self.named(map.table, false, to.as_bstr());
            self.link(node, to, *how, 1);
        }
    }

    fn add_rule(&mut self, message: &NftMessage<'_>, found: &mut Found) {
        let Some(table) = message.text(NFTA_RULE_TABLE) else {
            return;
        };
        let table = self.table_of(message.family, table, found);
        let by_id = number(message.attributes, NFTA_RULE_CHAIN_ID)
            .and_then(|id| found.chains.get(&(table, id)));
        let name = message.text(NFTA_RULE_CHAIN);
        let Some(chain) = name.or_else(|| by_id.map(|name| name.as_bstr())) else {
            return;
        };
        let node = self.named(table, false, chain);
        self.nodes[node].size += 1;
        let Some(list) = message.find(NFTA_RULE_EXPRESSIONS) else {
            return;
        };
        let expressions = Expressions::of_bytes(list);
        let mut places = Vec::new();
        let comment = each_target(expressions.iter(), &mut |link| {
            let (how, to) = match link {
                RuleTarget::Chain(how, name) => (how, self.named(table, false, name)),
                RuleTarget::Numbered(how, id) => match found.chains.get(&(table, id)) {
                    Some(name) => (how, self.named(table, false, name.as_bstr())),
                    None => return,
                },
                RuleTarget::Set(name, id) => {
                    let Some(map) = found.map(table, name, id) else {
                        return;
                    };
                    if map.is_anonymous && !std::mem::replace(&mut map.is_looked_up, true) {
                        self.add_map_edges(node, map);
                        return;
                    }
                    (EdgeKind::MapLookup, self.named(table, true, name))
                }
            };
            self.link(node, to, how, 1);
            places.push((to, how));
        });
        let noted = message.find(NFTA_RULE_USERDATA);
        let noted = noted.and_then(|data| UserData::new(data).comment(RULE_COMMENT));
        if let Some(comment) = comment.or(noted) {
            self.comment(node, &places, comment);
        }
    }
}

/// Declarations found so far.
#[derive(Default)]
struct Found {
    tables: HashMap<(Family, BString), usize>,
    /// Chain names by ID in the batch.
    chains: HashMap<(usize, u32), BString>,
    /// In the order of the text, which is also the graph's order.
    maps: Vec<Map>,
    map_of: HashMap<SetKey, usize>,
}

impl Found {
    fn key(table: usize, name: &BStr, id: Option<u32>) -> SetKey {
        (table, id.ok_or_else(|| name.to_owned()))
    }

    /// Declares a map, if it was not declared before.
    fn declare(&mut self, table: usize, name: &BStr, id: Option<u32>, is_anonymous: bool) {
        let next = self.maps.len();
        let place = self.map_of.entry(Self::key(table, name, id));
        if *place.or_insert(next) == next {
            self.maps.push(Map {
                table,
                name: name.to_owned(),
                is_anonymous,
                targets: Vec::new(),
                elements: 0,
                is_looked_up: false,
            });
        }
    }

    /// Returns the map with this ID or this name.
    fn map(&mut self, table: usize, name: &BStr, id: Option<u32>) -> Option<&mut Map> {
        let numbered = self.map_of.get(&Self::key(table, name, id));
        let place = numbered.or_else(|| self.map_of.get(&Self::key(table, name, None)))?;
        self.maps.get_mut(*place)
    }
}

/// nf_tables message.
struct NftMessage<'a> {
    /// `NFT_MSG_*`.
    kind: u8,
    family: Family,
    attributes: &'a [u8],
}

impl<'a> NftMessage<'a> {
    fn find(&self, kind: u16) -> Option<&'a [u8]> {
        Attributes::new(self.attributes).find(kind)
    }

    fn text(&self, kind: u16) -> Option<&'a BStr> {
        self.find(kind).map(until_nul)
    }
}

fn nft_messages(bytes: &[u8]) -> impl Iterator<Item = NftMessage<'_>> {
    let messages = Messages::new(bytes).map_while(Result::ok);
    messages.filter_map(|message| {
        if message.kind >> 8 != u16::from(NFNL_SUBSYS_NFTABLES) {
            return None;
        }
        let (header, attributes) = NfGenMsg::split(message.payload).ok()?;
        Some(NftMessage {
            kind: message.kind as u8,
            family: Family(header.family),
            attributes,
        })
    })
}

/// Reads a number from an attribute.
fn number(attributes: &[u8], kind: u16) -> Option<u32> {
    let bytes = Attributes::new(attributes).find(kind)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

impl Graph {
    /// Adds the tables of iptables-save output, even if they are inconsistent. Deletions are ignored. `-j` with a name
    /// that is not a target is a jump.
    ///
    /// # Errors
    /// [`TextError::Line`], [`TextError::InvalidTable`].
    pub fn add_iptables_text(&mut self, family: xt::Family, text: &[u8]) -> Result<(), TextError> {
        let mut table: Option<(usize, String)> = None;
        for (line, content) in (1..).zip(text.lines()) {
            let content = content.trim_ascii();
            match content.first() {
                None | Some(b'#') => {}
                Some(b'*') => {
                    let name = content[1..].trim_ascii().to_str_lossy().into_owned();
                    if builtins(&name).is_none() {
                        let why = format!("iptables has no table {name:?}");
                        return Err(TextError::InvalidTable { line, why });
                    }
                    let place = self.begin(Table {
                        backend: Backend::Nft,
                        family: Family::from(family),
                        name: BString::from(&*name),
                        dormant: false,
                    });
                    table = Some((place, name));
                }
                Some(_) if content == b"COMMIT" => table = None,
                Some(_) => {
                    let Some((place, name)) = &table else {
                        let why = "missing table".to_owned();
                        return Err(TextError::InvalidTable { line, why });
                    };
                    let added = match content.strip_prefix(b":") {
                        Some(declared) => self.add_declaration(*place, name, declared),
                        None => self.add_command(*place, name, family, content),
                    };
                    added.map_err(|error| TextError::Line { line, error })?;
                }
            }
        }
        Ok(())
    }

    /// Adds a chain declaration: `INPUT DROP [0:0]`.
    fn add_declaration(
        &mut self,
        table: usize,
        table_name: &str,
        line: &[u8],
    ) -> Result<(), ParseError> {
        let mut found = Vec::new();
        words(line, &mut found)?;
        if let Some(name) = found.first() {
            let policy = found.get(1).map(|word| word.bytes.as_bstr());
            self.declare_iptables(table, table_name, name.bytes.as_bstr(), policy);
        }
        Ok(())
    }

    fn declare_iptables(
        &mut self,
        table: usize,
        table_name: &str,
        name: &BStr,
        policy: Option<&BStr>,
    ) -> usize {
        let known = name
            .to_str()
            .ok()
            .and_then(|name| builtin(table_name, name));
        let kind = match known {
            None => NodeKind::Chain,
            Some(known) => NodeKind::Base(base(
                self.tables[table].family,
                Some(known.chain_type.into()),
                known.hook,
                known.priority,
                policy
                    .is_some_and(|word| word == "DROP")
                    .then_some(Policy::DROP),
            )),
        };
        self.declare(table, name, kind)
    }

    fn add_command(
        &mut self,
        table: usize,
        table_name: &str,
        family: xt::Family,
        line: &[u8],
    ) -> Result<(), ParseError> {
        // Counters precede the command.
        let line = match line.strip_prefix(b"[") {
            Some(rest) => rest.find_byte(b']').map_or(line, |end| &rest[end + 1..]),
            None => line,
        };
        let mut found = Vec::new();
        words(line, &mut found)?;
        let names = &self.names[table];
        let command = Command::parse(family, &found, |name| {
            let declared = names.contains_key(&(false, name.to_owned()));
            declared || xt::Target::named(family, name).is_none()
        })?;
        let Some(chain) = command.chain.as_ref().filter(|_| !command.for_other_family) else {
            return Ok(());
        };
        match &command.verb {
            Verb::NewChain => {
                self.declare_iptables(table, table_name, chain.as_bstr(), None);
            }
            Verb::Policy(policy) => {
                let policy = Some(policy.as_bstr());
                self.declare_iptables(table, table_name, chain.as_bstr(), policy);
            }
            Verb::Append | Verb::Insert(_) => {
                let mut node = self.named(table, false, chain.as_bstr());
                if self.nodes[node].kind == NodeKind::Missing
                    && builtin(table_name, &chain.to_str_lossy()).is_some()
                {
                    node = self.declare_iptables(table, table_name, chain.as_bstr(), None);
                }
                let count = command.spec.number();
                self.nodes[node].size += count;
                let link = match &command.spec.rule.target {
                    Target::Jump(to) => Some((EdgeKind::Jump, to)),
                    Target::Goto(to) => Some((EdgeKind::Goto, to)),
                    _ => None,
                };
                let link = link.map(|(how, to)| {
                    let to = self.named(table, false, to.as_bstr());
                    self.link(node, to, how, count);
                    (to, how)
                });
                let mut matches = command.spec.rule.matches.iter();
                let comment = matches.find_map(|one| match one {
                    xt::Match::Comment(comment) => Some(comment),
                    _ => None,
                });
                if let Some(comment) = comment {
                    self.comment(node, link.as_slice(), comment.as_bytes().as_bstr());
                }
            }
            _ => {}
        }
        Ok(())
    }
}
