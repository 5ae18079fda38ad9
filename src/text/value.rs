//! Keys and what they lead to.

use std::fmt::Write as _;

use crate::nft::Milliseconds;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::nft::expr::{Data, Verdict};
use crate::nft::userdata::{BIG_ENDIAN, SET_DATA_BYTE_ORDER, SET_KEY_BYTE_ORDER, UserData};
use crate::nft::{DataType, ElementRef, SetFlags, SetRef, SnapshotSet};
use bstr::ByteSlice;

/// The bits of one field's type in a concatenation's.
const FIELD_TYPE_BITS: u32 = 6;

/// The fields of a type: itself, if it is no concatenation.
pub(super) fn fields(data_type: DataType) -> Vec<DataType> {
    let mask = (1 << FIELD_TYPE_BITS) - 1;
    if data_type.0 <= mask || data_type.name().is_some() {
        return vec![data_type];
    }
    let mut fields = Vec::new();
    let mut left = data_type.0;
    while left > 0 {
        fields.push(DataType(left & mask));
        left >>= FIELD_TYPE_BITS;
    }
    fields.reverse();
    fields
}

/// The name of a type, of a concatenation with a dot between its fields': `ipv4_addr . inet_service`.
#[must_use]
pub fn data_type(data_type: DataType) -> String {
    let names = fields(data_type)
        .into_iter()
        .map(|field| match field.name() {
            Some(name) => name.to_owned(),
            None => format!("type {}", field.0),
        });
    names.collect::<Vec<_>>().join(" . ")
}

/// The length in bytes of values of a type, if it has one.
const fn length(data_type: DataType) -> Option<usize> {
    Some(match data_type {
        DataType::IPV4_ADDR
        | DataType::MARK
        | DataType::IFACE_INDEX
        | DataType::REALM
        | DataType::CLASSID
        | DataType::UID
        | DataType::GID
        | DataType::CT_STATE
        | DataType::CT_STATUS
        | DataType::DEVGROUP
        | DataType::FIB_ADDRTYPE
        | DataType::TIME => 4,
        DataType::IPV6_ADDR | DataType::IFNAME => 16,
        DataType::ETHER_ADDR => 6,
        DataType::INET_SERVICE | DataType::ETHER_TYPE | DataType::ARP_OP | DataType::IFACE_TYPE => {
            2
        }
        DataType::INET_PROTO
        | DataType::NF_PROTO
        | DataType::ICMP_TYPE
        | DataType::ICMPV6_TYPE
        | DataType::ICMP_CODE
        | DataType::ICMPV6_CODE
        | DataType::ICMPX_CODE
        | DataType::TCP_FLAG
        | DataType::DCCP_PKTTYPE
        | DataType::MH_TYPE
        | DataType::CT_DIR
        | DataType::PKT_TYPE
        | DataType::DSCP
        | DataType::ECN
        | DataType::BOOLEAN
        | DataType::IGMP_TYPE => 1,
        DataType::CGROUPSV2 => 8,
        _ => return None,
    })
}

/// How the values of a set's keys, or of a map's data, are written.
struct Format {
    /// Type, place and length of each field.
    fields: Vec<(DataType, usize, usize)>,
    /// Whether numbers stand in network byte order.
    big_endian: bool,
}

impl Format {
    /// Of a set's keys.
    fn keys(set: &SetRef<'_>) -> Self {
        let key_length = set.key_length().unwrap_or_default() as usize;
        let described = set.description().and_then(|description| description.fields);
        let described: Vec<usize> = described
            .iter()
            .flat_map(|fields| fields.lengths())
            .map(|length| length as usize)
            .collect();
        let interval = set
            .flags()
            .is_some_and(|flags| flags.contains(SetFlags::INTERVAL));
        Self {
            fields: Self::layout(set.key_type(), key_length, &described),
            // Ranges are kept in the order in which bytes compare.
            big_endian: interval || order(set, SET_KEY_BYTE_ORDER) == Some(BIG_ENDIAN),
        }
    }

