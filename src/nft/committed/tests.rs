//! Results of commits whose echo is lost, truncated or malformed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use chainwright_sys::netlink::{NLM_F_CAPPED, NLMSG_ERROR};
use chainwright_sys::nf_tables::{
    NFT_MSG_NEWGEN, NFT_MSG_NEWRULE, NFT_MSG_NEWTABLE, NFTA_GEN_ID, NFTA_RULE_CHAIN,
    NFTA_RULE_HANDLE, NFTA_RULE_TABLE, NFTA_TABLE_HANDLE, NFTA_TABLE_NAME,
};
use chainwright_sys::nfnetlink::NFNL_MSG_BATCH_BEGIN;
use proptest::prelude::*;

use super::*;
use crate::netlink::replay::{Replay, Reply};
use crate::netlink::{MessageWriter, NfGenMsg, Socket};
use crate::nft::{CommitError, Connection, Family, Outcome, Rule, Table};

/// The generation before the commit, and the generation created by it.
const BEFORE: u32 = 0x1_fffd;
const MADE: u32 = 0x2_0001;

#[test]
fn next_number_with_these_low_bits() {
    assert_eq!(next_with_low_bits(7, 8), Some(8));
    assert_eq!(next_with_low_bits(7, 7), None);
    assert_eq!(next_with_low_bits(0x1_fffe, 1), Some(0x2_0001));
    assert_eq!(next_with_low_bits(u32::MAX, 1), Some(1));
}

