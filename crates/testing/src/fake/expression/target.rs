//! `target`: an extension of x_tables, accepted as given.

use super::match_::is_whole;
use super::{Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Target, TargetRef};
use chainwright::nft::{Bytes, Name};

impl<'a> KernelExpression<'a> for TargetRef<'a> {
    type Listed = Target<'a>;

    fn select(&self, _: Family) -> Result<(), Errno> {
        is_whole(self.name(), self.revision(), self.info())
    }

    fn init(&self, _: &mut Context<'_>) -> Result<Target<'a>, Errno> {
        Ok(Target {
            name: self.name().map(Name::from),
            revision: self.revision(),
            info: self.info().map(Bytes::from),
            ..Default::default()
        })
    }
}
