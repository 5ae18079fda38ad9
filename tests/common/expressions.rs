//! Typed expressions, taken apart and put together again.

use chainwright::nft::expr::{Decoded, Expressions};

/// Appends an expression in its typed form.
pub(crate) fn push(list: &mut Expressions<'_>, expression: &Decoded<'_>) {
    match expression {
        Decoded::Bitwise(typed) => list.push(typed),
        Decoded::Cmp(typed) => list.push(typed),
        Decoded::Counter(typed) => list.push(typed),
        Decoded::Ct(typed) => list.push(typed),
        Decoded::Immediate(typed) => list.push(typed),
        Decoded::Limit(typed) => list.push(typed),
        Decoded::Log(typed) => list.push(typed),
        Decoded::Lookup(typed) => list.push(typed),
        Decoded::Masq(typed) => list.push(typed),
        Decoded::Match(typed) => list.push(typed),
        Decoded::Meta(typed) => list.push(typed),
        Decoded::Nat(typed) => list.push(typed),
        Decoded::Payload(typed) => list.push(typed),
        Decoded::Redir(typed) => list.push(typed),
        Decoded::Reject(typed) => list.push(typed),
        Decoded::Target(typed) => list.push(typed),
        Decoded::Opaque(raw) => list.push_raw(raw),
        other => panic!("a new kind of expression, to be added here: {other:?}"),
    };
}
