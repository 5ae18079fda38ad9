//! Changes to inputs: to any bytes, to words, and to attributes with the lengths around them kept
//! consistent, which no change of single bytes would achieve.

use fastrand::Rng;

/// The structure of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputFormat {
    /// Bytes.
    Bytes,
    /// Text of lines and words.
    Text,
    /// Netlink messages: `struct nlmsghdr`, `struct nfgenmsg`, attributes.
    Messages,
    /// Attributes, after this many other bytes.
    Attributes(usize),
}

/// Longest input in bytes that changes lead to, unless the seed is longer already.
const MAX_LENGTH: usize = 16 << 10;

/// Applies some changes to the seed, including parts of `other`.
#[must_use]
pub fn mutated(input_format: InputFormat, seed: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let max_length = seed.len().max(MAX_LENGTH);
    let mut bytes = seed.to_vec();
    for _ in 0..1 << rng.u32(0..4) {
        bytes = match input_format {
            // Occasionally without any structure.
            _ if rng.u8(..) < 24 => of_bytes(bytes, other, rng),
            // Mostly in place, because offsets in the bytes refer to positions.
            InputFormat::Bytes if rng.u8(..) < 160 && !bytes.is_empty() => {
                let at = rng.usize(..bytes.len());
                let until = bytes.len().min(at + 4);
                let same = of_bytes(bytes[at..until].to_vec(), &[], rng);
                bytes
                    .iter_mut()
                    .skip(at)
                    .zip(same)
                    .for_each(|(byte, new)| *byte = new);
                bytes
            }
            InputFormat::Bytes => of_bytes(bytes, other, rng),
            InputFormat::Text => of_text(bytes, other, rng),
            InputFormat::Messages => of_messages(&bytes, other, rng),
            InputFormat::Attributes(before) => {
                let before = before.min(bytes.len());
                let other = other.get(before..).unwrap_or_default();
                let mut list = List::read(&bytes[before..], 0);
                list.mutate(&List::read(other, 0), rng);
                bytes.truncate(before);
                if before > 0 && rng.u8(..) < 32 {
                    bytes[rng.usize(..before)] = number(rng) as u8;
                }
                list.write(&mut bytes);
                bytes
            }
        };
        bytes.truncate(max_length);
    }
    bytes
}

/// For libFuzzer's mutator: half of the changes are libFuzzer's, half are these. Returns the length of
/// the result.
pub fn for_libfuzzer(
    input_format: InputFormat,
    data: &mut [u8],
    size: usize,
    max_size: usize,
    seed: u32,
    fallback: impl FnOnce(&mut [u8]) -> usize,
) -> usize {
    let mut rng = Rng::with_seed(seed.into());
    if rng.bool() || input_format == InputFormat::Bytes {
        return fallback(data);
    }
    let mut new = mutated(input_format, &data[..size], &data[..size], &mut rng);
    new.truncate(max_size.min(data.len()));
    data[..new.len()].copy_from_slice(&new);
    new.len()
}

/// A number that code is likely to treat specially.
fn number(rng: &mut Rng) -> u64 {
    match rng.u8(..6) {
        0 => rng.u64(..),
        1 => rng.u64(..16),
        2 => rng.u64(..300),
        3 => 1 << rng.u32(..64),
        4 => (1_u64 << rng.u32(..64)).wrapping_sub(1),
        _ => rng.u64(..4).wrapping_neg(),
    }
}

/// A position up to and including the length.
fn place(length: usize, rng: &mut Rng) -> usize {
    rng.usize(..=length)
}

fn of_bytes(mut bytes: Vec<u8>, other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let at = place(bytes.len(), rng);
    let until = at + rng.usize(..=(bytes.len() - at).min(40));
    match rng.u8(..9) {
        0 | 1 if at < bytes.len() => bytes[at] ^= 1 << rng.u32(..8),
        2 if at < bytes.len() => bytes[at] = number(rng) as u8,
        3 | 4 => {
            // A number of any width and byte order, aligned to its width.
            let width = 1 << rng.usize(..4);
            let at = at / width * width;
            let value = number(rng);
            let mut value = value.to_le_bytes()[..width].to_vec();
            if rng.bool() {
                value.reverse();
            }
            if let Some(target) = bytes.get_mut(at..at + width) {
                target.copy_from_slice(&value);
            }
        }
        5 => drop(bytes.drain(at..until)),
        6 => {
            let again = bytes[at..until].to_vec();
            bytes.splice(at..at, again);
        }
        7 => {
            let from = place(other.len(), rng);
            let to = from + rng.usize(..=(other.len() - from).min(200));
            let until = if rng.bool() { until } else { at };
            bytes.splice(at..until, other[from..to].iter().copied());
        }
        8 if rng.u8(..) < 64 => bytes.truncate(at),
        _ => bytes.insert(at, rng.u8(..)),
    }
    bytes
}

