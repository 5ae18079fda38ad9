//! `match`: an extension of x_tables, taken as it is given.

use super::context::at_most;
use super::errors::EINVAL;
use super::{Context, Kernel};
use crate::errno::Errno;
use crate::nft::Family;
use crate::nft::expr::{Match, MatchRef};
use crate::nft::{Bytes, Name};

impl<'a> Kernel<'a> for MatchRef<'a> {
    type Listed = Match<'a>;

    fn select(&self, _: Family) -> Result<(), Errno> {
        at_most(self.revision(), 255)?;
        match (self.name(), self.revision(), self.info()) {
            (Some(_), Some(_), Some(_)) => Ok(()),
            _ => Err(EINVAL),
        }
    }

    fn init(&self, _: &mut Context<'_>) -> Result<Match<'a>, Errno> {
        Ok(Match {
            name: self.name().map(Name::from),
            revision: self.revision(),
            info: self.info().map(Bytes::from),
            ..Default::default()
        })
    }
}
