//! Connection tracking data of a packet.

use super::field::{Field, TupleField};
use super::headers::ICMP;
use super::packet::State;
use super::path_state::{PathState, Undetermined};
use super::value::{Test, Value};
use chainwright::nft::expr::CtKey;
use chainwright::xt::Family;

const CONFIRMED: u128 = 1 << 3;
const ORIGINAL_WAY: u8 = 0;

/// State of connection tracking and NAT for the packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tracking {
    /// Whether connection tracking has processed the packet.
    pub(super) seen: bool,
    /// Whether a rule disabled tracking.
    pub(super) untracked: bool,
    /// Whether destination NAT is decided.
    pub(super) destination_nat_done: bool,
    /// Whether source NAT is decided.
    pub(super) source_nat_done: bool,
    /// Whether the destination was translated.
    pub(super) destination_translated: bool,
    /// Whether the source was translated.
    pub(super) source_translated: bool,
    /// Whether a rule redirected the packet to this machine.
    pub(super) redirected: bool,
    /// Whether a rule changed the destination.
    pub(super) diverted: bool,
    /// Whether the packet was sent by this machine and came back over `lo`.
    pub(super) looped: bool,
}

/// Address and port fields of the packet: source, destination, source port, destination port.
pub(super) const ENDS: [Field; 4] = [
    Field::Source,
    Field::Destination,
    Field::SourcePort,
    Field::DestinationPort,
];

/// The same fields of the original tuple.
pub(super) const ORIGINAL: [Field; 4] = [
    Field::Tuple(TupleField::OriginalSource),
    Field::Tuple(TupleField::OriginalDestination),
    Field::Tuple(TupleField::OriginalSourcePort),
    Field::Tuple(TupleField::OriginalDestinationPort),
];

/// The same fields of the reply tuple, in an order that corresponds to [`ENDS`]: destination first.
pub(super) const REPLY: [Field; 4] = [
    Field::Tuple(TupleField::ReplyDestination),
    Field::Tuple(TupleField::ReplySource),
    Field::Tuple(TupleField::ReplyDestinationPort),
    Field::Tuple(TupleField::ReplySourcePort),
];

impl PathState {
    /// Passes the packet through connection tracking.
    pub(super) fn track(&mut self) {
        if self.tracking.seen {
            return; // it came back over `lo`
        }
        self.tracking.seen = true;
        if self.tracking.untracked {
            self.set_number(Field::State, State::Untracked.bit());
        } else if self.peek(Field::State).is_none() {
            let states = [
                State::Invalid,
                State::Established,
                State::Related,
                State::New,
            ];
            let states = states.map(|state| (state.bit(), state.bit()));
            self.limit(Field::State, states.to_vec());
        }
        let mut ends = ENDS.map(|field| self.get(field));
        // For ICMP, the kernel stores the identifier and the type and code in place of ports.
        if self.is_icmp() {
            let pair = |path_state: &mut Self, high, low| {
                let low = path_state.get(low);
                let high = path_state.get(high);
                Value::known(0, 16).with_part(8, &high).with_part(0, &low)
            };
            ends[2] = pair(self, Field::Transport(4), Field::Transport(5));
            ends[3] = pair(self, Field::IcmpType, Field::IcmpCode);
        }
        self.seen = Some(ends.into());
    }

    fn is_icmp(&mut self) -> bool {
        let protocol = self.number(Field::Protocol);
        protocol.is_some_and(|protocol| Test::Among(&ICMP).holds(protocol))
    }

    /// Returns the connection state as rules see it at this point.
    pub(super) fn state(&mut self) -> Value {
        if self.tracking.seen {
            return self.get(Field::State);
        }
        let state = match self.tracking.untracked {
            true => State::Untracked,
            false => State::Invalid,
        };
        Value::known(state.bit(), 32)
    }

