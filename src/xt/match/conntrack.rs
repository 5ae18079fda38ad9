//! `conntrack`: compares what connection tracking knows of the packet.
//!
//! Data of revision 3 (`struct xt_conntrack_mtinfo3`, `linux/netfilter/xt_conntrack.h`). The value
//! here says only what `--ctstate` says; data that compares anything else stays opaque.

use chainwright_sys::xt_conntrack::{
    XT_CONNTRACK_STATE, XT_CONNTRACK_STATE_ALIAS, XT_CONNTRACK_STATE_DNAT,
    XT_CONNTRACK_STATE_INVALID, XT_CONNTRACK_STATE_SNAT, XT_CONNTRACK_STATE_UNTRACKED,
    xt_conntrack_mtinfo3,
};
use zerocopy::{FromZeros, IntoBytes};

use crate::xt::value::any_of;
use crate::xt::{Context, Extension, Family, Given, Misuse, OptionSpec, Text, read_struct};

bitflags::bitflags! {
    /// States of a connection, as bits of `state_mask`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct ConntrackState: u16 {
        /// The packet belongs to no connection.
        const INVALID = XT_CONNTRACK_STATE_INVALID;
        /// The packet belongs to a connection that saw packets both ways (`IP_CT_ESTABLISHED`).
        const ESTABLISHED = 1 << 1;
        /// The packet starts a connection that belongs to another (`IP_CT_RELATED`).
        const RELATED = 1 << 2;
        /// The packet starts a connection (`IP_CT_NEW`).
        const NEW = 1 << 3;
        /// The connection's source is translated.
        const SNAT = XT_CONNTRACK_STATE_SNAT;
        /// The connection's destination is translated.
        const DNAT = XT_CONNTRACK_STATE_DNAT;
        /// The packet is not tracked.
        const UNTRACKED = XT_CONNTRACK_STATE_UNTRACKED;
    }
}

/// The connection is in one of these states, or in none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conntrack {
    /// The states.
    pub states: ConntrackState,
    /// Whether the comparison is negated.
    pub invert: bool,
}

impl Extension for Conntrack {
    const NAME: &'static str = "conntrack";
    const REVISION: u8 = 3;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("ctstate").inverts()];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_conntrack_mtinfo3 = read_struct(info)?;
        // The alias only says that the option was written as `-m state --state`.
        let compared = info.match_flags & !XT_CONNTRACK_STATE_ALIAS;
        let states = ConntrackState::from_bits(info.state_mask)?;
        (compared == XT_CONNTRACK_STATE && info.invert_flags & !XT_CONNTRACK_STATE == 0).then_some(
            Self {
                states,
                invert: info.invert_flags & XT_CONNTRACK_STATE != 0,
            },
        )
    }

    fn write(&self, _: Family) -> Vec<u8> {
        let mut info = xt_conntrack_mtinfo3::new_zeroed();
        info.match_flags = XT_CONNTRACK_STATE;
        info.invert_flags = if self.invert { XT_CONNTRACK_STATE } else { 0 };
        info.state_mask = self.states.bits();
        info.as_bytes().to_vec()
    }
    fn parse(_: &Context<'_>, given: &[Given<'_>]) -> Result<Self, Misuse> {
        let [states] = given else {
            return Err(Misuse::of("ctstate", "it is missing"));
        };
        let bits = states.parse(|value| {
            let names = STATES.map(|(state, name)| (name, state.bits()));
            any_of(value, &names)
        })?;
        Ok(Self {
            states: ConntrackState::from_bits_retain(bits),
            invert: states.invert,
        })
    }

    fn print(&self, text: &mut Text) {
        text.option(self.invert, "ctstate");
        let mut separator = " ";
        for (state, name) in STATES {
            if self.states.contains(state) {
                text.push(separator).push(name);
                separator = ",";
            }
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::Match;

    /// What iptables-nft 1.8.9 wrote for `! --ctstate RELATED,ESTABLISHED,DNAT` on x86-64 (from
    /// `strace -xx`): 136 bytes of addresses, expiry times and, from byte 146, the flags.
    fn captured() -> Vec<u8> {
        let mut info = vec![0; 168];
        info[146..152].copy_from_slice(&[0x01, 0x00, 0x01, 0x00, 0x86, 0x00]);
        info
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn reads_and_writes_what_iptables_wrote() {
        let martian = Conntrack {
            states: ConntrackState::RELATED | ConntrackState::ESTABLISHED | ConntrackState::DNAT,
            invert: true,
        };
        assert_eq!(Conntrack::read(Family::Ipv4, 3, &captured()), Some(martian));
        let mut written = martian.write(Family::Ipv4);
        written.resize(168, 0);
        assert_eq!(written, captured());
        assert_eq!(
            Match::Conntrack(martian).to_string(),
            "-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT"
        );
    }

    #[test]
    fn whatever_else_is_compared_stays_opaque() {
        let mut info = captured();
        info[146] |= 1 << 6; // the status, too
        assert_eq!(Conntrack::read(Family::Ipv4, 3, &info), None);
        assert_eq!(Conntrack::read(Family::Ipv4, 2, &captured()), None);
        assert_eq!(Conntrack::read(Family::Ipv4, 3, &captured()[..100]), None);
    }
}
