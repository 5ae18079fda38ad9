//! What a register is loaded with or compared to: a value or a verdict
//! (`enum nft_data_attributes`, `enum nft_verdict_attributes`).

use std::borrow::Cow;

use chainwright_sys::netfilter::{NF_ACCEPT, NF_DROP};
use chainwright_sys::nf_tables::{
    NFT_BREAK, NFT_CONTINUE, NFT_GOTO, NFT_JUMP, NFT_RETURN, NFTA_DATA_VALUE, NFTA_DATA_VERDICT,
    NFTA_VERDICT_CHAIN, NFTA_VERDICT_CODE,
};

use crate::netlink::{Attributes, MessageWriter};
use crate::nft::declare::{Field, attributes};
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
    /// Any other code, for instance a queue: kept as it is.
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
            Self::Accept => NF_ACCEPT as i32,
            Self::Drop => NF_DROP as i32,
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

impl<'a> Field<'a> for Data<'a> {
    const MINIMUM: u16 = 0;
    type View = Self;
    type Static = Data<'static>;

    fn view(payload: &'a [u8]) -> Option<Self> {
        Self::decode(payload)
    }

    fn decode(payload: &'a [u8]) -> Option<Self> {
        let attribute = Attributes::new(payload).next()?.ok()?;
        match attribute.kind {
            NFTA_DATA_VALUE => Some(Self::value(attribute.payload)),
            NFTA_DATA_VERDICT => {
                let VerdictAttributes { code, chain } = Field::decode(attribute.payload)?;
                Some(Self::Verdict(match (code?, chain) {
                    (NFT_CONTINUE, None) => Verdict::Continue,
                    (NFT_BREAK, None) => Verdict::Break,
                    (NFT_RETURN, None) => Verdict::Return,
                    (NFT_JUMP, Some(chain)) => Verdict::Jump(chain),
                    (NFT_GOTO, Some(chain)) => Verdict::Goto(chain),
                    (code, None) if code == NF_ACCEPT as i32 => Verdict::Accept,
                    (code, None) if code == NF_DROP as i32 => Verdict::Drop,
                    (code, None) => Verdict::Other { code },
                    (_, Some(_)) => return None,
                }))
            }
            _ => None,
        }
    }

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
