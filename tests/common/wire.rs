//! Compares the messages that nft sends for a text, taken from its system calls, with those that the library sends.

use std::collections::HashMap;
use std::fmt::Write as _;

use chainwright::netlink::{Attributes, Messages};
use chainwright::nft::Scope;
use chainwright_lang::{NftVersion, Script};
use chainwright_testing::Sandbox;
use tempfile::NamedTempFile;

use super::connect;
use super::needs::find;
use super::tools::Tools;

/// The messages that nft sends for a text, including `BATCH_BEGIN` and `BATCH_END`, one after the other; empty if there
/// is nothing to do, and an error if nft refuses the text itself. The kernel executes them. Requests that nft sends
/// before are left out.
#[track_caller]
pub(crate) fn sent_by_nft(sandbox: &Sandbox, text: &str) -> Result<Vec<u8>, String> {
    let trace = NamedTempFile::new().expect("cannot create a temporary file");
    let taken = Tools::new(sandbox).takes(
        &format!(
            "strace -f -e trace=sendmsg -e write=all -e signal=none -o {} {} -f -",
            trace.path().display(),
            find("nft").display()
        ),
        text,
    );
    let sent = sent(&std::fs::read_to_string(trace.path()).expect("cannot read the trace"));
    match (sent.is_empty(), taken) {
        (true, Err(refusal)) => Err(refusal),
        // The messages were sent even if the kernel refuses them.
        _ => Ok(sent),
    }
}

/// The bytes in lines such as ` | 00000  14 00 00 00 10 0a 01 00  00 00 00 00 00 00 00 00  ................ |`.
fn sent(trace: &str) -> Vec<u8> {
    let lines = trace.lines().filter_map(|line| line.strip_prefix(" | "));
    let bytes = lines.flat_map(|line| {
        let (_, dump) = line.split_once("  ").expect("a line has no offset");
        let columns = dump.get(..49).expect("a line has fewer than 16 bytes");
        columns.split_ascii_whitespace()
    });
    bytes
        .map(|byte| u8::from_str_radix(byte, 16).expect("not a hexadecimal byte"))
        .collect()
}

/// The messages that the library sends for a text in the form of this version of nft.
pub(crate) fn sent_by_us(
    sandbox: &Sandbox,
    text: &str,
    version: NftVersion,
) -> Result<Vec<u8>, String> {
    let script = Script::parse("rules.nft", text).map_err(|error| error.to_string())?;
    let script = script.with_time_zone("UTC").expect("unknown time zone");
    let script = script.with_nft_version(version);
    let now = match script.needs_listing() {
        true => Some(
            connect(sandbox)
                .snapshot(Scope::all())
                .expect("cannot read the ruleset"),
        ),
        false => None,
    };
    // Interface names refer to the sandbox.
    sandbox
        .run(|| {
            let change = script.transaction(now.as_ref());
            let change = change.map_err(|error| error.to_string())?;
            Ok(match change.transaction().is_empty() {
                true => Vec::new(),
                false => change.transaction().datagram(<[u8]>::to_vec),
            })
        })
        .expect("cannot enter the sandbox")
}

/// Message types; those of nf_tables have its subsystem number in the upper half.
const BATCH_BEGIN: u16 = 0x10;
const NEW_CHAIN: u16 = 0xa03;
const NEW_RULE: u16 = 0xa06;
const NEW_SET: u16 = 0xa09;
const NEW_ELEMENTS: u16 = 0xa0c;
const NESTED: u16 = 0x8000;
/// `NLM_F_ACK`
const ACKNOWLEDGED: u16 = 4;

/// The parts of two lists of messages that are not compared, and how often they occurred.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ignored {
    /// Batches for which the library gives the required generation.
    pub(crate) generations: usize,
    /// Instructions and lists of elements in which nft gives its own number for an existing set.
    pub(crate) known_sets: usize,
}

/// Returns the replacement of an attribute's value, or `None` to omit it.
type Replace<'r> = &'r mut dyn FnMut(&mut Numbers, &[u8]) -> Option<Vec<u8>>;

/// The meaning of the numbers in one side's messages: the index of the set or chain in the batch.
#[derive(Default)]
struct Numbers {
    sets: HashMap<Vec<u8>, u32>,
    chains: HashMap<Vec<u8>, u32>,
    passed: Ignored,
}

impl Numbers {
    /// A set's number, if the set belongs to this batch.
    fn set(&mut self, number: &[u8]) -> Option<Vec<u8>> {
        let known = self.sets.get(number);
        self.passed.known_sets += usize::from(known.is_none());
        known.map(|number| number.to_be_bytes().to_vec())
    }

    /// A chain's number; all chains with numbers belong to this batch.
    fn chain(&mut self, number: &[u8]) -> Option<Vec<u8>> {
        let next = self.chains.len() as u32;
        let known = self.chains.entry(number.to_vec()).or_insert(next);
        Some(known.to_be_bytes().to_vec())
    }

