//! `fwd`: to a device, or to one of its neighbors.

use super::base::{NETDEV_EGRESS, NETDEV_INGRESS};
use super::context::{check_max, required};
use super::errors::EOPNOTSUPP;
use super::{Base, Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Fwd, FwdRef};

impl<'a> KernelExpression<'a> for FwdRef<'a> {
    type Listed = Fwd;

    fn select(&self, _: Family) -> Result<(), Errno> {
        check_max(self.nfproto(), 255)?;
        match (self.sreg_addr(), self.sreg_dev()) {
            (None, None) => Err(EOPNOTSUPP),
            _ => Ok(()),
        }
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Fwd, Errno> {
        let device = required(self.sreg_dev())?;
        let Some(address) = self.sreg_addr() else {
            return Ok(Fwd {
                sreg_dev: Some(context.load(device, 4)?),
                ..Default::default()
            });
        };
        let nfproto = required(self.nfproto())?;
        let length = match u8::try_from(nfproto).map(Family) {
            Ok(Family::IP) => 4,
            Ok(Family::IP6) => 16,
            _ => return Err(EOPNOTSUPP),
        };
        Ok(Fwd {
            sreg_dev: Some(context.load(device, 4)?),
            sreg_addr: Some(context.load(address, length)?),
            nfproto: Some(nfproto),
            ..Default::default()
        })
    }

    fn validate(&self, _: Family, base: &Base<'_>) -> Result<(), Errno> {
        base.is_at(&[NETDEV_INGRESS, NETDEV_EGRESS])
    }
}
