//! Packet metadata, as read by nf_tables' `meta` and `socket` expressions and similar matches.

use super::field::Field;
use super::packet::{Direction, Hook, State};
use super::path_state::{PathState, Undetermined};
use super::value::{Test, Value};
use super::value_set::ones;
use chainwright::nft::Family as NftFamily;
use chainwright::nft::expr::{MetaKey, SocketKey};
use chainwright::xt::Family;

impl PathState {
    /// Evaluates a `meta` key; `None` if the rule does not match.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn meta(&mut self, key: MetaKey) -> Result<Option<Value>, Undetermined> {
        let is_ipv4 = self.family == Family::Ipv4;
        let (has_in, has_out) = (self.has_in(), self.has_out());
        let value = match key {
            MetaKey::LEN => self.get(Field::Length),
            MetaKey::PROTOCOL => Value::known(if is_ipv4 { 0x0800 } else { 0x86dd }, 16),
            MetaKey::NFPROTO => Value::known(NftFamily::from(self.family).0.into(), 8),
            MetaKey::L4PROTO => self.get(Field::Protocol),
            MetaKey::MARK => self.get(Field::Mark),
            MetaKey::IIF if has_in => self.get(Field::InIndex),
            MetaKey::OIF if has_out => self.get(Field::OutIndex),
            MetaKey::IIFNAME if has_in => self.get(Field::InName),
            MetaKey::OIFNAME if has_out => self.get(Field::OutName),
            MetaKey::IIF | MetaKey::OIF => Value::known(0, 32),
            MetaKey::IIFNAME | MetaKey::OIFNAME => Value::known(0, 128),
            MetaKey::IIFTYPE | MetaKey::IIFGROUP | MetaKey::IIFKIND if !has_in => return Ok(None),
            MetaKey::OIFTYPE | MetaKey::OIFGROUP | MetaKey::OIFKIND if !has_out => return Ok(None),
            MetaKey::SKUID | MetaKey::SKGID | MetaKey::CGROUP => {
                if !self.has_sender()? {
                    return Ok(None);
                }
                self.get(Field::Meta(key))
            }
            MetaKey::RTCLASSID if self.hook == Hook::Prerouting && !self.tracking.looped => {
                return Ok(None);
            }
            MetaKey::PKTTYPE => self.packet_type(),
            MetaKey::PRANDOM => self.new_unknown("a random number", 32, vec![(0, ones(32))], true),
            MetaKey::SECPATH => self.limited(Field::Meta(key), 1),
            MetaKey::NFTRACE => {
                if self.peek(Field::Meta(key)).is_none() {
                    self.set_number(Field::Meta(key), 0);
                }
                self.get(Field::Meta(key))
            }
            MetaKey::TIME_DAY => self.limited(Field::Meta(key), 6),
            MetaKey::TIME_HOUR => self.limited(Field::Meta(key), 86399),
            // Only in the bridge family.
            MetaKey::BRI_IIFNAME
            | MetaKey::BRI_OIFNAME
            | MetaKey::BRI_IIFPVID
            | MetaKey::BRI_IIFVPROTO
            | MetaKey::BRI_IIFHWADDR => return Ok(None),
            _ if key.name().is_none() => {
                return Err(Undetermined::unknown("it reads an unsupported `meta` key"));
            }
            _ => self.get(Field::Meta(key)),
        };
        Ok(Some(value))
    }

    /// Returns whether a local socket that rules can see at this hook sent the packet.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn has_sender(&mut self) -> Result<bool, Undetermined> {
        let from_here = matches!(self.context.direction, Direction::Out | Direction::Local);
        match (from_here, self.hook) {
            (true, Hook::Output | Hook::Postrouting) => {
                let known = |path_state: &Self| {
                    [MetaKey::SKUID, MetaKey::SKGID]
                        .iter()
                        .any(|key| path_state.peek(Field::Meta(*key)).is_some())
                };
                if known(self) && self.peek(Field::HasSender).is_none() {
                    self.set_number(Field::HasSender, 1);
                }
                self.is(Field::HasSender, Test::Is(1))
            }
            // The kernel may assign a socket early.
            (false, Hook::Input) => match self.state_is(State::New)? {
                true => Ok(false),
                false => self.is(Field::HasSender, Test::Is(1)),
            },
            _ => Ok(false),
        }
    }

    /// Evaluates a key of the packet's socket, which must exist; `level` is for control groups.
    pub(super) fn socket(&mut self, key: SocketKey, level: u32) -> Value {
        let field = Field::Socket(key.0, level);
        match key {
            SocketKey::TRANSPARENT | SocketKey::WILDCARD => self.limited(field, 1),
            _ => self.get(field),
        }
    }

    /// Returns the packet type on its link (`PACKET_*`).
    pub(super) fn packet_type(&mut self) -> Value {
        const TYPE: Field = Field::Meta(MetaKey::PKTTYPE);
        const OTHER_HOST: u128 = 3;
        if self.peek(TYPE).is_none() {
            let sent = matches!(self.context.direction, Direction::Out | Direction::Local);
            let to_host = match self.number(Field::Destination) {
                Some(number) => {
                    let address = super::route::address(self.family, number);
                    !address.is_multicast() && number != ones(32)
                }
                None => false,
            };
            // A forwarded packet was addressed to this machine on its link.
            if sent || self.context.direction == Direction::Forwarded && to_host {
                self.set_number(TYPE, 0);
            } else {
                self.limit(TYPE, vec![(0, OTHER_HOST)]);
            }
        }
        self.get(TYPE)
    }
}
