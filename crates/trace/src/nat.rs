//! NAT of a connection's addresses and ports.

use super::ct::{ENDS, REPLY};
use super::field::Field;
use super::packet::Hook;
use super::path_state::{Effect, PathState, Undetermined};
use super::steps::Action;
use super::value::Value;
use super::value_set::ones;

/// NAT requested by a rule.
#[derive(Debug, Clone)]
pub(super) struct Translation {
    /// Whether it translates the destination.
    pub(super) destination: bool,
    /// Name of the operation.
    pub(super) how: &'static str,
    /// First and last address; `None` to keep the address.
    pub(super) addresses: Option<(Value, Value)>,
    /// First and last port; `None` to keep the port.
    pub(super) ports: Option<(Value, Value)>,
    /// Whether only the bits that first and last address have in common are replaced.
    pub(super) netmap: bool,
    /// Whether ports are chosen randomly.
    pub(super) random: bool,
    /// Base port for a port-shifted mapping.
    pub(super) base: Option<u16>,
}

impl Translation {
    /// Creates a translation without addresses and ports.
    pub(super) const fn new(destination: bool, how: &'static str) -> Self {
        Self {
            destination,
            how,
            addresses: None,
            ports: None,
            netmap: false,
            random: false,
            base: None,
        }
    }
}

impl PathState {
    /// Applies a translation. The packet then leaves the base chain.
    ///
    /// # Errors
    /// The branch splits, or the result is unknown.
    pub(super) fn translate(&mut self, translation: &Translation) -> Result<Effect, Undetermined> {
        let destination = translation.destination;
        let decided = match destination {
            true => self.tracking.destination_nat_done,
            false => self.tracking.source_nat_done,
        };
        if decided {
            return Ok(Effect::Accept);
        }
        let (address, port) = ends(destination);
        let has_ports = self.has_ports()?;
        let bits = self.address_bits();
        let old = self.get(address);
        let new_address = translation.addresses.as_ref().map(|(first, last)| {
            match (self.known(first), self.known(last)) {
                (Some(first), Some(last)) if translation.netmap => {
                    let mask = ones(bits) & !(first ^ last);
                    old.masked(!mask, first & mask)
                }
                (Some(first), Some(last)) if first < last => {
                    let range = vec![(first, last)];
                    self.new_unknown("the address chosen from the range", bits, range, true)
                }
                (Some(first), _) => Value::known(first, bits),
                (None, _) => first.clone(),
            }
        });
        let new_port = match &translation.ports {
            Some((first, last)) if has_ports => {
                let chosen = match (self.known(first), self.known(last)) {
                    (Some(first), Some(last)) if first < last => {
                        let range = vec![(first, last)];
                        let now = self.get(port);
                        let kept = self
                            .known(&now)
                            .filter(|port| first <= *port && *port <= last);
                        match (translation.base, self.known(&now), kept) {
                            (Some(base), Some(now), _) => {
                                let distance = now.wrapping_sub(base.into()) % (last - first + 1);
                                Value::known(first + distance, 16)
                            }
                            (None, _, Some(kept)) if !translation.random => Value::known(kept, 16),
                            _ => {
                                self.new_unknown("the port chosen from the range", 16, range, false)
                            }
                        }
                    }
                    (Some(first), _) => Value::known(first, 16),
                    (None, _) => first.clone(),
                };
                Some(chosen)
            }
            None if has_ports && translation.random => {
                Some(self.new_unknown("a port chosen at random", 16, vec![(1, 65535)], false))
            }
            _ => None,
        };
        let description = |path_state: &Self, field: Field, value: &Option<Value>| {
            value
                .as_ref()
                .map(|value| path_state.description(field, value))
        };
        let action = Action::Translate {
            destination,
            how: translation.how,
            address: description(self, address, &new_address),
            port: description(self, port, &new_port),
        };
        self.record_action(action);
        let changed = [(address, new_address), (port, new_port)];
        let mut different = false;
        for (field, value) in changed {
            if let Some(value) = value
                && self.get(field) != value
            {
                different = true;
                self.replies(field, value.clone());
                self.set(field, value);
                self.rewritten(field);
            }
        }
        self.record_translation(destination, different);
        Ok(Effect::Accept)
    }

    /// Redirects to this machine: to the address of the input interface, or to loopback for local packets.
    ///
    /// # Errors
    /// Same as [`translate`](Self::translate).
    pub(super) fn redirect(
        &mut self,
        ports: Option<(Value, Value)>,
        random: bool,
    ) -> Result<Effect, Undetermined> {
        if self.tracking.destination_nat_done {
            return Ok(Effect::Accept);
        }
        self.has_ports()?; // before any change
        let address = match self.hook {
            Hook::Output => Value::known(self.loopback(), self.address_bits()),
            _ => self.address_of(true),
        };
        let translation = Translation {
            addresses: Some((address.clone(), address)),
            ports,
            random,
            ..Translation::new(true, "redirect")
        };
        let effect = self.translate(&translation)?;
        self.tracking.redirected = true;
        Ok(effect)
    }

    /// Translates the source to an address of the output interface.
    ///
    /// # Errors
    /// Same as [`translate`](Self::translate).
    pub(super) fn masquerade(
        &mut self,
        ports: Option<(Value, Value)>,
        random: bool,
    ) -> Result<Effect, Undetermined> {
        if self.tracking.source_nat_done {
            return Ok(Effect::Accept);
        }
        self.has_ports()?; // before any change
        let address = self.address_of(false);
        self.translate(&Translation {
            addresses: Some((address.clone(), address)),
            ports,
            random,
            ..Translation::new(false, "masquerade")
        })
    }

    /// Records that no rule translated this end of the connection.
    pub(super) fn leave(&mut self, destination: bool) {
        self.record_translation(destination, false);
    }

    fn record_translation(&mut self, destination: bool, different: bool) {
        let tracking = &mut self.tracking;
        let (decided, translated) = match destination {
            true => (
                &mut tracking.destination_nat_done,
                &mut tracking.destination_translated,
            ),
            false => (
                &mut tracking.source_nat_done,
                &mut tracking.source_translated,
            ),
        };
        *decided = true;
        *translated |= different;
    }

    /// Updates the reply tuple.
    fn replies(&mut self, field: Field, value: Value) {
        let of = ENDS.iter().position(|end| *end == field);
        if let Some(index) = of {
            self.set(REPLY[index], value);
        }
    }
}

/// Returns the address and port field of an end.
const fn ends(destination: bool) -> (Field, Field) {
    match destination {
        true => (Field::Destination, Field::DestinationPort),
        false => (Field::Source, Field::SourcePort),
    }
}
