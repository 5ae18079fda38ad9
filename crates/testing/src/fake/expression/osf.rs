//! `osf`: loads a name of 16 bytes.

use super::base::{FORWARD, INPUT, PREROUTING};
use super::context::required;
use super::errors::{EINVAL, EOPNOTSUPP};
use super::{Base, Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Osf, OsfFlags, OsfRef};

/// `NFT_OSF_MAXGENRELEN`.
const LENGTH: u32 = 16;

impl<'a> KernelExpression<'a> for OsfRef<'a> {
    type Listed = Osf;

    fn init(&self, context: &mut Context<'_>) -> Result<Osf, Errno> {
        let dreg = required(self.dreg())?;
        let ttl = self.ttl().unwrap_or_default();
        if ttl.0 > 2 || self.flags().is_some_and(|flags| flags != OsfFlags::VERSION) {
            return Err(EINVAL);
        }
        Ok(Osf {
            dreg: Some(context.store(dreg, LENGTH)?),
            ttl: Some(ttl),
            flags: Some(self.flags().unwrap_or_default()),
            ..Default::default()
        })
    }

    fn validate(&self, family: Family, base: &Base<'_>) -> Result<(), Errno> {
        if !matches!(family, Family::IP | Family::INET) {
            return Err(EOPNOTSUPP);
        }
        base.is_at(&[PREROUTING, INPUT, FORWARD])
    }
}
