//! `notrack`: never fails.

use super::{Context, Kernel};
use chainwright::Errno;
use chainwright::nft::expr::{Notrack, NotrackRef};

impl<'a> Kernel<'a> for NotrackRef<'a> {
    type Listed = Notrack;

    fn init(&self, _: &mut Context<'_>) -> Result<Notrack, Errno> {
        Ok(Notrack::default())
    }
}
