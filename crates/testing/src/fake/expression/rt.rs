//! `rt`: loads a key of the route.

use super::base::{FORWARD, OUTPUT, POSTROUTING, is_ip};
use super::context::{check_max, required};
use super::errors::EOPNOTSUPP;
use super::{Base, Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Rt, RtKey, RtRef};

impl<'a> KernelExpression<'a> for RtRef<'a> {
    type Listed = Rt;

    fn select(&self, _: Family) -> Result<(), Errno> {
        check_max(self.key().map(|key| key.0), 255)
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Rt, Errno> {
        let (key, dreg) = (required(self.key())?, required(self.dreg())?);
        let length = match key {
            RtKey::CLASSID | RtKey::NEXTHOP4 => 4,
            RtKey::NEXTHOP6 => 16,
            RtKey::TCPMSS => 2,
            RtKey::XFRM => 1,
            _ => return Err(EOPNOTSUPP),
        };
        Ok(Rt {
            key: Some(key),
            dreg: Some(context.store(dreg, length)?),
            ..Default::default()
        })
    }

    fn validate(&self, family: Family, base: &Base<'_>) -> Result<(), Errno> {
        is_ip(family)?;
        match self.key() {
            Some(RtKey::TCPMSS) => base.is_at(&[FORWARD, OUTPUT, POSTROUTING]),
            _ => Ok(()),
        }
    }
}
