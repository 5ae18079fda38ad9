//! `match`: an extension of x_tables, accepted as given.

use bstr::BStr;

use super::context::check_max;
use super::errors::EINVAL;
use super::{Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Match, MatchRef};
use chainwright::nft::{Bytes, Name};

impl<'a> KernelExpression<'a> for MatchRef<'a> {
    type Listed = Match<'a>;

    fn select(&self, _: Family) -> Result<(), Errno> {
        is_whole(self.name(), self.revision(), self.info())
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

/// Checks that no part of an extension is missing.
pub(super) fn is_whole(
    name: Option<&BStr>,
    revision: Option<u32>,
    info: Option<&[u8]>,
) -> Result<(), Errno> {
    check_max(revision, 255)?;
    match (name, revision, info) {
        (Some(_), Some(_), Some(_)) => Ok(()),
        _ => Err(EINVAL),
    }
}
