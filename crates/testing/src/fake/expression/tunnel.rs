//! `tunnel`: loads a key of the tunnel.

use super::context::{at_most, required};
use super::errors::EOPNOTSUPP;
use super::{Context, Kernel};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Tunnel, TunnelKey, TunnelMode, TunnelRef};

impl<'a> Kernel<'a> for TunnelRef<'a> {
    type Listed = Tunnel;

    fn select(&self, _: Family) -> Result<(), Errno> {
        at_most(self.mode().map(|mode| mode.0), 255)?;
        at_most(self.key().map(|key| key.0), 255)
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
