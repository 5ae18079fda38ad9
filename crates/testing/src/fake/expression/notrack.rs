//! `notrack`: never fails.

use super::{Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::expr::{Notrack, NotrackRef};

impl<'a> KernelExpression<'a> for NotrackRef<'a> {
    type Listed = Notrack;

    fn init(&self, _: &mut Context<'_>) -> Result<Notrack, Errno> {
        Ok(Notrack::default())
    }
}
