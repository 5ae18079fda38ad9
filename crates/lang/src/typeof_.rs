//! Expressions in `typeof` declarations of sets (`typeof ip daddr . tcp dport`), which nft stores in the set's user
//! data.
//!
//! ```text
//! SET_KEY_TYPEOF
//!   0  u32 in host byte order: which kind of expression
//!   1  entries that depend on the kind
//! ```
//!
//! All numbers are u32 in host byte order. The format was observed in messages of nft 1.0.6, and for inner packets of
//! tunnels in those of nft 1.1.7.

use chainwright::nft::build::ByteOrder;
use chainwright::nft::expr::{
    CtDirection, CtKey, ExthdrOp, FibFlags, FibResult, MetaKey, NumgenType, OsfTtl, PayloadBase,
    RtKey, SocketKey, XfrmDirection, XfrmKey,
};
use chainwright::nft::userdata::{
    TYPEOF_CONCAT as CONCAT, TYPEOF_DATA as DATA, TYPEOF_FIB as FIB, TYPEOF_FIB_OLDER as FIB_OLDER,
    TYPEOF_KIND as KIND, TYPEOF_XFRM as XFRM, TYPEOF_XFRM_OLDER as XFRM_OLDER, UserData,
};
use chainwright::nft::{DataType, SetRef};

use super::protocols::{self, Extension, PROTOCOLS};
use super::selectors;
use super::syntax::{Expr, OptionField, Payload};
use super::tunnels;

/// Numbers of expression kinds.
const VERDICT: u32 = 1;
/// A constant: with the number 0, a queue number.
const VALUE: u32 = 4;
const PAYLOAD: u32 = 7;
const EXTHDR: u32 = 8;
const META: u32 = 9;
const SOCKET: u32 = 10;
const OSF: u32 = 11;
const CT: u32 = 12;
const NUMGEN: u32 = 23;
const HASH: u32 = 24;
const RT: u32 = 25;

/// Maximum length of a concatenation: an entry has at most 255 bytes, 8 of which hold the kind.
const MAX_LENGTH: usize = 247;

/// Number for "no direction" of a connection.
const EITHER: u32 = u32::MAX;

/// Returns the entry for verdicts.
pub(super) fn verdicts() -> Vec<u8> {
    entry(VERDICT, &[])
}

/// Returns the entry for a concatenation that was declared by types, or that has no representation.
pub(super) fn fields_of_types() -> Vec<u8> {
    entry(CONCAT, &[])
}

/// Encodes an expression for user data; `None` if it has no representation.
pub(super) fn written(expr: &Expr) -> Option<Vec<u8>> {
    match expr {
        // nft 1.0.6 ignores an unknown kind in a field of a concatenation, and aborts if it is the only expression.
        // nft 1.1.7 aborts for most `ipsec` expressions that 1.0.6 stores. With a concatenation of one field no
        // version aborts, but nft 1.1.7 then adds no elements. So an expression is not written where its type alone is
        // enough.
        Expr::Xfrm { .. } if expr.data_type() == DataType::INTEGER => {
            written(&Expr::Concat(vec![expr.clone()]))
        }
        Expr::Xfrm { .. } => None,
        expr => field_written(expr),
    }
}

fn field_written(expr: &Expr) -> Option<Vec<u8>> {
    Some(match expr {
        Expr::Concat(parts) => {
            let mut data = Vec::new();
            for (index, part) in (0_u8..).zip(parts) {
                push(&mut data, index, &field_written(part)?);
            }
            // A nested entry cannot be longer.
            (data.len() <= MAX_LENGTH).then_some(())?;
            entry(CONCAT, &data)
        }
        // A part of a field's bits has the type of the field.
        Expr::Binary(_, left, _) => field_written(left)?,
        Expr::Payload(payload) => entry(PAYLOAD, &payload_data(payload)),
        Expr::Option(option) => entry(EXTHDR, &option_data(option)?),
        Expr::Meta(key) => entry(META, &numbers(&[(0, key.0)])),
        Expr::Socket(key, _) => entry(SOCKET, &numbers(&[(0, key.0)])),
        Expr::Osf { .. } => entry(OSF, &[]),
        Expr::QueueNumber => entry(VALUE, &numbers(&[(0, 0)])),
        Expr::Ct(key, direction, _) => {
            let direction = direction.map_or(EITHER, |direction| direction.0.into());
            entry(CT, &numbers(&[(0, key.0), (1, direction)]))
        }
        Expr::Numgen {
            kind,
            modulus,
            offset,
        } => entry(
            NUMGEN,
            &numbers(&[(0, kind.0), (1, *modulus), (2, *offset)]),
        ),
        Expr::Hash {
            key,
            modulus,
            seed,
            offset,
        } => {
            let kind = u32::from(key.is_none());
            let seeded = u32::from(seed.is_some());
            let seed = seed.unwrap_or_default();
            let all = [
                (0, kind),
                (1, *offset),
                (2, *modulus),
                (3, seed),
                (4, seeded),
            ];
            entry(HASH, &numbers(&all))
        }
        Expr::Rt(key) => entry(RT, &numbers(&[(0, key.0)])),
        Expr::Fib(flags, result) => entry(FIB, &numbers(&[(0, result.0), (1, flags.bits())])),
        Expr::Xfrm {
            direction,
            key,
            number,
        } => {
            let all = [(0, key.0), (1, *number), (2, direction.0.into())];
            entry(XFRM, &numbers(&all))
        }
        _ => return None,
    })
}

