//! `dup`: to an address, or in the family netdev to another device.

use super::context::required;
use super::{Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Dup, DupRef};

impl<'a> KernelExpression<'a> for DupRef<'a> {
    type Listed = Dup;

    fn init(&self, context: &mut Context<'_>) -> Result<Dup, Errno> {
        let address = match context.family() {
            Family::IP => 4,
            Family::IP6 => 16,
            _ => {
                let device = required(self.sreg_dev())?;
                return Ok(Dup {
                    sreg_dev: Some(context.load(device, 4)?),
                    ..Default::default()
                });
            }
        };
        let sreg_addr = context.load(required(self.sreg_addr())?, address)?;
        let device = self.sreg_dev();
        Ok(Dup {
            sreg_addr: Some(sreg_addr),
            sreg_dev: device.map(|device| context.load(device, 4)).transpose()?,
            ..Default::default()
        })
    }
}
