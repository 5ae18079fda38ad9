//! `byteorder`: converts numbers of 2, 4 or 8 bytes.

use super::context::{check_max, required};
use super::errors::EINVAL;
use super::{Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Byteorder, ByteorderRef};

impl<'a> KernelExpression<'a> for ByteorderRef<'a> {
    type Listed = Byteorder;

    fn select(&self, _: Family) -> Result<(), Errno> {
        check_max(self.op().map(|op| op.0), 255)?;
        check_max(self.len(), 255)?;
        check_max(self.size(), 255)
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Byteorder, Errno> {
        let (sreg, dreg) = (required(self.sreg())?, required(self.dreg())?);
        let (op, len) = (required(self.op())?, required(self.len())?);
        let size = required(self.size())?;
        if op.name().is_none() || !matches!(size, 2 | 4 | 8) {
            return Err(EINVAL);
        }
        let sreg = context.load(sreg, len)?;
        let dreg = context.store(dreg, len)?;
        Context::check_overlap(sreg, dreg, len)?;
        Ok(Byteorder {
            sreg: Some(sreg),
            dreg: Some(dreg),
            op: Some(op),
            len: Some(len),
            size: Some(size),
            ..Default::default()
        })
    }
}