    /// Of a map's data.
    fn data(set: &SetRef<'_>) -> Self {
        let length = set.data_length().unwrap_or_default() as usize;
        Self {
            fields: Self::layout(set.data_type(), length, &[]),
            big_endian: order(set, SET_DATA_BYTE_ORDER) == Some(BIG_ENDIAN),
        }
    }

    fn layout(
        data_type: Option<DataType>,
        whole: usize,
        described: &[usize],
    ) -> Vec<(DataType, usize, usize)> {
        let types = fields(data_type.unwrap_or(DataType::VALUE));
        if let [one] = types[..] {
            return vec![(one, 0, whole)];
        }
        let mut layout = Vec::new();
        let mut at = 0;
        for (index, field) in types.into_iter().enumerate() {
            match described.get(index).copied().or(length(field)) {
                Some(length) => layout.push((field, at, length)),
                None => return vec![(DataType::VALUE, 0, whole)],
            }
            at += layout[index].2.next_multiple_of(4);
        }
        if at == whole {
            layout
        } else {
            vec![(DataType::VALUE, 0, whole)]
        }
    }

    /// A value, or the range from it to another one, both in it.
    fn write(&self, from: &[u8], to: &[u8]) -> String {
        let mut text = String::new();
        for &(field, at, length) in &self.fields {
            let part = |bytes: &[u8]| bytes.get(at..at + length).map(<[u8]>::to_vec);
            let (from, to) = match (part(from), part(to)) {
                (Some(from), Some(to)) => (from, to),
                _ => (from.to_vec(), to.to_vec()),
            };
            if !text.is_empty() {
                text.push_str(" . ");
            }
            text.push_str(&self.range(field, &from, &to));
        }
        text
    }

    /// A field's range.
    fn range(&self, field: DataType, from: &[u8], to: &[u8]) -> String {
        if from == to {
            return self.value(field, from);
        }
        if let Some(prefix) = prefix(from, to) {
            match field {
                DataType::IPV4_ADDR | DataType::IPV6_ADDR => {
                    return format!("{}/{prefix}", self.value(field, from));
                }
                DataType::IFNAME | DataType::STRING if prefix % 8 == 0 => {
                    return format!("\"{}*\"", from[..prefix / 8].as_bstr());
                }
                _ => {}
            }
        }
        format!("{}-{}", self.value(field, from), self.value(field, to))
    }

    /// A field's value.
    fn value(&self, field: DataType, bytes: &[u8]) -> String {
        let number = self.number(bytes);
        match (field, bytes) {
            (DataType::IPV4_ADDR, &[a, b, c, d]) => Ipv4Addr::new(a, b, c, d).to_string(),
            (DataType::IPV6_ADDR, _) if bytes.len() == 16 => {
                let mut octets = [0; 16];
                octets.copy_from_slice(bytes);
                Ipv6Addr::from(octets).to_string()
            }
            (DataType::ETHER_ADDR, _) if bytes.len() == 6 => {
                let octets: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                octets.join(":")
            }
            (DataType::INET_SERVICE, &[a, b]) => u16::from_be_bytes([a, b]).to_string(),
            (DataType::INET_PROTO, &[number]) => match number {
                1 => "icmp".into(),
                6 => "tcp".into(),
                17 => "udp".into(),
                58 => "ipv6-icmp".into(),
                132 => "sctp".into(),
                number => number.to_string(),
            },
            (DataType::IFNAME | DataType::STRING, _) => {
                format!("\"{}\"", bytes.trim_end_with(|c| c == '\0').as_bstr())
            }
            (DataType::INTEGER | DataType::UID | DataType::GID | DataType::IFACE_INDEX, _) => {
                number.map_or_else(|| hex(bytes), |number| number.to_string())
            }
            (DataType::TIME, _) => {
                number.map_or_else(|| hex(bytes), |number| Milliseconds(number).to_string())
            }
            (DataType::MARK, _) if bytes.len() == 4 => {
                number.map_or_else(|| hex(bytes), |number| format!("{number:#010x}"))
            }
            _ => hex(bytes),
        }
    }

