//! `-j LED`: lights a LED, through a trigger that is assigned to a LED in `/sys/class/leds`.
//!
//! Data of revision 0 (`struct xt_led_info`, `linux/netfilter/xt_LED.h`): the trigger's name, the
//! time for which the LED is on, and whether it blinks when a packet arrives while it is on.

use bstr::{BStr, BString};
use chainwright_sys::xt_led_target::xt_led_info;
use zerocopy::FromZeros;

use super::quoting::quoted;
use crate::xt::pack;
use crate::xt::value::{Parsed, field, number, string, until_nul};
use crate::xt::{
    Context, Extension, Family, GivenOption, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

/// Prefix of every trigger's name.
const PREFIX: &[u8] = b"netfilter-";

/// Maximum length of a name after the prefix, in bytes.
const MAX_LENGTH: usize = 16;

/// The delay of a LED that stays on.
const FOREVER: u32 = u32::MAX;

/// `-j LED`: lights a LED, through a trigger that is assigned to a LED in `/sys/class/leds`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Led {
    /// The trigger's name after `netfilter-`: at most 16 bytes, without a NUL.
    pub trigger: BString,
    /// Milliseconds from a packet until the LED is switched off; `None` if it stays on.
    pub delay: Option<u32>,
    /// Whether the LED blinks when a packet arrives while it is on.
    pub always_blink: bool,
}

impl Extension for Led {
    const NAME: &'static str = "LED";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("led-trigger-id").required(),
        OptionSpec::one("led-delay"),
        OptionSpec::switch("led-always-blink"),
    ];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: xt_led_info = read_struct(info)?;
        let trigger = until_nul(&info.id)?.strip_prefix(PREFIX)?;
        (revision == Self::REVISION).then(|| Self {
            trigger: trigger.into(),
            delay: (info.delay != FOREVER).then_some(info.delay),
            always_blink: info.always_blink != 0,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_led_info::new_zeroed();
        let _: [u8; MAX_LENGTH + 1] = pack::text("led-trigger-id", &self.trigger)?;
        info.id = field(&[PREFIX, &self.trigger].concat());
        info.delay = self.delay.unwrap_or(FOREVER);
        info.always_blink = self.always_blink.into();
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut led = Self {
            delay: Some(0),
            ..Self::default()
        };
        for one in given {
            match one.option {
                "led-trigger-id" => {
                    let trigger = one.parse(|value| string(value, 0..=MAX_LENGTH))?;
                    led.trigger = trigger.to_owned();
                }
                "led-delay" => led.delay = one.parse(delay)?,
                _ => led.always_blink = true,
            }
        }
        Ok(led)
    }

    fn print(&self, text: &mut Text) {
        quoted(text.option(false, "led-trigger-id"), &self.trigger);
        match self.delay {
            Some(0) => {}
            Some(delay) => {
                text.option(false, "led-delay").push(" ").number(delay);
            }
            None => {
                text.option(false, "led-delay").push(" inf");
            }
        }
        text.switch(self.always_blink, "led-always-blink");
    }
}

/// Parses milliseconds, or `inf`.
fn delay(value: &BStr) -> Parsed<Option<u32>> {
    if value.eq_ignore_ascii_case(b"inf") {
        return Ok(None);
    }
    number(value)
        .map(|delay| (delay != FOREVER).then_some(delay))
        .map_err(|wrong| format!("{wrong}, nor `inf`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Target;

    /// Returns the data from iptables-legacy 1.8.9 on x86-64 (`strace -xx`). The test kernel has no
    /// LED, so there is no file of rules; the tool was made to assume support, and the expected
    /// text comes from a direct call of `libxt_LED.so`.
    fn captured(start: &[u8], always_blink: u8, delay: u32) -> Vec<u8> {
        let mut info = vec![0; 40];
        info[..start.len()].copy_from_slice(start);
        info[27] = always_blink;
        info[28..32].copy_from_slice(&delay.to_ne_bytes());
        info
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn round_trips_data_of_iptables() {
        for (options, info) in [
            ("--led-trigger-id \"foo\"", captured(b"netfilter-foo", 0, 0)),
            (
                "--led-trigger-id \"foo\\\"b ar\" --led-delay 42 --led-always-blink",
                captured(b"netfilter-foo\"b ar", 1, 42),
            ),
            // iptables-save prints -1, which iptables does not accept.
            (
                "--led-trigger-id \"\" --led-delay inf",
                captured(b"netfilter-", 0, u32::MAX),
            ),
        ] {
            let value = Target::read(Family::Ipv4, "LED", 0, &info);
            let text = format!("-j LED {options}");
            assert_eq!(value.to_string(), text);
            assert_eq!(value.encode(Family::Ipv4).unwrap().info, info);
            let rule = Rule::parse(Family::Ipv6, &text).unwrap();
            assert_eq!(rule.to_string(), text);
        }
        for invalid in [
            &captured(b"netfilter", 0, 0)[..],
            &captured(&[b'x'; 27], 0, 0),
            &captured(b"netfilter-foo", 0, 0)[..39],
        ] {
            assert_eq!(Led::read(Family::Ipv4, 0, invalid), None);
        }
        let info = captured(b"netfilter-foo", 0, 0);
        assert_eq!(Led::read(Family::Ipv4, 1, &info), None);
    }

    #[test]
    fn refuses() {
        for (options, message) in [
            ("--led-delay 5", "--led-trigger-id is required"),
            (
                "--led-trigger-id 12345678901234567",
                "it has 17 bytes; 0 to 16 are allowed",
            ),
            (
                "--led-trigger-id a --led-delay 4294967296",
                "`4294967296` is not a number from 0 to 4294967295, nor `inf`",
            ),
        ] {
            let fault = Rule::parse(Family::Ipv4, format!("-j LED {options}")).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
    }
}
