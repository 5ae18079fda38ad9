//! Conntrack timeouts: the lifetime of a connection's entry in each state.
//!
//! ```text
//! NFTA_CT_TIMEOUT_L3PROTO   be16
//! NFTA_CT_TIMEOUT_L4PROTO   u8
//! NFTA_CT_TIMEOUT_DATA      nested: one attribute a state, be32
//! ```

use std::fmt;

use chainwright_sys::netlink::NLA_F_NESTED;
use chainwright_sys::nf_tables::{
    NFTA_CT_TIMEOUT_DATA, NFTA_CT_TIMEOUT_L3PROTO, NFTA_CT_TIMEOUT_L4PROTO,
};

use crate::netlink::{Attributes, MessageWriter};
use crate::nft::declare::{Field, attributes, nested_field};
use crate::nft::name::Bytes;

attributes! {
    /// Timeouts of connections (`enum nft_ct_timeout_timeout_attributes`).
    pub struct CtTimeout<'a> {
        /// `NFPROTO_*` of the connections; by default that of the table.
        NFTA_CT_TIMEOUT_L3PROTO => l3proto: u16,
        /// `IPPROTO_*` of the connections.
        NFTA_CT_TIMEOUT_L4PROTO => l4proto: u8,
        /// The timeouts.
        NFTA_CT_TIMEOUT_DATA => timeouts: Timeouts<'a>,
    }
}

impl CtTimeout<'static> {
    /// Creates timeouts in seconds per state, for connections of this layer-4 protocol. States not
    /// listed keep the kernel's default.
    #[must_use]
    pub fn new(l4proto: u8, timeouts: &[(u16, u32)]) -> Self {
        Self {
            l4proto: Some(l4proto),
            timeouts: Some(Timeouts::new(timeouts)),
            ..Self::default()
        }
    }
}

/// Timeouts in seconds per state. The states are the attribute types `CTA_TIMEOUT_*` of the protocol
/// (`linux/netfilter/nfnetlink_cttimeout.h`); see [`state_name`](Self::state_name).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Timeouts<'a>(Bytes<'a>);

impl<'a> Timeouts<'a> {
    /// Encodes these timeouts, given by state.
    #[must_use]
    pub fn new(timeouts: &[(u16, u32)]) -> Timeouts<'static> {
        let mut bytes = Vec::new();
        let mut writer = MessageWriter::bare(&mut bytes);
        for &(state, seconds) in timeouts {
            writer.be32(state, seconds);
        }
        // Numbers of four bytes always fit.
        let finished = writer.finish_bare();
        debug_assert!(finished.is_ok());
        Timeouts(bytes.into())
    }

    /// Iterates over states and timeouts in seconds, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u32)> {
        Attributes::new(&self.0)
            .map_while(Result::ok)
            .filter_map(|attribute| Some((attribute.kind, u32::decode(attribute.payload)?)))
    }

    /// Returns the timeout of a state, in seconds.
    #[must_use]
    pub fn get(&self, state: u16) -> Option<u32> {
        self.iter()
            .find(|(this, _)| *this == state)
            .map(|(_, seconds)| seconds)
    }

    /// Returns the name of a connection state for this protocol (`IPPROTO_*`); `None` if unknown.
    #[must_use]
    pub fn state_name(l4proto: u8, state: u16) -> Option<&'static str> {
        const TCP: &[&str] = &[
            "SYN_SENT",
            "SYN_RECV",
            "ESTABLISHED",
            "FIN_WAIT",
            "CLOSE_WAIT",
            "LAST_ACK",
            "TIME_WAIT",
            "CLOSE",
            "SYN_SENT2",
            "RETRANS",
            "UNACKNOWLEDGED",
        ];
        const UDP: &[&str] = &["UNREPLIED", "REPLIED"];
        let names = match i32::from(l4proto) {
            libc::IPPROTO_TCP => TCP,
            libc::IPPROTO_UDP | libc::IPPROTO_UDPLITE => UDP,
            _ => return None,
        };
        names.get(usize::from(state).checked_sub(1)?).copied()
    }
}

impl<'a> Field<'a> for Timeouts<'a> {
    type Static = Timeouts<'static>;
    nested_field!('a, |bytes| {
        let malformed = Attributes::new(bytes).any(|attribute| attribute.is_err());
        (!malformed).then_some(Timeouts(Bytes::borrowed(bytes)))
    });

    fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16) {
        writer.bytes(kind | NLA_F_NESTED, &self.0);
    }

    fn into_static(self) -> Timeouts<'static> {
        Timeouts(self.0.into_owned())
    }
}

impl fmt::Display for CtTimeout<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let l3 = self.l3proto.unwrap_or_default();
        let l4 = self.l4proto.unwrap_or_default();
        write!(f, "[ ct_timeout family {l3} protocol {l4} policy = {{")?;
        for (state, seconds) in self.timeouts.iter().flat_map(Timeouts::iter) {
            match Timeouts::state_name(l4, state) {
                Some(name) => write!(f, "{name} = {seconds},")?,
                None => write!(f, "state {state} = {seconds},")?,
            }
        }
        f.write_str("}]")
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::ObjectData;
    use crate::nft::captured::objects::assert_built;

    #[test]
    fn tcp() {
        let seconds = [120, 60, 132, 120, 60, 30, 120, 13, 120, 300, 300];
        let timeouts: Vec<_> = (1..).zip(seconds).collect();
        let data = CtTimeout {
            l3proto: Some(2),
            ..CtTimeout::new(6, &timeouts)
        };
        assert_eq!(data.timeouts.as_ref().unwrap().get(3), Some(132));
        assert_eq!(data.timeouts.as_ref().unwrap().get(12), None);
        assert_built("ct_timeout", "timeouts of TCP", &ObjectData::from(data));
    }

    #[test]
    fn udp() {
        let data = CtTimeout {
            l3proto: Some(10),
            ..CtTimeout::new(17, &[(1, 13), (2, 23)])
        };
        assert_built("ct_timeout", "timeouts of UDP", &ObjectData::from(data));
        assert_eq!(Timeouts::state_name(17, 3), None);
        assert_eq!(Timeouts::state_name(6, 0), None);
        assert_eq!(Timeouts::state_name(1, 1), None);
    }
}