    /// Replaces the values at these paths in an attribute list; those that become `None` are omitted.
    fn at(&mut self, bytes: &[u8], path: &[u16], with: Replace<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        for attribute in Attributes::new(bytes) {
            let attribute = attribute.expect("incomplete attribute");
            let rest = match path {
                [first, rest @ ..] if *first == attribute.kind => rest,
                _ => {
                    out.extend_from_slice(attribute.raw);
                    out.resize(out.len().next_multiple_of(4), 0);
                    continue;
                }
            };
            let value = match rest {
                [] => with(self, attribute.payload),
                rest => Some(self.at(attribute.payload, rest, with)),
            };
            if let Some(value) = value {
                let length = 4 + value.len() as u16;
                out.extend_from_slice(&length.to_ne_bytes());
                out.extend_from_slice(&attribute.raw[2..4]);
                out.extend_from_slice(&value);
                out.resize(out.len().next_multiple_of(4), 0);
            }
        }
        out
    }

    /// The instructions of a rule.
    fn instructions(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.at(bytes, &[1], &mut |this, instruction| {
            let name = Attributes::new(instruction).find(1);
            Some(match name.unwrap_or_default() {
                b"lookup\0" => this.at(instruction, &[2, 4], &mut Self::set),
                b"dynset\0" => this.at(instruction, &[2, 2], &mut Self::set),
                b"objref\0" => this.at(instruction, &[2, 5], &mut Self::set),
                b"immediate\0" => this.at(instruction, &[2, 2, 2, 3], &mut Self::chain),
                _ => instruction.to_vec(),
            })
        })
    }
}

/// Attributes with zeros as padding.
fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for attribute in Attributes::new(bytes) {
        let attribute = attribute.expect("incomplete attribute");
        let (head, value) = attribute.raw.split_at(4);
        out.extend_from_slice(head);
        match u16::from_ne_bytes([head[2], head[3]]) & NESTED {
            0 => out.extend_from_slice(attribute.payload),
            _ => out.extend(padded(&value[..attribute.payload.len()])),
        }
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out
}

/// Converts the messages of one side to a comparable form, and counts the ignored parts. All bytes are compared except
/// - requests for acknowledgements: nft requests none, the library does so for the first and last operation and for the
///   end of the batch, so that every kernel reports the result;
/// - the required generation of a batch: nft gives none, the library does if a text depends on the existing ruleset;
/// - padding after attributes whose length is no multiple of four: nft's is not always zeros;
/// - sequence numbers: both count messages, but nft also counts some that it does not send, for the elements of a
///   meter;
/// - the numbers of anonymous sets and chains: nft counts everything that it has read, from a text or from the kernel,
///   the library counts those of a batch. Their index in the batch is compared. nft also numbers existing sets, which
///   has no meaning to the kernel; that number is omitted.
pub(crate) fn compared(sent: &[u8]) -> (Vec<Vec<u8>>, Ignored) {
    let mut numbers = Numbers::default();
    let mut out = Vec::new();
    let mut last = 0;
    for message in Messages::new(sent) {
        let message = message.expect("incomplete message");
        let (head, attributes) = message.payload.split_at(4);
        let attributes = &padded(attributes)[..];
        let attributes = match message.kind {
            BATCH_BEGIN => {
                numbers.passed.generations += usize::from(!attributes.is_empty());
                Vec::new()
            }
            NEW_SET => numbers.at(attributes, &[10], &mut |this, number| {
                let next = this.sets.len() as u32;
                this.sets.insert(number.to_vec(), next);
                Some(next.to_be_bytes().to_vec())
            }),
            NEW_ELEMENTS => numbers.at(attributes, &[4], &mut Numbers::set),
            NEW_CHAIN => numbers.at(attributes, &[11], &mut Numbers::chain),
            NEW_RULE => {
                let attributes = numbers.at(attributes, &[11], &mut Numbers::chain);
                let all = &mut |this: &mut Numbers, all: &[u8]| Some(this.instructions(all));
                numbers.at(&attributes, &[4], all)
            }
            _ => attributes.to_vec(),
        };
        let mut bytes = message.raw[..16].to_vec();
        let length = (16 + head.len() + attributes.len()) as u32;
        let flags = message.flags & !ACKNOWLEDGED;
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        assert!(
            out.is_empty() || message.sequence > last,
            "the sequence numbers should increase"
        );
        last = message.sequence;
        bytes[8..12].fill(0);
        bytes.extend_from_slice(head);
        bytes.extend_from_slice(&attributes);
        out.push(bytes);
    }
    (out, numbers.passed)
}

/// A message as it can be read: its header, and each attribute on a line.
pub(crate) fn readable(message: &[u8]) -> String {
    let (header, payload) = message.split_at(16.min(message.len()));
    let (family, attributes) = payload.split_at(4.min(payload.len()));
    let mut out = format!("{header:02x?} {family:02x?}\n");
    read_attributes(&mut out, attributes, 2);
    out
}

fn read_attributes(out: &mut String, bytes: &[u8], depth: usize) {
    let indent = "  ".repeat(depth);
    for attribute in Attributes::new(bytes).map_while(Result::ok) {
        let (kind, value) = (attribute.kind, attribute.payload);
        let is_nested = u16::from_ne_bytes([attribute.raw[2], attribute.raw[3]]) & NESTED != 0;
        if is_nested {
            writeln!(out, "{indent}{kind}:").expect("cannot write to a string");
            read_attributes(out, value, depth + 1);
        } else {
            let text = value.escape_ascii();
            writeln!(out, "{indent}{kind}: {value:02x?} {text}").expect("cannot write to a string");
        }
    }
}
