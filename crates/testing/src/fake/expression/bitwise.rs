//! `bitwise`: mask and exclusive or, shift, or an operation on two values.

use super::context::{MAX_VALUE_LENGTH, check_max, required, value};
use super::errors::{EINVAL, EOPNOTSUPP};
use super::{Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Bitwise, BitwiseOp, BitwiseRef, Data};

impl<'a> KernelExpression<'a> for BitwiseRef<'a> {
    type Listed = Bitwise<'static>;

    fn select(&self, _: Family) -> Result<(), Errno> {
        check_max(self.op().map(|op| op.0), 255)?;
        let (Some(_), Some(_), Some(_)) = (self.sreg(), self.dreg(), self.len()) else {
            return Err(EINVAL);
        };
        check_max(self.len(), 255)
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Bitwise<'static>, Errno> {
        let op = self.op().unwrap_or(BitwiseOp::MASK_XOR);
        let len = required(self.len())?;
        let sreg = context.load(required(self.sreg())?, len)?;
        let dreg = context.store(required(self.dreg())?, len)?;
        Context::check_overlap(sreg, dreg, len)?;
        let mut listed = Bitwise {
            sreg: Some(sreg),
            dreg: Some(dreg),
            op: Some(op),
            len: Some(len),
            ..Default::default()
        };
        let has_mask_or_xor = self.mask().is_some() || self.xor().is_some();
        match op {
            BitwiseOp::MASK_XOR => {
                if self.data().is_some() || self.sreg2().is_some() {
                    return Err(EINVAL);
                }
                let (mask, xor) = (required(self.mask())?, required(self.xor())?);
                listed.mask = kept(&mask, len)?;
                listed.xor = kept(&xor, len)?;
            }
            BitwiseOp::LSHIFT | BitwiseOp::RSHIFT => {
                if has_mask_or_xor || self.sreg2().is_some() {
                    return Err(EINVAL);
                }
                let data = required(self.data())?;
                listed.data = kept(&data, 4)?;
                let bits = listed.data.as_ref().and_then(Data::as_value);
                let bits = bits.and_then(<[u8]>::first_chunk).copied();
                if bits.is_none_or(|bits| !(1..32).contains(&u32::from_ne_bytes(bits))) {
                    return Err(EINVAL);
                }
            }
            BitwiseOp::AND | BitwiseOp::OR | BitwiseOp::XOR => {
                if has_mask_or_xor {
                    return Err(EINVAL);
                }
                match (self.data(), self.sreg2()) {
                    (Some(data), None) => {
                        let mut bytes = value(&data, MAX_VALUE_LENGTH, Some(len))?.to_vec();
                        bytes.resize(4, 0); // the kernel lists 4 bytes
                        listed.data = Some(Data::Value(bytes.into()));
                    }
                    (None, Some(sreg2)) => {
                        let sreg2 = context.load(sreg2, len)?;
                        Context::check_overlap(sreg2, dreg, len)?;
                        listed.sreg2 = Some(sreg2);
                    }
                    _ => return Err(EINVAL),
                }
            }
            _ => return Err(EOPNOTSUPP),
        }
        Ok(listed)
    }
}

fn kept(data: &Data<'_>, length: u32) -> Result<Option<Data<'static>>, Errno> {
    let value = value(data, MAX_VALUE_LENGTH, Some(length))?;
    Ok(Some(Data::Value(value.into_owned())))
}
