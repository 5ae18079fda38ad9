//! `-j NFQUEUE`: queues the packet to a program, which returns a verdict.
//!
//! Data (`linux/netfilter/xt_NFQUEUE.h`): revision 0 has a queue; 1 a range of queues; 2 also
//! bypass; 3, the written one, flags.

use bstr::ByteSlice;
use chainwright_sys::xt_nfqueue_target::{
    NFQ_FLAG_BYPASS, NFQ_FLAG_CPU_FANOUT, NFQ_FLAG_MASK, xt_NFQ_info, xt_NFQ_info_v1,
    xt_NFQ_info_v2, xt_NFQ_info_v3,
};

use crate::xt::value::{number, range};
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

/// `-j NFQUEUE`: queues the packet to a program, which returns a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Nfqueue {
    /// The first queue.
    pub first: u16,
    /// The last queue. With several queues, each flow is assigned to one of them.
    pub last: u16,
    /// Whether the packet continues if no program listens: `--queue-bypass`.
    pub bypass: bool,
    /// Whether to choose the queue by CPU instead of by flow; only with several queues.
    pub cpu_fanout: bool,
}

impl Extension for Nfqueue {
    const NAME: &'static str = "NFQUEUE";
    const REVISION: u8 = 3;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("queue-num"),
        OptionSpec::one("queue-balance").excludes(&["queue-num"]),
        OptionSpec::switch("queue-bypass"),
        // It selects one of several queues.
        OptionSpec::switch("queue-cpu-fanout").needs(&["queue-balance"]),
    ];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let (first, total, flags) = match revision {
            0 => (read_struct::<xt_NFQ_info>(info)?.queuenum, 1, 0),
            1 => {
                let info: xt_NFQ_info_v1 = read_struct(info)?;
                (info.queuenum, info.queues_total, 0)
            }
            2 => {
                let info: xt_NFQ_info_v2 = read_struct(info)?;
                // The only flag of this revision, 1, is the bypass flag.
                (info.bypass <= 1).then_some((info.queuenum, info.queues_total, info.bypass))?
            }
            3 => {
                let info: xt_NFQ_info_v3 = read_struct(info)?;
                (info.queuenum, info.queues_total, info.flags)
            }
            _ => return None,
        };
        (flags & !NFQ_FLAG_MASK == 0).then_some(())?;
        Some(Self {
            first,
            last: first.checked_add(total.checked_sub(1)?)?,
            bypass: flags & NFQ_FLAG_BYPASS != 0,
            // No effect with a single queue.
            cpu_fanout: flags & NFQ_FLAG_CPU_FANOUT != 0 && total > 1,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let all = self.last.checked_sub(self.first);
        let Some(queues_total) = all.and_then(|all| all.checked_add(1)) else {
            let reason = format!(
                "queues {} to {} cannot be expressed by the target's two numbers",
                self.first, self.last
            );
            return Err(OptionError::of("queue-balance", reason));
        };
        let flag = |set, flag| if set { flag } else { 0 };
        let info = xt_NFQ_info_v3 {
            queuenum: self.first,
            queues_total,
            flags: flag(self.bypass, NFQ_FLAG_BYPASS) | flag(self.cpu_fanout, NFQ_FLAG_CPU_FANOUT),
        };
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut value = Self {
            first: 0,
            last: 0,
            bypass: false,
            cpu_fanout: false,
        };
        for one in given {
            match one.option {
                "queue-num" => {
                    value.first = one.parse(number)?;
                    value.last = value.first;
                }
                "queue-balance" => {
                    (value.first, value.last) = one.parse(|value| {
                        let queues = range(value, 0..=u16::MAX)?;
                        let (first, last) = queues.into_inner();
                        if first == last || !value.contains_str(":") {
                            return Err(format!(
                                "`{value}` is not a range of several queues, like 0:3"
                            ));
                        }
                        if (first, last) == (0, u16::MAX) {
                            return Err("65536 queues are too many".to_owned());
                        }
                        Ok((first, last))
                    })?;
                }
                "queue-bypass" => value.bypass = true,
                _ => value.cpu_fanout = true,
            }
        }
        Ok(value)
    }

    fn print(&self, text: &mut Text) {
        if self.last > self.first {
            text.option(false, "queue-balance")
                .push(" ")
                .number(self.first);
            text.push(":").number(self.last);
        } else {
            text.option(false, "queue-num").push(" ").number(self.first);
        }
        text.switch(self.bypass, "queue-bypass");
        text.switch(self.cpu_fanout, "queue-cpu-fanout");
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        if self.last > self.first {
            text.push(" NFQUEUE balance ").range(self.first, self.last);
        } else {
            text.push(" NFQUEUE num ").number(self.first);
        }
        text.bare(|text| {
            text.switch(self.bypass, "bypass");
            text.switch(self.cpu_fanout, "cpu-fanout");
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::targets::testing::{check, refused};

    /// Data from strace of iptables-legacy 1.8.9.
    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let value = Nfqueue {
            first: 4,
            last: 7,
            bypass: true,
            cpu_fanout: false,
        };
        let printed = " --queue-balance 4:7 --queue-bypass";
        check(Family::Ipv4, "04 00 04 00 01 00", &value, printed);
        // Older revisions contain the same or less.
        let read = |revision, info: &[u8]| Nfqueue::read(Family::Ipv6, revision, info);
        let mut older = value;
        assert_eq!(read(2, &[4, 0, 4, 0, 1, 0]), Some(older));
        older.bypass = false;
        assert_eq!(read(1, &[4, 0, 4, 0]), Some(older));
        older.last = 4;
        assert_eq!(read(0, &[4, 0]), Some(older));
        assert_eq!(read(3, &[4, 0, 1, 0, 2, 0]), Some(older));
        for length in 0..6 {
            let short = &[4, 0, 4, 0, 1, 0][..length];
            assert_eq!(read(2, short), None);
            assert_eq!(read(1, short).is_some(), length >= 4);
            assert_eq!(read(0, short).is_some(), length >= 2);
        }
        // No queue, a range beyond the last queue, unknown flags.
        for info in [
            [4, 0, 0, 0, 0, 0],
            [0xff, 0xff, 2, 0, 0, 0],
            [4, 0, 1, 0, 4, 0],
        ] {
            assert_eq!(read(3, &info), None);
        }
        assert_eq!(read(2, &[4, 0, 4, 0, 2, 0]), None);
    }

    #[test]
    fn reports_errors() {
        for (given, reason) in [
            (
                &[("queue-balance", "5")][..],
                "--queue-balance: `5` is not a range of several queues, like 0:3",
            ),
            (
                &[("queue-balance", "5:5")],
                "--queue-balance: `5:5` is not a range of several queues, like 0:3",
            ),
            (
                &[("queue-balance", "5:1")],
                "--queue-balance: the range `5:1` ends before it starts",
            ),
            (
                &[("queue-balance", ":")],
                "--queue-balance: 65536 queues are too many",
            ),
            (
                &[("queue-num", "1"), ("queue-balance", "1:5")],
                "--queue-balance cannot be used with --queue-num",
            ),
            (
                &[("queue-num", "1"), ("queue-cpu-fanout", "")],
                "--queue-cpu-fanout needs --queue-balance",
            ),
        ] {
            assert_eq!(refused::<Nfqueue>(Family::Ipv4, None, given), reason);
        }
    }
}
