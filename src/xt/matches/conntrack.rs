//! `-m conntrack`: compares the connection tracking state of the packet.
//!
//! Data of revision 3 (`struct xt_conntrack_mtinfo3`, `linux/netfilter/xt_conntrack.h`). Revisions
//! 1 and 2 have no port ranges, revision 1 has fewer states. `-m state --state` is an alias of
//! `-m conntrack --ctstate`, marked by a flag in the data.

mod tuples;

use bstr::BStr;
use chainwright_sys::nf_conntrack_common::{
    IPS_ASSURED, IPS_CONFIRMED, IPS_EXPECTED, IPS_SEEN_REPLY,
};
use chainwright_sys::xt_conntrack::{
    XT_CONNTRACK_DIRECTION, XT_CONNTRACK_EXPIRES, XT_CONNTRACK_PROTO, XT_CONNTRACK_STATE,
    XT_CONNTRACK_STATE_ALIAS, XT_CONNTRACK_STATE_DNAT, XT_CONNTRACK_STATE_INVALID,
    XT_CONNTRACK_STATE_SNAT, XT_CONNTRACK_STATE_UNTRACKED, XT_CONNTRACK_STATUS,
    xt_conntrack_mtinfo1, xt_conntrack_mtinfo2, xt_conntrack_mtinfo3,
};
pub use tuples::{ConntrackAddress, ConntrackTuples};
use tuples::{TUPLES, host};
use zerocopy::FromZeros;

use super::ports::PortRange;
use crate::xt::Negatable;
use crate::xt::pack;
use crate::xt::value::{Parsed, any_start_of, ends_of, number, word_of};
use crate::xt::{
    Context, Difference, Extension, Family, GivenOption, ListStyle, Names, OptionError, OptionSpec,
    Text, read_struct, write_struct,
};

bitflags::bitflags! {
    /// Connection states, as bits of `state_mask`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct ConntrackState: u16 {
        /// The packet belongs to no connection.
        const INVALID = XT_CONNTRACK_STATE_INVALID;
        /// The packet belongs to a connection with packets in both directions
        /// (`IP_CT_ESTABLISHED`).
        const ESTABLISHED = 1 << 1;
        /// The packet starts a connection related to another one (`IP_CT_RELATED`).
        const RELATED = 1 << 2;
        /// The packet starts a connection (`IP_CT_NEW`).
        const NEW = 1 << 3;
        /// The connection's source address is translated.
        const SNAT = XT_CONNTRACK_STATE_SNAT;
        /// The connection's destination address is translated.
        const DNAT = XT_CONNTRACK_STATE_DNAT;
        /// The packet is not tracked.
        const UNTRACKED = XT_CONNTRACK_STATE_UNTRACKED;
    }
}

bitflags::bitflags! {
    /// Connection status, as bits of `status_mask` (`IPS_*`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct ConntrackStatus: u16 {
        /// It is an expected connection, related to another one.
        const EXPECTED = IPS_EXPECTED as u16;
        /// The kernel has seen packets in both directions.
        const SEEN_REPLY = IPS_SEEN_REPLY as u16;
        /// The kernel does not drop it early when the table is full.
        const ASSURED = IPS_ASSURED as u16;
        /// Its first packet has left the host or arrived.
        const CONFIRMED = IPS_CONFIRMED as u16;
    }
}

/// A direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConntrackDirection {
    /// The direction of the first packet.
    Original,
    /// The opposite direction.
    Reply,
}

/// Remaining time of a connection, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConntrackExpiry {
    /// Minimum, in seconds.
    pub min: u32,
    /// Maximum, in seconds. If it is less than the minimum, nothing matches.
    pub max: u32,
}

/// `-m conntrack`: compares the connection tracking state of the packet.
///
/// At least one field is compared.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Conntrack {
    /// Allowed states: `--ctstate`.
    pub state: Option<Negatable<ConntrackState>>,
    /// Whether it was written as `-m state --state`. Only has an effect if nothing but states
    /// without NAT is compared.
    pub alias: bool,
    /// Layer 4 protocol (`IPPROTO_*`): `--ctproto`.
    pub protocol: Option<Negatable<u8>>,
    /// Addresses and ports.
    pub tuples: Option<Box<ConntrackTuples>>,
    /// Status bits, one of which must be set; no bits for a connection without any of them:
    /// `--ctstatus`.
    pub status: Option<Negatable<ConntrackStatus>>,
    /// Time until the connection expires: `--ctexpire`.
    pub expiry: Option<Negatable<ConntrackExpiry>>,
    /// The packet's direction: `--ctdir`.
    pub direction: Option<ConntrackDirection>,
}

