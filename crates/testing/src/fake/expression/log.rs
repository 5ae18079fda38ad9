//! `log`: to the kernel's log at a level, or to a group of nfnetlink_log.

use bstr::BStr;

use super::context::check_length;
use super::errors::EINVAL;
use super::{Context, KernelExpression};
use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::expr::{Log, LogFlags, LogLevel, LogRef};

impl<'a> KernelExpression<'a> for LogRef<'a> {
    type Listed = Log<'a>;

    fn select(&self, _: Family) -> Result<(), Errno> {
        check_length(self.prefix(), 127)
    }

    fn init(&self, _: &mut Context<'_>) -> Result<Log<'a>, Errno> {
        let listed = Log {
            prefix: self.prefix().map(|prefix| up_to_nul(prefix).into()),
            ..Default::default()
        };
        if let Some(group) = self.group() {
            if self.level().is_some() || self.flags().is_some() {
                return Err(EINVAL);
            }
            return Ok(Log {
                group: Some(group),
                snaplen: self.snaplen(),
                queue_threshold: self.queue_threshold().filter(|threshold| *threshold != 0),
                ..listed
            });
        }
        // The kernel stores a byte of each.
        let level = self.level().unwrap_or(LogLevel::WARNING).0 & 0xff;
        let flags = self.flags().map_or(0, |flags| flags.bits() & 0xff);
        let flags = LogFlags::from_bits_retain(flags);
        if level > LogLevel::AUDIT.0 || flags.intersects(!LogFlags::all_named()) {
            return Err(EINVAL);
        }
        Ok(Log {
            level: Some(LogLevel(level)),
            flags: (!flags.is_empty()).then_some(flags),
            ..listed
        })
    }
}

/// Cuts a string at its first NUL.
fn up_to_nul(string: &BStr) -> &BStr {
    string
        .split(|byte| *byte == 0)
        .next()
        .unwrap_or_default()
        .into()
}
