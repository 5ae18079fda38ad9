//! `range`: both bounds have the same length of at most 16 bytes.

use super::context::{MAX_VALUE_LENGTH, check_max, required, value};
use super::errors::EINVAL;
use super::{Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Data, Range, RangeRef};

impl<'a> KernelExpression<'a> for RangeRef<'a> {
    type Listed = Range<'static>;

    fn select(&self, _: Family) -> Result<(), Errno> {
        check_max(self.op().map(|op| op.0), 255)
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Range<'static>, Errno> {
        let (sreg, op) = (required(self.sreg())?, required(self.op())?);
        let (from, to) = (required(self.from_data())?, required(self.to_data())?);
        let (from, to) = (
            value(&from, MAX_VALUE_LENGTH, None)?,
            value(&to, MAX_VALUE_LENGTH, None)?,
        );
        if from.len() != to.len() {
            return Err(EINVAL);
        }
        let sreg = context.load(sreg, from.len() as u32)?;
        if op.name().is_none() {
            return Err(EINVAL);
        }
        Ok(Range {
            sreg: Some(sreg),
            op: Some(op),
            from_data: Some(Data::Value(from.into_owned())),
            to_data: Some(Data::Value(to.into_owned())),
            ..Default::default()
        })
    }
}
