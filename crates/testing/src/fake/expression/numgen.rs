//! `numgen`: a modulus above 0; the largest result must fit 32 bits.

use super::context::required;
use super::errors::{EINVAL, EOVERFLOW, ERANGE};
use super::{Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Numgen, NumgenRef, NumgenType};

impl<'a> KernelExpression<'a> for NumgenRef<'a> {
    type Listed = Numgen<'static>;

    fn select(&self, _: Family) -> Result<(), Errno> {
        match (self.dreg(), self.modulus(), self.numgen_type()) {
            (Some(_), Some(_), Some(NumgenType::INCREMENTAL | NumgenType::RANDOM)) => Ok(()),
            _ => Err(EINVAL),
        }
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Numgen<'static>, Errno> {
        let (modulus, offset) = (required(self.modulus())?, self.offset().unwrap_or(0));
        if modulus == 0 {
            return Err(ERANGE);
        }
        offset.checked_add(modulus - 1).ok_or(EOVERFLOW)?;
        Ok(Numgen {
            dreg: Some(context.store(required(self.dreg())?, 4)?),
            modulus: Some(modulus),
            numgen_type: self.numgen_type(),
            offset: Some(offset),
            ..Default::default()
        })
    }
}
