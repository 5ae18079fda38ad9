//! `last`: a time, if a packet came by already; without a time that was at the kernel's time 0, which this
//! module does not know.

use super::context::LONGEST_TIME;
use super::errors::ERANGE;
use super::{Context, Kernel};
use chainwright::Errno;
use chainwright::nft::expr::{Last, LastRef};

impl<'a> Kernel<'a> for LastRef<'a> {
    type Listed = Last;

    fn init(&self, _: &mut Context<'_>) -> Result<Last, Errno> {
        let set = self.set().unwrap_or(0);
        let msecs = match set {
            0 => 0,
            _ => self.msecs().unwrap_or(0),
        };
        if msecs >= LONGEST_TIME {
            return Err(ERANGE);
        }
        Ok(Last {
            set: Some(set),
            msecs: Some(msecs),
            ..Default::default()
        })
    }
}