impl Conntrack {
    /// Matches if the connection is in one of these states.
    #[must_use]
    pub fn states(states: ConntrackState) -> Self {
        Self {
            state: Some(Negatable::is(states)),
            ..Self::default()
        }
    }

    /// Matches if the connection is in none of these states.
    #[must_use]
    pub fn not_states(states: ConntrackState) -> Self {
        Self {
            state: Some(Negatable::is_not(states)),
            ..Self::default()
        }
    }

    /// Returns `true` if to print it as `-m state`.
    fn is_alias(&self) -> bool {
        let translated = ConntrackState::SNAT | ConntrackState::DNAT;
        let untranslated = |state: Negatable<_>| !translated.intersects(state.value);
        self.alias
            && self.state.is_some_and(untranslated)
            && self.protocol.is_none()
            && self.tuples.is_none()
            && self.status.is_none()
            && self.expiry.is_none()
            && self.direction.is_none()
    }
}

/// All known bits of `match_flags`.
const COMPARED: u16 = TUPLES
    | XT_CONNTRACK_STATE
    | XT_CONNTRACK_PROTO
    | XT_CONNTRACK_STATUS
    | XT_CONNTRACK_EXPIRES
    | XT_CONNTRACK_DIRECTION;

/// Converts an older revision's struct to revision 3, given the masks of state and status.
macro_rules! to_revision_3 {
    ($old:ident, $masks:ident) => {{
        let port = u16::from_be_bytes;
        let (state_mask, status_mask) = $masks;
        xt_conntrack_mtinfo3 {
            origsrc_addr: $old.origsrc_addr,
            origsrc_mask: $old.origsrc_mask,
            origdst_addr: $old.origdst_addr,
            origdst_mask: $old.origdst_mask,
            replsrc_addr: $old.replsrc_addr,
            replsrc_mask: $old.replsrc_mask,
            repldst_addr: $old.repldst_addr,
            repldst_mask: $old.repldst_mask,
            expires_min: $old.expires_min,
            expires_max: $old.expires_max,
            l4proto: $old.l4proto,
            origsrc_port: port($old.origsrc_port),
            origdst_port: port($old.origdst_port),
            replsrc_port: port($old.replsrc_port),
            repldst_port: port($old.repldst_port),
            match_flags: $old.match_flags,
            invert_flags: $old.invert_flags,
            state_mask,
            status_mask,
            origsrc_port_high: port($old.origsrc_port),
            origdst_port_high: port($old.origdst_port),
            replsrc_port_high: port($old.replsrc_port),
            repldst_port_high: port($old.repldst_port),
            __pad: [0; 2],
        }
    }};
}
impl Extension for Conntrack {
    const NAME: &'static str = "conntrack";
    const NAMES: &'static [&'static str] = &["conntrack", "state"];
    const REVISION: u8 = 3;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("ctstate").inverts(),
        OptionSpec::one("ctproto").inverts(),
        OptionSpec::one("ctorigsrc").inverts(),
        OptionSpec::one("ctorigdst").inverts(),
        OptionSpec::one("ctreplsrc").inverts(),
        OptionSpec::one("ctrepldst").inverts(),
        OptionSpec::one("ctorigsrcport").inverts(),
        OptionSpec::one("ctorigdstport").inverts(),
        OptionSpec::one("ctreplsrcport").inverts(),
        OptionSpec::one("ctrepldstport").inverts(),
        OptionSpec::one("ctstatus").inverts(),
        OptionSpec::one("ctexpire").inverts(),
        OptionSpec::one("ctdir"),
    ];
    const DIFFERENCES: &'static [Difference] = &[
        Difference::kept(
            "-m conntrack --ctorigsrc 10.0.1.0/255.0.255.0",
            "-m conntrack --ctorigsrc 10.0.1.0",
            "iptables misreads a non-contiguous mask.",
        ),
        Difference::refused(
            "-m conntrack --ctorigdstport 70000",
            "-m conntrack --ctorigdstport 4464",
            "A port has 16 bits; iptables truncates a larger number.",
        ),
    ];

    fn options(name: &str) -> &'static [OptionSpec] {
        match name {
            "state" => STATE_OPTIONS,
            _ => Self::OPTIONS,
        }
    }

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        match revision {
            1 => {
                let info: xt_conntrack_mtinfo1 = read_struct(info)?;
                let masks = (info.state_mask.into(), info.status_mask.into());
                from_revision_3(family, &to_revision_3!(info, masks))
            }
            2 => {
                let info: xt_conntrack_mtinfo2 = read_struct(info)?;
                let masks = (info.state_mask, info.status_mask);
                from_revision_3(family, &to_revision_3!(info, masks))
            }
            3 => from_revision_3(family, &read_struct(info)?),
            _ => None,
        }
    }

    fn write(&self, family: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_conntrack_mtinfo3::new_zeroed();
        if let Some(tuples) = &self.tuples {
            tuples.write(family, &mut info)?;
        }
        let mut set = |flag, invert| {
            info.match_flags |= flag;
            if invert {
                info.invert_flags |= flag;
            }
        };
        if let Some(state) = self.state {
            set(XT_CONNTRACK_STATE, state.invert);
            info.state_mask = pack::flags("ctstate", state.value)?;
        }
        if let Some(protocol) = self.protocol {
            set(XT_CONNTRACK_PROTO, protocol.invert);
            info.l4proto = protocol.value.into();
        }
        if let Some(status) = self.status {
            set(XT_CONNTRACK_STATUS, status.invert);
            info.status_mask = pack::flags("ctstatus", status.value)?;
        }
        if let Some(expiry) = self.expiry {
            set(XT_CONNTRACK_EXPIRES, expiry.invert);
            (info.expires_min, info.expires_max) = (expiry.value.min, expiry.value.max);
        }
        if let Some(direction) = self.direction {
            set(
                XT_CONNTRACK_DIRECTION,
                direction == ConntrackDirection::Reply,
            );
        }
        if self.is_alias() {
            info.match_flags |= XT_CONNTRACK_STATE_ALIAS;
        }
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut conntrack = Self {
            alias: context.name == "state",
            ..Self::default()
        };
        let mut tuples = ConntrackTuples::default();
        for one in given {
            let invert = one.invert;
            let host = || {
                let with = one.parse(|value| host(value, context.family))?;
                Ok(Some(Negatable {
                    value: with,
                    invert,
                }))
            };
            let ports = || PortRange::parse_any(context, one).map(Some);
            match one.option {
                "ctproto" => {
                    let with = one.parse(|value| protocol(value, context.names))?;
                    conntrack.protocol = Some(Negatable {
                        value: with,
                        invert,
                    });
                }
                "ctorigsrc" => tuples.original_source = host()?,
                "ctorigdst" => tuples.original_destination = host()?,
                "ctreplsrc" => tuples.reply_source = host()?,
                "ctrepldst" => tuples.reply_destination = host()?,
                "ctorigsrcport" => tuples.original_source_port = ports()?,
                "ctorigdstport" => tuples.original_destination_port = ports()?,
                "ctreplsrcport" => tuples.reply_source_port = ports()?,
                "ctrepldstport" => tuples.reply_destination_port = ports()?,
                "ctstatus" => {
                    let bits = one.parse(|value| {
                        let names = STATUSES.map(|(status, name)| (name, status.bits()));
                        any_start_of(value, &names)
                    })?;
                    let with = ConntrackStatus::from_bits_truncate(bits);
                    conntrack.status = Some(Negatable {
                        value: with,
                        invert,
                    });
                }
                "ctexpire" => {
                    let (min, max) =
                        one.parse(|value| ends_of(value, 0..=u32::MAX, number::<u32>))?;
                    let with = ConntrackExpiry { min, max };
                    conntrack.expiry = Some(Negatable {
                        value: with,
                        invert,
                    });
                }
                "ctdir" => {
                    let directions = [
                        ("ORIGINAL", ConntrackDirection::Original),
                        ("REPLY", ConntrackDirection::Reply),
                    ];
                    let direction = one.parse(|value| word_of(value, &directions))?;
                    conntrack.direction = Some(direction);
                }
                option => {
                    let bits = one.parse(|value| {
                        let names = STATES.map(|(state, name)| (name, state.bits()));
                        // `-m state` does not support the last two.
                        let known = if option == "state" { 5 } else { 7 };
                        any_start_of(value, &names[..known])
                    })?;
                    let with = ConntrackState::from_bits_truncate(bits);
                    conntrack.state = Some(Negatable {
                        value: with,
                        invert,
                    });
                }
            }
        }
        if tuples != ConntrackTuples::default() {
            conntrack.tuples = Some(Box::new(tuples));
        }
        if given.is_empty() {
            return Err(OptionError::of_all(
                "conntrack needs at least one option, such as --ctstate",
            ));
        }
        Ok(conntrack)
    }

    fn printed_name(&self) -> &'static str {
        if self.is_alias() { "state" } else { Self::NAME }
    }

    fn print(&self, text: &mut Text) {
        if let Some(state) = self.state {
            let option = if self.is_alias() { "state" } else { "ctstate" };
            text.option(state.invert, option);
            let mut separator = " ";
            for (bit, name) in STATES {
                if state.value.contains(bit) {
                    text.push(separator).push(name);
                    separator = ",";
                }
            }
        }
        if let Some(protocol) = self.protocol {
            text.option(protocol.invert, "ctproto").push(" ");
            text.number(protocol.value);
        }
        if let Some(tuples) = &self.tuples {
            tuples.print(text);
        }
        if let Some(status) = self.status {
            text.option(status.invert, "ctstatus");
            let mut separator = " ";
            for (bit, name) in &STATUSES[1..] {
                if status.value.contains(*bit) {
                    text.push(separator).push(name);
                    separator = ",";
                }
            }
            if status.value.is_empty() {
                text.push(" NONE");
            }
        }
        if let Some(Negatable {
            value: with,
            invert,
        }) = self.expiry
        {
            text.option(invert, "ctexpire").push(" ");
            text.range(with.min, with.max);
        }
        match self.direction {
            None => {}
            Some(ConntrackDirection::Original) => _ = text.option(false, "ctdir").word("ORIGINAL"),
            Some(ConntrackDirection::Reply) => _ = text.option(false, "ctdir").word("REPLY"),
        }
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.bare(|text| self.print(text));
    }
}

