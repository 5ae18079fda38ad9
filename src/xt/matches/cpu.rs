//! `-m cpu`: compares the CPU that processes the packet.
//!
//! Data of revision 0 (`struct xt_cpu_info`, `linux/netfilter/xt_cpu.h`).

use chainwright_sys::xt_cpu::xt_cpu_info;

use crate::xt::value::number;
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

/// `-m cpu`: compares the CPU that processes the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cpu {
    /// The CPU's number, from 0.
    pub cpu: u32,
    /// Whether the comparison is negated.
    pub invert: bool,
}

impl Extension for Cpu {
    const NAME: &'static str = "cpu";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("cpu").inverts().required()];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_cpu_info = read_struct(info)?;
        // The kernel accepts no other value.
        (info.invert <= 1).then_some(Self {
            cpu: info.cpu,
            invert: info.invert == 1,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_cpu_info {
            cpu: self.cpu,
            invert: self.invert.into(),
        };
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let cpu = GivenOption::find_required(given, "cpu")?;
        Ok(Self {
            cpu: cpu.parse(number)?,
            invert: cpu.invert,
        })
    }

    fn print(&self, text: &mut Text) {
        text.option(self.invert, "cpu").push(" ").number(self.cpu);
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.bare(|text| self.print(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::Match;

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        // `-m cpu ! --cpu 3` by iptables-legacy 1.8.9 (from `strace -xx`).
        let info = [3, 0, 0, 0, 1, 0, 0, 0];
        let cpu = Cpu {
            cpu: 3,
            invert: true,
        };
        assert_eq!(Cpu::read(Family::Ipv6, 0, &info), Some(cpu));
        assert_eq!(cpu.write(Family::Ipv6).unwrap(), info);
        assert_eq!(Match::Cpu(cpu).to_string(), "-m cpu ! --cpu 3");
        assert_eq!(Cpu::read(Family::Ipv6, 0, &info[..7]), None);
        assert_eq!(Cpu::read(Family::Ipv6, 1, &info), None);
        assert_eq!(Cpu::read(Family::Ipv6, 0, &[3, 0, 0, 0, 2, 0, 0, 0]), None);
    }
}
