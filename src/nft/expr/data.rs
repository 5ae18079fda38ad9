//! The content of a register: a value or a verdict (`enum nft_data_attributes`,
//! `enum nft_verdict_attributes`).
//!
//! An attribute of this type contains one of the two:
//!
//! ```text
//! NFTA_DATA_VALUE         1 to 64 bytes, as they stand in the register
//!
//! NFTA_DATA_VERDICT       nested
//!   NFTA_VERDICT_CODE     be32, signed: NF_* from 0 up, NFT_* below 0
//!   NFTA_VERDICT_CHAIN    string: for NFT_JUMP and NFT_GOTO, and no other
//! ```

use std::fmt;

use bstr::BStr;
use chainwright_sys::netfilter::{NF_ACCEPT, NF_DROP, NF_QUEUE};
use chainwright_sys::netlink::NLA_F_NESTED;
use chainwright_sys::nf_tables::{
    NFT_BREAK, NFT_CONTINUE, NFT_GOTO, NFT_JUMP, NFT_RETURN, NFTA_DATA_VALUE, NFTA_DATA_VERDICT,
    NFTA_VERDICT_CHAIN, NFTA_VERDICT_CHAIN_ID, NFTA_VERDICT_CODE,
};

use crate::netlink::{AttributeCursor, Attributes, MessageWriter};
use crate::nft::declare::Field;
use crate::nft::name::{Bytes, Name};

/// A verdict: the decision about the packet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(rename_all = "snake_case", deny_unknown_fields)
)]
pub enum Verdict<'a> {
    /// The packet passes this base chain.
    Accept,
    /// The packet is dropped.
    Drop,
    /// Continues with the next rule.
    Continue,
    /// Skips the rest of this rule.
    Break,
    /// Returns to the calling chain; in a base chain, to its policy.
    Return,
    /// Continues in this chain, and returns at its end.
    Jump(Name<'a>),
    /// Continues in this chain, without returning.
    Goto(Name<'a>),
    /// Like `Jump`, to the chain with this `NFTA_CHAIN_ID` of the same batch; only in requests, for
    /// a chain that has no name yet.
    JumpId(u32),
    /// Like `Goto`, to the chain with this `NFTA_CHAIN_ID` of the same batch.
    GotoId(u32),
    /// Any other code, preserved unchanged.
    Other {
        /// `NFTA_VERDICT_CODE`.
        code: i32,
    },
}

impl Verdict<'_> {
    pub(in crate::nft) const fn code(&self) -> i32 {
        match self {
            Self::Accept => NF_ACCEPT,
            Self::Drop => NF_DROP,
            Self::Continue => NFT_CONTINUE,
            Self::Break => NFT_BREAK,
            Self::Return => NFT_RETURN,
            Self::Jump(_) | Self::JumpId(_) => NFT_JUMP,
            Self::Goto(_) | Self::GotoId(_) => NFT_GOTO,
            Self::Other { code } => *code,
        }
    }

    /// Converts the verdict into one without borrowed data.
    #[must_use]
    pub fn into_owned(self) -> Verdict<'static> {
        match self {
            Self::Accept => Verdict::Accept,
            Self::Drop => Verdict::Drop,
            Self::Continue => Verdict::Continue,
            Self::Break => Verdict::Break,
            Self::Return => Verdict::Return,
            Self::Jump(chain) => Verdict::Jump(chain.into_owned()),
            Self::Goto(chain) => Verdict::Goto(chain.into_owned()),
            Self::JumpId(id) => Verdict::JumpId(id),
            Self::GotoId(id) => Verdict::GotoId(id),
            Self::Other { code } => Verdict::Other { code },
        }
    }
}

/// Formats like `nft --debug=netlink`; chains and codes without a name are numbers.
impl fmt::Display for Verdict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accept => f.write_str("accept"),
            Self::Drop => f.write_str("drop"),
            Self::Continue => f.write_str("continue"),
            Self::Break => f.write_str("break"),
            Self::Return => f.write_str("return"),
            Self::Jump(chain) => write!(f, "jump -> {chain}"),
            Self::Goto(chain) => write!(f, "goto -> {chain}"),
            Self::JumpId(id) => write!(f, "jump -> chain id {id}"),
            Self::GotoId(id) => write!(f, "goto -> chain id {id}"),
            Self::Other { code } if *code == NF_QUEUE => f.write_str("queue"),
            Self::Other { code } => write!(f, "verdict {code}"),
        }
    }
}

