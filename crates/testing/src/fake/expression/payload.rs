//! `payload`: loads from any header; stores with or without a checksum.

use super::context::{check_max, required};
use super::errors::{EINVAL, EOPNOTSUPP};
use super::{Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{ChecksumFlags, ChecksumType, Payload, PayloadBase, PayloadRef};

/// Offset of the checksum in an SCTP header.
const SCTP_CHECKSUM: u32 = 8;

impl<'a> KernelExpression<'a> for PayloadRef<'a> {
    type Listed = Payload;

    fn select(&self, _: Family) -> Result<(), Errno> {
        check_max(self.len(), 255)?;
        check_max(self.checksum_offset(), 255)?;
        let (Some(base), Some(_), Some(_)) = (self.base(), self.offset(), self.len()) else {
            return Err(EINVAL);
        };
        match base {
            PayloadBase::LINK
            | PayloadBase::NETWORK
            | PayloadBase::TRANSPORT
            | PayloadBase::INNER => {}
            _ => return Err(EOPNOTSUPP),
        }
        match (self.sreg(), self.dreg()) {
            (Some(_), None) => Ok(()),
            (None, Some(_)) => check_max(self.offset(), u16::MAX.into()),
            _ => Err(EINVAL),
        }
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Payload, Errno> {
        check_max(self.offset(), u16::MAX.into())?;
        let len = required(self.len())?;
        let listed = Payload {
            base: self.base(),
            offset: self.offset(),
            len: Some(len),
            ..Default::default()
        };
        let Some(sreg) = self.sreg() else {
            return Ok(Payload {
                dreg: Some(context.store(required(self.dreg())?, len)?),
                ..listed
            });
        };
        let checksum_type = self.checksum_type().unwrap_or(ChecksumType::NONE);
        let checksum_offset = self.checksum_offset().unwrap_or(0);
        let checksum_flags = self.checksum_flags().unwrap_or_default();
        if !ChecksumFlags::L4_PSEUDOHDR.contains(checksum_flags) {
            return Err(EINVAL);
        }
        match checksum_type {
            ChecksumType::NONE | ChecksumType::INET => {}
            ChecksumType::SCTP
                if self.base() == Some(PayloadBase::TRANSPORT)
                    && checksum_offset == SCTP_CHECKSUM => {}
            ChecksumType::SCTP => return Err(EINVAL),
            _ => return Err(EOPNOTSUPP),
        }
        Ok(Payload {
            sreg: Some(context.load(sreg, len)?),
            checksum_type: Some(checksum_type),
            checksum_offset: Some(checksum_offset),
            checksum_flags: Some(checksum_flags),
            ..listed
        })
    }
}
