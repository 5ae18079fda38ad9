//! `xfrm`: loads a key of one of at most six states.

use super::base::{FORWARD, INPUT, OUTPUT, POSTROUTING, PREROUTING, is_ip};
use super::context::{check_max, required};
use super::errors::{EINVAL, ERANGE};
use super::{Base, Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Xfrm, XfrmDirection, XfrmKey, XfrmRef};

/// `XFRM_MAX_DEPTH`.
const STATES: u32 = 6;

impl<'a> KernelExpression<'a> for XfrmRef<'a> {
    type Listed = Xfrm;

    fn select(&self, _: Family) -> Result<(), Errno> {
        check_max(self.key().map(|key| key.0), 255)?;
        check_max(self.spnum(), 255)
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Xfrm, Errno> {
        let (key, dir) = (required(self.key())?, required(self.dir())?);
        let dreg = required(self.dreg())?;
        is_ip(context.family())?;
        let length = match key {
            XfrmKey::REQID | XfrmKey::SPI | XfrmKey::DADDR_IP4 | XfrmKey::SADDR_IP4 => 4,
            XfrmKey::DADDR_IP6 | XfrmKey::SADDR_IP6 => 16,
            _ => return Err(EINVAL),
        };
        if dir.name().is_none() {
            return Err(EINVAL);
        }
        let spnum = self.spnum().unwrap_or(0);
        if spnum >= STATES {
            return Err(ERANGE);
        }
        Ok(Xfrm {
            key: Some(key),
            dir: Some(dir),
            spnum: Some(spnum),
            dreg: Some(context.store(dreg, length)?),
            ..Default::default()
        })
    }

    fn validate(&self, family: Family, base: &Base<'_>) -> Result<(), Errno> {
        is_ip(family)?;
        match self.dir() {
            Some(XfrmDirection::IN) => base.is_at(&[PREROUTING, INPUT, FORWARD]),
            _ => base.is_at(&[FORWARD, OUTPUT, POSTROUTING]),
        }
    }
}
