//! The expressions that the keys and data of sets were declared by (`typeof ip daddr . tcp dport`), which nft keeps in
//! the set's user data.
//!
//! ```text
//! SET_KEY_TYPEOF
//!   0  u32 in host byte order: which kind of expression
//!   1  entries that depend on the kind
//! ```
//!
//! All numbers are u32 in host byte order. Seen in what nft 1.0.6 sends.

use crate::nft::SetRef;
use crate::nft::expr::{
    CtDirection, CtKey, ExthdrOp, FibFlags, FibResult, MetaKey, NumgenType, OsfTtl, PayloadBase,
    RtKey, SocketKey, XfrmDirection, XfrmKey,
};
use crate::nft::userdata::UserData;
use crate::text::headers::{self, PROTOCOLS};
use crate::text::keys;
use crate::text::syntax::{Expr, OptionField, Payload};

const KIND: u8 = 0;
const DATA: u8 = 1;

/// The expression in a set's user data.
pub(super) fn of(set: &SetRef<'_>, entry: u8) -> Option<Expr> {
    read(UserData::new(set.userdata()?).get(entry)?, true)
}

fn read(bytes: &[u8], may_be_many: bool) -> Option<Expr> {
    let entries = UserData::new(bytes);
    let data = UserData::new(entries.clone().get(DATA).unwrap_or_default());
    let number = |entry| data.clone().number(entry);
    match entries.number(KIND)? {
        7 => payload(number(0), number(1), [number(2), number(3), number(4)]),
        8 => option(number(0)?, number(1)?, number(2)?),
        9 => known(Expr::Meta(MetaKey(number(0)?))),
        10 => known(Expr::Socket(
            SocketKey(number(0)?),
            number(1).unwrap_or_default(),
        )),
        11 => Some(Expr::Osf {
            ttl: OsfTtl::TRUE,
            version: false,
        }),
        12 => {
            let key = CtKey(number(0)?);
            let direction = number(1).filter(|direction| *direction <= 1);
            let direction = direction.map(|direction| CtDirection(direction as u8)); // 0 or 1
            known(Expr::Ct(key, direction, None))
        }
        13 if may_be_many => {
            let parts = data.map(|(_, part)| read(part, false));
            let parts: Vec<Expr> = parts.collect::<Option<_>>()?;
            // One without fields is written for a set that was declared by types.
            (parts.len() > 1).then_some(Expr::Concat(parts))
        }
        23 => known(Expr::Numgen {
            kind: NumgenType(number(0)?),
            modulus: number(1)?,
            offset: number(2)?,
        }),
        24 => None,
        25 => known(Expr::Rt(RtKey(number(0)?))),
        26 => known(Expr::Fib(
            FibFlags::from_bits_retain(number(1)?),
            FibResult(number(0)?),
        )),
        27 => known(Expr::Xfrm {
            key: XfrmKey(number(0)?),
            number: number(1)?,
            direction: XfrmDirection(u8::try_from(number(2)?).ok()?),
        }),
        _ => None,
    }
}

/// What is asked for, if nft has words for it.
fn known(asked: Expr) -> Option<Expr> {
    keys::of(&asked).map(|_| asked)
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
        }));
    }
    let [base, offset, bits] = place;
    // nft counts its bases from 1 on, with one for what is no place.
    let base = base?.checked_sub(1)?;
    Some(Expr::Payload(Payload {
        base: PayloadBase(base),
        offset: offset?,
        bits: bits?,
        field: None,
    }))
}

fn option(number: u32, field: u32, kind: u32) -> Option<Expr> {
    let number = u8::try_from(number).ok()?;
    let kind = ExthdrOp(kind);
    let extension = headers::EXTENSIONS
        .iter()
        .find(|e| e.kind == kind && e.number == number)?;
    let field = extension.numbered(field)?;
    Some(Expr::Option(OptionField {
        extension,
        number,
        offset: field.offset,
        bits: field.bits,
        presence: false,
    }))
}
