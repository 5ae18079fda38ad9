//! `socket`: loads a key; control groups require a level.

use super::base::{INPUT, OUTPUT, PREROUTING, is_ip};
use super::context::{check_max, required};
use super::errors::EOPNOTSUPP;
use super::{Base, Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Socket, SocketKey, SocketRef};

impl<'a> KernelExpression<'a> for SocketRef<'a> {
    type Listed = Socket;

    fn select(&self, _: Family) -> Result<(), Errno> {
        check_max(self.key().map(|key| key.0), 255)?;
        check_max(self.level(), 255)
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Socket, Errno> {
        let (dreg, key) = (required(self.dreg())?, required(self.key())?);
        is_ip(context.family())?;
        let mut level = None;
        let length = match key {
            SocketKey::TRANSPARENT | SocketKey::WILDCARD => 1,
            SocketKey::MARK => 4,
            SocketKey::CGROUPV2 => {
                level = Some(required(self.level())?);
                8
            }
            _ => return Err(EOPNOTSUPP),
        };
        Ok(Socket {
            key: Some(key),
            dreg: Some(context.store(dreg, length)?),
            level,
            ..Default::default()
        })
    }

    fn validate(&self, family: Family, base: &Base<'_>) -> Result<(), Errno> {
        is_ip(family)?;
        base.is_at(&[PREROUTING, INPUT, OUTPUT])
    }
}
