//! `last`: a time, if a packet came by already.

use super::{Context, Kernel};
use crate::errno::Errno;
use crate::nft::expr::{Last, LastRef};

impl<'a> Kernel<'a> for LastRef<'a> {
    type Listed = Last;

    fn init(&self, _: &mut Context<'_>) -> Result<Last, Errno> {
        let set = self.set().unwrap_or(0);
        let msecs = match set {
            0 => 0,
            _ => self.msecs().unwrap_or(0),
        };
        Ok(Last {
            set: Some(set),
            msecs: Some(msecs),
            ..Default::default()
        })
    }
}