fn message(kind: u8, sequence: u32, content: impl FnOnce(&mut MessageWriter<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = NfGenMsg {
        family: Family::IP.0,
        resource: MADE as u16,
    };
    let mut writer = MessageWriter::nfnetlink(&mut bytes, message_type(kind), 0, sequence, header);
    content(&mut writer);
    writer.finish().unwrap();
    bytes
}

fn generation(number: u32, sequence: u32) -> Vec<u8> {
    message(NFT_MSG_NEWGEN, sequence, |writer| {
        writer.bytes(NFTA_GEN_ID, &number.to_be_bytes());
    })
}

fn table(sequence: u32, handle: u64) -> Vec<u8> {
    message(NFT_MSG_NEWTABLE, sequence, |writer| {
        writer.string(NFTA_TABLE_NAME, b"t");
        writer.bytes(NFTA_TABLE_HANDLE, &handle.to_be_bytes());
    })
}

fn rule(sequence: u32, handle: u64) -> Vec<u8> {
    message(NFT_MSG_NEWRULE, sequence, |writer| {
        writer.string(NFTA_RULE_TABLE, b"t");
        writer.string(NFTA_RULE_CHAIN, b"c");
        writer.bytes(NFTA_RULE_HANDLE, &handle.to_be_bytes());
    })
}

fn acknowledgement(sequence: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = MessageWriter::new(&mut bytes, NLMSG_ERROR, NLM_F_CAPPED, sequence);
    // No error, and the request's header.
    writer.encoded(&[0; 20]);
    writer.finish().unwrap();
    bytes
}

/// Returns a table and two rules; `replies` has the kernel's replies to it.
fn transaction() -> Transaction {
    let mut tx = Transaction::new();
    tx.add(&Table::new(Family::IP, "t")).unwrap();
    tx.add(&Rule::new(Family::IP, "t", "c")).unwrap();
    tx.add(&Rule::new(Family::IP, "t", "c")).unwrap();
    tx
}

fn replies() -> Vec<Vec<u8>> {
    vec![
        [table(1, 10), rule(2, 20), rule(3, 30)].concat(),
        generation(MADE, 1),
        acknowledgement(1),
        acknowledgement(3),
        acknowledgement(4),
    ]
}

/// Commits to a kernel with these replies; returns the number of batches sent too.
fn commit(replies: Vec<Reply>) -> (Result<Committed, CommitError>, u32) {
    let batches = Arc::new(AtomicU32::new(0));
    let sent = Arc::clone(&batches);
    let replay = Replay::new(move |request: &[u8]| {
        let request = Message::first(request).unwrap();
        if request.kind == NFNL_MSG_BATCH_BEGIN {
            sent.fetch_add(1, Ordering::Relaxed);
            return replies.clone();
        }
        let moved = sent.load(Ordering::Relaxed) > 0;
        let now = if moved { MADE } else { BEFORE };
        vec![Reply::Datagram(generation(now, request.sequence))]
    });
    let mut nft = Connection::over(Socket::with_transport(Box::new(replay))).unwrap();
    let committed = nft.commit_echo(&transaction());
    (committed, batches.load(Ordering::Relaxed))
}

fn datagrams(datagrams: impl IntoIterator<Item = Vec<u8>>) -> Vec<Reply> {
    datagrams.into_iter().map(Reply::Datagram).collect()
}

fn number(committed: &Committed) -> Option<u32> {
    committed.generation().map(Generation::number)
}

#[test]
fn a_complete_echo() {
    let committed = commit(datagrams(replies())).0.unwrap();
    let handles = [0, 1, 2, 3].map(|operation| committed.handle(operation));
    assert_eq!(handles, [Some(10), Some(20), Some(30), None]);
    assert_eq!(number(&committed), Some(MADE));
    assert!(committed.is_complete());
}

/// The first part of the echo arrived: the commit is known to be applied, and which handles are
/// missing.
#[test]
fn dropped_echoes_are_missing() {
    let came = vec![table(1, 10), rule(2, 20)];
    let mut lossy = vec![Reply::Error(libc::ENOBUFS)];
    lossy.extend(datagrams(came));
    let (committed, batches) = commit(lossy);
    let committed = committed.unwrap();
    assert_eq!(batches, 1);
    let handles = [0, 1, 2].map(|operation| committed.handle(operation));
    assert_eq!(handles, [Some(10), Some(20), None]);
    assert_eq!(committed.missing(), [2]);
    assert!(!committed.is_complete());
    // From the low 16 bits that every message contains.
    assert_eq!(number(&committed), Some(MADE));
}

#[test]
fn without_any_echo_the_outcome_is_that_of_a_commit() {
    let (committed, batches) = commit(vec![Reply::Error(libc::ENOBUFS)]);
    assert_eq!(committed.unwrap_err().outcome, Outcome::Unknown);
    assert_eq!(batches, 1);
    // Only the acknowledgement of the end arrived.
    let mut acknowledged = vec![Reply::Error(libc::ENOBUFS)];
    acknowledged.push(Reply::Datagram(acknowledgement(4)));
    let committed = commit(acknowledged).0.unwrap();
    assert_eq!(committed.missing(), [0, 1, 2]);
    assert_eq!((number(&committed), committed.is_complete()), (None, false));
}

/// The kernel sends no message for a large rule, and reports no error.
#[test]
fn a_rule_without_an_echo_is_missing() {
    let mut replies = replies();
    replies[0] = [table(1, 10), rule(3, 30)].concat();
    let committed = commit(datagrams(replies.clone())).0.unwrap();
    assert_eq!(committed.missing(), [1]);
    // The kernel sends no message for a table that already exists.
    replies[0] = [rule(2, 20), rule(3, 30)].concat();
    let committed = commit(datagrams(replies)).0.unwrap();
    assert!(committed.is_complete() && committed.added(0).is_none());
}

#[test]
fn echoes_of_others_prove_nothing() {
    let mut foreign = rule(2, 20);
    foreign[12..16].copy_from_slice(&77_u32.to_ne_bytes());
    for stray in [foreign, rule(9, 20), generation(MADE, 0)] {
        let (committed, _) = commit(datagrams([stray]));
        assert_eq!(committed.unwrap_err().outcome, Outcome::Unknown);
    }
}

proptest! {
    /// Any bytes: no panic, and no handle that was not received.
    #[test]
    fn arbitrary_bytes_are_accepted(
        at in 0_usize..400,
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        cut in 0_usize..400,
    ) {
        let mut received = replies().concat();
        let at = at.min(received.len());
        let end = (at + bytes.len()).min(received.len());
        received.splice(at..end, bytes);
        received.truncate(received.len() - cut.min(received.len()));
        let mut echoes = EchoCollector::new(0);
        echoes.begin(3, Generation::recorded(BEFORE));
        let _ = echoes.accept(&received);
        let committed = echoes.finish(&transaction());
        for (operation, event) in committed.additions() {
            prop_assert!(operation < 3);
            prop_assert_eq!(committed.handle(operation), event.handle());
            let _ = event.to_string();
        }
        let _ = format!("{committed:?}");
    }
}
