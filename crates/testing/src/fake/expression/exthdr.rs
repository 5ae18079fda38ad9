//! `exthdr`: reads extension headers and options; writes and removes TCP options.

use super::context::{check_max, required};
use super::errors::{EINVAL, EOPNOTSUPP};
use super::{Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Exthdr, ExthdrFlags, ExthdrOp, ExthdrRef};

/// The readable options of an IPv4 header: loose and strict source route, record route, router alert.
const IPV4_OPTIONS: [u8; 4] = [131, 137, 7, 148];

impl<'a> KernelExpression<'a> for ExthdrRef<'a> {
    type Listed = Exthdr;

    fn select(&self, family: Family) -> Result<(), Errno> {
        check_max(self.len(), 255)?;
        check_max(self.op().map(|op| op.0), 255)?;
        if self.op().is_some() && self.sreg().is_some() && self.dreg().is_some() {
            return Err(EOPNOTSUPP);
        }
        let reads = self.dreg().is_some();
        let is_possible = match self.op() {
            None | Some(ExthdrOp::TCPOPT) => true,
            Some(ExthdrOp::IPV4) => reads && family != Family::IP6,
            Some(ExthdrOp::IPV6 | ExthdrOp::SCTP) => reads,
            // This includes DCCP, which is a build option of the kernel.
            Some(_) => false,
        };
        is_possible.then_some(()).ok_or(EOPNOTSUPP)
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Exthdr, Errno> {
        let op = self.op().unwrap_or(ExthdrOp::IPV6);
        let mut listed = Exthdr {
            header_type: self.header_type(),
            offset: Some(self.offset().unwrap_or(0)),
            len: Some(self.len().unwrap_or(0)),
            flags: Some(self.flags().unwrap_or_default()),
            op: Some(op),
            ..Default::default()
        };
        if self.op() == Some(ExthdrOp::TCPOPT) && self.dreg().is_none() {
            if self.sreg().is_none() {
                let has_more = self.flags().is_some() || self.offset().is_some();
                if has_more || self.len().is_some() || self.header_type().is_none() {
                    return Err(EINVAL);
                }
                return Ok(listed);
            }
            let (sreg, len) = (required(self.sreg())?, required(self.len())?);
            let offset = required(self.offset())?;
            required(self.header_type())?;
            if self.flags().is_some() {
                return Err(EINVAL);
            }
            check_max(Some(offset), 255)?;
            if offset < 2 || !matches!(len, 2 | 4) {
                return Err(EOPNOTSUPP);
            }
            listed.sreg = Some(context.load(sreg, len)?);
            return Ok(listed);
        }
        let (dreg, len) = (required(self.dreg())?, required(self.len())?);
        let header_type = required(self.header_type())?;
        check_max(Some(required(self.offset())?), 255)?;
        let flags = self.flags().unwrap_or_default();
        check_max(Some(flags.bits()), 255)?;
        // The result of a presence check is one byte.
        if !ExthdrFlags::PRESENT.contains(flags) || !flags.is_empty() && len != 1 {
            return Err(EINVAL);
        }
        listed.dreg = Some(context.store(dreg, len)?);
        match op {
            ExthdrOp::IPV4 if !IPV4_OPTIONS.contains(&header_type) => Err(EOPNOTSUPP),
            _ => Ok(listed),
        }
    }
}