/// The encoding of trace messages: the attributes `NFTA_VERDICT_*` without a parent.
impl<'a> Field<'a> for Verdict<'a> {
    type Parsed = ParsedData<'a>;
    type View = Self;
    type Static = Verdict<'static>;

    fn parse_payload(payload: &'a [u8]) -> Option<ParsedData<'a>> {
        read_verdict(payload)?
    }
    fn view(parsed: ParsedData<'a>) -> Self {
        <Self as Field<'a>>::value(parsed)
    }
    fn value(parsed: ParsedData<'a>) -> Self {
        match parsed {
            ParsedData::Chain(NFT_JUMP, chain) => Verdict::Jump(chain.into()),
            ParsedData::Chain(_, chain) => Verdict::Goto(chain.into()),
            ParsedData::ChainId(NFT_JUMP, id) => Verdict::JumpId(id),
            ParsedData::ChainId(_, id) => Verdict::GotoId(id),
            ParsedData::Verdict(NFT_CONTINUE) => Verdict::Continue,
            ParsedData::Verdict(NFT_BREAK) => Verdict::Break,
            ParsedData::Verdict(NFT_RETURN) => Verdict::Return,
            ParsedData::Verdict(NF_ACCEPT) => Verdict::Accept,
            ParsedData::Verdict(NF_DROP) => Verdict::Drop,
            ParsedData::Verdict(code) => Verdict::Other { code },
            ParsedData::Value(_) | ParsedData::Opaque(_) => {
                unreachable!("invariant: `parse_payload` accepts verdicts only")
            }
        }
    }

    fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16) {
        writer.nested(kind, |writer| {
            writer.be32(NFTA_VERDICT_CODE, self.code().cast_unsigned());
            match self {
                Verdict::Jump(chain) | Verdict::Goto(chain) => {
                    writer.string(NFTA_VERDICT_CHAIN, chain);
                }
                Verdict::JumpId(id) | Verdict::GotoId(id) => {
                    writer.be32(NFTA_VERDICT_CHAIN_ID, *id);
                }
                _ => {}
            }
        });
    }

    fn into_static(self) -> Verdict<'static> {
        self.into_owned()
    }
}

/// The content of a register: a value or a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Data<'a> {
    /// At most 64 bytes (`NFT_DATA_VALUE_MAXLEN`), in the order in which the kernel compares
    /// them: network order for packet contents, host order for `meta` and `ct` values.
    Value(Bytes<'a>),
    /// A verdict.
    Verdict(Verdict<'a>),
    /// Neither, as far as this version of the crate knows: the unchanged attributes.
    Opaque(Bytes<'a>),
}

impl<'a> Data<'a> {
    /// Creates a borrowed value.
    #[must_use]
    pub const fn value(bytes: &'a [u8]) -> Self {
        Self::Value(Bytes::borrowed(bytes))
    }

    /// Returns the bytes, if this is a value.
    #[must_use]
    pub fn as_value(&self) -> Option<&[u8]> {
        match self {
            Self::Value(bytes) => Some(bytes),
            Self::Verdict(_) | Self::Opaque(_) => None,
        }
    }
}

/// Formats like `nft --debug=netlink`: a value as 32-bit words in host byte order, separated by
/// blanks; missing bytes of the last word are 0.
impl fmt::Display for Data<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(bytes) => {
                let mut between = "";
                for chunk in bytes.chunks(4) {
                    let mut word = [0; 4];
                    word[..chunk.len()].copy_from_slice(chunk);
                    write!(f, "{between}{:#010x}", u32::from_ne_bytes(word))?;
                    between = " ";
                }
                Ok(())
            }
            Self::Verdict(verdict) => verdict.fmt(f),
            Self::Opaque(attributes) => write!(f, "attributes 0x{attributes}"),
        }
    }
}

