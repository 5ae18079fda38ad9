//! `quota`: of at most 2⁶³ - 1 bytes.

use super::context::required;
use super::errors::{EINVAL, EOPNOTSUPP, EOVERFLOW};
use super::{Context, Kernel};
use crate::errno::Errno;
use crate::nft::expr::{Quota, QuotaFlags, QuotaRef};

impl<'a> Kernel<'a> for QuotaRef<'a> {
    type Listed = Quota;

    fn init(&self, _: &mut Context<'_>) -> Result<Quota, Errno> {
        let bytes = required(self.bytes())?;
        let consumed = self.consumed().unwrap_or(0);
        if bytes.max(consumed) > i64::MAX as u64 {
            return Err(EOVERFLOW);
        }
        let flags = self.flags().unwrap_or_default();
        if flags.contains(QuotaFlags::DEPLETED) {
            return Err(EINVAL);
        }
        if !QuotaFlags::INV.contains(flags) {
            return Err(EOPNOTSUPP);
        }
        Ok(Quota {
            bytes: Some(bytes),
            // It is never shown to be more than there was.
            consumed: Some(consumed.min(bytes)),
            flags: Some(flags),
            ..Default::default()
        })
    }
}
