//! `counter`: starts at the given values, or at 0.

use super::{Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::expr::{Counter, CounterRef};

impl<'a> KernelExpression<'a> for CounterRef<'a> {
    type Listed = Counter;

    fn init(&self, _: &mut Context<'_>) -> Result<Counter, Errno> {
        let (packets, bytes) = (self.packets(), self.bytes());
        Ok(Counter::new(packets.unwrap_or(0), bytes.unwrap_or(0)))
    }
}
