//! Lists base chains and flowtables, with their hooks.

use std::fmt::{self, Write};

use bstr::{BStr, BString, ByteSlice};

use crate::constant::{Plain, Quoted, is_name, quotable};
use crate::dialect::Form;
use crate::print::Printer;
use crate::priorities;
use crate::read::rule;
use chainwright::nft::{
    ChainFlags, ChainRef, Device, Devices, Family, FlowtableFlags, FlowtableRef, Hook,
    SnapshotChain, SnapshotTable, hook_name,
};

impl<W: Write> Printer<'_, W> {
    pub(crate) fn chain(
        &mut self,
        table: &SnapshotTable<'_>,
        chain: &SnapshotChain<'_>,
        with_rules: bool,
    ) -> fmt::Result {
        let view = chain.chain();
        self.begin("chain", view.name(), view.handle())?;
        self.comment(view.comment())?;
        self.hook(&view)?;
        if with_rules {
            let version = self.options.nft_version;
            self.rules(chain.rules().map(|each| rule::rule(table, &each, version)))?;
        }
        self.end()
    }

    pub(crate) fn hook(&mut self, chain: &ChainRef<'_>) -> fmt::Result {
        let Some(hook) = chain.hook() else {
            return Ok(());
        };
        let family = chain.family();
        let number = hook.number.unwrap_or_default();
        self.indent()?;
        let kind = chain.chain_type().unwrap_or_default();
        let name = hook_name(family, number).unwrap_or("unknown");
        write!(self.out, "type {} hook {name}", Plain(kind))?;
        let devices = devices(&hook);
        match &devices[..] {
            [] => {}
            [one] => write!(self.out, " device {}", Quoted(one.as_slice().as_bstr()))?,
            _ => {
                let is_quoted = self.options.has(Form::QuotedDevices);
                let mut names: Vec<String> = hook
                    .devices
                    .iter()
                    .flat_map(|devices| listed(devices, is_quoted))
                    .collect();
                // Quotation marks do not affect the sort order.
                names.sort_unstable_by(|one, other| {
                    one.trim_matches('"').cmp(other.trim_matches('"'))
                });
                write!(self.out, " devices = {{ {} }}", names.join(", "))?;
            }
        }
        self.out.write_str(" priority ")?;
        let number = hook.priority.unwrap_or_default();
        match self.options.numeric_priority {
            true => write!(self.out, "{number}")?,
            false => self.priority(family, name, number)?,
        }
        self.out.write_char(';')?;
        if let Some(policy) = chain.policy() {
            match policy.name() {
                Some(name) => write!(self.out, " policy {name};")?,
                None => write!(self.out, " # policy {}", policy.0)?,
            }
        }
        self.out.write_char('\n')?;
        let flags = chain.flags().unwrap_or_default();
        self.flags_line(flags, &[(ChainFlags::HW_OFFLOAD, "offload")])?;
        Ok(())
    }

    /// Prints a priority by name, if a named priority is near.
    fn priority(&mut self, family: Family, hook: &str, priority: i32) -> fmt::Result {
        const MAX_DISTANCE: i32 = 10;
        let fits = |name: &str| match self.options.has(Form::NatPriorities) {
            true => priorities::is_priority_at(name, family, hook),
            false => priorities::hook_of_priority(name).is_none_or(|of| of == hook),
        };
        let near = priorities::priorities(family)
            .iter()
            .filter(|(name, _)| fits(name))
            .find_map(|(name, number)| {
                let offset = priority.checked_sub(*number)?;
                (-MAX_DISTANCE..=MAX_DISTANCE)
                    .contains(&offset)
                    .then_some((name, offset))
            });
        match near {
            Some((name, 0)) => self.out.write_str(name),
            Some((name, offset)) if offset > 0 => write!(self.out, "{name} + {offset}"),
            Some((name, offset)) => write!(self.out, "{name} - {}", -offset),
            None => write!(self.out, "{priority}"),
        }
    }

    pub(crate) fn flowtable(&mut self, flowtable: &FlowtableRef<'_>) -> fmt::Result {
        self.begin("flowtable", flowtable.name(), flowtable.handle())?;
        let hook = flowtable.hook().unwrap_or_default();
        self.indent()?;
        self.out.write_str("hook ingress priority ")?;
        let number = hook.priority.unwrap_or_default();
        match self.options.numeric_priority {
            true => write!(self.out, "{number}")?,
            false => self.priority(Family::NETDEV, "ingress", number)?,
        }
        self.out.write_char('\n')?;
        let devices = hook.devices.unwrap_or_default();
        let names = listed(&devices, self.options.has(Form::QuotedDevices));
        if !names.is_empty() {
            self.line(format_args!("devices = {{ {} }}", names.join(", ")))?;
        }
        let flags = flowtable.flags().unwrap_or_default();
        self.flags_line(flags, &[(FlowtableFlags::HW_OFFLOAD, "offload")])?;
        if flags.contains(FlowtableFlags::COUNTER) {
            self.line(format_args!("counter"))?;
        }
        self.end()
    }
}