/// Decodes data of revision 3.
fn from_revision_3(family: Family, info: &xt_conntrack_mtinfo3) -> Option<Conntrack> {
    let has = |flag| info.match_flags & flag != 0;
    let known = info.match_flags & !(COMPARED | XT_CONNTRACK_STATE_ALIAS) == 0;
    if !known || !has(COMPARED) {
        return None;
    }
    // The kernel ignores the negation of fields that are not compared.
    let inverted = |flag| info.invert_flags & flag != 0;
    let state = if has(XT_CONNTRACK_STATE) {
        let with = ConntrackState::from_bits(info.state_mask).filter(|bits| !bits.is_empty())?;
        let invert = inverted(XT_CONNTRACK_STATE);
        Some(Negatable {
            value: with,
            invert,
        })
    } else {
        None
    };
    let protocol = if has(XT_CONNTRACK_PROTO) {
        let with = u8::try_from(info.l4proto).ok()?;
        let invert = inverted(XT_CONNTRACK_PROTO);
        Some(Negatable {
            value: with,
            invert,
        })
    } else {
        None
    };
    let status = if has(XT_CONNTRACK_STATUS) {
        let with = ConntrackStatus::from_bits(info.status_mask)?;
        let invert = inverted(XT_CONNTRACK_STATUS);
        Some(Negatable {
            value: with,
            invert,
        })
    } else {
        None
    };
    let mut conntrack = Conntrack {
        state,
        alias: has(XT_CONNTRACK_STATE_ALIAS),
        protocol,
        tuples: has(TUPLES).then(|| Box::new(ConntrackTuples::read(family, info))),
        status,
        expiry: has(XT_CONNTRACK_EXPIRES).then_some(Negatable {
            value: ConntrackExpiry {
                min: info.expires_min,
                max: info.expires_max,
            },
            invert: inverted(XT_CONNTRACK_EXPIRES),
        }),
        direction: has(XT_CONNTRACK_DIRECTION).then(|| {
            if inverted(XT_CONNTRACK_DIRECTION) {
                ConntrackDirection::Reply
            } else {
                ConntrackDirection::Original
            }
        }),
    };
    conntrack.alias = conntrack.is_alias();
    Some(conntrack)
}

