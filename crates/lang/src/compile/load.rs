//! Compiles loads of selectors into registers.

use super::constant::{ExpectedType, bytes_in};
use super::rule_builder::{RuleBuilder, register};
use crate::dialect::Form;
use crate::parse::Diagnostic;
use crate::syntax::{Expr, Payload, Value};
use crate::types::{self, info};
use chainwright::nft::build::ByteOrder;
use chainwright::nft::expr::{
    Bitwise, Byteorder, Ct, CtKey, Exthdr, Fib, FibFlags, Hash, Immediate, Meta, MetaKey, Numgen,
    Osf, Payload as Load, Rt, Socket, SocketKey, Tunnel, Xfrm,
};
use chainwright::nft::{DataType, Family};

/// 4-byte words in a 16-byte register.
const REGISTER: u32 = 4;

/// Content of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loaded {
    /// Type of the values.
    pub(crate) expected_type: ExpectedType,
    /// Length in bytes.
    pub(crate) length: usize,
    /// Number of bits by which the value is shifted left in the register.
    pub(crate) shift: u32,
}

impl Loaded {
    /// Creates a value that is not shifted.
    pub(crate) const fn of(expected_type: ExpectedType) -> Self {
        Self {
            expected_type,
            length: expected_type.length(),
            shift: 0,
        }
    }

    /// Encodes a number as in the register.
    pub(crate) fn bytes(&self, number: u128) -> Vec<u8> {
        self.expected_type.bytes(number << self.shift, self.length)
    }

    pub(crate) const fn words(&self) -> u32 {
        self.length.div_ceil(4) as u32 // at most 16
    }
}

/// Bytes that contain a bit range.
struct CoveringBytes {
    offset: u32,
    length: u32,
    /// Number of bits after the range.
    shift: u32,
}

impl CoveringBytes {
    const fn holding(&self, expected_type: ExpectedType) -> Loaded {
        Loaded {
            expected_type,
            length: self.length as usize,
            shift: self.shift,
        }
    }
}

fn span(start: u32, bits: u32) -> CoveringBytes {
    let end = start + bits;
    let (first, behind) = (start / 8, end.div_ceil(8));
    let shift = behind * 8 - end;
    CoveringBytes {
        offset: first,
        length: behind - first,
        shift,
    }
}

impl RuleBuilder<'_, '_> {
    /// Returns the type of an expression's values.
    pub(crate) fn expected_type(&self, expr: &Expr) -> ExpectedType {
        match expr {
            Expr::Binary(_, left, _) => self.expected_type(left),
            // Addresses that do not imply an IP version have that of the table.
            Expr::Ct(CtKey::SRC | CtKey::DST, _, None) => {
                ExpectedType::of(match self.protocols.version() {
                    Some(Family::IP6) => DataType::IPV6_ADDR,
                    _ => DataType::IPV4_ADDR,
                })
            }
            Expr::Option(option) => ExpectedType {
                data_type: match option {
                    option if option.is("mptcp", "subtype") => types::MPTCP_SUBTYPE,
                    option if option.is_address_of_ipv4() => types::OPTION_ADDRESS,
                    _ => expr.data_type(),
                },
                bits: expr.bits(),
                order: expr.order(),
            },
            // These have no other values.
            Expr::Socket(SocketKey::TRANSPARENT | SocketKey::WILDCARD, _)
            | Expr::Meta(MetaKey::NFTRACE) => ExpectedType {
                data_type: expr.data_type(),
                bits: 1,
                order: expr.order(),
            },
            // nft treats it as host byte order.
            Expr::Meta(MetaKey::L4PROTO) => ExpectedType {
                order: ByteOrder::Host,
                ..ExpectedType::of(DataType::INET_PROTO)
            },
            // The kernel only sets the first byte, like that of other truth values.
            Expr::Fib(flags, _)
                if flags.contains(FibFlags::PRESENT)
                    && self.compiler.version.has(Form::RouteExistence) =>
            {
                ExpectedType {
                    data_type: expr.data_type(),
                    bits: 8,
                    order: expr.order(),
                }
            }
            expr => ExpectedType {
                data_type: expr.data_type(),
                bits: expr.bits(),
                order: expr.order(),
            },
        }
    }

    /// Returns the offset of a field in bits from its base.
    pub(crate) fn start_of(&mut self, payload: &Payload) -> Result<u32, Diagnostic> {
        let start = payload.field.map_or(0, |(protocol, _)| {
            self.protocols_in(payload.tunnel).start_of(protocol)
        });
        self.check_bit_range(payload.offset, payload.bits)?;
        Ok(start + payload.offset)
    }

