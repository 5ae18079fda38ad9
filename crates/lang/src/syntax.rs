//! What a sentence of nft's language is made of, between its text and the kernel's instructions.

use bstr::BString;

use chainwright::nft::build::ByteOrder;
use chainwright::nft::expr::{
    CtDirection, CtKey, FibFlags, FibResult, MetaKey, NumgenType, OsfTtl, PayloadBase, RtKey,
    SocketKey, TunnelKey, XfrmDirection, XfrmKey,
};
use chainwright::nft::{DataType, Family};

use super::headers::{Extension, Protocol};
use super::tunnels::Tunnel;
use super::{keys, types};

/// A constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) data_type: DataType,
    /// Its length.
    pub(super) bits: u32,
    /// The number that it is; of characters, with the first in the highest bits.
    pub(super) number: u128,
}

impl Value {
    /// All bits of this length.
    pub(super) const fn ones(bits: u32) -> u128 {
        match bits {
            0 => 0,
            1..=127 => (1 << bits) - 1,
            _ => u128::MAX,
        }
    }

    /// The number that these bytes are.
    pub(super) fn from_be_bytes(data_type: DataType, bytes: &[u8]) -> Option<Self> {
        if bytes.len() > 16 {
            return None;
        }
        let number = bytes
            .iter()
            .fold(0, |number, byte| number << 8 | u128::from(*byte));
        Some(Self {
            data_type,
            bits: bytes.len() as u32 * 8, // at most 16 bytes
            number,
        })
    }

    /// How many of its first bits are the same in a range that ends with `last`, if that range is all that begin so.
    pub(super) fn prefix_to(&self, last: &Self) -> Option<u32> {
        let differ = self.number ^ last.number;
        let is_block = differ & differ.wrapping_add(1) == 0
            && self.number & differ == 0
            && self.bits == last.bits;
        is_block.then(|| {
            self.bits
                .saturating_sub(u128::BITS - differ.leading_zeros())
        })
    }

    /// The bits of a mask that is all ones followed by zeros.
    pub(super) fn prefix_of_mask(&self) -> Option<u32> {
        let zeros = !self.number & Self::ones(self.bits);
        (zeros & zeros.wrapping_add(1) == 0)
            .then(|| self.bits.saturating_sub(u128::BITS - zeros.leading_zeros()))
    }
}

/// Where something stands in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place {
    /// Which of the texts that were read it is, from 0 on.
    pub(super) source: u32,
    /// Its first byte, and the one behind its last.
    pub(super) start: u32,
    pub(super) end: u32,
}

/// A constant as it is typed: what it stands for is known when it is known what it is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Symbol {
    /// Without quotation marks.
    pub(super) text: Box<str>,
    pub(super) is_quoted: bool,
    pub(super) place: Place,
}

/// Operations of two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    And,
    Or,
    Xor,
    LeftShift,
    RightShift,
}

impl Operator {
    pub(super) const fn sign(self) -> &'static str {
        match self {
            Self::And => "&",
            Self::Or => "|",
            Self::Xor => "^",
            Self::LeftShift => "<<",
            Self::RightShift => ">>",
        }
    }

    /// Which binds tighter.
    pub(super) const fn precedence(self) -> u8 {
        match self {
            Self::LeftShift | Self::RightShift => 4,
            Self::And => 3,
            Self::Xor => 2,
            Self::Or => 1,
        }
    }
}

/// How a field is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    /// Nothing is written: equal, in the set, any of the flags.
    Implicit,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// `!`: none of the flags.
    None,
}

impl Relation {
    pub(super) const fn sign(self) -> &'static str {
        match self {
            Self::Implicit => "",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::None => "!",
        }
    }
}

/// Bits of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Payload {
    pub(super) base: PayloadBase,
    /// Where they begin, and how many they are.
    pub(super) offset: u32,
    pub(super) bits: u32,
    /// Which field of a protocol they are; `None`: written by place and length.
    pub(super) field: Option<(&'static Protocol, usize)>,
    /// The tunnel that they are inside of, or in the header of.
    pub(super) tunnel: Option<&'static Tunnel>,
}

/// Bits of an option or of an extension header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OptionField {
    pub(super) extension: &'static Extension,
    /// The option's or header's number.
    pub(super) number: u8,
    pub(super) offset: u32,
    pub(super) bits: u32,
    /// Whether the question is only whether it is there.
    pub(super) presence: bool,
}

