//! `tunnel`: loads a key of the tunnel.

use super::context::{check_max, required};
use super::errors::EOPNOTSUPP;
use super::{Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Tunnel, TunnelKey, TunnelMode, TunnelRef};

impl<'a> KernelExpression<'a> for TunnelRef<'a> {
    type Listed = Tunnel;

    fn select(&self, _: Family) -> Result<(), Errno> {
        check_max(self.mode().map(|mode| mode.0), 255)?;
        check_max(self.key().map(|key| key.0), 255)
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Tunnel, Errno> {
        let (key, dreg) = (required(self.key())?, required(self.dreg())?);
        let length = match key {
            TunnelKey::PATH => 1,
            TunnelKey::ID => 4,
            _ => return Err(EOPNOTSUPP),
        };
        let mode = self.mode().unwrap_or(TunnelMode::NONE);
        if mode.name().is_none() {
            return Err(EOPNOTSUPP);
        }
        Ok(Tunnel {
            key: Some(key),
            dreg: Some(context.store(dreg, length)?),
            mode: Some(mode),
            ..Default::default()
        })
    }
}
