//! `fib`: looks up either the source or the destination address, with at most one device.

use super::base::{FORWARD, INPUT, NETDEV_EGRESS, NETDEV_INGRESS, OUTPUT, POSTROUTING, PREROUTING};
use super::context::{check_flags, required};
use super::errors::{EINVAL, EOPNOTSUPP};
use super::{Base, Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Fib, FibFlags, FibRef, FibResult};

impl<'a> KernelExpression<'a> for FibRef<'a> {
    type Listed = Fib;

    fn select(&self, family: Family) -> Result<(), Errno> {
        check_flags(
            self.flags().map(|flags| flags.bits()),
            FibFlags::all_named().bits(),
        )?;
        match (family, self.result()) {
            (Family::IP | Family::IP6, None) => Err(EINVAL),
            (Family::IP | Family::IP6, Some(result)) if result.name().is_none() => Err(EOPNOTSUPP),
            _ => Ok(()),
        }
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Fib, Errno> {
        let (dreg, result) = (required(self.dreg())?, required(self.result())?);
        let result = FibResult(result.0 & 0xff); // the kernel stores a byte
        let flags = required(self.flags())?;
        let devices = FibFlags::IIF | FibFlags::OIF;
        if flags.contains(FibFlags::SADDR) == flags.contains(FibFlags::DADDR)
            || flags.contains(devices)
        {
            return Err(EINVAL);
        }
        let length = match result {
            FibResult::OIF | FibResult::OIFNAME if flags.contains(FibFlags::OIF) => {
                return Err(EINVAL);
            }
            FibResult::OIF if flags.contains(FibFlags::PRESENT) => 1,
            _ if flags.contains(FibFlags::PRESENT) => return Err(EINVAL),
            FibResult::OIF | FibResult::ADDRTYPE => 4,
            FibResult::OIFNAME => 16,
            _ => return Err(EINVAL),
        };
        Ok(Fib {
            dreg: Some(context.store(dreg, length)?),
            result: Some(result),
            flags: Some(flags),
            ..Default::default()
        })
    }

    fn validate(&self, family: Family, base: &Base<'_>) -> Result<(), Errno> {
        let flags = self.flags().unwrap_or_default();
        if family == Family::NETDEV {
            return match self.result() {
                Some(FibResult::ADDRTYPE) if flags.contains(FibFlags::OIF) => {
                    base.is_at(&[NETDEV_EGRESS])
                }
                Some(FibResult::ADDRTYPE) if !flags.contains(FibFlags::IIF) => {
                    base.is_at(&[NETDEV_INGRESS, NETDEV_EGRESS])
                }
                _ => base.is_at(&[NETDEV_INGRESS]),
            };
        }
        match self.result() {
            Some(FibResult::ADDRTYPE) if flags.contains(FibFlags::OIF) => {
                base.is_at(&[OUTPUT, POSTROUTING, FORWARD])
            }
            Some(FibResult::ADDRTYPE) if !flags.contains(FibFlags::IIF) => {
                base.is_at(&[PREROUTING, INPUT, FORWARD, OUTPUT, POSTROUTING])
            }
            _ => base.is_at(&[PREROUTING, INPUT, FORWARD]),
        }
    }
}
