//! `ct`: some keys require a direction, most others reject it.

use super::context::{check_direction, required};
use super::errors::{EAFNOSUPPORT, EINVAL, EOPNOTSUPP};
use super::{Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Ct, CtKey, CtRef};

impl<'a> KernelExpression<'a> for CtRef<'a> {
    type Listed = Ct;

    fn select(&self, _: Family) -> Result<(), Errno> {
        check_direction(self.key().map(|key| key.0), self.dreg(), self.sreg())
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Ct, Errno> {
        let key = required(self.key())?;
        let family = context.family();
        let mut listed = Ct {
            key: Some(key),
            ..Default::default()
        };
        let (length, direction) = match self.dreg() {
            Some(_) => loaded(key, family, self.direction().is_some())?,
            None => stored(key)?,
        };
        match (direction, self.direction()) {
            (Direction::None, Some(_)) | (Direction::Needed, None) => return Err(EINVAL),
            (_, Some(given)) if given.name().is_none() => return Err(EINVAL),
            (Direction::PassedOver, _) => {}
            (_, given) => listed.direction = given,
        }
        if let Some(dreg) = self.dreg() {
            listed.dreg = Some(context.store(dreg, length)?);
        } else if let Some(sreg) = self.sreg() {
            listed.sreg = Some(context.load(sreg, length)?);
        }
        Context::conntrack(family)?;
        Ok(listed)
    }
}

/// Whether a key has a direction.
enum Direction {
    None,
    Needed,
    Allowed,
    /// The value is checked but not listed.
    PassedOver,
}

/// Returns the length of a loaded key and its use of a direction.
fn loaded(key: CtKey, family: Family, has_direction: bool) -> Result<(u32, Direction), Errno> {
    Ok(match key {
        CtKey::DIRECTION => (1, Direction::None),
        CtKey::STATE
        | CtKey::STATUS
        | CtKey::MARK
        | CtKey::SECMARK
        | CtKey::EXPIRATION
        | CtKey::ID => (4, Direction::None),
        CtKey::LABELS | CtKey::HELPER => (16, Direction::None),
        CtKey::L3PROTOCOL | CtKey::PROTOCOL => (1, Direction::PassedOver),
        CtKey::SRC | CtKey::DST => {
            if !has_direction {
                return Err(EINVAL);
            }
            let length = match family {
                Family::IP => 4,
                Family::IP6 | Family::INET => 16,
                _ => return Err(EAFNOSUPPORT),
            };
            (length, Direction::Needed)
        }
        CtKey::SRC_IP | CtKey::DST_IP => (4, Direction::Needed),
        CtKey::SRC_IP6 | CtKey::DST_IP6 => (16, Direction::Needed),
        CtKey::PROTO_SRC | CtKey::PROTO_DST => (2, Direction::Needed),
        CtKey::BYTES | CtKey::PKTS | CtKey::AVGPKT => (8, Direction::Allowed),
        CtKey::ZONE => (2, Direction::Allowed),
        _ => return Err(EOPNOTSUPP),
    })
}

/// Returns the length of a stored key and its use of a direction.
fn stored(key: CtKey) -> Result<(u32, Direction), Errno> {
    Ok(match key {
        CtKey::MARK | CtKey::EVENTMASK | CtKey::SECMARK => (4, Direction::None),
        CtKey::LABELS => (16, Direction::None),
        CtKey::ZONE => (2, Direction::Allowed),
        _ => return Err(EOPNOTSUPP),
    })
}