    /// Checks that a bit range fits into a register.
    fn check_bit_range(&self, offset: u32, bits: u32) -> Result<(), Diagnostic> {
        const MAX_OFFSET: u32 = 1 << 20;
        const MAX_BITS: u32 = 128;
        if offset > MAX_OFFSET {
            let message = format!("offset is beyond bit {MAX_OFFSET}");
            return Err(Diagnostic::new(self.compiler.span, message));
        }
        if offset % 8 + bits > MAX_BITS {
            let message = "a register holds at most 16 bytes of a packet";
            return Err(Diagnostic::new(self.compiler.span, message));
        }
        Ok(())
    }

    /// Loads a key into registers, from this word on. The fields of a concatenation are consecutive, each padded to 4
    /// bytes. With `is_turned`, values are in network byte order, as in interval sets. Constants have the types of a
    /// named set's fields.
    pub(crate) fn load_key(
        &mut self,
        key: &Expr,
        word: u32,
        is_turned: bool,
        of_set: &[ExpectedType],
    ) -> Result<Vec<Loaded>, Diagnostic> {
        let Expr::Concat(parts) = key else {
            let mut loaded = self.load(key, word)?;
            if is_turned {
                self.turn_to_network(&mut loaded, word);
            }
            return Ok(vec![loaded]);
        };
        let mut fields = Vec::with_capacity(parts.len());
        let mut at = word;
        for (index, part) in parts.iter().enumerate() {
            let loaded = match of_set.get(index) {
                _ if !part.is_constant() => self.load_part(part, at, is_turned)?,
                Some(expected_type) => {
                    self.put(part, &[*expected_type], at)?;
                    Loaded::of(*expected_type)
                }
                None => {
                    let message = "a constant needs a named set, which has its type";
                    return Err(self.compiler.diagnostic(part, message));
                }
            };
            at += loaded.words();
            if at > 16 {
                return Err(self
                    .compiler
                    .diagnostic(key, "key is longer than the kernel's maximum of 64 bytes"));
            }
            fields.push(loaded);
        }
        Ok(fields)
    }

    /// Loads a field of a concatenation.
    fn load_part(&mut self, part: &Expr, word: u32, is_turned: bool) -> Result<Loaded, Diagnostic> {
        self.check_part(part)?;
        let mut loaded = self.load(part, word)?;
        self.shift_down(&mut loaded, word)?;
        if is_turned {
            let is_byte = loaded.length == 1 && loaded.expected_type.order == ByteOrder::Host;
            self.turn_to_network(&mut loaded, word);
            if is_byte {
                // No effect, but nft sends it.
                self.push(&Byteorder::hton(register(word), register(word), 1, 2));
            }
        }
        Ok(loaded)
    }

    /// Checks that an expression can be part of a concatenation. nft aborts when it lists some of them.
    pub(crate) fn check_part(&self, part: &Expr) -> Result<(), Diagnostic> {
        let is_part = |payload: &Payload| {
            !(payload.offset.is_multiple_of(8) && payload.bits.is_multiple_of(8))
        };
        let what = match part {
            Expr::Osf { .. } | Expr::Ct(CtKey::HELPER, ..) => "a name of variable length",
            Expr::Payload(payload) if payload.field.is_none() && is_part(payload) => {
                "an unnamed part of a byte"
            }
            Expr::Meta(MetaKey::BRI_BROUTE) => "`meta broute`",
            part if part.data_type() == types::BITMASK => "a bit mask of variable length",
            _ => return Ok(()),
        };
        let message = format!("{what} cannot be part of a concatenation");
        Err(self.error(message))
    }

    /// Loads a value into a register.
    pub(crate) fn load(&mut self, expr: &Expr, word: u32) -> Result<Loaded, Diagnostic> {
        let loaded = self.load_bytes(expr, word)?;
        let is_field = matches!(expr, Expr::Payload(_) | Expr::Option(_));
        if is_field && loaded.expected_type.bits as usize != loaded.length * 8 {
            self.trim(&loaded, word);
        }
        Ok(loaded)
    }

