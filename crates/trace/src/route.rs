//! Routes and addresses of the machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::field::{Field, name_value};
use super::packet::{Direction, Hook};
use super::path_state::{PathState, Undetermined};
use super::value::Value;
use chainwright::nft::expr::{FibFlags, FibResult, MetaKey, RtKey};
use chainwright::xt::Family;

/// Address types (`RTN_*`).
const UNICAST: u128 = 1;
pub(super) const LOCAL: u128 = 2;
const BROADCAST: u128 = 3;
pub(super) const ANYCAST: u128 = 4;
const MULTICAST: u128 = 5;
pub(super) const UNREACHABLE: u128 = 7;
/// Last address type.
const LAST_KIND: u128 = 11;

/// Converts a number to an address.
pub(super) fn address(family: Family, number: u128) -> IpAddr {
    match family {
        Family::Ipv4 => Ipv4Addr::from(number as u32).into(),
        Family::Ipv6 => Ipv6Addr::from(number).into(),
    }
}

/// Converts an address to a number.
pub(super) fn address_number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Returns `true` if an address belongs to a family.
pub(super) const fn is_of(address: IpAddr, family: Family) -> bool {
    matches!(
        (address, family),
        (IpAddr::V4(_), Family::Ipv4) | (IpAddr::V6(_), Family::Ipv6)
    )
}

impl PathState {
    /// Returns the type of the source or destination address relative to this machine (`RTN_*`).
    pub(super) fn address_kind(&mut self, field: Field) -> Value {
        let flags = match field {
            Field::Source => FibFlags::SADDR,
            _ => FibFlags::DADDR,
        };
        let kept = Field::Fib(flags, FibResult::ADDRTYPE);
        if self.peek(kept).is_some() {
            return self.get(kept);
        }
        let known = self
            .number(field)
            .map(|number| address(self.family, number));
        let as_it_came = field == Field::Destination && !self.tracking.diverted;
        let kinds = match known {
            Some(address) if address.is_multicast() => vec![(MULTICAST, MULTICAST)],
            Some(IpAddr::V4(Ipv4Addr::BROADCAST)) => vec![(BROADCAST, BROADCAST)],
            Some(address) if address.is_loopback() => vec![(LOCAL, LOCAL)],
            _ if as_it_came => match self.context.direction {
                Direction::In | Direction::Local => vec![(LOCAL, LOCAL)],
                Direction::Forwarded | Direction::Out => vec![(UNICAST, UNICAST)],
            },
            _ if field == Field::Destination && self.tracking.redirected => vec![(LOCAL, LOCAL)],
            Some(address) => match self.context.node.has_address(address) {
                Some(true) => vec![(LOCAL, LOCAL)],
                Some(false) => vec![(0, LOCAL - 1), (LOCAL + 1, LAST_KIND)],
                None => vec![(0, LAST_KIND)],
            },
            None => vec![(0, LAST_KIND)],
        };
        self.limit(kept, kinds);
        self.get(kept)
    }

