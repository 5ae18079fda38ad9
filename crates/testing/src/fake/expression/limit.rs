//! `limit`: a rate above 0; the default burst is 5 packets.

use super::context::required;
use super::errors::{EINVAL, EOPNOTSUPP, EOVERFLOW};
use super::{Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Limit, LimitFlags, LimitRef, LimitType};

/// Default burst of packet limits.
const BURST: u32 = 5;
const NANOSECONDS: u64 = 1_000_000_000;

impl<'a> KernelExpression<'a> for LimitRef<'a> {
    type Listed = Limit;

    fn select(&self, _: Family) -> Result<(), Errno> {
        match self.limit_type() {
            None | Some(LimitType::PACKETS | LimitType::BYTES) => Ok(()),
            Some(_) => Err(EOPNOTSUPP),
        }
    }

    fn init(&self, _: &mut Context<'_>) -> Result<Limit, Errno> {
        let limit_type = self.limit_type().unwrap_or(LimitType::PACKETS);
        let (rate, unit) = (required(self.rate())?, required(self.unit())?);
        if rate == 0 {
            return Err(EINVAL);
        }
        let time = unit.checked_mul(NANOSECONDS).ok_or(EOVERFLOW)?;
        let mut burst = self.burst().unwrap_or(0);
        // Time in nanoseconds until the burst is available again.
        let with_burst = if limit_type == LimitType::PACKETS {
            if burst == 0 {
                burst = BURST;
            }
            rate.checked_add(burst.into()).ok_or(EOVERFLOW)?;
            (time / rate).checked_mul(burst.into())
        } else {
            let rate = rate.checked_add(burst.into()).ok_or(EOVERFLOW)?;
            time.checked_mul(rate)
        };
        with_burst.ok_or(EOVERFLOW)?;
        if !LimitFlags::INV.contains(self.flags().unwrap_or_default()) {
            return Err(EOPNOTSUPP);
        }
        Ok(Limit {
            rate: Some(rate),
            unit: Some(unit),
            burst: Some(burst),
            limit_type: Some(limit_type),
            flags: Some(self.flags().unwrap_or_default()),
            ..Default::default()
        })
    }
}
