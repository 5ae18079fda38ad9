//! `redir`: optional ports.

use super::base::{OUTPUT, PREROUTING};
use super::nat::{check_named_flags, pair};
use super::{Base, Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{NatRangeFlags, Redir, RedirRef};

impl<'a> KernelExpression<'a> for RedirRef<'a> {
    type Listed = Redir;

    fn select(&self, _: Family) -> Result<(), Errno> {
        check_named_flags(self.flags())
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Redir, Errno> {
        let (proto_min, proto_max) = pair(context, self.proto_min(), self.proto_max(), 2)?;
        let flags = self.flags().unwrap_or(match proto_min {
            Some(_) => NatRangeFlags::PROTO_SPECIFIED,
            None => NatRangeFlags::empty(),
        });
        Context::conntrack(context.family())?;
        Ok(Redir {
            proto_min,
            proto_max,
            flags: (!flags.is_empty()).then_some(flags),
            ..Default::default()
        })
    }

    fn validate(&self, _: Family, base: &Base<'_>) -> Result<(), Errno> {
        base.is_of_type("nat")?;
        base.is_at(&[OUTPUT, PREROUTING])
    }
}