/// Words that parsers of text treat specially.
const WORDS: &[&str] = &[
    "!",
    "-",
    "--",
    "\"",
    "\\",
    "'",
    ",",
    ":",
    "/",
    "0",
    "1",
    "255",
    "256",
    "65535",
    "65536",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "0x",
    "0xffffffff",
    "-1",
    "010",
    "1/0",
    "::",
    "::/0",
    "0.0.0.0/0",
    "255.0.255.0",
    "-m",
    "-j",
    "-g",
    "-p",
    "-s",
    "-d",
    "-i",
    "-o",
    "-f",
    "-c",
    "-A",
    "-I",
    "-D",
    "-N",
    "-X",
    "COMMIT",
    "*filter",
    "*nat",
    ":x - [0:0]",
    "[1:2]",
    "tcp",
    "udp",
    "icmp",
    "ipv6-icmp",
    "all",
    "ACCEPT",
    "DROP",
    "RETURN",
    "any",
    "\t",
    "\n",
    "\0",
    "\u{e4}",
    "--xt-revision",
    "--xt-data",
];

fn of_text(bytes: Vec<u8>, other: &[u8], rng: &mut Rng) -> Vec<u8> {
    // Words and lines, each with its separator.
    let split = |bytes: &[u8]| -> Vec<Vec<u8>> {
        let separates = |byte: &u8| matches!(byte, b' ' | b'\n');
        bytes
            .split_inclusive(separates)
            .map(<[u8]>::to_vec)
            .collect()
    };
    let mut words = split(&bytes);
    let others = split(other);
    let at = place(words.len(), rng);
    let word = |rng: &mut Rng| match rng.u8(..4) {
        0 => format!("{} ", number(rng)).into_bytes(),
        1 | 2 => rng.choice(&others).cloned().unwrap_or_default(),
        _ => format!("{} ", rng.choice(WORDS).unwrap_or(&"")).into_bytes(),
    };
    match rng.u8(..9) {
        0 => words.insert(at, word(rng)),
        1 if at < words.len() => words[at] = word(rng),
        2 if at < words.len() => drop(words.remove(at)),
        3 if at < words.len() => {
            let with = rng.usize(..words.len());
            words.swap(at, with);
        }
        4 | 5 if at < words.len() => {
            let target = std::mem::take(&mut words[at]);
            words[at] = of_bytes(target, b"!:,/-\"\\'0x ", rng);
        }
        6 if at < words.len() => {
            // A whole option with its values, from the other input.
            let from = place(others.len(), rng);
            let some = others[from..].iter().take(rng.usize(1..8)).cloned();
            let some: Vec<_> = some.collect();
            words.splice(at..at, some);
        }
        7 if at < words.len() => {
            let some = WORDS[rng.usize(..WORDS.len())];
            let into = place(words[at].len(), rng);
            words[at].splice(into..into, some.bytes());
        }
        _ => return of_bytes(bytes, other, rng),
    }
    words.concat()
}

/// An attribute.
#[derive(Debug, Clone)]
struct Node {
    /// Includes `NLA_F_NESTED` if it is set.
    kind: u16,
    content: Content,
}

#[derive(Debug, Clone)]
enum Content {
    Payload(Vec<u8>),
    Nested(List),
}

/// Attributes, and the bytes after the last complete one.
#[derive(Debug, Clone, Default)]
struct List {
    nodes: Vec<Node>,
    rest: Vec<u8>,
}

/// `NLA_F_NESTED` of `linux/netlink.h`.
const NESTED: u16 = 0x8000;
/// Largest nesting depth of lists.
const MAX_DEPTH: usize = 12;

