//! Syntax tree of nft's language, between its text and the kernel's expressions.

use bstr::BString;

use chainwright::nft::build::ByteOrder;
use chainwright::nft::expr::{
    CtDirection, CtKey, FibFlags, FibResult, MetaKey, NumgenType, OsfTtl, PayloadBase, RtKey,
    SocketKey, TunnelKey, XfrmDirection, XfrmKey,
};
use chainwright::nft::{DataType, Family};

use super::protocols::{Extension, Protocol};
use super::tunnels::Tunnel;
use super::{selectors, types};

pub(super) use super::statements::Statement;

/// A constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) data_type: DataType,
    /// Length in bits.
    pub(super) bits: u32,
    /// Numeric value. The first character of a string is in the highest bits.
    pub(super) number: u128,
}

impl Value {
    /// Returns a number with the lowest `bits` bits set.
    pub(super) const fn ones(bits: u32) -> u128 {
        match bits {
            0 => 0,
            1..=127 => (1 << bits) - 1,
            _ => u128::MAX,
        }
    }

    /// Reads a big-endian number of at most 16 bytes.
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

    /// Returns the length of the common prefix of `self` and `last`, if the range between them consists of all values
    /// with this prefix.
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

    /// Returns the prefix length of a netmask; `None` if the mask is not ones followed by zeros.
    pub(super) fn prefix_of_mask(&self) -> Option<u32> {
        let zeros = !self.number & Self::ones(self.bits);
        (zeros & zeros.wrapping_add(1) == 0)
            .then(|| self.bits.saturating_sub(u128::BITS - zeros.leading_zeros()))
    }
}

/// Location in a source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Span {
    /// Index of the source text, in the order of reading.
    pub(super) source: u32,
    /// Byte offsets of the start and of the exclusive end.
    pub(super) start: u32,
    pub(super) end: u32,
}

/// Constant as written. Its meaning depends on the type that it is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Symbol {
    /// Text without quotation marks.
    pub(super) text: Box<str>,
    pub(super) is_quoted: bool,
    pub(super) span: Span,
}

/// Binary operator.
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

    /// Returns the precedence; higher binds tighter.
    pub(super) const fn precedence(self) -> u8 {
        match self {
            Self::LeftShift | Self::RightShift => 4,
            Self::And => 3,
            Self::Xor => 2,
            Self::Or => 1,
        }
    }
}

/// Relational operator of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    /// No operator: equality, membership in a set, or any of the flags.
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

/// Bits of a packet, selected by base, offset and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Payload {
    pub(super) base: PayloadBase,
    /// Offset and length, in bits.
    pub(super) offset: u32,
    pub(super) bits: u32,
    /// Protocol and field index; `None` for a raw payload expression (`@th,16,16`).
    pub(super) field: Option<(&'static Protocol, usize)>,
    /// Tunnel that contains the bits, or whose header they belong to.
    pub(super) tunnel: Option<&'static Tunnel>,
}

/// Bits of a protocol option or an extension header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OptionField {
    pub(super) extension: &'static Extension,
    /// Number of the option or header.
    pub(super) number: u8,
    pub(super) offset: u32,
    pub(super) bits: u32,
    /// Whether the expression only tests that the option exists.
    pub(super) presence: bool,
}

/// Expression with one value or a set of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expr {
    Value(Value),
    /// Constant whose type is not known yet.
    Symbol(Symbol),
    Payload(Payload),
    Option(OptionField),
    Meta(MetaKey),
    /// Metadata of the packet inside a tunnel. It has no syntax: nft adds this match implicitly.
    Inside(&'static Tunnel, MetaKey),
    /// Number of a queue, only in `typeof` declarations of a map's data.
    QueueNumber,
    /// Metadata that a tunnel device attached to the packet.
    Tunnel(TunnelKey),
    /// Conntrack key. The family is the IP version of an address key that does not imply one.
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
    /// Hash of a key, or of the packet's connection.
    Hash {
        key: Option<Box<Expr>>,
        modulus: u32,
        seed: Option<u32>,
        offset: u32,
    },
    Binary(Operator, Box<Expr>, Box<Expr>),
    /// Value and prefix length.
    Prefix(Box<Expr>, u32),
    Range(Box<Expr>, Box<Expr>),
    /// Prefix of a name, in the highest bits of the value, and its length in bits.
    Beginning(Value, u32),
    Concat(Vec<Expr>),
    /// List of flags, any of which matches.
    Flags(Vec<Expr>),
    /// Flags under a mask: `syn / syn,ack`.
    Masked(Box<Expr>, Box<Expr>),
    /// Anonymous set: elements in braces.
    Set(Vec<Element>),
    /// `@name`
    Reference(String),
    /// Map lookup: key and map.
    Map(Box<Expr>, Box<Expr>),
    Verdict(Verdict),
    /// Name of a stateful object.
    Object(String),
}