    /// The number that these bytes are.
    fn number(&self, bytes: &[u8]) -> Option<u64> {
        let mut wide = [0; 8];
        if bytes.len() > 8 {
            return None;
        }
        if self.big_endian {
            wide[8 - bytes.len()..].copy_from_slice(bytes);
            return Some(u64::from_be_bytes(wide));
        }
        if cfg!(target_endian = "little") {
            wide[..bytes.len()].copy_from_slice(bytes);
        } else {
            wide[8 - bytes.len()..].copy_from_slice(bytes);
        }
        Some(u64::from_ne_bytes(wide))
    }
}

/// The byte order that `nft` noted of a set's keys or data.
fn order(set: &SetRef<'_>, kind: u8) -> Option<u32> {
    UserData::new(set.userdata()?).number(kind)
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::from("0x");
    for byte in bytes {
        let _ = write!(text, "{byte:02x}"); // writing to a string does not fail
    }
    text
}

/// The length in bits of the prefix that a range consists of all continuations of.
fn prefix(from: &[u8], to: &[u8]) -> Option<usize> {
    let common = from
        .iter()
        .zip(to)
        .position(|(from, to)| from != to)
        .unwrap_or(from.len());
    let (first, last) = (from.get(common)?, to.get(common)?);
    let bits = (first ^ last).leading_zeros() as usize;
    let mask = 0xff_u8.checked_shr(bits as u32).unwrap_or(0);
    let whole = first & mask == 0
        && last & mask == mask
        && from[common + 1..].iter().all(|byte| *byte == 0)
        && to[common + 1..].iter().all(|byte| *byte == 0xff);
    whole.then_some(common * 8 + bits)
}

/// The value before this one, as bytes compare; `None` before the first.
pub(super) fn before(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut before = bytes.to_vec();
    for byte in before.iter_mut().rev() {
        let (less, borrowed) = byte.overflowing_sub(1);
        *byte = less;
        if !borrowed {
            return Some(before);
        }
    }
    None
}

/// The elements of a set as `nft` writes them, ranges and prefixes as one: `10.0.0.0/8 . 80-90 comment "x"`,
/// `"eth0" : jump web`. Those of a set of intervals come in the order of their keys, others in the kernel's.
///
/// What a value is, the set's types say; they are `nft`'s, and the kernel keeps them for it. A value whose
/// type is not known here is written as its bytes in hexadecimal digits. A name or a comment is written as it
/// is, whatever characters it has.
pub fn elements<'s>(set: SnapshotSet<'s>) -> Box<dyn Iterator<Item = String> + 's> {
    let view = set.set();
    let (keys, data) = (Format::keys(&view), Format::data(&view));
    let flags = view.flags().unwrap_or_default();
    if !flags.contains(SetFlags::INTERVAL) || flags.contains(SetFlags::CONCAT) {
        return Box::new(set.elements().map(move |element| {
            let from = element.key_bytes().unwrap_or_default();
            let to = element.key_end_bytes().unwrap_or(from);
            line(&element, &keys.write(from, to), &data)
        }));
    }
    // Starts and ends, as bytes compare; an end before a start at the same key.
    let mut bounds: Vec<_> = set.elements().collect();
    bounds.sort_by_key(|element| (element.key_bytes(), !element.is_interval_end()));
    let mut bounds = bounds.into_iter().peekable();
    Box::new(std::iter::from_fn(move || {
        // An end by itself is of nothing: `nft` begins its ranges with one.
        let element = bounds.find(|element| !element.is_interval_end())?;
        let from = element.key_bytes().unwrap_or_default();
        let to = match bounds.peek().and_then(ElementRef::key_bytes) {
            Some(next) => before(next),
            None => None,
        };
        let to = to.unwrap_or_else(|| vec![0xff; from.len()]);
        Some(line(&element, &keys.write(from, &to), &data))
    }))
}

