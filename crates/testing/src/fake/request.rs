//! Requests outside of transactions: lookups, dumps, the generation.

use std::sync::Arc;

use chainwright_sys::netlink::{NLM_F_ACK, NLM_F_APPEND, NLM_F_DUMP, NLM_F_MULTI};
use chainwright_sys::nf_tables::{
    NFT_MSG_GETCHAIN, NFT_MSG_GETFLOWTABLE, NFT_MSG_GETGEN, NFT_MSG_GETOBJ, NFT_MSG_GETOBJ_RESET,
    NFT_MSG_GETRULE, NFT_MSG_GETRULE_RESET, NFT_MSG_GETSET, NFT_MSG_GETSETELEM,
    NFT_MSG_GETSETELEM_RESET, NFT_MSG_GETTABLE, NFT_MSG_NEWGEN, NFT_MSG_NEWRULE,
    NFT_MSG_NEWSETELEM, NFT_MSG_NEWTABLE, NFTA_CHAIN_NAME, NFTA_FLOWTABLE_NAME, NFTA_GEN_ID,
    NFTA_GEN_PROC_NAME, NFTA_GEN_PROC_PID, NFTA_OBJ_NAME, NFTA_OBJ_TYPE, NFTA_RULE_CHAIN,
    NFTA_RULE_HANDLE, NFTA_SET_NAME, NFTA_TABLE_NAME,
};
use chainwright_sys::nfnetlink::NFNL_SUBSYS_NFTABLES;

use super::listed::{self, Detail};
use super::members::{Kind, Member};
use super::state::{Chain, Flowtable, Set, State, StatefulObject, Table};
use super::wire::{
    AttributeBuffer, Header, NAME, ParsedAttributes, Policy, Refusal, U32, U64, acknowledge, done,
    put, refuse,
};
use chainwright::netlink::{Attributes, Message, Messages};
use chainwright::nft::message_type;

/// Maximum size in bytes of a dump's datagram with more than one message.
const MAX_DATAGRAM_LENGTH: usize = 32 * 1024;
/// Approximate number of bytes of elements in one message.
const ELEMENTS: usize = 16 * 1024;

/// Attributes of any request for an object: the table name has the same number for all kinds, and the second name for
/// all kinds but chains.
pub(super) const NAMED: &[(u16, Policy)] = &[
    (NFTA_TABLE_NAME, NAME),
    (SECOND, NAME),
    (NFTA_CHAIN_NAME, NAME),
];
pub(super) const SECOND: u16 = NFTA_SET_NAME;
const _: () =
    assert!(SECOND == NFTA_RULE_CHAIN && SECOND == NFTA_OBJ_NAME && SECOND == NFTA_FLOWTABLE_NAME);

/// One object of a reply.
struct Answer {
    message: u8,
    flags: u16,
    family: u8,
    attributes: AttributeBuffer,
}

/// Answers the requests of a datagram; returns the datagrams of the reply.
pub(super) fn answer(state: &mut State, port: u32, datagram: &[u8]) -> Vec<Vec<u8>> {
    let mut datagrams = Vec::new();
    for message in Messages::new(datagram).map_while(Result::ok) {
        let answered = one(state, port, &message, &mut datagrams);
        if answered.is_err() || (message.flags & NLM_F_ACK != 0 && !is_dump(&message)) {
            datagrams.push(acknowledge(message.raw, port, answered.err()));
        }
    }
    datagrams
}

const fn is_dump(message: &Message<'_>) -> bool {
    message.flags & NLM_F_DUMP == NLM_F_DUMP
}

fn one(
    state: &mut State,
    port: u32,
    message: &Message<'_>,
    datagrams: &mut Vec<Vec<u8>>,
) -> Result<(), Refusal> {
    if message.kind >> 8 != u16::from(NFNL_SUBSYS_NFTABLES) {
        return Err(refuse(libc::EINVAL));
    }
    let (header, attributes) = message.nfgenmsg().map_err(|_| refuse(libc::EINVAL))?;
    let family = header.family;
    let kind = match message.kind as u8 {
        NFT_MSG_GETRULE_RESET => NFT_MSG_GETRULE,
        NFT_MSG_GETOBJ_RESET => NFT_MSG_GETOBJ,
        NFT_MSG_GETSETELEM_RESET => NFT_MSG_GETSETELEM,
        other => other,
    };
    let dumps = is_dump(message);
    let answers = match (kind, dumps) {
        (NFT_MSG_GETGEN, false) => vec![generation(state)],
        (_, false) => look_up(state, kind, family, attributes)?,
        (_, true) => list(state, kind, family, attributes)?,
    };
    if message.kind as u8 != kind {
        state.reset(kind, dumps, family, attributes)?;
    }
    let header = |answer: &Answer| Header {
        kind: message_type(answer.message),
        flags: answer.flags | if dumps { NLM_F_MULTI } else { 0 },
        sequence: message.sequence,
        port,
    };
    let resource = (state.generation as u16).to_be_bytes();
    let mut datagram = Vec::new();
    for answer in &answers {
        let before = datagram.len();
        let nfgenmsg = [answer.family, 0, resource[0], resource[1]];
        put(
            &mut datagram,
            header(answer),
            &[&nfgenmsg, &answer.attributes.0],
        );
        if before > 0 && (datagram.len() > MAX_DATAGRAM_LENGTH || !dumps) {
            let last = datagram.split_off(before);
            datagrams.push(std::mem::replace(&mut datagram, last));
        }
    }
    if dumps {
        let header = Header {
            kind: 0,
            flags: NLM_F_MULTI,
            sequence: message.sequence,
            port,
        };
        if datagram.len() + 20 > MAX_DATAGRAM_LENGTH {
            datagrams.push(std::mem::take(&mut datagram));
        }
        done(&mut datagram, header);
    }
    if !datagram.is_empty() {
        datagrams.push(datagram);
    }
    Ok(())
}

