//! `reject`: some types require a code.

use super::base::{FORWARD, INGRESS, INPUT, NETDEV_INGRESS, OUTPUT, PREROUTING};
use super::context::{check_max, required};
use super::errors::EINVAL;
use super::{Base, Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Reject, RejectIcmpxCode, RejectRef, RejectType};

impl<'a> KernelExpression<'a> for RejectRef<'a> {
    type Listed = Reject;

    fn select(&self, _: Family) -> Result<(), Errno> {
        check_max(self.reject_type().map(|kind| kind.0), 255)
    }

    fn init(&self, _: &mut Context<'_>) -> Result<Reject, Errno> {
        let reject_type = required(self.reject_type())?;
        let icmp_code = match reject_type {
            RejectType::ICMP_UNREACH => Some(required(self.icmp_code())?),
            RejectType::ICMPX_UNREACH => {
                let code = required(self.icmp_code())?;
                if code > RejectIcmpxCode::ADMIN_PROHIBITED.0 {
                    return Err(EINVAL);
                }
                Some(code)
            }
            RejectType::TCP_RST => None,
            _ => return Err(EINVAL),
        };
        Ok(Reject {
            reject_type: Some(reject_type),
            icmp_code,
            ..Default::default()
        })
    }

    fn validate(&self, family: Family, base: &Base<'_>) -> Result<(), Errno> {
        match family {
            Family::NETDEV => base.is_at(&[NETDEV_INGRESS]),
            Family::BRIDGE => base.is_at(&[PREROUTING, INPUT]),
            Family::INET => base.is_at(&[PREROUTING, INPUT, FORWARD, OUTPUT, INGRESS]),
            _ => base.is_at(&[PREROUTING, INPUT, FORWARD, OUTPUT]),
        }
    }
}
