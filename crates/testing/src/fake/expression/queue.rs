//! `queue`: one queue, a range of queues, or the queue number in a register.

use super::base::{FORWARD, INPUT, OUTPUT, POSTROUTING, PREROUTING, is_ip};
use super::context::required;
use super::errors::{EINVAL, EOPNOTSUPP, ERANGE};
use super::{Base, Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Queue, QueueFlags, QueueRef};

impl<'a> KernelExpression<'a> for QueueRef<'a> {
    type Listed = Queue;

    fn select(&self, family: Family) -> Result<(), Errno> {
        if family == Family::NETDEV || family == Family::ARP {
            return Err(EOPNOTSUPP);
        }
        match (self.num(), self.sreg_qnum()) {
            (Some(_), None) | (None, Some(_)) => Ok(()),
            _ => Err(EINVAL),
        }
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Queue, Errno> {
        let flags = self.flags().unwrap_or_default();
        let check = || {
            let known = QueueFlags::BYPASS | QueueFlags::CPU_FANOUT;
            known.contains(flags).then_some(()).ok_or(EINVAL)
        };
        let listed = Queue {
            flags: Some(flags),
            ..Default::default()
        };
        if let Some(sreg) = self.sreg_qnum() {
            let sreg_qnum = Some(context.load(sreg, 4)?);
            check()?;
            // A fanout needs several queues.
            if flags.contains(QueueFlags::CPU_FANOUT) {
                return Err(EOPNOTSUPP);
            }
            return Ok(Queue {
                sreg_qnum,
                ..listed
            });
        }
        let (num, total) = (required(self.num())?, self.total().unwrap_or(1));
        if total == 0 {
            return Err(EINVAL);
        }
        num.checked_add(total - 1).ok_or(ERANGE)?;
        check()?;
        Ok(Queue {
            num: Some(num),
            total: Some(total),
            ..listed
        })
    }

    fn validate(&self, family: Family, base: &Base<'_>) -> Result<(), Errno> {
        if family != Family::BRIDGE {
            is_ip(family)?;
        }
        base.is_at(&[PREROUTING, INPUT, FORWARD, OUTPUT, POSTROUTING])
    }
}
