//! Common parts of `DNPT` and `SNPT`: IPv6 prefix translation (RFC 6296).
//!
//! Data of revision 0 (`struct ip6t_npt_tginfo`, `linux/netfilter_ipv6/ip6t_NPT.h`). The kernel
//! stores a checksum in it.

use std::net::{IpAddr, Ipv6Addr};

use bstr::{BStr, ByteSlice};
use chainwright_sys::ip6t_npt_target::ip6t_npt_tginfo;
use zerocopy::FromZeros;

use crate::xt::value::{Parsed, address, number, prefix_length};
use crate::xt::{
    GivenOption, OptionError, OptionGroup, OptionSpec, Text, read_struct, write_struct,
};

use crate::xt::Family::Ipv6;

/// Maximum prefix length of the kernel, in bits.
const MAX_LENGTH: u8 = 64;

/// A prefix and its replacement, of at most 64 bits each. The bits of the addresses after the
/// prefixes are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PrefixTranslation {
    /// The original prefix, and its length in bits.
    pub before: (Ipv6Addr, u8),
    /// The new prefix, and its length in bits.
    pub after: (Ipv6Addr, u8),
}

impl PrefixTranslation {
    pub(super) const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("src-pfx").required(),
        OptionSpec::one("dst-pfx").required(),
    ];

    pub(super) fn read(info: &[u8]) -> Option<Self> {
        let info: ip6t_npt_tginfo = read_struct(info)?;
        let prefix = |address: [u8; 16], length| {
            let address = Ipv6Addr::from(address);
            (length <= MAX_LENGTH && host_bits(address, length) == 0).then_some((address, length))
        };
        Some(Self {
            before: prefix(info.src_pfx.all, info.src_pfx_len)?,
            after: prefix(info.dst_pfx.all, info.dst_pfx_len)?,
        })
    }

    pub(super) fn write(self) -> Vec<u8> {
        let mut info = ip6t_npt_tginfo::new_zeroed();
        info.src_pfx.all = self.before.0.octets();
        info.src_pfx_len = self.before.1;
        info.dst_pfx.all = self.after.0.octets();
        info.dst_pfx_len = self.after.1;
        write_struct(&info)
    }

    pub(super) fn parse(_: &[OptionGroup], given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let of = |option| GivenOption::find_required(given, option)?.parse(prefix);
        Ok(Self {
            before: of("src-pfx")?,
            after: of("dst-pfx")?,
        })
    }

    pub(super) fn list(self, text: &mut Text, name: &str) {
        self.print(text.word(name), name);
    }

    pub(super) fn print(self, text: &mut Text, _: &str) {
        for (option, (address, length)) in [("src-pfx", self.before), ("dst-pfx", self.after)] {
            text.option(false, option).push(" ").address(address);
            text.push("/").number(length);
        }
    }
}

/// Parses `address/prefix` or `address/mask`, without bits after the prefix.
fn prefix(value: &BStr) -> Parsed<(Ipv6Addr, u8)> {
    let Some((network, mask)) = value.split_once_str("/") else {
        return Err(format!("`{value}` has no prefix length, as in fd00::/64"));
    };
    let (network, mask) = (network.as_bstr(), mask.as_bstr());
    let IpAddr::V6(network) = address(network, Ipv6)? else {
        return Err(format!("`{network}` is not an IPv6 address"));
    };
    let length = number::<u8>(mask).ok().or_else(|| {
        let mask = address(mask, Ipv6).ok()?;
        u8::try_from(prefix_length(mask)?).ok()
    });
    let length = length
        .filter(|length| *length <= MAX_LENGTH)
        .ok_or_else(|| format!("`{mask}` is not a prefix length from 0 to {MAX_LENGTH}"))?;
    if host_bits(network, length) != 0 {
        return Err(format!("`{value}` has bits set after the prefix"));
    }
    Ok((network, length))
}

/// Returns the bits after a prefix.
fn host_bits(address: Ipv6Addr, length: u8) -> u128 {
    let mask = u128::MAX.checked_shr(u32::from(length)).unwrap_or(0);
    address.to_bits() & mask
}