    /// Loads the bytes that contain a value into a register.
    pub(crate) fn load_bytes(&mut self, expr: &Expr, word: u32) -> Result<Loaded, Diagnostic> {
        let dreg = register(word);
        let expected_type = self.expected_type(expr);
        let whole = Loaded::of(expected_type);
        match expr {
            Expr::Payload(payload) => {
                let span = span(self.start_of(payload)?, payload.bits);
                let load = Load::load(payload.base, span.offset, span.length, dreg);
                self.push_at(payload.tunnel, &load);
                return Ok(span.holding(expected_type));
            }
            Expr::Option(option) => {
                let kind = option.extension.kind;
                if option.presence {
                    self.push(&Exthdr::present(kind, option.number, dreg));
                    return Ok(Loaded { length: 1, ..whole });
                }
                self.check_bit_range(option.offset, option.bits)?;
                let is_whole = option.offset.is_multiple_of(8) && option.bits.is_multiple_of(8);
                if option.field().is_none() && !is_whole {
                    let message = "nft aborts when it lists an unnamed part of an option byte: match the whole byte";
                    return Err(self.error(message));
                }
                let span = span(option.offset, option.bits);
                let load = Exthdr::load(kind, option.number, span.offset, span.length, dreg);
                self.push(&load);
                return Ok(span.holding(expected_type));
            }
            Expr::Meta(MetaKey::NFPROTO) if self.family != Family::INET => {
                let message = "meta nfproto is only useful in the inet family";
                return Err(self.error(message));
            }
            Expr::Meta(key) => self.push(&Meta::load(*key, dreg)),
            Expr::Inside(tunnel, key) => self.push_at(Some(tunnel), &Meta::load(*key, dreg)),
            Expr::Tunnel(key) => self.push(&Tunnel {
                key: Some(*key),
                dreg: Some(dreg),
                ..Tunnel::default()
            }),
            Expr::Ct(CtKey::SRC | CtKey::DST, _, None) if self.protocols.version().is_none() => {
                let message = "the IP version of this address is unknown";
                return Err(self
                    .error(message)
                    .with_hint("specify it, for example ct original ip saddr"));
            }
            Expr::Ct(key, direction, _) => self.push(&Ct {
                direction: *direction,
                ..Ct::load(*key, dreg)
            }),
            Expr::Rt(key) => self.push(&Rt::load(*key, dreg)),
            Expr::Socket(SocketKey::CGROUPV2, level) => self.push(&Socket::cgroupv2(*level, dreg)),
            Expr::Socket(key, _) => self.push(&Socket {
                level: Some(0),
                ..Socket::load(*key, dreg)
            }),
            Expr::Fib(flags, result) => self.push(&Fib::new(*flags, *result, dreg)),
            Expr::Osf { ttl, version } => match version {
                true => self.push(&Osf::version(*ttl, dreg)),
                false => self.push(&Osf::name(*ttl, dreg)),
            },
            Expr::Xfrm {
                direction,
                key,
                number,
            } => self.push(&Xfrm::load(*key, *direction, *number, dreg)),
            Expr::Numgen {
                kind,
                modulus,
                offset,
            } => self.push(&Numgen {
                numgen_type: Some(*kind),
                ..Numgen::random(*modulus, dreg).with_offset(*offset)
            }),
            Expr::Hash {
                key,
                modulus,
                seed,
                offset,
            } => {
                let offset = Some(*offset);
                match key {
                    Some(key) => {
                        let from = word + REGISTER;
                        let wide = self.wide.take();
                        let fields = self.load_key(key, from, false, &[]);
                        self.wide = wide;
                        let fields = fields?;
                        let length = match &fields[..] {
                            [one] => one.length as u32, // at most 16
                            many => many.iter().map(Loaded::words).sum::<u32>() * 4,
                        };
                        let hash = Hash::jenkins(register(from), length, *modulus, dreg);
                        self.push(&Hash {
                            seed: *seed,
                            offset,
                            ..hash
                        });
                    }
                    None => self.push(&Hash {
                        offset,
                        ..Hash::symmetric(*modulus, dreg)
                    }),
                }
            }
            Expr::Binary(operator, left, right) => {
                return self.operation(*operator, expr, (left, right), word);
            }
            other => {
                return Err(self
                    .compiler
                    .diagnostic(other, "this expression has no value"));
            }
        }
        Ok(whole)
    }

    /// Masks the bits that do not belong to the field.
    pub(crate) fn trim(&mut self, loaded: &Loaded, word: u32) {
        let mask = Value::ones(loaded.expected_type.bits) << loaded.shift;
        self.mask_xor(word, mask, 0, loaded.length, ByteOrder::Network);
    }

    /// Adds a mask and xor operation.
    pub(crate) fn mask_xor(
        &mut self,
        word: u32,
        mask: u128,
        xor: u128,
        length: usize,
        order: ByteOrder,
    ) {
        let mask = bytes_in(mask, length, order, false);
        let xor = bytes_in(xor, length, order, false);
        self.push(&Bitwise::mask_xor(register(word), &mask, &xor));
    }

