//! Prints the output of `iptables -L` and `iptables -S`.
//!
//! Columns have the real tool's widths, or more if a value does not fit.

use bstr::ByteSlice;

use super::chains::ListedChain;
use crate::iptables::text::CommandLineOptions;
use crate::iptables::{
    Address, ChainKind, Counters, Entry, Family, Interface, NotExpressible, Protocol, Rule, Target,
};
use crate::xt::{ListStyle, Text};

/// The protocols that `-n` names: ICMP, TCP, UDP, ESP, AH, ICMPv6, SCTP, mobility headers, UDP-Lite.
const NAMED: [u8; 9] = [1, 6, 17, 50, 51, 58, 132, 135, 136];

/// The format of rules in columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns {
    family: Family,
    numeric: bool,
    verbose: bool,
    exact: bool,
    numbers: bool,
}

impl Columns {
    pub(super) const fn new(family: Family, cmdline: &CommandLineOptions) -> Self {
        Self {
            family,
            numeric: cmdline.numeric,
            verbose: cmdline.verbose,
            exact: cmdline.exact,
            numbers: cmdline.line_numbers,
        }
    }

    /// Prints the chain with its rules, or only the rule with this number, without a heading.
    ///
    /// # Errors
    /// A rule cannot be expressed.
    pub(super) fn chain(
        self,
        text: &mut Text,
        chain: &ListedChain<'_>,
        number: Option<usize>,
    ) -> Result<(), NotExpressible> {
        if number.is_none() {
            self.head(text, chain);
        }
        for (place, line) in chain.lines().enumerate() {
            let entry = line?;
            if number.is_some_and(|number| number != place + 1) {
                continue;
            }
            if self.numbers {
                text.display(format_args!("{:<4} ", place + 1));
            }
            self.rule(text, &entry);
            text.push("\n");
        }
        Ok(())
    }

    fn head(self, text: &mut Text, chain: &ListedChain<'_>) {
        text.push("Chain ").push(&chain.name).push(" (");
        match chain.kind {
            ChainKind::Builtin { policy, counters } => {
                text.push("policy ").push(policy.name());
                if self.verbose {
                    text.push(" ");
                    self.count(text, counters.packets, None);
                    text.push("packets, ");
                    self.count(text, counters.bytes, None);
                    text.push("bytes");
                }
            }
            _ => drop(text.number(chain.references).push(" references")),
        }
        text.push(")\n");
        if self.numbers {
            text.push("num  ");
        }
        if self.verbose {
            text.push(if self.exact {
                "    pkts      bytes "
            } else {
                " pkts bytes "
            });
        }
        text.push("target     prot opt");
        if self.verbose {
            text.push(" in     out    ");
        }
        text.push(" source               destination         \n");
    }

    /// Prints a number, shortened to five digits unless exact, padded to the width.
    fn count(self, text: &mut Text, number: u64, width: Option<usize>) {
        let (number, unit) = match self.exact {
            true => (number, ""),
            false => in_thousands(number),
        };
        let formatted = format!("{number}{unit}");
        match width {
            Some(width) => text.display(format_args!("{formatted:>width$} ")),
            None => text.display(format_args!("{formatted} ")),
        };
    }

    fn rule(self, text: &mut Text, entry: &Entry) {
        let Entry { rule, counters } = entry;
        if self.verbose {
            let (packets, bytes) = if self.exact { (8, 8) } else { (5, 5) };
            self.count(text, counters.packets, Some(packets));
            self.count(text, counters.bytes, Some(bytes));
        }
        padded(text, &target(&rule.target), 9);
        let (not, protocol) = self.protocol(rule.protocol);
        text.push(" ").push(sign(not));
        padded(text, &protocol, 4);
        text.push(match rule.fragment {
            None => " --",
            Some(true) => " -f",
            Some(false) => " !f",
        });
        text.push(" ");
        if self.verbose {
            for interface in [&rule.in_interface, &rule.out_interface] {
                text.push(" ");
                padded(text, &self.interface(interface.as_ref()), 6);
            }
            text.push(" ");
        }
        for (place, address) in [rule.source, rule.destination].into_iter().enumerate() {
            if place > 0 {
                text.push(" ");
            }
            text.push(sign(address.is_some_and(|address| address.invert)));
            padded(text, &self.address(address, self.numeric), 19);
        }
        text.push(" ");
        self.extensions(text, rule, self.numeric);
    }

    /// Prints the rule in one line, as `-v` does for a change.
    pub(super) fn as_line(family: Family, rule: &Rule, text: &mut Text) {
        let columns = Self {
            family,
            numeric: false,
            verbose: true,
            exact: false,
            numbers: false,
        };
        let (not, protocol) = columns.protocol(rule.protocol);
        let place = |not: bool| if not { "!" } else { "" };
        text.push(target(&rule.target)).push("  ");
        text.push(place(not)).push(protocol).push(" opt ");
        text.push(match rule.fragment {
            None => "--",
            Some(true) => "-f",
            Some(false) => "!f",
        });
        for (name, interface) in [(" in ", &rule.in_interface), (" out ", &rule.out_interface)] {
            let formatted = interface.as_ref().map_or(b"*".to_vec(), |i| name_of(i, ""));
            text.push(name).push(formatted);
        }
        for (before, address) in [("  ", rule.source), ("  -> ", rule.destination)] {
            text.push(before);
            text.push(place(address.is_some_and(|address| address.invert)));
            text.push(columns.address(address, true));
        }
        text.push("  ");
        columns.extensions(text, rule, true);
        text.push("\n");
    }