/// Verdict on a packet.
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

/// Destination of a jump or goto.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    Chain(String),
    /// Rules of an anonymous chain.
    Rules(Vec<ListedRule>),
}

/// Set element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Element {
    /// `None` for the catch-all element.
    pub(super) key: Option<Expr>,
    pub(super) statements: Vec<Statement>,
    /// In milliseconds.
    pub(super) timeout: Option<u64>,
    pub(super) expires: Option<u64>,
    pub(super) comment: Option<String>,
    /// Value that a map assigns to the key.
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

/// Rule as listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListedRule {
    pub(super) statements: Vec<Statement>,
    pub(super) comment: Option<BString>,
    pub(super) handle: u64,
}

impl ListedRule {
    /// Returns `true` if the rule contains an expression that nft's language cannot represent.
    pub(super) fn is_opaque(&self) -> bool {
        let is_opaque = |statement: &Statement| matches!(statement, Statement::Opaque(_));
        self.statements.iter().any(is_opaque)
    }
}

impl Expr {
    /// Creates an operation. Like nft, a constant becomes the right operand.
    pub(super) fn binary(operator: Operator, left: Self, right: Self) -> Self {
        let swaps = !matches!(operator, Operator::LeftShift | Operator::RightShift);
        match swaps && left.is_constant() && !right.is_constant() {
            true => Self::Binary(operator, Box::new(right), Box::new(left)),
            false => Self::Binary(operator, Box::new(left), Box::new(right)),
        }
    }

    /// Returns `true` if the expression only consists of constants.
    pub(super) fn is_constant(&self) -> bool {
        match self {
            Self::Symbol(_) | Self::Value(_) => true,
            Self::Binary(_, left, right) | Self::Range(left, right) => {
                left.is_constant() && right.is_constant()
            }
            Self::Prefix(value, _) => value.is_constant(),
            Self::Flags(parts) | Self::Concat(parts) => parts.iter().all(Self::is_constant),
            _ => false,
        }
    }

    /// Returns the data type of the expression's values.
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
            selector => selectors::of(selector).map_or(DataType::VALUE, |key| key.data_type),
        }
    }

    /// Returns the length of its values in bits; 0 if the expression does not determine it.
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
            selector => selectors::of(selector).map_or(0, |key| key.bits),
        }
    }

    /// Returns the tunnel whose inner packet it reads.
    pub(super) fn tunnel(&self) -> Option<&'static Tunnel> {
        match self {
            Self::Payload(payload) => payload.tunnel,
            Self::Inside(tunnel, _) => Some(tunnel),
            Self::Binary(_, left, _) => left.tunnel(),
            _ => None,
        }
    }

    /// Returns the byte order of its values in a register.
    pub(super) fn order(&self) -> ByteOrder {
        match self {
            Self::Payload(_) | Self::Option(_) => ByteOrder::Network,
            Self::Binary(_, left, _) => left.order(),
            selector => match selectors::of(selector) {
                Some(key) => key.order,
                None => types::order(selector.data_type()),
            },
        }
    }

    /// Returns `true` if the expression is a range or a concatenation with a range. Determines whether a map's data are
    /// intervals.
    pub(super) fn is_interval(&self) -> bool {
        match self {
            Self::Range(..) | Self::Prefix(..) => true,
            Self::Concat(parts) => parts.iter().any(Self::is_interval),
            _ => false,
        }
    }

    /// Returns `true` if its values are compared bit by bit.
    pub(super) fn is_bitmask(&self) -> bool {
        types::is_bitmask(self.data_type())
    }
}
