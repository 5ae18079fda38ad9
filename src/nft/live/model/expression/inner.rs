//! `inner`: a `payload` or `meta` that reads from what is inside a tunnel.

use super::context::required;
use super::errors::{EINVAL, ENOENT, EOPNOTSUPP, ERANGE};
use super::{Context, Kernel};
use crate::errno::Errno;
use crate::nft::expr::{
    ExpressionView, Inner, InnerFlags, InnerRef, Meta, MetaKey, MetaRef, NestedExpression, Payload,
    PayloadBase, PayloadRef,
};

/// The longest header of a tunnel (`NFT_INNER_HDRSIZE` is set).
const LONGEST_HEADER: u32 = 64;

impl<'a> Kernel<'a> for InnerRef<'a> {
    type Listed = Inner<'static>;

    fn init(&self, context: &mut Context<'_>) -> Result<Inner<'static>, Errno> {
        let (flags, num) = (required(self.flags())?, required(self.num())?);
        let (hdrsize, inner_type) = (required(self.hdrsize())?, required(self.inner_type())?);
        let expression = required(self.expr())?;
        if flags.intersects(!InnerFlags::all_named()) || num != 0 {
            return Err(EOPNOTSUPP);
        }
        if inner_type.0 > 255 {
            return Err(EINVAL);
        }
        if flags.contains(InnerFlags::HDRSIZE) && !(1..=LONGEST_HEADER).contains(&hdrsize) {
            return Err(EOPNOTSUPP);
        }
        let expression = expression.get().map_err(|_| EINVAL)?;
        let listed = match expression.view().map_err(|_| ERANGE)? {
            ExpressionView::Payload(payload) => NestedExpression::new(&inside(&payload, context)?),
            ExpressionView::Meta(meta) => NestedExpression::new(&meta_inside(&meta, context)?),
            ExpressionView::Opaque(_) => return Err(ENOENT),
            _ => return Err(EOPNOTSUPP),
        };
        Ok(Inner {
            num: Some(num),
            inner_type: Some(inner_type),
            flags: Some(flags),
            hdrsize: Some(hdrsize),
            expr: Some(listed),
            ..Default::default()
        })
    }
}

fn inside(payload: &PayloadRef<'_>, context: &mut Context<'_>) -> Result<Payload, Errno> {
    let (base, offset) = (required(payload.base())?, required(payload.offset())?);
    let (len, dreg) = (required(payload.len())?, required(payload.dreg())?);
    match base {
        PayloadBase::TUNNEL | PayloadBase::LINK | PayloadBase::NETWORK | PayloadBase::TRANSPORT => {
        }
        _ => return Err(EOPNOTSUPP),
    }
    Ok(Payload::load(base, offset, len, context.store(dreg, len)?))
}

fn meta_inside(meta: &MetaRef<'_>, context: &mut Context<'_>) -> Result<Meta, Errno> {
    let (key, dreg) = (required(meta.key())?, required(meta.dreg())?);
    let length = match key {
        MetaKey::PROTOCOL => 2,
        MetaKey::L4PROTO => 4,
        _ => return Err(EOPNOTSUPP),
    };
    Ok(Meta::load(key, context.store(dreg, length)?))
}
