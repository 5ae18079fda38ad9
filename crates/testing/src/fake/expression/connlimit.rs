//! `connlimit`: limits the number of connections.

use super::context::required;
use super::errors::EOPNOTSUPP;
use super::{Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::expr::{Connlimit, ConnlimitFlags, ConnlimitRef};

impl<'a> KernelExpression<'a> for ConnlimitRef<'a> {
    type Listed = Connlimit;

    fn init(&self, context: &mut Context<'_>) -> Result<Connlimit, Errno> {
        let count = required(self.count())?;
        let flags = self.flags().unwrap_or_default();
        if !ConnlimitFlags::INV.contains(flags) {
            return Err(EOPNOTSUPP);
        }
        Context::conntrack(context.family())?;
        Ok(Connlimit {
            count: Some(count),
            flags: (!flags.is_empty()).then_some(flags),
            ..Default::default()
        })
    }
}
