//! `meta`: loads a key, whose length is fixed; few keys can be stored to.

use super::base::{FORWARD, INPUT, NETDEV_INGRESS, PREROUTING, is_ip};
use super::context::{check_direction, required};
use super::errors::EOPNOTSUPP;
use super::{Base, Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Meta, MetaKey, MetaRef};

impl<'a> KernelExpression<'a> for MetaRef<'a> {
    type Listed = Meta;

    fn select(&self, _: Family) -> Result<(), Errno> {
        check_direction(self.key().map(|key| key.0), self.dreg(), self.sreg())
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Meta, Errno> {
        let key = required(self.key())?;
        let mut listed = Meta {
            key: Some(key),
            ..Default::default()
        };
        if let Some(dreg) = self.dreg() {
            let length = loaded(key).ok_or(EOPNOTSUPP)?;
            listed.dreg = Some(context.store(dreg, length)?);
        } else if let Some(sreg) = self.sreg() {
            let length = match key {
                MetaKey::MARK | MetaKey::PRIORITY | MetaKey::SECMARK => 4,
                MetaKey::NFTRACE | MetaKey::PKTTYPE => 1,
                _ => return Err(EOPNOTSUPP),
            };
            listed.sreg = Some(context.load(sreg, length)?);
        }
        Ok(listed)
    }

    fn validate(&self, family: Family, base: &Base<'_>) -> Result<(), Errno> {
        match (self.key(), self.dreg(), family) {
            (Some(MetaKey::SECPATH), Some(_), Family::NETDEV) => base.is_at(&[NETDEV_INGRESS]),
            (Some(MetaKey::SECPATH), Some(_), _) => {
                is_ip(family)?;
                base.is_at(&[PREROUTING, INPUT, FORWARD])
            }
            (Some(MetaKey::SDIF | MetaKey::SDIFNAME), Some(_), _) => {
                is_ip(family)?;
                base.is_at(&[INPUT, FORWARD])
            }
            (Some(MetaKey::PKTTYPE), None, Family::NETDEV) => base.is_at(&[NETDEV_INGRESS]),
            (Some(MetaKey::PKTTYPE), None, Family::BRIDGE) => base.is_at(&[PREROUTING]),
            (Some(MetaKey::PKTTYPE), None, _) => {
                is_ip(family)?;
                base.is_at(&[PREROUTING])
            }
            _ => Ok(()),
        }
    }
}

/// Returns the length of a loaded key.
const fn loaded(key: MetaKey) -> Option<u32> {
    Some(match key {
        MetaKey::SECPATH | MetaKey::TIME_DAY => 1,
        MetaKey::PROTOCOL | MetaKey::IIFTYPE | MetaKey::OIFTYPE => 2,
        MetaKey::LEN
        | MetaKey::PRIORITY
        | MetaKey::MARK
        | MetaKey::IIF
        | MetaKey::OIF
        | MetaKey::SKUID
        | MetaKey::SKGID
        | MetaKey::RTCLASSID
        | MetaKey::SECMARK
        | MetaKey::NFPROTO
        | MetaKey::L4PROTO
        | MetaKey::PKTTYPE
        | MetaKey::CPU
        | MetaKey::IIFGROUP
        | MetaKey::OIFGROUP
        | MetaKey::CGROUP
        | MetaKey::PRANDOM
        | MetaKey::TIME_HOUR
        | MetaKey::SDIF => 4,
        MetaKey::TIME_NS => 8,
        MetaKey::IIFNAME
        | MetaKey::OIFNAME
        | MetaKey::IIFKIND
        | MetaKey::OIFKIND
        | MetaKey::SDIFNAME => 16,
        _ => return None,
    })
}