fn push(into: &mut Vec<u8>, kind: u8, value: &[u8]) {
    // nft's entries are short: a rule's user data has at most 256 bytes.
    let length = u8::try_from(value.len()).unwrap_or(u8::MAX);
    into.extend_from_slice(&[kind, length]);
    into.extend_from_slice(&value[..length.into()]);
}

fn numbers(all: &[(u8, u32)]) -> Vec<u8> {
    let mut data = Vec::new();
    for (kind, number) in all {
        push(&mut data, *kind, &number.to_ne_bytes());
    }
    data
}

fn entry(kind: u32, data: &[u8]) -> Vec<u8> {
    let mut entry = numbers(&[(KIND, kind)]);
    push(&mut entry, DATA, data);
    entry
}

fn payload_data(payload: &Payload) -> Vec<u8> {
    match payload.field {
        Some((protocol, index)) => {
            let mut all = vec![(0, protocol.number), (1, index as u32 + 1)]; // few fields
            if protocol.fields[index].data_type == DataType::INTEGER {
                all.push((4, payload.bits));
            }
            if let Some(tunnel) = payload.tunnel {
                all.push((5, tunnel.own.number));
            }
            numbers(&all)
        }
        None => numbers(&[
            (0, 0),
            (1, 0),
            (2, payload.base.0 + 1),
            (3, payload.offset),
            (4, payload.bits),
        ]),
    }
}

fn option_data(option: &OptionField) -> Option<Vec<u8>> {
    let extension = option.extension;
    let field = extension.number_of(option.offset, option.bits)?;
    Some(match extension.kind {
        ExthdrOp::IPV6 => numbers(&[(1, field), (0, extension.number_in_typeof()?)]),
        kind => numbers(&[(1, field), (2, kind.0), (0, option.number.into())]),
    })
}

/// Reads an expression from a set's user data.
pub(super) fn of(set: &SetRef<'_>, entry: u8) -> Option<Expr> {
    read(UserData::new(set.userdata()?).get(entry)?, true)
}

/// Returns the byte order and bit length of each field of a set's key or a map's data, if declared by `typeof`. `None`
/// if the set does not store expressions, or one of them is unknown.
pub(super) fn fields(set: &SetRef<'_>, entry: u8) -> Option<Vec<(ByteOrder, u32)>> {
    let declared = UserData::new(set.userdata()?).get(entry)?;
    let field = |expr: &[u8]| match UserData::new(expr).number(KIND)? {
        // The hashed expression is not stored.
        HASH => Some((ByteOrder::Host, 32)),
        _ => read(expr, false).map(|expr| (expr.order(), expr.bits())),
    };
    let entries = UserData::new(declared);
    match entries.clone().number(KIND)? {
        CONCAT => UserData::new(entries.get(DATA)?)
            .map(|(_, part)| field(part))
            .collect(),
        _ => Some(vec![field(declared)?]),
    }
}