/// One element of a set, as the kernel keeps it. Of a range in a set of intervals that is its first value, and
/// then an element of its own after its last one: `from 10.0.0.0`, `before 11.0.0.0`.
#[must_use]
pub fn element(set: &SetRef<'_>, element: &ElementRef<'_>) -> String {
    let (keys, data) = (Format::keys(set), Format::data(set));
    let flags = set.flags().unwrap_or_default();
    let from = element.key_bytes().unwrap_or_default();
    let to = element.key_end_bytes().unwrap_or(from);
    let mut key = keys.write(from, to);
    if flags.contains(SetFlags::INTERVAL) && !flags.contains(SetFlags::CONCAT) {
        let word = match element.is_interval_end() {
            true => "before",
            false => "from",
        };
        key = format!("{word} {key}");
    }
    line(element, &key, &data)
}

/// An element whose key is already text.
fn line(element: &ElementRef<'_>, key: &str, data: &Format) -> String {
    let mut line = match element.is_catch_all() {
        true => "*".to_owned(),
        false => key.to_owned(),
    };
    // Writing to a string does not fail.
    let _ = match element.data() {
        Some(Data::Value(value)) => write!(line, " : {}", data.write(&value, &value)),
        Some(Data::Verdict(Verdict::Jump(chain))) => write!(line, " : jump {chain}"),
        Some(Data::Verdict(Verdict::Goto(chain))) => write!(line, " : goto {chain}"),
        Some(Data::Verdict(verdict)) => write!(line, " : {verdict}"),
        Some(Data::Opaque(bytes)) => write!(line, " : {}", hex(&bytes)),
        None => Ok(()),
    };
    if let Some(object) = element.object() {
        let _ = write!(line, " : \"{object}\"");
    }
    if let Some(timeout) = element.timeout().filter(|timeout| !timeout.is_zero()) {
        let _ = write!(line, " timeout {}", Milliseconds::from(timeout));
    }
    if let Some(left) = element.expiration().filter(|left| !left.is_zero()) {
        let _ = write!(line, " expires {}", Milliseconds::from(left));
    }
    let nested = element.expression();
    let nested = nested.as_ref().and_then(|one| one.decode().ok());
    let listed = element.expressions().into_iter().flatten();
    let listed = listed.filter_map(|one| one.ok()?.decode().ok());
    for expression in nested.into_iter().chain(listed) {
        let _ = write!(line, " {expression}");
    }
    if let Some(comment) = element.comment() {
        let _ = write!(line, " comment \"{comment}\"");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(Milliseconds(0).to_string(), "0ms");
        assert_eq!(Milliseconds(3_599_992).to_string(), "59m59s992ms");
        assert_eq!(Milliseconds(90_000_000).to_string(), "1d1h");
    }

    #[test]
    fn types_by_name() {
        let both = DataType::concatenation([DataType::IPV4_ADDR, DataType::INET_SERVICE]);
        assert_eq!(data_type(both), "ipv4_addr . inet_service");
        assert_eq!(data_type(DataType::VERDICT), "verdict");
        assert_eq!(data_type(DataType(63)), "type 63");
    }

    #[test]
    fn prefixes() {
        assert_eq!(prefix(&[10, 0, 0, 0], &[10, 255, 255, 255]), Some(8));
        assert_eq!(prefix(&[0, 0], &[255, 255]), Some(0));
        assert_eq!(prefix(&[10, 0], &[10, 254]), None);
        assert_eq!(prefix(&[10, 4], &[10, 7]), Some(14));
        assert_eq!(prefix(&[10, 4], &[10, 8]), None);
        assert_eq!(prefix(&[10], &[10]), None);
        assert_eq!(before(&[1, 0, 0]), Some(vec![0, 255, 255]));
        assert_eq!(before(&[0, 0]), None);
    }
}
