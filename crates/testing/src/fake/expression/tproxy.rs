//! `tproxy`: the table's family; in inet IPv4, IPv6 or unspecified.

use super::base::{PREROUTING, is_ip};
use super::context::{check_max, required};
use super::errors::{EINVAL, EOPNOTSUPP};
use super::{Base, Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Tproxy, TproxyRef};

impl<'a> KernelExpression<'a> for TproxyRef<'a> {
    type Listed = Tproxy;

    fn select(&self, _: Family) -> Result<(), Errno> {
        check_max(self.family(), 255)
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Tproxy, Errno> {
        let family = required(self.family())?;
        if self.reg_addr().is_none() && self.reg_port().is_none() {
            return Err(EINVAL);
        }
        match context.family() {
            Family::INET => {}
            around @ (Family::IP | Family::IP6) if u32::from(around.0) != family => {
                return Err(EINVAL);
            }
            Family::IP | Family::IP6 => {}
            _ => return Err(EOPNOTSUPP),
        }
        if family == 0 && self.reg_addr().is_some() {
            return Err(EINVAL);
        }
        let address = match u8::try_from(family).map(Family) {
            Ok(Family::IP) => 4,
            Ok(Family::IP6) => 16,
            Ok(Family::UNSPEC) => 0,
            _ => return Err(EOPNOTSUPP),
        };
        let load = |register: Option<_>, length| {
            register
                .map(|register| context.load(register, length))
                .transpose()
        };
        Ok(Tproxy {
            family: Some(family),
            reg_addr: load(self.reg_addr(), address)?,
            reg_port: load(self.reg_port(), 2)?,
            ..Default::default()
        })
    }

    fn validate(&self, family: Family, base: &Base<'_>) -> Result<(), Errno> {
        is_ip(family)?;
        base.is_at(&[PREROUTING])
    }
}
