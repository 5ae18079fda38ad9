//! Addresses and ports of a connection, compared separately in each direction.

use std::net::IpAddr;

use bstr::{BStr, ByteSlice};
use chainwright_sys::netfilter::nf_inet_addr;
use chainwright_sys::xt_conntrack::{
    XT_CONNTRACK_ORIGDST, XT_CONNTRACK_ORIGDST_PORT, XT_CONNTRACK_ORIGSRC,
    XT_CONNTRACK_ORIGSRC_PORT, XT_CONNTRACK_REPLDST, XT_CONNTRACK_REPLDST_PORT,
    XT_CONNTRACK_REPLSRC, XT_CONNTRACK_REPLSRC_PORT, xt_conntrack_mtinfo3,
};

use crate::xt::matches::ports::PortRange;
use crate::xt::value::{Parsed, address, from_octets, number_within, prefix_mask, width};
use crate::xt::{Family, Mask, Negatable, OptionError, Text, pack};

/// An address and its mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConntrackAddress {
    /// The address as given: bits outside the mask may be set.
    pub address: IpAddr,
    /// Its mask, of the same family.
    pub mask: Mask,
}

/// Addresses and ports of both directions; the default compares nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct ConntrackTuples {
    /// Source address of the original direction: `--ctorigsrc`.
    pub original_source: Option<Negatable<ConntrackAddress>>,
    /// Destination address of the original direction: `--ctorigdst`.
    pub original_destination: Option<Negatable<ConntrackAddress>>,
    /// Source address of the replies: `--ctreplsrc`.
    pub reply_source: Option<Negatable<ConntrackAddress>>,
    /// Destination address of the replies: `--ctrepldst`.
    pub reply_destination: Option<Negatable<ConntrackAddress>>,
    /// Source ports of the original direction: `--ctorigsrcport`.
    pub original_source_port: Option<PortRange>,
    /// Destination ports of the original direction: `--ctorigdstport`.
    pub original_destination_port: Option<PortRange>,
    /// Source ports of the replies: `--ctreplsrcport`.
    pub reply_source_port: Option<PortRange>,
    /// Destination ports of the replies: `--ctrepldstport`.
    pub reply_destination_port: Option<PortRange>,
}

/// The bits of `match_flags` for the fields of [`ConntrackTuples`].
pub(super) const TUPLES: u16 = XT_CONNTRACK_ORIGSRC
    | XT_CONNTRACK_ORIGDST
    | XT_CONNTRACK_REPLSRC
    | XT_CONNTRACK_REPLDST
    | XT_CONNTRACK_ORIGSRC_PORT
    | XT_CONNTRACK_ORIGDST_PORT
    | XT_CONNTRACK_REPLSRC_PORT
    | XT_CONNTRACK_REPLDST_PORT;

impl ConntrackTuples {
    pub(super) fn read(family: Family, info: &xt_conntrack_mtinfo3) -> Self {
        let has = |flag| info.match_flags & flag != 0;
        let inverted = |flag| info.invert_flags & flag != 0;
        let host = |flag, address: &nf_inet_addr, mask: &nf_inet_addr| {
            has(flag).then(|| Negatable {
                value: ConntrackAddress {
                    address: from_octets(family, &address.all),
                    mask: Mask::read(family, &mask.all),
                },
                invert: inverted(flag),
            })
        };
        let ports = |flag, low, high| has(flag).then(|| PortRange::of([low, high], inverted(flag)));
        Self {
            original_source: host(XT_CONNTRACK_ORIGSRC, &info.origsrc_addr, &info.origsrc_mask),
            original_destination: host(
                XT_CONNTRACK_ORIGDST,
                &info.origdst_addr,
                &info.origdst_mask,
            ),
            reply_source: host(XT_CONNTRACK_REPLSRC, &info.replsrc_addr, &info.replsrc_mask),
            reply_destination: host(XT_CONNTRACK_REPLDST, &info.repldst_addr, &info.repldst_mask),
            original_source_port: ports(
                XT_CONNTRACK_ORIGSRC_PORT,
                info.origsrc_port,
                info.origsrc_port_high,
            ),
            original_destination_port: ports(
                XT_CONNTRACK_ORIGDST_PORT,
                info.origdst_port,
                info.origdst_port_high,
            ),
            reply_source_port: ports(
                XT_CONNTRACK_REPLSRC_PORT,
                info.replsrc_port,
                info.replsrc_port_high,
            ),
            reply_destination_port: ports(
                XT_CONNTRACK_REPLDST_PORT,
                info.repldst_port,
                info.repldst_port_high,
            ),
        }
    }