    fn extensions(self, text: &mut Text, rule: &Rule, numeric: bool) {
        if let Target::Goto(_) = &rule.target {
            text.push("[goto] ");
        }
        let style = ListStyle {
            family: self.family,
            protocol: rule.protocol.map(|protocol| protocol.number),
            numeric,
        };
        for extension in &rule.matches {
            extension.list(text, style);
        }
        if let Target::Extension(extension) = &rule.target {
            extension.list(text, style);
        }
    }

    fn protocol(self, protocol: Option<Protocol>) -> (bool, Vec<u8>) {
        let mut formatted = Text::new();
        match protocol {
            None => formatted.push("all"),
            Some(protocol) if self.numeric && !NAMED.contains(&protocol.number) => {
                formatted.number(protocol.number)
            }
            Some(protocol) => formatted.protocol(protocol.number),
        };
        let not = protocol.is_some_and(|protocol| protocol.invert);
        (not, formatted.into_bytes())
    }

    fn interface(self, interface: Option<&Interface>) -> Vec<u8> {
        match interface {
            Some(interface) => name_of(interface, if interface.invert { "!" } else { "" }),
            None if self.numeric => b"*".to_vec(),
            None => b"any".to_vec(),
        }
    }

    fn address(self, address: Option<Address>, numeric: bool) -> Vec<u8> {
        let mut formatted = Text::new();
        match address.filter(|address| address.prefix() != Some(0)) {
            None if !numeric => drop(formatted.push("anywhere")),
            None => drop(formatted.push(match self.family {
                Family::Ipv4 => "0.0.0.0/0",
                Family::Ipv6 => "::/0",
            })),
            Some(address) => {
                formatted.address(address.address);
                let whole = match self.family {
                    Family::Ipv4 => 32,
                    Family::Ipv6 => 128,
                };
                match address.prefix() {
                    Some(prefix) if prefix == whole => {}
                    Some(prefix) => drop(formatted.push("/").number(prefix)),
                    None => drop(formatted.push("/").address(address.mask)),
                }
            }
        }
        formatted.into_bytes()
    }
}

/// Prints the output of `-S`: first the chains, then their rules; or one rule of a chain.
///
/// # Errors
/// A rule cannot be expressed.
pub(super) fn as_rules(
    text: &mut Text,
    chains: &[ListedChain<'_>],
    number: Option<usize>,
    with_counters: bool,
) -> Result<(), NotExpressible> {
    let count = |text: &mut Text, counters: Counters| {
        if with_counters {
            text.push(" -c ").number(counters.packets);
            text.push(" ").number(counters.bytes);
        }
    };
    for chain in chains.iter().filter(|_| number.is_none()) {
        match chain.kind {
            ChainKind::Builtin { policy, counters } => {
                text.push("-P ").push(&chain.name).word(policy.name());
                count(text, counters);
            }
            _ => drop(text.push("-N ").push(&chain.name)),
        }
        text.push("\n");
    }
    for chain in chains {
        for (place, line) in chain.lines().enumerate() {
            let Entry { rule, counters } = line?;
            if number.is_some_and(|number| number != place + 1) {
                continue;
            }
            text.push("-A ").push(&chain.name);
            rule.print_conditions(text);
            count(text, counters);
            rule.print_target(text);
            text.push("\n");
        }
    }
    Ok(())
}

/// Returns `!` or a blank.
const fn sign(not: bool) -> &'static str {
    if not { "!" } else { " " }
}

/// Returns the content of the target's column.
fn target(target: &Target) -> Vec<u8> {
    match target {
        Target::None => Vec::new(),
        Target::Accept => b"ACCEPT".to_vec(),
        Target::Drop => b"DROP".to_vec(),
        Target::Return => b"RETURN".to_vec(),
        Target::Queue => b"QUEUE".to_vec(),
        Target::Jump(chain) | Target::Goto(chain) => chain.to_vec(),
        Target::Extension(extension) => extension.name().as_bytes().to_vec(),
    }
}

fn name_of(interface: &Interface, before: &str) -> Vec<u8> {
    let plus: &[u8] = if interface.prefix { b"+" } else { b"" };
    [before.as_bytes(), interface.name.as_bytes(), plus].concat()
}

/// Prints it padded with blanks to the width.
fn padded(text: &mut Text, what: &[u8], width: usize) {
    text.push(what);
    for _ in what.to_str_lossy().chars().count()..width {
        text.push(" ");
    }
}

/// Returns a number of at most five digits and a unit.
const fn in_thousands(number: u64) -> (u64, &'static str) {
    if number <= 99_999 {
        return (number, "");
    }
    let units = ["K", "M", "G", "T"];
    let (mut number, mut at) = ((number + 500) / 1000, 0);
    while number > 9999 && at < 3 {
        number = (number + 500) / 1000;
        at += 1;
    }
    (number, units[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_five_columns() {
        // The output of iptables-legacy 1.8.9.
        for (number, formatted) in [
            (0, "0"),
            (99_999, "99999"),
            (100_000, "100K"),
            (9_999_499, "9999K"),
            (9_999_500, "10M"),
            (123_456_789_012, "123G"),
            (99_999_999_999, "100G"),
            (12_345_678_901_234_567, "12346T"),
        ] {
            let (number, unit) = in_thousands(number);
            assert_eq!(format!("{number}{unit}"), formatted);
        }
        let (number, unit) = in_thousands(u64::MAX - 500);
        assert_eq!(format!("{number}{unit}"), "18446744T");
    }
}