    /// Returns whether the destination is local, so that the packet is delivered.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn is_for_this_machine(&mut self) -> Result<bool, Undetermined> {
        if self.tracking.redirected {
            return Ok(true);
        }
        if !self.tracking.diverted {
            return Ok(matches!(
                self.context.direction,
                Direction::In | Direction::Local
            ));
        }
        match self.number(Field::Destination) {
            Some(number) => {
                let address = address(self.family, number);
                match self.context.node.has_address(address) {
                    Some(is) => Ok(is),
                    None => self.always(format!("{address} is an address of this machine")),
                }
            }
            None => self.always("the new destination is an address of this machine"),
        }
    }

    /// Discards data that depended on the old value of a field.
    pub(super) fn rewritten(&mut self, field: Field) {
        let which = match field {
            Field::Source => FibFlags::SADDR,
            Field::Destination => {
                self.tracking.diverted = true;
                self.tracking.redirected = false;
                FibFlags::DADDR
            }
            _ => return,
        };
        self.forget_if(|field| match field {
            Field::Fib(flags, _) => flags.contains(which),
            Field::Route(_) => true,
            _ => false,
        });
    }

    /// Sets the input or output interface, if its name is known.
    pub(super) fn set_interface(&mut self, incoming: bool, name: Option<&[u8]>) {
        let (name_field, index, hardware, group, kind) = match incoming {
            true => (
                Field::InName,
                Field::InIndex,
                MetaKey::IIFTYPE,
                MetaKey::IIFGROUP,
                MetaKey::IIFKIND,
            ),
            false => (
                Field::OutName,
                Field::OutIndex,
                MetaKey::OIFTYPE,
                MetaKey::OIFGROUP,
                MetaKey::OIFKIND,
            ),
        };
        for field in [
            name_field,
            index,
            Field::Meta(hardware),
            Field::Meta(group),
            Field::Meta(kind),
        ] {
            self.forget(field);
        }
        let Some(name) = name else {
            return;
        };
        const LOOPBACK: u128 = 772;
        self.set_number(name_field, name_value(name));
        if name == b"lo" {
            self.set_number(index, 1);
            self.set_number(Field::Meta(hardware), LOOPBACK);
        }
        let context = self.context.clone();
        if let Some(interface) = context.node.interface(name.into()) {
            if let Some(number) = interface.index {
                self.set_number(index, number.into());
            }
            if let Some(number) = interface.hardware {
                self.set_number(Field::Meta(hardware), number.into());
            }
            if let Some(number) = interface.group {
                self.set_number(Field::Meta(group), number.into());
            }
        }
    }

    /// Returns the first address of the input or output interface.
    pub(super) fn address_of(&mut self, incoming: bool) -> Value {
        let bits = self.address_bits();
        let field = match incoming {
            true => Field::InName,
            false => Field::OutName,
        };
        let family = self.family;
        let description = match self.number(field) {
            Some(number) => {
                let bytes = number.to_be_bytes();
                let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(16);
                let context = self.context.clone();
                let found = context.node.interface(bytes[..end].into());
                let address = found.and_then(|interface| {
                    let mut addresses = interface.addresses.iter();
                    addresses.find(|address| is_of(**address, family))
                });
                if let Some(address) = address {
                    return Value::known(address_number(*address), bits);
                }
                if &bytes[..end] == b"lo" {
                    return Value::known(self.loopback(), bits);
                }
                format!("an address of {}", bytes[..end].escape_ascii())
            }
            None if incoming => "an address of its input interface".to_owned(),
            None => "an address of its output interface".to_owned(),
        };
        let last = super::value_set::ones(bits);
        self.new_unknown(description, bits, vec![(0, last)], false)
    }

    /// Returns the loopback address.
    pub(super) const fn loopback(&self) -> u128 {
        match self.family {
            Family::Ipv4 => 0x7f00_0001,
            Family::Ipv6 => 1,
        }
    }

    /// Returns `true` if rules see the input interface at this hook. In postrouting, they do since
    /// Linux 5.7.
    pub(super) fn has_in(&self) -> bool {
        let from_here = matches!(self.context.direction, Direction::Out | Direction::Local);
        match self.hook {
            Hook::Prerouting | Hook::Input | Hook::Forward => true,
            Hook::Output => false,
            Hook::Postrouting => !from_here,
        }
    }

    /// Returns `true` if rules see the output interface at this hook.
    pub(super) const fn has_out(&self) -> bool {
        matches!(self.hook, Hook::Forward | Hook::Output | Hook::Postrouting)
    }

    /// Returns `true` if rules can read a link layer header at this hook.
    pub(super) fn has_link_header(&self) -> bool {
        let from_here = matches!(self.context.direction, Direction::Out | Direction::Local);
        !from_here || self.has_in()
    }

    /// Evaluates a `fib` lookup.
    pub(super) fn fib(&mut self, flags: FibFlags, result: FibResult) -> Value {
        if result == FibResult::ADDRTYPE {
            let field = match flags.contains(FibFlags::SADDR) {
                true => Field::Source,
                false => Field::Destination,
            };
            let kind = self.address_kind(field);
            // Limited to one interface, a local address may have another type.
            let narrowed = flags.intersects(FibFlags::IIF | FibFlags::OIF);
            if !narrowed || self.known(&kind).is_some_and(|kind| kind != LOCAL) {
                return kind;
            }
        }
        match flags.contains(FibFlags::PRESENT) {
            true => self.limited(Field::Fib(flags, result), 1),
            false => self.get(Field::Fib(flags, result)),
        }
    }

    /// Evaluates a key of the route; `None` before routing.
    pub(super) fn route(&mut self, key: RtKey) -> Option<Value> {
        if self.hook == Hook::Prerouting && !self.tracking.looped {
            return None;
        }
        match (key, self.family) {
            (RtKey::NEXTHOP4, Family::Ipv6) | (RtKey::NEXTHOP6, Family::Ipv4) => None,
            (RtKey::XFRM, _) => Some(self.limited(Field::Route(key), 1)),
            _ => Some(self.get(Field::Route(key))),
        }
    }
}