/// Something that has a value, or a set of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expr {
    Value(Value),
    /// A constant whose type is not known yet.
    Symbol(Symbol),
    Payload(Payload),
    Option(OptionField),
    Meta(MetaKey),
    /// What is known of the packet inside a tunnel. It stands in no text: nft asks for it by itself.
    Inside(&'static Tunnel, MetaKey),
    /// What a tunnel device left with the packet.
    Tunnel(TunnelKey),
    /// The version is that of an address whose key does not say it.
    Ct(CtKey, Option<CtDirection>, Option<Family>),
    Rt(RtKey),
    Socket(SocketKey, u32),
    Fib(FibFlags, FibResult),
    Osf {
        ttl: OsfTtl,
        version: bool,
    },
    Xfrm {
        direction: XfrmDirection,
        key: XfrmKey,
        number: u32,
    },
    Numgen {
        kind: NumgenType,
        modulus: u32,
        offset: u32,
    },
    /// Of a key, or of the packet's connection.
    Hash {
        key: Option<Box<Expr>>,
        modulus: u32,
        seed: Option<u32>,
        offset: u32,
    },
    Binary(Operator, Box<Expr>, Box<Expr>),
    /// A value and how many of its first bits count.
    Prefix(Box<Expr>, u32),
    Range(Box<Expr>, Box<Expr>),
    /// Characters that a name begins with: their number in bits, in the highest of the value.
    Beginning(Value, u32),
    Concat(Vec<Expr>),
    /// Any of these flags.
    Flags(Vec<Expr>),
    /// These flags of those: `syn / syn,ack`.
    Masked(Box<Expr>, Box<Expr>),
    /// Values in braces.
    Set(Vec<Element>),
    /// `@name`
    Reference(String),
    /// What a map has for a key.
    Map(Box<Expr>, Box<Expr>),
    Verdict(Verdict),
    /// The name of a stateful object.
    Object(String),
}

/// What becomes of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Accept,
    Drop,
    Continue,
    Break,
    Return,
    Jump(Target),
    Goto(Target),
}

/// Where a jump leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    Chain(String),
    /// The rules of a chain that has no name of its own.
    Rules(Vec<Line>),
}

/// An element of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Element {
    /// `None` stands for all that is not in the set.
    pub(super) key: Option<Expr>,
    pub(super) statements: Vec<Statement>,
    /// In milliseconds.
    pub(super) timeout: Option<u64>,
    pub(super) expires: Option<u64>,
    pub(super) comment: Option<String>,
    /// What a map has for the key.
    pub(super) data: Option<Expr>,
}

impl Element {
    pub(super) const fn new(key: Option<Expr>) -> Self {
        Self {
            key,
            statements: Vec::new(),
            timeout: None,
            expires: None,
            comment: None,
            data: None,
        }
    }
}

/// One rule, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) statements: Vec<Statement>,
    pub(super) comment: Option<BString>,
    pub(super) handle: u64,
}

impl Line {
    /// Whether nft has no words for it.
    pub(super) fn is_opaque(&self) -> bool {
        let is_opaque = |statement: &Statement| matches!(statement, Statement::Opaque(_));
        self.statements.iter().any(is_opaque)
    }
}

/// What a translation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Translation {
    Source,
    Destination,
    Masquerade,
    Redirect,
}

