//! `-j IDLETIMER`: restarts a timer, which notifies user space through
//! `/sys/class/xt_idletimer/timers/LABEL` when it expires.
//!
//! Data of revision 1 (`struct idletimer_tg_info_v1`, `linux/netfilter/xt_IDLETIMER.h`), or of
//! revision 0 (`struct idletimer_tg_info`), which has no type of timer.

use bstr::BString;
use chainwright_sys::xt_idletimer_target::{
    MAX_IDLETIMER_LABEL_SIZE, XT_IDLETIMER_ALARM, idletimer_tg_info, idletimer_tg_info_v1,
};
use zerocopy::FromZeros;

use super::quoting::bare;
use crate::xt::pack;
use crate::xt::value::{number_within, string, until_nul};
use crate::xt::{
    Context, Difference, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text,
    read_struct, write_struct,
};

/// Maximum of the kernel: more seconds would overflow as milliseconds.
const MAX_LENGTH: u32 = (i32::MAX / 1000 - 1) as u32;

/// `-j IDLETIMER`: restarts a timer, which notifies user space through
/// `/sys/class/xt_idletimer/timers/LABEL` when it expires.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Idletimer {
    /// Seconds without a packet after which the timer expires, 1 to 2147482.
    pub timeout: u32,
    /// Name of the timer: 1 to 27 bytes, without a NUL. Rules with the same name share it.
    pub label: BString,
    /// Whether the timer runs during suspend, and wakes the host.
    pub alarm: bool,
}

impl Extension for Idletimer {
    const NAME: &'static str = "IDLETIMER";
    const REVISION: u8 = 1;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("timeout").required(),
        OptionSpec::one("label").required(),
        OptionSpec::switch("alarm"),
    ];
    const DIFFERENCES: &'static [Difference] = &[
        Difference::refused(
            "-j IDLETIMER --timeout 5 --label 1234567890123456789012345678",
            "-j IDLETIMER --timeout 5 --label 123456789012345678901234567",
            "A label names a timer: a truncated label would name a different one.",
        ),
        Difference::kept(
            "-j IDLETIMER --timeout 5 --label \"a b\"",
            "-j IDLETIMER --timeout 5 --label a b",
            "iptables-save prints the name without quotes, so its output cannot be restored.",
        ),
    ];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let (timeout, label, kind) = match revision {
            0 => {
                let info: idletimer_tg_info = read_struct(info)?;
                (info.timeout, info.label, 0)
            }
            1 => {
                let info: idletimer_tg_info_v1 = read_struct(info)?;
                (info.send_nl_msg == 0).then_some(())?;
                (info.timeout, info.label, info.timer_type)
            }
            _ => return None,
        };
        Some(Self {
            timeout,
            label: until_nul(&label)?.to_owned(),
            alarm: match kind {
                0 => false,
                XT_IDLETIMER_ALARM => true,
                _ => return None,
            },
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = idletimer_tg_info_v1::new_zeroed();
        info.timeout = self.timeout;
        info.label = pack::text("label", &self.label)?;
        info.timer_type = if self.alarm { XT_IDLETIMER_ALARM } else { 0 };
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut timer = Self {
            timeout: 0,
            label: BString::default(),
            alarm: false,
        };
        for one in given {
            match one.option {
                "timeout" => {
                    timer.timeout = one.parse(|value| number_within(value, 1..=MAX_LENGTH))?;
                }
                "label" => {
                    let lengths = 1..=MAX_IDLETIMER_LABEL_SIZE - 1;
                    timer.label = one.parse(|value| string(value, lengths))?.to_owned();
                }
                _ => timer.alarm = true,
            }
        }
        Ok(timer)
    }

    fn print(&self, text: &mut Text) {
        text.option(false, "timeout").push(" ").number(self.timeout);
        bare(text.option(false, "label"), &self.label);
        text.switch(self.alarm, "alarm");
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" timeout:").number(self.timeout);
        text.push(" label:").push(&self.label);
        text.push(if self.alarm { " alarm" } else { "" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Target;

    /// Returns the data of `-j IDLETIMER --timeout 5 --label abc --alarm` from iptables-legacy
    /// 1.8.9 on x86-64 (`strace -xx`).
    fn captured() -> Vec<u8> {
        let mut info = vec![0; 48];
        info[..7].copy_from_slice(&[5, 0, 0, 0, b'a', b'b', b'c']);
        info[33] = 1;
        info
    }

    #[test]
    #[cfg(all(target_endian = "little", target_pointer_width = "64"))]
    fn round_trips_data_of_iptables() {
        let value = Target::read(Family::Ipv4, "IDLETIMER", 1, &captured());
        assert_eq!(
            value.to_string(),
            "-j IDLETIMER --timeout 5 --label abc --alarm"
        );
        assert_eq!(value.encode(Family::Ipv4).unwrap().info, captured());
        assert_eq!(Idletimer::read(Family::Ipv4, 1, &captured()[..47]), None);
        assert_eq!(Idletimer::read(Family::Ipv4, 2, &captured()), None);
        for at in [32, 33] {
            let mut invalid = captured();
            invalid[at] = 2;
            assert_eq!(Idletimer::read(Family::Ipv4, 1, &invalid), None);
        }
        // Revision 0, built from the header, has the kernel's pointer where revision 1 has the
        // type.
        let mut older = captured();
        older[32..40].fill(0xff);
        let older = Idletimer::read(Family::Ipv4, 0, &older[..40]).unwrap();
        assert_eq!((older.timeout, older.alarm), (5, false));
        // iptables-save 1.8.9 prints this label without quotes.
        let spaced = "-j IDLETIMER --timeout 5 --label \"two words\"";
        let rule = Rule::parse(Family::Ipv4, spaced).unwrap();
        assert_eq!(rule.to_string(), spaced);
    }

    #[test]
    fn refuses() {
        for (options, message) in [
            ("--label a", "--timeout is required"),
            ("--timeout 5", "--label is required"),
            (
                "--timeout 0 --label a",
                "`0` is not a number from 1 to 2147482",
            ),
            ("--timeout 2147483 --label a", "from 1 to 2147482"),
            ("--timeout 5 --label \"\"", "it has 0 bytes"),
            // iptables 1.8.9 truncates it.
            (
                "--timeout 5 --label 1234567890123456789012345678",
                "it has 28 bytes; 1 to 27 are allowed",
            ),
        ] {
            let rule = format!("-j IDLETIMER {options}");
            let fault = Rule::parse(Family::Ipv4, rule).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
    }
}
