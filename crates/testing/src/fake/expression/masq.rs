//! `masq`: optional ports.

use super::base::POSTROUTING;
use super::nat::{check_named_flags, pair};
use super::{Base, Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Masq, MasqRef};

impl<'a> KernelExpression<'a> for MasqRef<'a> {
    type Listed = Masq;

    fn select(&self, _: Family) -> Result<(), Errno> {
        check_named_flags(self.flags())
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Masq, Errno> {
        let flags = self.flags().unwrap_or_default();
        let (proto_min, proto_max) = pair(context, self.proto_min(), self.proto_max(), 2)?;
        Context::conntrack(context.family())?;
        Ok(Masq {
            proto_min,
            proto_max,
            flags: (!flags.is_empty()).then_some(flags),
            ..Default::default()
        })
    }

    fn validate(&self, _: Family, base: &Base<'_>) -> Result<(), Errno> {
        base.is_of_type("nat")?;
        base.is_at(&[POSTROUTING])
    }
}
