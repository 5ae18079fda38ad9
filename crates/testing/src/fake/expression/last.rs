//! `last`: a time, if a packet matched before. Set without a time it means the kernel's time 0, which this module
//! doesn't know.

use super::context::MAX_MILLISECONDS;
use super::errors::ERANGE;
use super::{Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::expr::{Last, LastRef};

impl<'a> KernelExpression<'a> for LastRef<'a> {
    type Listed = Last;

    fn init(&self, _: &mut Context<'_>) -> Result<Last, Errno> {
        let set = self.set().unwrap_or(0);
        let msecs = match set {
            0 => 0,
            _ => self.msecs().unwrap_or(0),
        };
        if msecs >= MAX_MILLISECONDS {
            return Err(ERANGE);
        }
        Ok(Last {
            set: Some(set),
            msecs: Some(msecs),
            ..Default::default()
        })
    }
}
