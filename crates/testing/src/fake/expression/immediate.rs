//! `immediate`: loads a value of at most 16 bytes, or a verdict.

use super::context::{MAX_VALUE_LENGTH, required, value};
use super::errors::ERANGE;
use super::{Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::expr::{Data, Immediate, ImmediateRef, Register};

impl<'a> KernelExpression<'a> for ImmediateRef<'a> {
    type Listed = Immediate<'static>;

    fn init(&self, context: &mut Context<'_>) -> Result<Immediate<'static>, Errno> {
        let (dreg, data) = (required(self.dreg())?, required(self.data())?);
        // The low byte of the register number selects the verdict register.
        if dreg.0 & 0xff == Register::VERDICT.0 {
            let verdict = context.verdict(&data)?;
            if dreg != Register::VERDICT {
                return Err(ERANGE);
            }
            return Ok(Immediate {
                dreg: Some(dreg),
                data: Some(Data::Verdict(verdict)),
                ..Default::default()
            });
        }
        let value = value(&data, MAX_VALUE_LENGTH, None)?;
        Ok(Immediate {
            dreg: Some(context.store(dreg, value.len() as u32)?),
            data: Some(Data::Value(value.into_owned())),
            ..Default::default()
        })
    }
}
