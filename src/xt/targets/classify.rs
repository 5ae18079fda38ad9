//! `-j CLASSIFY`: assigns the packet to a traffic control class.
//!
//! Data of revision 0 (`struct xt_classify_target_info`, `linux/netfilter/xt_CLASSIFY.h`): the
//! packet's priority, which combines the class's two numbers.

use bstr::{BStr, ByteSlice};
use chainwright_sys::xt_classify_target::xt_classify_target_info;

use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

/// `-j CLASSIFY`: assigns the packet to a traffic control class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Classify {
    /// Major number: that of the queueing discipline.
    pub major: u16,
    /// Minor number.
    pub minor: u16,
}

impl Extension for Classify {
    const NAME: &'static str = "CLASSIFY";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("set-class").required()];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let priority = read_struct::<xt_classify_target_info>(info)?.priority;
        Some(Self {
            major: (priority >> 16) as u16,
            minor: priority as u16,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_classify_target_info {
            priority: u32::from(self.major) << 16 | u32::from(self.minor),
        };
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let class = GivenOption::find_required(given, "set-class")?;
        class.parse(|value| {
            let numbers = value.split_once_str(":");
            numbers
                .and_then(|(major, minor)| {
                    Some(Self {
                        major: hex(major)?,
                        minor: hex(minor)?,
                    })
                })
                .ok_or_else(|| wrong(value))
        })
    }

    fn print(&self, text: &mut Text) {
        text.option(false, "set-class").push(" ");
        text.display(format_args!("{:04x}:{:04x}", self.major, self.minor));
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" CLASSIFY set ");
        text.display(format_args!("{:x}:{:x}", self.major, self.minor));
    }
}

/// Parses a hexadecimal number.
fn hex(digits: &[u8]) -> Option<u16> {
    let digits = digits.strip_prefix(b"0x").unwrap_or(digits).to_str().ok()?;
    // `from_str_radix` accepts a sign.
    let first = digits.chars().next()?;
    u16::from_str_radix(digits, 16)
        .ok()
        .filter(|_| first.is_ascii_hexdigit())
}

fn wrong(value: &BStr) -> String {
    format!("`{value}` is not two hexadecimal numbers up to ffff, like 1:10")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::targets::testing::{check, refused};

    /// Data from strace of iptables-legacy 1.8.9.
    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let value = Classify {
            major: 1,
            minor: 16,
        };
        check(
            Family::Ipv4,
            "10 00 01 00",
            &value,
            " --set-class 0001:0010",
        );
    }

    #[test]
    fn reports_errors() {
        // iptables 1.8.9 truncates numbers and ignores trailing text.
        for value in [
            "1", "1:", ":1", "1:2:3", "10000:1", "1:2x", "+1:2", "0x:1", "0x+1:1", " 1:2",
        ] {
            assert_eq!(
                refused::<Classify>(Family::Ipv4, None, &[("set-class", value)]),
                format!("--set-class: {}", wrong(value.as_bytes().as_bstr()))
            );
        }
    }
}