/// Formats a value or verdict followed by a blank; nothing if there is none.
pub(super) struct Spaced<'d, 'a>(pub(super) &'d Option<Data<'a>>);

impl fmt::Display for Spaced<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(data) => write!(f, "{data} "),
            None => Ok(()),
        }
    }
}

/// The stored form of a parsed [`Data`].
#[derive(Debug, Clone, Copy)]
#[doc(hidden)]
pub enum ParsedData<'a> {
    /// A value.
    Value(&'a [u8]),
    /// A verdict other than a jump.
    Verdict(i32),
    /// A jump or goto to the chain with this name.
    Chain(i32, &'a BStr),
    /// A jump or goto to the chain with this ID.
    ChainId(i32, u32),
    /// Neither, as far as this version of the crate knows.
    Opaque(&'a [u8]),
}

impl<'a> ParsedData<'a> {
    /// Returns the bytes, if this is a value.
    #[inline(always)]
    pub(crate) const fn value(self) -> Option<&'a [u8]> {
        match self {
            Self::Value(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// Parses the payload of a value or verdict; `None` if it does not consist of at least one
/// attribute.
#[inline(always)]
fn read(payload: &[u8]) -> Option<ParsedData<'_>> {
    let mut attributes = AttributeCursor::new(payload);
    match attributes.payload(NFTA_DATA_VALUE) {
        Ok(Some(content)) if attributes.at_end() => Some(ParsedData::Value(content)),
        _ => read_other(payload),
    }
}

/// Parses anything but a value.
#[inline(never)]
fn read_other(payload: &[u8]) -> Option<ParsedData<'_>> {
    let attributes = AttributeCursor::new(payload);
    if let Some(verdict) = attributes.last(NFTA_DATA_VERDICT) {
        // The kernel's form.
        let mut parts = AttributeCursor::new(verdict);
        if let Some(code) = parts
            .number::<4, 8>(NFTA_VERDICT_CODE)
            .map(i32::from_be_bytes)
        {
            let is_jump = matches!(code, NFT_JUMP | NFT_GOTO);
            match parts.payload(NFTA_VERDICT_CHAIN) {
                Ok(Some(chain)) if is_jump && parts.at_end() => {
                    return Name::parse_payload(chain).map(|chain| ParsedData::Chain(code, chain));
                }
                Ok(None) if !is_jump && parts.at_end() => return Some(ParsedData::Verdict(code)),
                _ => {}
            }
        }
    }
    read_in_any_order(payload)
}

#[cold]
fn read_in_any_order(payload: &[u8]) -> Option<ParsedData<'_>> {
    let mut attributes = Attributes::new(payload);
    let (kind, content) = attributes.advance().ok()?;
    if kind == NFTA_DATA_VALUE && attributes.at_end() {
        return Some(ParsedData::Value(content));
    }
    if kind == NFTA_DATA_VERDICT
        && attributes.at_end()
        && let Some(verdict) = read_verdict(content)?
    {
        return Some(verdict);
    }
    let mut attributes = Attributes::new(payload);
    let well_formed = !payload.is_empty() && attributes.all(|attribute| attribute.is_ok());
    well_formed.then_some(ParsedData::Opaque(payload))
}

/// Parses a verdict: `None` for a malformed one, `Some(None)` for an unknown form.
fn read_verdict(payload: &[u8]) -> Option<Option<ParsedData<'_>>> {
    let mut attributes = Attributes::new(payload);
    let (mut code, mut chain, mut id) = (None, None, None);
    while !attributes.at_end() {
        match attributes.advance().ok()? {
            (NFTA_VERDICT_CODE, payload) => code = Some(i32::decode(payload)?),
            (NFTA_VERDICT_CHAIN, payload) => chain = Some(Name::parse_payload(payload)?),
            (NFTA_VERDICT_CHAIN_ID, payload) => id = Some(u32::decode(payload)?),
            _ => return attributes.all(|rest| rest.is_ok()).then_some(None),
        }
    }
    Some(match (code, chain, id) {
        (Some(code @ (NFT_JUMP | NFT_GOTO)), Some(chain), None) => {
            Some(ParsedData::Chain(code, chain))
        }
        (Some(code @ (NFT_JUMP | NFT_GOTO)), None, Some(id)) => Some(ParsedData::ChainId(code, id)),
        (None | Some(NFT_JUMP | NFT_GOTO), ..) | (_, Some(_), _) | (.., Some(_)) => None,
        (Some(code), ..) => Some(ParsedData::Verdict(code)),
    })
}

impl<'a> Field<'a> for Data<'a> {
    type Parsed = ParsedData<'a>;
    type View = Self;
    type Static = Data<'static>;

    #[inline(always)]
    fn parse_payload(payload: &'a [u8]) -> Option<ParsedData<'a>> {
        read(payload)
    }
    #[inline]
    fn view(parsed: ParsedData<'a>) -> Self {
        <Self as Field<'a>>::value(parsed)
    }
    #[inline]
    fn value(parsed: ParsedData<'a>) -> Self {
        match parsed {
            ParsedData::Value(bytes) => Self::value(bytes),
            ParsedData::Opaque(attributes) => Self::Opaque(Bytes::borrowed(attributes)),
            verdict => Self::Verdict(<Verdict<'a> as Field<'a>>::value(verdict)),
        }
    }

    fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16) {
        if let Self::Opaque(attributes) = self {
            // Unchanged: the last attribute may lack its padding.
            writer.bytes(kind | NLA_F_NESTED, attributes);
            return;
        }
        writer.nested(kind, |writer| match self {
            Self::Value(bytes) => {
                writer.bytes(NFTA_DATA_VALUE, bytes);
            }
            Self::Verdict(verdict) => {
                verdict.encode(writer, NFTA_DATA_VERDICT);
            }
            Self::Opaque(_) => {}
        });
    }

    fn into_static(self) -> Data<'static> {
        match self {
            Self::Value(bytes) => Data::Value(bytes.into_owned()),
            Self::Verdict(verdict) => Data::Verdict(verdict.into_owned()),
            Self::Opaque(attributes) => Data::Opaque(attributes.into_owned()),
        }
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::captured::hex;

    /// Encodes the attribute `NFTA_IMMEDIATE_DATA` with this content.
    fn written(data: &Data<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = MessageWriter::bare(&mut bytes);
        data.encode(&mut writer, 2);
        writer.finish_bare().unwrap();
        bytes
    }

    /// Asserts that the attribute `NFTA_IMMEDIATE_DATA` in `sent` decodes to `data`, and back.
    fn assert_data(data: Data<'_>, sent: &str) {
        let sent = hex(sent);
        assert_eq!(Data::decode(&sent[4..]).as_ref(), Some(&data));
        assert_eq!(written(&data), sent, "{data:?}");
        assert_eq!(data.clone().into_static(), data);
        for end in 4..sent.len() {
            // Only padding may be missing.
            let cut = Data::decode(&sent[4..end]);
            assert!(cut.is_none() || cut.as_ref() == Some(&data));
        }
    }

    /// nft 1.0.6: `add rule ip t c VERDICT`.
    #[test]
    fn verdicts() {
        for (verdict, sent) in [
            (Verdict::Accept, "10000280 0c000280 08000100 00000001"),
            (Verdict::Drop, "10000280 0c000280 08000100 00000000"),
            (Verdict::Continue, "10000280 0c000280 08000100 ffffffff"),
            (Verdict::Return, "10000280 0c000280 08000100 fffffffb"),
            (
                Verdict::Jump("d".into()),
                "18000280 14000280 08000100 fffffffd 06000200 64000000",
            ),
            (
                Verdict::Goto("d".into()),
                "18000280 14000280 08000100 fffffffc 06000200 64000000",
            ),
        ] {
            assert_data(Data::Verdict(verdict), sent);
        }
        // No tool at hand writes these.
        for (verdict, bytes) in [
            (Verdict::Break, "0c000280 08000100 fffffffe"),
            (Verdict::Other { code: 3 }, "0c000280 08000100 00000003"),
        ] {
            let bytes = format!("10000280 {bytes}");
            assert_data(Data::Verdict(verdict), &bytes);
        }
    }

    /// nft 1.0.6: `meta nftrace set 1`, `dnat to 10.0.0.1` and
    /// `dnat ip6 to [2001:db8::1]:80`.
    #[test]
    fn values() {
        assert_data(Data::value(&[1]), "0c000280 05000100 01000000");
        assert_data(Data::value(&[10, 0, 0, 1]), "0c000280 08000100 0a000001");
        let address = std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).octets();
        let data = Data::value(&address);
        assert_eq!(data.as_value(), Some(&address[..]));
        assert_data(
            data,
            "18000280 14000100 20010db8 00000000 00000000 00000001",
        );
        assert_eq!(Data::Verdict(Verdict::Accept).as_value(), None);
    }

    /// nft 1.0.6 `jump { drop; }` sends `NFTA_VERDICT_CHAIN_ID`, which is valid only within its
    /// batch (the kernel lists a name).
    #[test]
    fn a_chain_without_a_name_has_a_number() {
        let sent = "18000280 14000280 08000100 fffffffd 08000300 00000001";
        assert_data(Data::Verdict(Verdict::JumpId(1)), sent);
        let sent = "18000280 14000280 08000100 fffffffc 08000300 00000002";
        assert_data(Data::Verdict(Verdict::GotoId(2)), sent);
    }

    /// Well-formed but unknown content is preserved unchanged.
    #[test]
    fn of_another_shape() {
        for bytes in [
            // Another attribute, and a surplus one.
            "08000300 00000001",
            "05000100 07000000 05000100 07000000",
            // A verdict without attributes or without a code.
            "04000280",
            "0c000280 06000200 64000000",
            // A goto to no chain, an accept with one, an attribute of a newer kernel.
            "0c000280 08000100 fffffffc",
            "14000280 08000100 00000001 06000200 64000000",
            "14000280 08000100 00000001 06000900 64000000",
        ] {
            let bytes = hex(bytes);
            let data = Data::decode(&bytes).unwrap();
            assert_eq!(data, Data::Opaque((&bytes).into()));
            assert_eq!(data.as_value(), None);
            assert_eq!(written(&data)[4..], bytes);
        }
    }

    #[test]
    fn malformed() {
        for refused in [
            "",
            // Three bytes, and a length beyond the bytes: no attribute.
            "040001",
            "06000100 00",
            // A verdict with a short code.
            "0a000280 06000100 0000",
        ] {
            assert_eq!(Data::decode(&hex(refused)), None, "{refused}");
        }
    }

    /// The form in lines of `nft --debug=netlink list ruleset` (nft 1.0.6, libnftnl 1.2.4); `break`
    /// and `queue` as its libnftnl printed handmade attributes. It refuses the later cases.
    #[test]
    fn bytecode() {
        for (bytes, words) in [
            (&[6][..], "0x00000006"),
            (&[0, 80], "0x00005000"),
            (&[1, 2, 3], "0x00030201"),
            (&[10, 0, 0, 1], "0x0100000a"),
            (&[1, 2, 3, 4, 5], "0x04030201 0x00000005"),
            (
                b"veth1\0\0\0\0\0\0\0\0\0\0\0",
                "0x68746576 0x00000031 0x00000000 0x00000000",
            ),
            (&[], ""),
        ] {
            assert_eq!(Data::value(bytes).to_string(), words);
        }
        for (verdict, text) in [
            (Verdict::Accept, "accept"),
            (Verdict::Drop, "drop"),
            (Verdict::Continue, "continue"),
            (Verdict::Break, "break"),
            (Verdict::Return, "return"),
            (Verdict::Jump("d".into()), "jump -> d"),
            (Verdict::Goto("d".into()), "goto -> d"),
            (Verdict::Other { code: 3 }, "queue"),
            (Verdict::Other { code: -6 }, "verdict -6"),
            (Verdict::JumpId(7), "jump -> chain id 7"),
            (Verdict::GotoId(7), "goto -> chain id 7"),
        ] {
            assert_eq!(verdict.to_string(), text);
            assert_eq!(Data::Verdict(verdict).to_string(), text);
        }
        let opaque = Data::Opaque((&[8, 0, 3, 0, 0, 0, 0, 1]).into());
        assert_eq!(opaque.to_string(), "attributes 0x0800030000000001");
    }
}