/// A part of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Statement {
    Match {
        left: Expr,
        relation: Relation,
        right: Expr,
    },
    /// A verdict, or one from a map.
    Verdict(Expr),
    VerdictMap(Expr, Expr),
    Counter {
        packets: u64,
        bytes: u64,
    },
    Limit {
        rate: u64,
        /// What its time is called.
        unit: &'static str,
        burst: u32,
        bytes: bool,
        over: bool,
    },
    Quota {
        bytes: u64,
        used: u64,
        over: bool,
    },
    Connections {
        count: u32,
        over: bool,
    },
    Last(Option<u64>),
    Log {
        prefix: Option<String>,
        group: Option<u16>,
        snaplen: Option<u32>,
        queue_threshold: Option<u16>,
        level: Option<u32>,
        flags: u32,
    },
    /// `reject with …`: words, or nothing where they are the family's own.
    Reject(Option<(&'static str, Option<Value>)>),
    Translate {
        kind: Translation,
        family: Option<&'static str>,
        prefix: bool,
        address: Option<Expr>,
        port: Option<Expr>,
        flags: Vec<&'static str>,
    },
    Tproxy {
        family: Option<&'static str>,
        address: Option<Expr>,
        port: Option<Expr>,
    },
    Queue {
        numbers: Option<Expr>,
        flags: Vec<&'static str>,
    },
    /// `left set right`
    Set(Expr, Expr),
    /// An option of TCP is overwritten.
    Reset(Expr),
    Notrack,
    FlowAdd(String),
    Synproxy {
        mss: Option<u16>,
        window_scale: Option<u8>,
        timestamp: bool,
        sack_permitted: bool,
    },
    Duplicate {
        address: Option<Expr>,
        device: Option<Expr>,
    },
    Forward {
        family: Option<&'static str>,
        address: Option<Expr>,
        device: Expr,
    },
    /// A set is changed from the packet path.
    Update {
        word: &'static str,
        set: String,
        element: Box<Element>,
    },
    Meter {
        name: String,
        size: Option<u32>,
        element: Box<Element>,
    },
    /// A stateful object of this kind.
    Object(&'static str, Expr),
    /// What x_tables is asked: its name.
    Extension(&'static str, String),
    /// What nft has no words for: the instruction.
    Opaque(String),
}

impl Expr {
    /// What its values are.
    pub(super) fn data_type(&self) -> DataType {
        match self {
            Self::Value(value) | Self::Beginning(value, _) => value.data_type,
            Self::Payload(payload) => match payload.field {
                Some((protocol, field)) => protocol.fields[field].data_type,
                None => types::RAW,
            },
            Self::Option(option) if option.presence => DataType::BOOLEAN,
            Self::Option(option) => option.field().map_or(DataType::INTEGER, |f| f.data_type),
            Self::Binary(_, left, _) => left.data_type(),
            Self::Prefix(value, _) => value.data_type(),
            Self::Range(from, _) => from.data_type(),
            Self::Concat(parts) => DataType::concatenation(parts.iter().map(Self::data_type)),
            Self::Verdict(_) => DataType::VERDICT,
            asked => keys::of(asked).map_or(DataType::VALUE, |key| key.data_type),
        }
    }

    /// The length of its values in bits; 0 where they have none of their own.
    pub(super) fn bits(&self) -> u32 {
        match self {
            Self::Value(value) | Self::Beginning(value, _) => value.bits,
            Self::Payload(payload) => payload.bits,
            Self::Option(option) if option.presence => 8,
            Self::Option(option) => option.bits,
            Self::Binary(_, left, _) => left.bits(),
            Self::Prefix(value, _) => value.bits(),
            Self::Range(from, _) => from.bits(),
            Self::Concat(parts) => parts
                .iter()
                .map(|part| part.bits().next_multiple_of(32))
                .sum(),
            asked => keys::of(asked).map_or(0, |key| key.bits),
        }
    }

    /// The tunnel inside of which it is looked at.
    pub(super) fn tunnel(&self) -> Option<&'static Tunnel> {
        match self {
            Self::Payload(payload) => payload.tunnel,
            Self::Inside(tunnel, _) => Some(tunnel),
            Self::Binary(_, left, _) => left.tunnel(),
            _ => None,
        }
    }

    /// The order of the bytes of its values in a register.
    pub(super) fn order(&self) -> ByteOrder {
        match self {
            Self::Payload(_) | Self::Option(_) => ByteOrder::Network,
            Self::Binary(_, left, _) => left.order(),
            asked => match keys::of(asked) {
                Some(key) => key.order,
                None => types::order(asked.data_type()),
            },
        }
    }

    /// Whether it is a range, or has one for a field: of what a map has for its keys this tells whether it leads to ranges.
    pub(super) fn is_interval(&self) -> bool {
        match self {
            Self::Range(..) | Self::Prefix(..) => true,
            Self::Concat(parts) => parts.iter().any(Self::is_interval),
            _ => false,
        }
    }

    /// Whether values of it are compared bit by bit.
    pub(super) fn is_bitmask(&self) -> bool {
        types::is_bitmask(self.data_type())
    }
}