    pub(super) fn write(
        &self,
        family: Family,
        info: &mut xt_conntrack_mtinfo3,
    ) -> Result<(), OptionError> {
        let (mut compared, mut inverted) = (0, 0);
        let mut host = |option, flag, value: Option<Negatable<ConntrackAddress>>| {
            let Some(Negatable {
                value: with,
                invert,
            }) = value
            else {
                return Ok([nf_inet_addr { all: [0; 16] }; 2]);
            };
            compared |= flag;
            inverted |= if invert { flag } else { 0 };
            let address = pack::address(option, family, with.address)?;
            let mask = with.mask.write(option, family)?;
            Ok([address, mask].map(|all| nf_inet_addr { all }))
        };
        [info.origsrc_addr, info.origsrc_mask] =
            host("ctorigsrc", XT_CONNTRACK_ORIGSRC, self.original_source)?;
        [info.origdst_addr, info.origdst_mask] =
            host("ctorigdst", XT_CONNTRACK_ORIGDST, self.original_destination)?;
        [info.replsrc_addr, info.replsrc_mask] =
            host("ctreplsrc", XT_CONNTRACK_REPLSRC, self.reply_source)?;
        [info.repldst_addr, info.repldst_mask] =
            host("ctrepldst", XT_CONNTRACK_REPLDST, self.reply_destination)?;
        let mut ports = |flag, value: Option<PortRange>| {
            let Some(ports) = value else { return [0; 2] };
            compared |= flag;
            inverted |= if ports.invert { flag } else { 0 };
            ports.ends()
        };
        [info.origsrc_port, info.origsrc_port_high] =
            ports(XT_CONNTRACK_ORIGSRC_PORT, self.original_source_port);
        [info.origdst_port, info.origdst_port_high] =
            ports(XT_CONNTRACK_ORIGDST_PORT, self.original_destination_port);
        [info.replsrc_port, info.replsrc_port_high] =
            ports(XT_CONNTRACK_REPLSRC_PORT, self.reply_source_port);
        [info.repldst_port, info.repldst_port_high] =
            ports(XT_CONNTRACK_REPLDST_PORT, self.reply_destination_port);
        info.match_flags |= compared;
        info.invert_flags |= inverted;
        Ok(())
    }

    pub(super) fn print(&self, text: &mut Text) {
        for (option, host) in [
            ("ctorigsrc", self.original_source),
            ("ctorigdst", self.original_destination),
            ("ctreplsrc", self.reply_source),
            ("ctrepldst", self.reply_destination),
        ] {
            let Some(Negatable {
                value: with,
                invert,
            }) = host
            else {
                continue;
            };
            text.option(invert, option).push(" ").address(with.address);
            with.mask.print(text);
        }
        for (option, ports) in [
            ("ctorigsrcport", self.original_source_port),
            ("ctorigdstport", self.original_destination_port),
            ("ctreplsrcport", self.reply_source_port),
            ("ctrepldstport", self.reply_destination_port),
        ] {
            if let Some(ports) = ports {
                ports.print(text, option);
            }
        }
    }
}

/// Parses an address, optionally with a prefix length or a mask after a slash.
pub(super) fn host(value: &BStr, family: Family) -> Parsed<ConntrackAddress> {
    let most = width(family);
    let (text, mask) = match value.split_once_str("/") {
        None => (value, Some(Mask::full(family))),
        Some((text, mask)) => {
            let mask = mask.as_bstr();
            let prefix = number_within(mask, 0..=most).ok();
            let mask = match prefix {
                Some(prefix) => prefix_mask(family, prefix),
                None => address(mask, family).ok(),
            };
            (text.as_bstr(), mask.map(Mask::new))
        }
    };
    let mask = mask.ok_or_else(|| {
        format!(
            "`{value}` has a mask that is neither a prefix length from 0 to {most} nor an address"
        )
    })?;
    let address = address(text, family)?;
    Ok(ConntrackAddress { address, mask })
}
