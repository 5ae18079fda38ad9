//! `dynset`: adds to and deletes from sets; each element may have expressions.

use super::SetInfo;
use super::context::{MAX_MILLISECONDS, check_length, check_max, required};
use super::errors::{E2BIG, EBUSY, EINVAL, EOPNOTSUPP, ERANGE};
use super::{Context, Element, KernelExpression, Reference};
use bstr::ByteSlice;

use chainwright::Errno;
use chainwright::netlink::{Attributes, MessageWriter};
use chainwright::nft::Family;
use chainwright::nft::Field;
use chainwright::nft::expr::{Dynset, DynsetFlags, DynsetRef, Expressions, NestedExpression};
use chainwright::nft::{Milliseconds, Name, SetFlags};
use chainwright_sys::nf_tables::{
    NFTA_DYNSET_EXPR, NFTA_DYNSET_EXPRESSIONS, NFTA_EXPR_NAME, NFTA_LIST_ELEM,
};
use std::time::Duration;

/// Maximum number of expressions of an element (`NFT_SET_EXPR_MAX`).
const MAX_EXPRESSIONS: usize = 2;

impl<'a> KernelExpression<'a> for DynsetRef<'a> {
    type Listed = Dynset<'static>;

    fn select(&self, _: Family) -> Result<(), Errno> {
        check_length(self.set_name(), 255)?;
        check_max(self.op().map(|op| op.0), 255)
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Dynset<'static>, Errno> {
        let (name, op) = (required(self.set_name())?, required(self.op())?);
        let sreg_key = required(self.sreg_key())?;
        let flags = self.flags().unwrap_or_default();
        if flags.intersects(!DynsetFlags::all_named()) {
            return Err(EOPNOTSUPP);
        }
        let set = context.set(name, self.set_id())?;
        let has = |flag| set.flags.contains(flag);
        if has(SetFlags::OBJECT) || !set.can_be_updated {
            return Err(EOPNOTSUPP);
        }
        if has(SetFlags::CONSTANT) {
            return Err(EBUSY);
        }
        if op.name().is_none() {
            return Err(EOPNOTSUPP);
        }
        let timeout = self.timeout().map_or(0, milliseconds);
        if self.timeout().is_some() && !has(SetFlags::TIMEOUT) {
            return Err(EOPNOTSUPP);
        }
        if timeout >= MAX_MILLISECONDS {
            return Err(ERANGE);
        }
        let sreg_key = context.load(sreg_key, set.key_length)?;
        let sreg_data = match self.sreg_data() {
            Some(_) if !has(SetFlags::MAP) || set.maps_to_verdicts => return Err(EOPNOTSUPP),
            Some(sreg_data) => Some(context.load(sreg_data, set.data_length)?),
            None if has(SetFlags::MAP) => return Err(EINVAL),
            None => None,
        };
        let has_expressions = self.expr().is_some() || self.expressions().is_some();
        if has_expressions && !has(SetFlags::EVAL) {
            return Err(EINVAL);
        }
        let taken = taken(self, &set, flags, context)?;
        context.bind(&set, Reference::UpdatedSet)?;
        let mut listed = Dynset {
            sreg_key: Some(sreg_key),
            sreg_data,
            op: Some(op),
            set_name: Some(Name::from(&set.name[..]).into_owned()),
            timeout: Some(Milliseconds(timeout)),
            flags: Some(flags & DynsetFlags::INV),
            ..Default::default()
        };
        // The kernel doesn't list expressions that the set defines for its elements.
        match &taken[..] {
            _ if !set.expressions.is_empty() => {}
            [] => {}
            [one] => {
                listed.expr =
                    <NestedExpression<'_> as Field<'_>>::decode(one).map(Field::into_static)
            }
            several => {
                let mut list = Vec::new();
                let mut writer = MessageWriter::bare(&mut list).without_nested_flag();
                for one in several {
                    writer.bytes(NFTA_LIST_ELEM, one);
                }
                writer.finish_bare().map_err(|_| EINVAL)?;
                listed.expressions = Some(Expressions::of_bytes(&list).into_static());
            }
        }
        Ok(listed)
    }
}

/// Returns the expressions of new elements: the given ones, which must match the set's kinds if the set has any;
/// otherwise the set's.
fn taken(
    expression: &DynsetRef<'_>,
    set: &SetInfo,
    flags: DynsetFlags,
    context: &mut Context<'_>,
) -> Result<Vec<Vec<u8>>, Errno> {
    let of_set = &set.expressions;
    if let Some(one) = payload(expression, NFTA_DYNSET_EXPR) {
        let one = evaluate_stateful(one, set, context)?;
        return match &of_set[..] {
            [] => Ok(vec![one]),
            [same] if name(same) == name(&one) => Ok(vec![one]),
            _ => Err(EOPNOTSUPP),
        };
    }
    let Some(list) = payload(expression, NFTA_DYNSET_EXPRESSIONS) else {
        return Ok(of_set.clone());
    };
    if !flags.contains(DynsetFlags::EXPR) {
        return Err(EINVAL);
    }
    let mut taken = Vec::new();
    for attribute in Attributes::new(list).map_while(Result::ok) {
        if taken.len() == MAX_EXPRESSIONS {
            return Err(E2BIG);
        }
        if attribute.kind != NFTA_LIST_ELEM {
            return Err(EINVAL);
        }
        let one = evaluate_stateful(attribute.payload, set, context)?;
        match of_set.get(taken.len()) {
            None if !of_set.is_empty() => return Err(EINVAL),
            Some(other) if name(other) != name(&one) => return Err(EOPNOTSUPP),
            _ => {}
        }
        taken.push(one);
    }
    if !of_set.is_empty() && of_set.len() != taken.len() {
        return Err(EOPNOTSUPP);
    }
    Ok(taken)
}

/// Evaluates an expression of an element, which must be stateful.
fn evaluate_stateful(
    element: &[u8],
    set: &SetInfo,
    context: &mut Context<'_>,
) -> Result<Vec<u8>, Errno> {
    let element = Element::parse(element, context.family())?;
    let has_state = match element.name.as_bytes() {
        b"counter" | b"last" | b"limit" | b"quota" => true,
        // The kernel refuses it in sets with timeouts: both have garbage collection.
        b"connlimit" => !set.flags.contains(SetFlags::TIMEOUT),
        _ => return Err(EOPNOTSUPP),
    };
    let listed = element.taken(context)?;
    has_state.then_some(listed).ok_or(EOPNOTSUPP)
}

/// Returns the name of a listed expression, with its NUL.
fn name(listed: &[u8]) -> &[u8] {
    Attributes::new(listed)
        .find(NFTA_EXPR_NAME)
        .unwrap_or_default()
}

/// Returns the payload of the last attribute of this kind.
fn payload<'a>(view: &DynsetRef<'a>, kind: u16) -> Option<&'a [u8]> {
    let mut all = view.attributes().map_while(Result::ok).collect::<Vec<_>>();
    all.retain(|attribute| attribute.kind == kind);
    Some(all.last()?.payload)
}

fn milliseconds(time: Duration) -> u64 {
    time.as_millis().try_into().unwrap_or(u64::MAX)
}