fn read(bytes: &[u8], may_be_many: bool) -> Option<Expr> {
    let entries = UserData::new(bytes);
    let data = UserData::new(entries.clone().get(DATA).unwrap_or_default());
    let number = |entry| data.clone().number(entry);
    match entries.number(KIND)? {
        PAYLOAD => match number(5) {
            Some(tunnel) => inside(tunnel, number(0)?, number(1)?),
            None => payload(number(0), number(1), [number(2), number(3), number(4)]),
        },
        EXTHDR => option(number(0)?, number(1)?, number(2)),
        VALUE if number(0)? == 0 => Some(Expr::QueueNumber),
        META => known(Expr::Meta(MetaKey(number(0)?))),
        SOCKET => known(Expr::Socket(
            SocketKey(number(0)?),
            number(1).unwrap_or_default(),
        )),
        OSF => Some(Expr::Osf {
            ttl: OsfTtl::TRUE,
            version: false,
        }),
        CT => {
            let key = CtKey(number(0)?);
            let direction = number(1).filter(|direction| *direction <= 1);
            let direction = direction.map(|direction| CtDirection(direction as u8)); // 0 or 1
            known(Expr::Ct(key, direction, None))
        }
        CONCAT if may_be_many => {
            let parts = data.map(|(_, part)| read(part, false));
            let mut parts: Vec<Expr> = parts.collect::<Option<_>>()?;
            // An entry without fields marks a set that was declared by types.
            match parts.len() {
                0 | 1 => parts.pop(),
                _ => Some(Expr::Concat(parts)),
            }
        }
        NUMGEN => known(Expr::Numgen {
            kind: NumgenType(number(0)?),
            modulus: number(1)?,
            offset: number(2)?,
        }),
        // The operands of jhash are not stored.
        HASH if number(0)? == 1 => known(Expr::Hash {
            key: None,
            modulus: number(2)?,
            seed: number(3).filter(|_| number(4).is_some_and(|seeded| seeded != 0)),
            offset: number(1)?,
        }),
        RT => known(Expr::Rt(RtKey(number(0)?))),
        XFRM | XFRM_OLDER if number(2).is_some() => known(Expr::Xfrm {
            key: XfrmKey(number(0)?),
            number: number(1)?,
            direction: XfrmDirection(u8::try_from(number(2)?).ok()?),
        }),
        FIB | FIB_OLDER => known(Expr::Fib(
            FibFlags::from_bits_retain(number(1)?),
            FibResult(number(0)?),
        )),
        _ => None,
    }
}

/// Returns the expression if nft has a name for it.
fn known(selector: Expr) -> Option<Expr> {
    selectors::of(&selector).map(|_| selector)
}

fn payload(protocol: Option<u32>, field: Option<u32>, place: [Option<u32>; 3]) -> Option<Expr> {
    let protocol = protocol.filter(|number| *number > 0);
    if let Some(number) = protocol {
        let protocol = PROTOCOLS.iter().copied().find(|p| p.number == number)?;
        let index = (field? as usize).checked_sub(1)?;
        let field = protocol.fields.get(index)?;
        return Some(Expr::Payload(Payload {
            base: protocol.base,
            offset: field.offset,
            bits: field.bits,
            field: Some((protocol, index)),
            tunnel: None,
        }));
    }
    let [base, offset, bits] = place;
    // nft counts payload bases from 1 on; 0 is invalid.
    let base = base?.checked_sub(1)?;
    Some(Expr::Payload(Payload {
        base: PayloadBase(base),
        offset: offset?,
        bits: bits?,
        field: None,
        tunnel: None,
    }))
}

/// Returns a field of a tunnel's inner packet or of the tunnel's own header.
fn inside(tunnel: u32, protocol: u32, field: u32) -> Option<Expr> {
    let tunnel = tunnels::numbered(tunnel)?;
    let protocol = tunnel.protocols().find(|known| known.number == protocol)?;
    let index = (field as usize).checked_sub(1)?;
    (index < protocol.fields.len()).then(|| Expr::Payload(tunnel.field(protocol, index)))
}

