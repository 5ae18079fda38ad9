//! `synproxy`: missing values are 0.

use super::base::{FORWARD, INPUT, is_ip};
use super::errors::EOPNOTSUPP;
use super::{Base, Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Synproxy, SynproxyFlags, SynproxyRef};

impl<'a> KernelExpression<'a> for SynproxyRef<'a> {
    type Listed = Synproxy;

    fn init(&self, context: &mut Context<'_>) -> Result<Synproxy, Errno> {
        let flags = self.flags().unwrap_or_default();
        if flags.intersects(!TAKEN) {
            return Err(EOPNOTSUPP);
        }
        Context::conntrack(context.family())?;
        Ok(Synproxy::new(
            self.mss().unwrap_or(0),
            self.wscale().unwrap_or(0),
            flags,
        ))
    }

    fn validate(&self, family: Family, base: &Base<'_>) -> Result<(), Errno> {
        is_ip(family)?;
        base.is_at(&[INPUT, FORWARD])
    }
}

/// All flags but `ECN` (`NF_SYNPROXY_OPT_MASK`).
const TAKEN: SynproxyFlags = SynproxyFlags::MSS
    .union(SynproxyFlags::WSCALE)
    .union(SynproxyFlags::SACK_PERM)
    .union(SynproxyFlags::TIMESTAMP);
