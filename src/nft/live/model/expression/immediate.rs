//! `immediate`: a value of at most 16 bytes, or a verdict.

use super::context::{KEPT, required, value};
use super::{Context, Kernel};
use crate::errno::Errno;
use crate::nft::expr::{Data, Immediate, ImmediateRef, Register};

impl<'a> Kernel<'a> for ImmediateRef<'a> {
    type Listed = Immediate<'static>;

    fn init(&self, context: &mut Context<'_>) -> Result<Immediate<'static>, Errno> {
        let (dreg, data) = (required(self.dreg())?, required(self.data())?);
        if dreg == Register::VERDICT {
            return Ok(Immediate {
                dreg: Some(dreg),
                data: Some(Data::Verdict(context.verdict(&data)?)),
                ..Default::default()
            });
        }
        let value = value(&data, KEPT, None)?;
        Ok(Immediate {
            dreg: Some(context.store(dreg, value.len() as u32)?),
            data: Some(Data::Value(value.into_owned())),
            ..Default::default()
        })
    }
}