    /// Tests the connection state.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn state_is(&mut self, state: State) -> Result<bool, Undetermined> {
        let value = self.state();
        self.test_value(&value, Test::Is(state.bit()))
    }

    /// Returns whether the packet has a connection.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn has_connection(&mut self) -> Result<bool, Undetermined> {
        let none = [State::Invalid, State::Untracked].map(|state| (state.bit(), state.bit()));
        let state = self.state();
        Ok(!self.test_value(&state, Test::Among(&none))?)
    }

    /// Returns whether the packet is the first of its connection, so that the connection has no earlier data.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn is_new(&mut self) -> Result<bool, Undetermined> {
        self.state_is(State::New)
    }

    /// Returns data stored with the connection, initially 0; `None` without a connection.
    ///
    /// # Errors
    /// The branch splits.
    fn remembered(&mut self, field: Field) -> Result<Option<Value>, Undetermined> {
        if !self.has_connection()? {
            return Ok(None);
        }
        if self.peek(field).is_none() && self.is_new()? {
            self.set_number(field, 0);
        }
        Ok(Some(self.get(field)))
    }

    /// Returns the connection's mark; `None` without a connection.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn connection_mark(&mut self) -> Result<Option<Value>, Undetermined> {
        self.remembered(Field::CtMark)
    }

    /// Returns the connection's labels; `None` without a connection.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn connection_labels(&mut self) -> Result<Option<Value>, Undetermined> {
        self.remembered(Field::Ct(CtKey::LABELS, None))
    }

    /// Returns the packet's direction in its connection, 0 or 1; `None` without a connection.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn connection_direction(&mut self) -> Result<Option<Value>, Undetermined> {
        if self.peek(Field::CtDirection).is_none() {
            if !self.has_connection()? {
                return Ok(None);
            }
            if self.is_new()? {
                self.set_number(Field::CtDirection, 0);
            } else {
                self.limit(Field::CtDirection, vec![(0, 1)]);
            }
        }
        self.remembered(Field::CtDirection)
    }

    /// Returns the connection's status (`IPS_*`); `None` without a connection.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn connection_status(&mut self) -> Result<Option<Value>, Undetermined> {
        if !self.has_connection()? {
            return Ok(None);
        }
        if self.peek(Field::CtStatus).is_none() && self.is_new()? {
            let tracking = self.tracking;
            let mut status = 0;
            for (is, bit) in [
                (tracking.source_translated, 4),
                (tracking.destination_translated, 5),
                (tracking.source_nat_done, 7),
                (tracking.destination_nat_done, 8),
            ] {
                status |= u128::from(is) << bit;
            }
            if tracking.looped {
                status |= CONFIRMED;
            }
            return Ok(Some(Value::known(status, 32)));
        }
        Ok(Some(self.get(Field::CtStatus)))
    }

    /// Returns an address or port of the connection; `None` without a connection.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn tuple(&mut self, field: TupleField) -> Result<Option<Value>, Undetermined> {
        let direction = self.connection_direction()?;
        let (Some(direction), Some(seen)) = (direction, self.seen.clone()) else {
            return Ok(None);
        };
        let field = Field::Tuple(field);
        if self.peek(field).is_some() {
            return Ok(Some(self.get(field)));
        }
        let is_original = self.test_value(&direction, Test::Is(0))?;
        let place = |all: &[Field; 4]| all.iter().position(|one| *one == field);
        // The other direction of ICMP has the same code and the type of the reply.
        let is_turned = match is_original {
            true => place(&REPLY) == Some(2),
            false => place(&ORIGINAL) == Some(3),
        };
        if is_turned && self.is_icmp() {
            let answer = self.known(&seen[3]).and_then(icmp_answer);
            return Ok(Some(match answer {
                Some(answer) => Value::known(answer, 16),
                None => self.get(field),
            }));
        }
        // This direction has the values from before NAT; for a new connection, the reply tuple is its inverse.
        let as_seen = match (place(&ORIGINAL), place(&REPLY)) {
            (Some(index), _) if is_original => Some(index),
            // An ICMP identifier is in the place of the source port in both directions.
            (_, Some(3)) if self.is_icmp() => Some(2),
            (_, Some(index)) if is_original => match self.is_new()? {
                true => Some(index),
                false => None,
            },
            // The source of a reply is the source of the reply tuple.
            (_, Some(index)) => Some(index ^ 1),
            _ => None,
        };
        Ok(Some(match as_seen {
            Some(index) => seen[index].clone(),
            None => self.get(field),
        }))
    }

    /// Evaluates a `ct` key; `None` if the rule does not match.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn ct(
        &mut self,
        key: CtKey,
        direction: Option<u8>,
    ) -> Result<Option<Value>, Undetermined> {
        if key == CtKey::STATE {
            return Ok(Some(self.state()));
        }
        if !self.has_connection()? {
            return Ok(None);
        }
        let original = direction.unwrap_or(ORIGINAL_WAY) == ORIGINAL_WAY;
        let end = |first, second| match original {
            true => first,
            false => second,
        };
        let is_ipv4 = self.family == Family::Ipv4;
        match key {
            CtKey::DIRECTION => self.connection_direction(),
            CtKey::STATUS => self.connection_status(),
            CtKey::MARK => self.connection_mark(),
            CtKey::LABELS => self.connection_labels(),
            CtKey::SECMARK => self.remembered(Field::Ct(key, None)),
            CtKey::L3PROTOCOL => Ok(Some(Value::known(if is_ipv4 { 2 } else { 10 }, 8))),
            CtKey::PROTOCOL => Ok(Some(self.get(Field::Protocol))),
            CtKey::SRC_IP | CtKey::DST_IP if !is_ipv4 => Ok(None),
            CtKey::SRC_IP6 | CtKey::DST_IP6 if is_ipv4 => Ok(None),
            CtKey::SRC | CtKey::SRC_IP | CtKey::SRC_IP6 => {
                self.tuple(end(TupleField::OriginalSource, TupleField::ReplySource))
            }
            CtKey::DST | CtKey::DST_IP | CtKey::DST_IP6 => self.tuple(end(
                TupleField::OriginalDestination,
                TupleField::ReplyDestination,
            )),
            CtKey::PROTO_SRC => self.tuple(end(
                TupleField::OriginalSourcePort,
                TupleField::ReplySourcePort,
            )),
            CtKey::PROTO_DST => self.tuple(end(
                TupleField::OriginalDestinationPort,
                TupleField::ReplyDestinationPort,
            )),
            CtKey::HELPER => {
                let helper = Field::Ct(CtKey::HELPER, None);
                let has_helper = match self.peek(helper) {
                    Some(Value::Known { number, .. }) => *number != 0,
                    _ => self.always("the connection has a helper")?,
                };
                Ok(match has_helper {
                    true => Some(self.get(helper)),
                    false => None,
                })
            }
            CtKey::PKTS | CtKey::BYTES | CtKey::AVGPKT => {
                Ok(Some(self.get(Field::Ct(key, direction))))
            }
            CtKey::ZONE | CtKey::ID | CtKey::EXPIRATION | CtKey::EVENTMASK => {
                Ok(Some(self.get(Field::Ct(key, None))))
            }
            _ => Err(Undetermined::unknown("it reads an unsupported `ct` key")),
        }
    }

    /// Disables connection tracking for the packet.
    pub(super) fn do_not_track(&mut self) {
        if !self.tracking.seen {
            self.tracking.untracked = true;
        }
    }

    /// Applies the existing NAT of a connection that is not new, as far as its tuples are known.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn translate_again(&mut self, destination: bool) -> Result<(), Undetermined> {
        let Some(direction) = self.connection_direction()? else {
            return Ok(());
        };
        let is_original = self.test_value(&direction, Test::Is(0))?;
        // The translated packet has the inverse of the other direction's tuple.
        let (index, from) = match (destination, is_original) {
            (true, true) => (1, [REPLY[1], REPLY[3]]),
            (false, true) => (0, [REPLY[0], REPLY[2]]),
            (true, false) => (1, [ORIGINAL[0], ORIGINAL[2]]),
            (false, false) => (0, [ORIGINAL[1], ORIGINAL[3]]),
        };
        let targets = [ENDS[index], ENDS[index + 2]];
        let mut known = false;
        for (field, source) in targets.into_iter().zip(from) {
            let Some(value) = self.peek(source).cloned() else {
                continue;
            };
            known = true;
            if self.get(field) != value {
                self.set(field, value);
                self.rewritten(field);
            }
        }
        if !known {
            let end = match destination {
                true => "destination",
                false => "source",
            };
            self.note(format!(
                "the earlier translation of the connection's {end} is unknown; this trace assumes that there was none"
            ));
        }
        Ok(())
    }
}

/// Returns type and code of the reply to an ICMP or ICMPv6 message, as `ct` stores them in place of a port.
fn icmp_answer(type_and_code: u128) -> Option<u128> {
    let answer = match type_and_code >> 8 {
        // ICMP echo, timestamp, information and address mask.
        8 => 0,
        0 => 8,
        13 => 14,
        14 => 13,
        15 => 16,
        16 => 15,
        17 => 18,
        18 => 17,
        // ICMPv6 echo and node information.
        128 => 129,
        129 => 128,
        139 => 140,
        140 => 139,
        _ => return None,
    };
    Some(answer << 8 | type_and_code & 0xff)
}