/// Returns the generation and the requesting thread.
fn generation(state: &State) -> Answer {
    Answer {
        message: NFT_MSG_NEWGEN,
        flags: 0,
        family: 0,
        attributes: generation_and_thread(state.generation),
    }
}

/// Encodes a generation and the calling thread.
pub(super) fn generation_and_thread(generation: u32) -> AttributeBuffer {
    let mut out = AttributeBuffer::default();
    out.u32(NFTA_GEN_ID, generation)
        .u32(NFTA_GEN_PROC_PID, nix::unistd::gettid().as_raw() as u32);
    if let Ok(name) = std::fs::read("/proc/thread-self/comm") {
        out.text(NFTA_GEN_PROC_NAME, name.trim_ascii_end());
    }
    out
}

fn object_answer(message: u8, table: &Table, attributes: AttributeBuffer) -> Answer {
    Answer {
        message,
        flags: 0,
        family: table.family,
        attributes,
    }
}

fn member<K: Kind>(table: &Table, member: &Member<K>) -> Answer {
    object_answer(K::NEW, table, K::listed(table, member, Detail::Whole))
}

/// Looks up one object by name.
fn look_up(state: &State, kind: u8, family: u8, attributes: &[u8]) -> Result<Vec<Answer>, Refusal> {
    if kind == NFT_MSG_GETSETELEM {
        return look_elements_up(state, family, attributes);
    }
    let given = ParsedAttributes::read(attributes, NAMED)?;
    let missing = refuse(libc::EINVAL);
    let name = given.text(NFTA_TABLE_NAME).ok_or(missing)?;
    let number = state.table_named(family, name, None);
    let table = &state.tables[number.map_err(|refusal| refusal.at(NFTA_TABLE_NAME))?];
    let second = given.text(SECOND);
    let answer = match kind {
        NFT_MSG_GETTABLE => {
            object_answer(NFT_MSG_NEWTABLE, table, listed::table(table, Detail::Whole))
        }
        NFT_MSG_GETCHAIN => {
            let name = given.text(NFTA_CHAIN_NAME).ok_or(missing)?;
            let chain = table.chains.named(name);
            let chain = chain.map_err(|refusal| refusal.at(NFTA_CHAIN_NAME))?;
            member(table, &table.chains[chain])
        }
        NFT_MSG_GETRULE => {
            let chain = table.chains.named(second.ok_or(missing)?);
            let chain = chain.map_err(|refusal| refusal.at(NFTA_RULE_CHAIN))?;
            let chain = &table.chains[chain];
            let handle = ParsedAttributes::read(attributes, &[(NFTA_RULE_HANDLE, U64)])?;
            let handle = handle.u64(NFTA_RULE_HANDLE).ok_or(missing)?;
            let mut rules = chain.rules.iter();
            let rule = rules.find(|slot| slot.rule.handle == handle);
            let rule = rule.ok_or(refuse(libc::ENOENT).at(NFTA_RULE_HANDLE))?;
            let rule = listed::rule(table, chain, &rule.rule, None);
            object_answer(NFT_MSG_NEWRULE, table, rule)
        }
        NFT_MSG_GETSET => {
            if family == 0 {
                return Err(refuse(libc::EAFNOSUPPORT));
            }
            let set = table.sets.named(second.ok_or(missing)?)?;
            member(table, &table.sets[set])
        }
        NFT_MSG_GETOBJ => {
            let object_type = ParsedAttributes::read(attributes, &[(NFTA_OBJ_TYPE, U32)])?;
            let object_type = object_type.u32(NFTA_OBJ_TYPE).ok_or(missing)?;
            let object = (table.objects).of_type(object_type, second.ok_or(missing)?);
            let object = object.map_err(|refusal| refusal.at(NFTA_OBJ_NAME))?;
            member(table, &table.objects[object])
        }
        NFT_MSG_GETFLOWTABLE => {
            let flowtable = table.flowtables.named(second.ok_or(missing)?);
            let flowtable = flowtable.map_err(|refusal| refusal.at(NFTA_FLOWTABLE_NAME))?;
            member(table, &table.flowtables[flowtable])
        }
        _ => return Err(refuse(libc::EOPNOTSUPP)),
    };
    Ok(vec![answer])
}

