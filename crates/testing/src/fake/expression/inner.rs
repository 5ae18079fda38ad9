//! `inner`: runs a `payload` or `meta` on the packet inside of a tunnel.

use chainwright_sys::nf_tables::{NFTA_EXPR_DATA, NFTA_EXPR_NAME, NFTA_INNER_EXPR};

use super::context::{check_max, required};
use super::errors::{EINVAL, ENOENT, EOPNOTSUPP, ERANGE};
use super::{Context, KernelExpression, exists, name_and_attributes};
use chainwright::Errno;
use chainwright::netlink::{Attributes, MessageWriter};
use chainwright::nft::Field;
use chainwright::nft::expr::{
    Expression, ExpressionView, Inner, InnerFlags, InnerRef, Meta, MetaKey, MetaRef,
    NestedExpression, Payload, PayloadBase, PayloadRef,
};

/// Maximum length of a tunnel header (if `NFT_INNER_HDRSIZE` is set).
const MAX_HEADER_LENGTH: u32 = 64;

impl<'a> KernelExpression<'a> for InnerRef<'a> {
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
        if flags.contains(InnerFlags::HDRSIZE) && !(1..=MAX_HEADER_LENGTH).contains(&hdrsize) {
            return Err(EOPNOTSUPP);
        }
        // Any expression without attributes is refused.
        let payload = self.attributes().find(NFTA_INNER_EXPR);
        required(Attributes::new(payload.unwrap_or_default()).find(NFTA_EXPR_DATA))?;
        let (name, _) = name_and_attributes(payload.unwrap_or_default())?;
        let expression = expression.get().map_err(|_| EINVAL)?;
        if !exists(name, context.family()) {
            return Err(ENOENT);
        }
        let listed = match expression.view().map_err(|_| ERANGE)? {
            ExpressionView::Payload(payload) => {
                let listed = inside(&payload, context)?;
                nested(Payload::NAME, |writer| listed.write_listed(writer))?
            }
            ExpressionView::Meta(meta) => {
                let listed = meta_inside(&meta, context)?;
                nested(Meta::NAME, |writer| listed.write_listed(writer))?
            }
            ExpressionView::Opaque(_) => return Err(ENOENT),
            _ => return Err(EOPNOTSUPP),
        };
        Ok(Inner {
            num: Some(num),
            inner_type: Some(inner_type),
            flags: Some(flags),
            hdrsize: Some(hdrsize & 0xff), // the kernel stores a byte
            expr: Some(listed),
            ..Default::default()
        })
    }
}

/// Builds a nested expression as listed.
fn nested(
    name: &str,
    write: impl FnOnce(&mut MessageWriter<'_>),
) -> Result<NestedExpression<'static>, Errno> {
    let mut bytes = Vec::new();
    let mut writer = MessageWriter::bare(&mut bytes).without_nested_flag();
    writer
        .string(NFTA_EXPR_NAME, name.as_bytes())
        .nested(NFTA_EXPR_DATA, write);
    writer.finish_bare().map_err(|_| EINVAL)?;
    let nested = <NestedExpression<'_> as Field<'_>>::decode(&bytes);
    nested.map(Field::into_static).ok_or(EINVAL)
}

fn inside(payload: &PayloadRef<'_>, context: &mut Context<'_>) -> Result<Payload, Errno> {
    check_max(payload.len(), 255)?;
    check_max(payload.checksum_offset(), 255)?;
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
    check_max(meta.key().map(|key| key.0), 255)?;
    let (key, dreg) = (required(meta.key())?, required(meta.dreg())?);
    let length = match key {
        MetaKey::PROTOCOL => 2,
        MetaKey::L4PROTO => 4,
        _ => return Err(EOPNOTSUPP),
    };
    Ok(Meta::load(key, context.store(dreg, length)?))
}
