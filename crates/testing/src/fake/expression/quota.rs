//! `quota`: at most 2⁶³ - 1 bytes.

use super::context::required;
use super::errors::{EINVAL, EOVERFLOW};
use super::{Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::expr::{Quota, QuotaFlags, QuotaRef};

impl<'a> KernelExpression<'a> for QuotaRef<'a> {
    type Listed = Quota;

    fn init(&self, _: &mut Context<'_>) -> Result<Quota, Errno> {
        let bytes = required(self.bytes())?;
        let consumed = self.consumed().unwrap_or(0);
        if bytes > i64::MAX as u64 {
            return Err(EOVERFLOW);
        }
        let flags = self.flags().unwrap_or_default();
        if consumed > bytes || !QuotaFlags::INV.contains(flags) {
            return Err(EINVAL);
        }
        let is_used_up = consumed >= bytes;
        Ok(Quota {
            bytes: Some(bytes),
            consumed: Some(consumed),
            flags: Some(match is_used_up {
                true => flags | QuotaFlags::DEPLETED,
                false => flags,
            }),
            ..Default::default()
        })
    }
}