fn look_elements_up(state: &State, family: u8, attributes: &[u8]) -> Result<Vec<Answer>, Refusal> {
    let (table, set, list) = super::element::names(attributes)?;
    let table = &state.tables[state.table_named(family, table, None)?];
    let set = &table.sets[table.sets.named(set)?];
    let list = list.ok_or(refuse(libc::EINVAL))?;
    let mut answers = Vec::new();
    for attribute in Attributes::new(list).map_while(Result::ok) {
        let element = super::element::find(set, attribute.payload)?;
        answers.push(object_answer(
            NFT_MSG_NEWSETELEM,
            table,
            listed::elements(table, set, [&**element]),
        ));
    }
    Ok(answers)
}

/// Lists all objects of a kind, with the kernel's filters.
fn list(state: &State, kind: u8, family: u8, attributes: &[u8]) -> Result<Vec<Answer>, Refusal> {
    let given = ParsedAttributes::read(attributes, NAMED)?;
    let wanted = given.text(NFTA_TABLE_NAME);
    let tables = || {
        let tables = state.tables.iter();
        tables.filter(move |table| family == 0 || table.family == family)
    };
    let is_wanted = |table: &&Arc<Table>| wanted.is_none_or(|wanted| table.name == wanted);
    let mut answers = Vec::new();
    match kind {
        NFT_MSG_GETTABLE => {
            let listed = |table: &Arc<Table>| {
                object_answer(NFT_MSG_NEWTABLE, table, listed::table(table, Detail::Whole))
            };
            answers.extend(tables().map(listed));
        }
        NFT_MSG_GETCHAIN => {
            tables().for_each(|table| answers.extend(members(table, |_: &Chain| true)))
        }
        NFT_MSG_GETRULE => {
            let name = given.text(NFTA_RULE_CHAIN);
            for table in tables().filter(is_wanted) {
                match name.map(|name| table.chains.named(name)) {
                    None => {
                        let chains = table.chains.iter();
                        chains.for_each(|chain| list_rules(table, chain, &mut answers));
                    }
                    Some(Ok(at)) => list_rules(table, &table.chains[at], &mut answers),
                    Some(Err(_)) => {}
                }
            }
        }
        NFT_MSG_GETSET => {
            if let Some(name) = wanted {
                state.table_named(family, name, None)?;
            }
            let tables = tables().filter(is_wanted);
            tables.for_each(|table| answers.extend(members(table, |_: &Set| true)));
        }
        NFT_MSG_GETSETELEM => list_elements(state, family, attributes, &mut answers)?,
        NFT_MSG_GETOBJ => {
            let object_type = ParsedAttributes::read(attributes, &[(NFTA_OBJ_TYPE, U32)])?;
            let object_type = object_type.u32(NFTA_OBJ_TYPE).filter(|&number| number != 0);
            let is_meant = |object: &StatefulObject| {
                object_type.is_none_or(|wanted| object.object_type == wanted)
            };
            let tables = tables().filter(is_wanted);
            tables.for_each(|table| answers.extend(members(table, is_meant)));
        }
        NFT_MSG_GETFLOWTABLE => {
            let tables = tables().filter(is_wanted);
            tables.for_each(|table| answers.extend(members(table, |_: &Flowtable| true)));
        }
        _ => return Err(refuse(libc::EOPNOTSUPP)),
    }
    Ok(answers)
}

/// Lists the members of a kind that match.
fn members<K: Kind>(table: &Table, is_meant: impl Fn(&K) -> bool) -> impl Iterator<Item = Answer> {
    let members = K::of(table).iter();
    let meant = members.filter(move |one| is_meant(one));
    meant.map(|one| member(table, one))
}

/// Lists the rules of a chain, each with the handle of the preceding one.
fn list_rules(table: &Table, chain: &Member<Chain>, answers: &mut Vec<Answer>) {
    let mut before = None;
    for slot in &chain.rules {
        let rule = listed::rule(table, chain, &slot.rule, before);
        answers.push(Answer {
            flags: NLM_F_APPEND,
            ..object_answer(NFT_MSG_NEWRULE, table, rule)
        });
        before = Some(slot.rule.handle);
    }
}

fn list_elements(
    state: &State,
    family: u8,
    attributes: &[u8],
    answers: &mut Vec<Answer>,
) -> Result<(), Refusal> {
    let (table, set, _) = super::element::names(attributes)?;
    let table = &state.tables[state.table_named(family, table, None)?];
    let set = &table.sets[table.sets.named(set)?];
    let mut some = Vec::new();
    let mut length = 0;
    for element in set.elements.values() {
        let listed = listed::element(table, set, element).0.len();
        if length > 0 && length + listed > ELEMENTS {
            let elements = listed::elements(table, set, some.drain(..));
            answers.push(object_answer(NFT_MSG_NEWSETELEM, table, elements));
            length = 0;
        }
        length += listed + 4;
        some.push(&**element);
    }
    let elements = listed::elements(table, set, some);
    answers.push(object_answer(NFT_MSG_NEWSETELEM, table, elements));
    Ok(())
}