fn option(number: u32, field: u32, kind: Option<u32>) -> Option<Expr> {
    let is = |extension: &&'static Extension| match kind {
        // nft has its own numbers for extension headers.
        None => extension.number_in_typeof() == Some(number),
        Some(kind) => extension.kind == ExthdrOp(kind) && u32::from(extension.number) == number,
    };
    // Several extensions may share a number; their fields are numbered in one sequence.
    let mut all = protocols::EXTENSIONS.iter().filter(is);
    let (extension, field) =
        all.find_map(|extension| Some((extension, extension.numbered(field)?)))?;
    Some(Expr::Option(OptionField {
        extension,
        number: extension.number,
        offset: field.offset,
        bits: field.bits,
        presence: false,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every field of every option, header and chunk survives a round trip.
    #[test]
    fn fields_round_trip_as_user_data() {
        let mut count = 0;
        for extension in protocols::EXTENSIONS {
            for field in extension.all_fields() {
                let option = Expr::Option(OptionField {
                    extension,
                    number: extension.number,
                    offset: field.offset,
                    bits: field.bits,
                    presence: false,
                });
                let bytes = written(&option).expect("the expression has no user data");
                match (read(&bytes, true), &option) {
                    (Some(Expr::Option(read)), Expr::Option(option)) => {
                        let place = |option: &OptionField| {
                            let OptionField {
                                number,
                                offset,
                                bits,
                                ..
                            } = *option;
                            (option.extension.kind, number, offset, bits)
                        };
                        assert_eq!(place(&read), place(option));
                        count += 1;
                    }
                    (other, _) => panic!("{option:?} became {other:?}"),
                }
            }
        }
        assert!(count > 80, "{count}");
        for protocol in PROTOCOLS {
            for (index, field) in protocol.fields.iter().enumerate() {
                let payload = Expr::Payload(Payload {
                    base: protocol.base,
                    offset: field.offset,
                    bits: field.bits,
                    field: Some((protocol, index)),
                    tunnel: None,
                });
                let bytes = written(&payload).expect("the expression has no user data");
                assert_eq!(read(&bytes, true), Some(payload));
            }
        }
    }

    /// nft 1.0.6 numbers `fib` and `ipsec` 26 and 27, nft 1.1.7 27 and 28.
    #[test]
    fn newer_nft_syntax_is_parsed() {
        let entry = |kind: u32, all: &[u32]| {
            let all: Vec<_> = (0_u8..).zip(all.iter().copied()).collect();
            super::entry(kind, &numbers(&all))
        };
        let fib = Expr::Fib(FibFlags::SADDR, FibResult::ADDRTYPE);
        for kind in [26, 27] {
            let bytes = entry(kind, &[FibResult::ADDRTYPE.0, FibFlags::SADDR.bits()]);
            assert_eq!(read(&bytes, true), Some(fib.clone()), "{kind}");
        }
        let ipsec = Expr::Xfrm {
            key: XfrmKey::REQID,
            number: 0,
            direction: XfrmDirection::IN,
        };
        for kind in [27, 28] {
            let bytes = entry(kind, &[XfrmKey::REQID.0, 0, 0]);
            assert_eq!(read(&bytes, true), Some(ipsec.clone()), "{kind}");
        }
        // The numbers written are those of newer versions: the expression is the one field of a concatenation, or its
        // type suffices.
        let port = Expr::Meta(MetaKey::MARK);
        for expr in [
            fib,
            ipsec.clone(),
            Expr::Concat(vec![ipsec.clone(), port.clone()]),
        ] {
            let bytes = written(&expr).expect("the expression has no user data");
            assert_eq!(read(&bytes, true), Some(expr));
        }
        let address = Expr::Xfrm {
            key: XfrmKey::SADDR_IP4,
            number: 0,
            direction: XfrmDirection::IN,
        };
        assert_eq!(written(&address), None);
        let both = Expr::Concat(vec![address, port]);
        let bytes = written(&both).expect("the expression has no user data");
        assert_eq!(read(&bytes, true), Some(both));
        let symhash = Expr::Hash {
            key: None,
            modulus: 100,
            seed: None,
            offset: 2,
        };
        let bytes = written(&symhash).expect("the expression has no user data");
        assert_eq!(read(&bytes, true), Some(symhash));
    }

    /// Bytes that nft 1.0.6 sends.
    #[test]
    fn output_equals_nft() {
        let frag = protocols::EXTENSIONS.iter().find(|e| e.name == "frag");
        let frag = frag.expect("no such field");
        let id = Expr::Option(OptionField {
            extension: frag,
            number: frag.number,
            offset: 32,
            bits: 32,
            presence: false,
        });
        let both = Expr::Concat(vec![Expr::Meta(MetaKey::MARK), id]);
        let expected = [
            &[0, 4, 13, 0, 0, 0, 1, 38][..],
            &[0, 14, 0, 4, 9, 0, 0, 0, 1, 6, 0, 4, 3, 0, 0, 0],
            &[
                1, 20, 0, 4, 8, 0, 0, 0, 1, 12, 1, 4, 6, 0, 0, 0, 0, 4, 6, 0, 0, 0,
            ],
        ];
        if cfg!(target_endian = "little") {
            assert_eq!(written(&both), Some(expected.concat()));
        }
    }
}