impl List {
    fn read(mut bytes: &[u8], depth: usize) -> Self {
        let mut nodes = Vec::new();
        while let [l0, l1, k0, k1, ..] = *bytes {
            let length = usize::from(u16::from_ne_bytes([l0, l1]));
            let kind = u16::from_ne_bytes([k0, k1]);
            let Some(payload) = bytes.get(4..length) else {
                break;
            };
            // nft omits the flag in places.
            let inner = Self::read(payload, depth + 1);
            let looks_nested =
                payload.len() >= 8 && inner.rest.is_empty() && !inner.nodes.is_empty();
            let content = if depth < MAX_DEPTH && (kind & NESTED != 0 || looks_nested) {
                Content::Nested(inner)
            } else {
                Content::Payload(payload.to_vec())
            };
            nodes.push(Node { kind, content });
            bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        Self {
            nodes,
            rest: bytes.to_vec(),
        }
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        for node in &self.nodes {
            let start = bytes.len();
            bytes.extend([0; 2]);
            bytes.extend(node.kind.to_ne_bytes());
            match &node.content {
                Content::Payload(payload) => bytes.extend(payload),
                Content::Nested(list) => list.write(bytes),
            }
            let length = u16::try_from(bytes.len() - start).unwrap_or(u16::MAX);
            bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
            while !(bytes.len() - start).is_multiple_of(4) {
                bytes.push(0);
            }
        }
        bytes.extend(&self.rest);
    }

    /// Number of attributes, including nested ones.
    fn count(&self) -> usize {
        let inner = self.nodes.iter().map(|node| match &node.content {
            Content::Nested(list) => list.count(),
            Content::Payload(_) => 0,
        });
        self.nodes.len() + inner.sum::<usize>()
    }

    /// Finds the list that contains the attribute with this number, and the position there.
    fn find(&mut self, mut number: usize) -> Option<(&mut Self, usize)> {
        for place in 0..self.nodes.len() {
            if number == 0 {
                return Some((self, place));
            }
            number -= 1;
            if let Content::Nested(list) = &self.nodes[place].content {
                let inside = list.count();
                if number < inside {
                    let Content::Nested(list) = &mut self.nodes[place].content else {
                        return None;
                    };
                    return list.find(number);
                }
                number -= inside;
            }
        }
        None
    }

    fn mutate(&mut self, other: &Self, rng: &mut Rng) {
        let (count, others) = (self.count(), other.count());
        let mut other = other.clone();
        let donor = match others {
            0 => None,
            _ => other
                .find(rng.usize(..others))
                .map(|(list, place)| list.nodes[place].clone()),
        };
        let donor = donor.unwrap_or(Node {
            kind: rng.u16(..40),
            content: Content::Payload(number(rng).to_be_bytes()[..1 << rng.usize(..4)].to_vec()),
        });
        let Some((list, place)) = (match count {
            0 => None,
            _ => self.find(rng.usize(..count)),
        }) else {
            self.nodes.push(donor);
            return;
        };
        match rng.u8(..12) {
            0 => drop(list.nodes.remove(place)),
            1 => {
                let again = list.nodes[place].clone();
                list.nodes.insert(place, again);
            }
            2 => {
                let with = rng.usize(..list.nodes.len());
                list.nodes.swap(place, with);
            }
            3 => list.nodes[place].kind = list.nodes[place].kind & NESTED | rng.u16(..32),
            4 => list.nodes[place].kind ^= NESTED,
            5 => list.nodes.insert(place, donor),
            6 => list.nodes[place] = donor,
            7 => list.nodes[place].content = donor.content,
            8 => {
                let number = number(rng).to_be_bytes();
                list.nodes[place].content =
                    Content::Payload(number[8 - (1 << rng.usize(..4))..].to_vec());
            }
            _ => {
                let node = &mut list.nodes[place];
                node.content = match std::mem::replace(&mut node.content, Content::Payload(vec![]))
                {
                    Content::Payload(payload) => {
                        let donor = match &donor.content {
                            Content::Payload(donor) => &donor[..],
                            Content::Nested(_) => &[],
                        };
                        Content::Payload(of_bytes(payload, donor, rng))
                    }
                    Content::Nested(mut inner) => {
                        if rng.bool() {
                            inner.nodes.push(donor);
                        } else if !inner.nodes.is_empty() {
                            inner.nodes.remove(rng.usize(..inner.nodes.len()));
                        }
                        Content::Nested(inner)
                    }
                };
            }
        }
    }
}

/// Lengths of `struct nlmsghdr`, and of that with `struct nfgenmsg`.
const HEADERS: (usize, usize) = (16, 20);

/// The complete messages, and the bytes after them.
fn messages(mut bytes: &[u8]) -> (Vec<Vec<u8>>, Vec<u8>) {
    let mut all = Vec::new();
    while let [l0, l1, l2, l3, ..] = *bytes {
        let length = u32::from_ne_bytes([l0, l1, l2, l3]) as usize;
        let Some(message) = bytes.get(..length).filter(|_| length >= HEADERS.0) else {
            break;
        };
        all.push(message.to_vec());
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    (all, bytes.to_vec())
}

fn of_messages(bytes: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let (mut all, rest) = messages(bytes);
    let (others, _) = messages(other);
    let donor = rng.choice(&others).cloned().unwrap_or_default();
    if all.is_empty() {
        return of_bytes(bytes.to_vec(), other, rng);
    }
    let at = rng.usize(..all.len());
    match rng.u8(..16) {
        0 => drop(all.remove(at)),
        1 => all.insert(at, donor),
        2 => {
            let with = rng.usize(..all.len());
            all.swap(at, with);
        }
        3 => {
            let byte = rng.usize(4..HEADERS.1.min(all[at].len()).max(5));
            if let Some(byte) = all[at].get_mut(byte) {
                *byte = number(rng) as u8;
            }
        }
        _ => {
            let head = HEADERS.1.min(all[at].len());
            let mut list = List::read(&all[at][head..], 0);
            let other = List::read(donor.get(HEADERS.1..).unwrap_or_default(), 0);
            list.mutate(&other, rng);
            all[at].truncate(head);
            list.write(&mut all[at]);
            let length = (all[at].len() as u32).to_ne_bytes();
            if let Some(place) = all[at].get_mut(..4) {
                place.copy_from_slice(&length);
            }
        }
    }
    let mut bytes = Vec::new();
    for message in all {
        bytes.extend(message);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes.extend(rest);
    bytes
}