    /// Masks a value before a comparison. Like nft, this omits the operation attribute, whose default is mask and xor.
    pub(crate) fn mask(&mut self, loaded: &Loaded, mask: u128) {
        let order = loaded.expected_type.order;
        let xor = vec![0; loaded.length];
        let mask = bytes_in(mask << loaded.shift, loaded.length, order, false);
        self.push(&Bitwise {
            op: None,
            ..Bitwise::mask_xor(register(0), &mask, &xor)
        });
    }

    /// Converts a register to network byte order, in which numbers compare bytewise.
    pub(crate) fn turn_to_network(&mut self, loaded: &mut Loaded, word: u32) {
        let is_number = !types::is_string(loaded.expected_type.data_type);
        if loaded.expected_type.order == ByteOrder::Host && is_number {
            loaded.expected_type.order = ByteOrder::Network;
            if loaded.length > 1 {
                let (register, length) = (register(word), loaded.length as u32); // at most 16
                self.push(&Byteorder::hton(register, register, length, length.min(8)));
            }
        }
    }

    /// Converts a value to a mark, with 4 bytes in host byte order. A 4-byte integer without a type of its own keeps the
    /// packet's byte order.
    pub(crate) fn turn_to_mark(&mut self, loaded: &mut Loaded, word: u32) {
        self.wide = Some(32);
        self.widen(loaded, word);
        self.wide = None;
        if !is_untyped(loaded.expected_type.data_type) {
            self.turn_to_host(loaded, word);
        }
    }

    /// Loads a constant, a selector or the result of a map lookup into registers, as consecutive values of these
    /// types.
    pub(crate) fn put(
        &mut self,
        expr: &Expr,
        expected_types: &[ExpectedType],
        word: u32,
    ) -> Result<u32, Diagnostic> {
        let length = |expected_types: &[ExpectedType]| {
            expected_types
                .iter()
                .map(|expected_type| expected_type.bits.div_ceil(32))
                .sum()
        };
        match (expr, expected_types) {
            (Expr::Map(key, map), _) => {
                self.map(key, map, expected_types, word)?;
                Ok(length(expected_types))
            }
            (Expr::Concat(parts), _) if parts.len() == expected_types.len() => {
                let mut at = word;
                for (part, expected_type) in parts.iter().zip(expected_types) {
                    at += self.put(part, &[*expected_type], at)?;
                }
                Ok(at - word)
            }
            (expr, [expected_type]) => {
                if expr.is_constant() {
                    let value = self.compiler.value(expr, *expected_type)?;
                    let bytes = expected_type.bytes(value.number, expected_type.length());
                    self.push(&Immediate::value(register(word), &bytes));
                    return Ok(expected_type.bits.div_ceil(32));
                }
                // A mark can hold any number that fits.
                let is_mark = expected_type.data_type == DataType::MARK;
                self.wide = is_mark.then_some(expected_type.bits);
                let mut loaded = self.load(expr, word)?;
                self.bring_down(&mut loaded, word)?;
                self.widen(&mut loaded, word);
                self.wide = None;
                let (given, wanted) = (loaded.expected_type.data_type, expected_type.data_type);
                let is_as_long = loaded.length == expected_type.length();
                let is_field = matches!(expr, Expr::Payload(_) | Expr::Option(_));
                let fits = match is_mark {
                    true => is_as_long && !types::is_bitmask(given) && !types::is_string(given),
                    false if is_as_long => given == wanted || is_untyped(given),
                    false => given == wanted && !is_field,
                };
                if !fits {
                    let name = |data_type| info(data_type).map_or("a number", |info| info.name);
                    let message = format!("expected `{}`, found `{}`", name(wanted), name(given));
                    return Err(self.compiler.diagnostic(expr, message));
                }
                match expected_type.order {
                    ByteOrder::Network => self.turn_to_network(&mut loaded, word),
                    ByteOrder::Host if is_mark => {
                        self.turn_to_mark(&mut loaded, word);
                        if self.compiler.version.has(Form::MarkOrder) {
                            self.turn_to_host(&mut loaded, word);
                        }
                    }
                    ByteOrder::Host => {}
                }
                Ok(loaded.words())
            }
            (expr, _) => Err(self
                .compiler
                .diagnostic(expr, format!("expected {} values", expected_types.len()))),
        }
    }
}

/// Returns `true` if values of a type are integers without a type of their own.
const fn is_untyped(data_type: DataType) -> bool {
    matches!(data_type, DataType::INTEGER | DataType::VALUE | types::RAW)
}