/// Returns the device names of a chain. Wildcards end with an asterisk.
pub(crate) fn devices(hook: &Hook<'_>) -> Vec<BString> {
    if let Some(device) = &hook.device {
        return vec![device.to_vec().into()];
    }
    let mut names: Vec<BString> = hook.devices.iter().flat_map(names).collect();
    names.sort_unstable();
    names
}

/// Returns `true` if all device names, of a list and a single one, can be quoted.
pub(crate) fn are_quotable(devices: Option<&Devices<'_>>, alone: Option<&BStr>) -> bool {
    let devices = devices.into_iter().flat_map(Devices::iter);
    let names = devices.filter_map(|device| match device {
        Device::Name(name) | Device::Prefix(name) => Some(name),
        _ => None,
    });
    let mut names = names.chain(alone);
    names.all(|name| quotable(name).is_some())
}

/// Returns the names in a device list. Wildcards end with an asterisk.
pub(crate) fn names(devices: &Devices<'_>) -> Vec<BString> {
    devices.iter().filter_map(name).collect()
}

fn name(device: Device<'_>) -> Option<BString> {
    match device {
        Device::Name(name) => Some(name.into()),
        Device::Prefix(prefix) => Some([prefix, &b"*"[..]].concat().into()),
        _ => None,
    }
}

/// Formats a device list; all names are quoted, or only wildcards.
fn listed(devices: &Devices<'_>, is_quoted: bool) -> Vec<String> {
    let listed = devices.iter().filter_map(|device| {
        let name = name(device)?;
        Some(match device {
            Device::Name(_) if !is_quoted && is_name(name.trim_end_with(|c| c == '*')) => {
                name.to_string()
            }
            _ => Quoted(name.as_slice().as_bstr()).to_string(),
        })
    });
    listed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use chainwright::nft::{Chain, Hook, Policy, Transaction};

    /// The kernel only has two policies. An unknown policy of a newer kernel is printed as a comment.
    #[test]
    fn unknown_policy_is_a_comment() {
        for (policy, shown) in [
            (Policy::ACCEPT, "policy accept;"),
            (Policy::DROP, "policy drop;"),
            (Policy(7), "# policy 7"),
        ] {
            let mut chain = Chain::new(Family::IP, "t", "c")
                .with_hook("filter", Hook::PREROUTING, 0)
                .with_policy(policy);
            chain.handle = Some(1);
            let mut tx = Transaction::new();
            tx.add(&chain).unwrap();
            let view = ChainRef::of_payload(tx.payload(0).unwrap()).unwrap();
            let options = Options::default();
            let mut text = String::new();
            Printer::new(&mut text, &options).hook(&view).unwrap();
            assert_eq!(
                text,
                format!("type filter hook prerouting priority filter; {shown}\n")
            );
        }
    }
}
