//! What a register is loaded with or compared to: a value or a verdict
//! (`enum nft_data_attributes`, `enum nft_verdict_attributes`).
//!
//! An attribute of this kind holds one of two:
//!
//! ```text
//! NFTA_DATA_VALUE         1 to 64 bytes, as they stand in the register
//!
//! NFTA_DATA_VERDICT       nested
//!   NFTA_VERDICT_CODE     be32, signed: NF_* from 0 up, NFT_* below 0
//!   NFTA_VERDICT_CHAIN    string: for NFT_JUMP and NFT_GOTO, and no other
//! ```

use std::borrow::Cow;

use chainwright_sys::netfilter::{NF_ACCEPT, NF_DROP};
use chainwright_sys::nf_tables::{
    NFT_BREAK, NFT_CONTINUE, NFT_GOTO, NFT_JUMP, NFT_RETURN, NFTA_DATA_VALUE, NFTA_DATA_VERDICT,
    NFTA_VERDICT_CHAIN, NFTA_VERDICT_CODE,
};

use crate::netlink::{Attributes, MessageWriter};
use crate::nft::declare::{Field, attributes, nested_field};
use crate::nft::name::{Bytes, Name};

/// A verdict: what becomes of the packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// The packet passes this base chain.
    Accept,
    /// The packet is dropped.
    Drop,
    /// The next rule.
    Continue,
    /// The rest of this rule is passed over.
    Break,
    /// Back to the chain that jumped here; in a base chain, to its policy.
    Return,
    /// On in this chain, and back at its end.
    Jump(Name<'a>),
    /// On in this chain, and not back.
    Goto(Name<'a>),
    /// Any other code: kept as it is.
    Other {
        /// `NFTA_VERDICT_CODE`.
        code: i32,
    },
}

attributes! {
    /// A verdict on the wire.
    pub struct VerdictAttributes<'a> {
        /// Code: `NF_*` or `NFT_*`.
        NFTA_VERDICT_CODE => code: i32,
        /// Target of a jump or goto.
        NFTA_VERDICT_CHAIN => chain: Name<'a>,
    }
}

impl Verdict<'_> {
    const fn code(&self) -> i32 {
        match self {
            Self::Accept => NF_ACCEPT,
            Self::Drop => NF_DROP,
            Self::Continue => NFT_CONTINUE,
            Self::Break => NFT_BREAK,
            Self::Return => NFT_RETURN,
            Self::Jump(_) => NFT_JUMP,
            Self::Goto(_) => NFT_GOTO,
            Self::Other { code } => *code,
        }
    }

    /// The verdict with nothing borrowed.
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
            Self::Other { code } => Verdict::Other { code },
        }
    }
}

/// The content of a register: a value or a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data<'a> {
    /// At most 64 bytes (`NFT_DATA_VALUE_MAXLEN`), in the order in which the kernel compares
    /// them: network order for packet contents, host order for `meta` and `ct` values.
    Value(Bytes<'a>),
    /// A verdict.
    Verdict(Verdict<'a>),
}

impl<'a> Data<'a> {
    /// A value, borrowed.
    #[must_use]
    pub const fn value(bytes: &'a [u8]) -> Self {
        Self::Value(Cow::Borrowed(bytes))
    }

    /// The bytes, if this is a value.
    #[must_use]
    pub fn as_value(&self) -> Option<&[u8]> {
        match self {
            Self::Value(bytes) => Some(bytes),
            Self::Verdict(_) => None,
        }
    }
}

/// Reads the one attribute that a value or verdict is nested in.
fn read(payload: &[u8]) -> Option<Data<'_>> {
    let attribute = Attributes::new(payload).next()?.ok()?;
    match attribute.kind {
        NFTA_DATA_VALUE => Some(Data::value(attribute.payload)),
        NFTA_DATA_VERDICT => {
            let VerdictAttributes { code, chain } = Field::decode(attribute.payload)?;
            Some(Data::Verdict(match (code?, chain) {
                (NFT_CONTINUE, None) => Verdict::Continue,
                (NFT_BREAK, None) => Verdict::Break,
                (NFT_RETURN, None) => Verdict::Return,
                (NFT_JUMP, Some(chain)) => Verdict::Jump(chain),
                (NFT_GOTO, Some(chain)) => Verdict::Goto(chain),
                // To a chain that has no name yet: only written, within its batch.
                (NFT_JUMP | NFT_GOTO, None) => return None,
                (code, None) if code == NF_ACCEPT => Verdict::Accept,
                (code, None) if code == NF_DROP => Verdict::Drop,
                (code, None) => Verdict::Other { code },
                (_, Some(_)) => return None,
            }))
        }
        _ => None,
    }
}

impl<'a> Field<'a> for Data<'a> {
    type Static = Data<'static>;
    nested_field!('a, read);

    fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16) {
        writer.nested(kind, |writer| match self {
            Self::Value(bytes) => {
                writer.bytes(NFTA_DATA_VALUE, bytes);
            }
            Self::Verdict(verdict) => {
                writer.nested(NFTA_DATA_VERDICT, |writer| {
                    writer.be32(NFTA_VERDICT_CODE, verdict.code().cast_unsigned());
                    if let Verdict::Jump(chain) | Verdict::Goto(chain) = verdict {
                        writer.string(NFTA_VERDICT_CHAIN, chain);
                    }
                });
            }
        });
    }

    fn into_static(self) -> Data<'static> {
        match self {
            Self::Value(bytes) => Data::Value(Cow::Owned(bytes.into_owned())),
            Self::Verdict(verdict) => Data::Verdict(verdict.into_owned()),
        }
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::expr::tests::captured::hex;

    /// The attribute `NFTA_IMMEDIATE_DATA` with this content.
    fn written(data: &Data<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = MessageWriter::bare(&mut bytes);
        data.encode(&mut writer, 2);
        writer.finish_bare().unwrap();
        bytes
    }

    /// `sent` is the attribute `NFTA_IMMEDIATE_DATA`: it is read as `data`, and written again.
    fn assert_data(data: Data<'_>, sent: &str) {
        let sent = hex(sent);
        assert_eq!(Data::decode(&sent[4..]).as_ref(), Some(&data));
        assert_eq!(written(&data), sent, "{data:?}");
        assert_eq!(data.clone().into_static(), data);
        for end in 4..sent.len() {
            // What is cut may be padding.
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
        // No tool at hand says these.
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

    /// A chain without a name is not known by its verdict: nft 1.0.6 `jump { drop; }` says
    /// `NFTA_VERDICT_CHAIN_ID`, which holds within its batch only (the kernel lists a name).
    #[test]
    fn a_jump_says_where_to() {
        let sent = hex("18000280 14000280 08000100 fffffffd 08000300 00000001");
        assert_eq!(Data::decode(&sent[4..]), None);
        let no_chain = hex("0c000280 08000100 fffffffc");
        assert_eq!(Data::decode(&no_chain), None);
        let accept_with_chain = hex("14000280 08000100 00000001 06000200 64000000");
        assert_eq!(Data::decode(&accept_with_chain), None);
    }

    #[test]
    fn neither_value_nor_verdict() {
        for refused in [
            "",
            // Three bytes, and a length beyond the bytes: no attribute.
            "040001",
            "06000100 00",
            // Another attribute.
            "08000300 00000001",
            // A verdict without attributes, without a code, with a short code.
            "04000280",
            "0a000280 06000200 6400",
            "0a000280 06000100 0000",
        ] {
            assert_eq!(Data::decode(&hex(refused)), None, "{refused}");
        }
    }
}
