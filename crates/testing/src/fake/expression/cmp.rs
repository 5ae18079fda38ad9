//! `cmp`: compares as many bytes of a register as the value has, at most 16.

use super::context::{MAX_VALUE_LENGTH, required, value};
use super::errors::EINVAL;
use super::{Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Cmp, CmpRef, Data};

impl<'a> KernelExpression<'a> for CmpRef<'a> {
    type Listed = Cmp<'static>;

    fn select(&self, _: Family) -> Result<(), Errno> {
        let (Some(_), Some(op), Some(data)) = (self.sreg(), self.op(), self.data()) else {
            return Err(EINVAL);
        };
        if op.name().is_none() {
            return Err(EINVAL);
        }
        value(&data, MAX_VALUE_LENGTH, None).map(|_| ())
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Cmp<'static>, Errno> {
        let data = required(self.data())?;
        let value = value(&data, MAX_VALUE_LENGTH, None)?;
        Ok(Cmp {
            sreg: Some(context.load(required(self.sreg())?, value.len() as u32)?),
            op: self.op(),
            data: Some(Data::Value(value.into_owned())),
            ..Default::default()
        })
    }
}