fn protocol(value: &BStr, names: &Names) -> Parsed<u8> {
    names
        .protocol(value)
        .ok_or_else(|| format!("`{value}` is not a protocol number or name"))
}

const STATE_OPTIONS: &[OptionSpec] = &[OptionSpec::one("state").inverts().required()];

/// In the order of iptables-save.
const STATES: [(ConntrackState, &str); 7] = [
    (ConntrackState::INVALID, "INVALID"),
    (ConntrackState::NEW, "NEW"),
    (ConntrackState::RELATED, "RELATED"),
    (ConntrackState::ESTABLISHED, "ESTABLISHED"),
    (ConntrackState::UNTRACKED, "UNTRACKED"),
    (ConntrackState::SNAT, "SNAT"),
    (ConntrackState::DNAT, "DNAT"),
];

/// In the order of iptables-save, after the word for none.
const STATUSES: [(ConntrackStatus, &str); 5] = [
    (ConntrackStatus::empty(), "NONE"),
    (ConntrackStatus::EXPECTED, "EXPECTED"),
    (ConntrackStatus::SEEN_REPLY, "SEEN_REPLY"),
    (ConntrackStatus::ASSURED, "ASSURED"),
    (ConntrackStatus::CONFIRMED, "CONFIRMED"),
];

#[cfg(test)]
mod tests;
