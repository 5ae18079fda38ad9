//! `byteorder`: converts numbers of 2, 4 or 8 bytes.

use super::context::{at_most, required};
use super::errors::EINVAL;
use super::{Context, Kernel};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Byteorder, ByteorderRef};

impl<'a> Kernel<'a> for ByteorderRef<'a> {
    type Listed = Byteorder;

    fn select(&self, _: Family) -> Result<(), Errno> {
        at_most(self.op().map(|op| op.0), 255)?;
        at_most(self.len(), 255)?;
        at_most(self.size(), 255)
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
