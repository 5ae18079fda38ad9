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
    use crate::nft::stateful::tests::{assert_data, assert_listed};

    /// nft 1.0.6:
    /// `add ct timeout inet t to { protocol tcp; l3proto ip; policy = { established: 132, close: 13 }; }`,
    /// which sends its own defaults for the other states.
    #[test]
    fn tcp() {
        let seconds = [120, 60, 132, 120, 60, 30, 120, 13, 120, 300, 300];
        let timeouts: Vec<_> = (1..).zip(seconds).collect();
        let timeout = CtTimeout {
            l3proto: Some(2),
            ..CtTimeout::new(6, &timeouts)
        };
        assert_eq!(timeout.timeouts.as_ref().unwrap().get(3), Some(132));
        assert_eq!(timeout.timeouts.as_ref().unwrap().get(12), None);
        assert_data(
            timeout,
            "
                70000480 06000100 00020000 05000200 06000000 5c000380 08000100 00000078
                08000200 0000003c 08000300 00000084 08000400 00000078 08000500 0000003c
                08000600 0000001e 08000700 00000078 08000800 0000000d 08000900 00000078
                08000a00 0000012c 08000b00 0000012c
            ",
            "[ ct_timeout family 2 protocol 6 policy = {SYN_SENT = 120,SYN_RECV = 60,ESTABLISHED = \
             132,FIN_WAIT = 120,CLOSE_WAIT = 60,LAST_ACK = 30,TIME_WAIT = 120,CLOSE = 13,SYN_SENT2 \
             = 120,RETRANS = 300,UNACKNOWLEDGED = 300,}]",
        );
    }

    /// nft 1.0.6: `add ct timeout inet t tu { protocol udp; l3proto ip6; policy = { unreplied: 13,
    /// replied: 23 }; }`.
    #[test]
    fn udp() {
        let timeout = CtTimeout {
            l3proto: Some(10),
            ..CtTimeout::new(17, &[(1, 13), (2, 23)])
        };
        let line = "[ ct_timeout family 10 protocol 17 policy = {UNREPLIED = 13,REPLIED = 23,}]";
        assert_data(
            timeout.clone(),
            "
                28000480 06000100 000a0000 05000200 11000000 14000380 08000100 0000000d
                08000200 00000017
            ",
            line,
        );
        assert_listed(
            timeout,
            "
                01000002 06000100 74000000 07000200 74750000 08000300 00000007 0c000600
                00000000 00000007 08000500 00000000 28000400 05000200 11000000 06000100
                000a0000 14000380 08000100 0000000d 08000200 00000017
            ",
            &format!("table t name tu use 0 {line}"),
        );
        assert_eq!(Timeouts::state_name(17, 3), None);
        assert_eq!(Timeouts::state_name(6, 0), None);
        assert_eq!(Timeouts::state_name(1, 1), None);
    }
}
