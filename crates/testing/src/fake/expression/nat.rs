//! `nat`: the family determines the length of addresses; given addresses and ports set flags.

use super::base::{INPUT, OUTPUT, POSTROUTING, PREROUTING, is_ip};
use super::context::{check_flags, required};
use super::errors::{EAFNOSUPPORT, EINVAL, EOPNOTSUPP};
use super::{Base, Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Nat, NatRangeFlags, NatRef, NatType, Register};

impl<'a> KernelExpression<'a> for NatRef<'a> {
    type Listed = Nat;

    fn select(&self, _: Family) -> Result<(), Errno> {
        check_named_flags(self.flags())
    }

    fn init(&self, context: &mut Context<'_>) -> Result<Nat, Errno> {
        let nat_type = required(self.nat_type())?;
        if self.addr_min().is_none() && self.proto_min().is_none() {
            return Err(EINVAL);
        }
        if nat_type.name().is_none() {
            return Err(EOPNOTSUPP);
        }
        let number = required(self.family())?;
        let around = context.family();
        if around != Family::INET && u32::from(around.0) != number {
            return Err(EOPNOTSUPP);
        }
        let family = Family(number as u8); // the kernel truncates it
        let address = match u8::try_from(number).map(Family) {
            Ok(Family::IP) => 4,
            Ok(Family::IP6) => 16,
            _ if self.addr_min().is_some() => return Err(EAFNOSUPPORT),
            _ => 0,
        };
        let mut flags = self.flags().unwrap_or_default();
        let (addr_min, addr_max) = pair(context, self.addr_min(), self.addr_max(), address)?;
        if addr_min.is_some() {
            flags |= NatRangeFlags::MAP_IPS;
        }
        let (proto_min, proto_max) = pair(context, self.proto_min(), self.proto_max(), 2)?;
        if proto_min.is_some() {
            flags |= NatRangeFlags::PROTO_SPECIFIED;
        }
        Context::conntrack(family)?;
        Ok(Nat {
            nat_type: Some(nat_type),
            family: Some(family.0.into()),
            addr_min,
            addr_max,
            proto_min,
            proto_max,
            flags: (!flags.is_empty()).then_some(flags),
            ..Default::default()
        })
    }

    fn validate(&self, family: Family, base: &Base<'_>) -> Result<(), Errno> {
        is_ip(family)?;
        base.is_of_type("nat")?;
        match self.nat_type() {
            Some(NatType::SNAT) => base.is_at(&[POSTROUTING, INPUT]),
            Some(NatType::DNAT) => base.is_at(&[PREROUTING, OUTPUT]),
            _ => Ok(()),
        }
    }
}

/// Returns `EINVAL` for unnamed flags.
pub(super) fn check_named_flags(flags: Option<NatRangeFlags>) -> Result<(), Errno> {
    let allowed = NatRangeFlags::all_named().bits();
    check_flags(flags.map(|flags| flags.bits()), allowed)
}

/// Returns the registers of a range: a missing end equals the start, and without a start there is no range.
pub(super) fn pair(
    context: &Context<'_>,
    min: Option<Register>,
    max: Option<Register>,
    length: u32,
) -> Result<(Option<Register>, Option<Register>), Errno> {
    let Some(min) = min else {
        return Ok((None, None));
    };
    let min = context.load(min, length)?;
    let max = max.map_or(Ok(min), |max| context.load(max, length))?;
    Ok((Some(min), Some(max)))
}
