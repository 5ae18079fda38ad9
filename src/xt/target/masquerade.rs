//! `MASQUERADE`: changes a connection's source to the address of the interface that it leaves by.
//!
//! Data of revision 0: for IPv4 `struct nf_nat_ipv4_multi_range_compat`, for IPv6
//! `struct nf_nat_range` (`linux/netfilter/nf_nat.h`). The value here says how ports are chosen;
//! data with a range of ports stays opaque.

use chainwright_sys::nf_nat::{
    NF_NAT_RANGE_PROTO_RANDOM, NF_NAT_RANGE_PROTO_RANDOM_FULLY, nf_nat_ipv4_multi_range_compat,
    nf_nat_range,
};
use zerocopy::{FromZeros, IntoBytes};

use crate::xt::{Context, Extension, Family, Given, Misuse, OptionSpec, Text, read_struct};

/// Masquerades, keeping the port where it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Masquerade {
    /// Ports are chosen by a hash: `--random`.
    pub random: bool,
    /// Ports are chosen at random: `--random-fully`.
    pub random_fully: bool,
}

impl Masquerade {
    const fn flags(self) -> u32 {
        (if self.random {
            NF_NAT_RANGE_PROTO_RANDOM
        } else {
            0
        }) | (if self.random_fully {
            NF_NAT_RANGE_PROTO_RANDOM_FULLY
        } else {
            0
        })
    }
}

impl Extension for Masquerade {
    const NAME: &'static str = "MASQUERADE";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::switch("random"),
        OptionSpec::switch("random-fully"),
    ];

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let flags = match family {
            Family::Ipv4 => {
                let info: nf_nat_ipv4_multi_range_compat = read_struct(info)?;
                if info.rangesize != 1 {
                    return None;
                }
                info.range[0].flags
            }
            Family::Ipv6 => read_struct::<nf_nat_range>(info)?.flags,
        };
        let value = Self {
            random: flags & NF_NAT_RANGE_PROTO_RANDOM != 0,
            random_fully: flags & NF_NAT_RANGE_PROTO_RANDOM_FULLY != 0,
        };
        (value.flags() == flags).then_some(value)
    }

    fn write(&self, family: Family) -> Vec<u8> {
        match family {
            Family::Ipv4 => {
                let mut info = nf_nat_ipv4_multi_range_compat::new_zeroed();
                info.rangesize = 1;
                info.range[0].flags = self.flags();
                info.as_bytes().to_vec()
            }
            Family::Ipv6 => {
                let mut info = nf_nat_range::new_zeroed();
                info.flags = self.flags();
                info.as_bytes().to_vec()
            }
        }
    }
    fn parse(_: &Context<'_>, given: &[Given<'_>]) -> Result<Self, Misuse> {
        let has = |option| given.iter().any(|one| one.option == option);
        Ok(Self {
            random: has("random"),
            random_fully: has("random-fully"),
        })
    }

    fn print(&self, text: &mut Text) {
        if self.random {
            text.option(false, "random");
        }
        if self.random_fully {
            text.option(false, "random-fully");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::Target;

    #[test]
    fn round_trip_in_both_families() {
        for family in [Family::Ipv4, Family::Ipv6] {
            for value in [
                Masquerade::default(),
                Masquerade {
                    random: false,
                    random_fully: true,
                },
            ] {
                let info = value.write(family);
                assert_eq!(info.len(), if family == Family::Ipv4 { 20 } else { 40 });
                assert_eq!(Masquerade::read(family, 0, &info), Some(value));
                assert_eq!(Masquerade::read(family, 0, &info[..info.len() - 1]), None);
                // A range of ports is more than the value can say.
                let mut ports = info.clone();
                ports[if family == Family::Ipv4 { 4 } else { 0 }] |= 2;
                if cfg!(target_endian = "little") {
                    assert_eq!(Masquerade::read(family, 0, &ports), None);
                }
            }
        }
        let fully = Masquerade {
            random: false,
            random_fully: true,
        };
        assert_eq!(
            Target::Masquerade(fully).to_string(),
            "-j MASQUERADE --random-fully"
        );
    }
}
