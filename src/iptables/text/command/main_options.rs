//! Interprets the options that belong to no extension, and builds a command's rule.

use bstr::{BStr, ByteSlice};

use super::names::{
    chain_name, check_chain_name, check_length, check_optional, has_no_mask, interface,
    target_name, unspecified,
};
use super::parser::unknown_match;
use super::{ExtensionSpec, Parser, Verb};
use crate::iptables::text::error::nearest;
use crate::iptables::text::options::Main;
use crate::iptables::text::{ParseError, Word};
use crate::iptables::{Address, Counters, Protocol, Target};
use crate::xt::{self, Context, Family, value};

/// The most rules of a line, one for each pair of addresses.
const MAX_RULES: usize = 1 << 16;

impl<'p, 'a> Parser<'p, 'a> {
    pub(super) fn main(
        &mut self,
        main: Main,
        word: &'p Word<'a>,
        attached: Option<(&'p [u8], usize)>,
        invert: bool,
    ) -> Result<(), ParseError> {
        let inverts = matches!(
            main,
            Main::Source
                | Main::Destination
                | Main::InInterface
                | Main::OutInterface
                | Main::Protocol
                | Main::Fragment
        );
        if invert && !inverts {
            let message = format!("`{}` cannot be negated", word.text());
            return Err(ParseError::new(word.column, message));
        }
        let is_rule_part = inverts || matches!(main, Main::SetCounters);
        if is_rule_part {
            let bit = 1 << main as u32;
            if self.seen & bit != 0 {
                let option = word.text();
                return Err(ParseError::new(
                    word.column,
                    format!("duplicate option `{option}`"),
                ));
            }
            self.seen |= bit;
        }
        if matches!(main, Main::Fragment | Main::Ipv4 | Main::Ipv6) && attached.is_some() {
            return Err(ParseError::new(word.column, "this option takes no value"));
        }
        self.wants_no_option = true;
        match main {
            Main::List
            | Main::ListRules
            | Main::Table
            | Main::Numeric
            | Main::Exact
            | Main::Verbose
            | Main::LineNumbers
            | Main::Wait
            | Main::WaitInterval
            | Main::Modprobe
            | Main::Help
            | Main::Version => {
                self.wants_no_option = false;
                self.program(main, word, attached)?;
            }
            Main::Ipv4 => self.for_other_family |= self.family != Family::Ipv4,
            Main::Ipv6 => self.for_other_family |= self.family != Family::Ipv6,
            Main::Fragment => {
                if self.family != Family::Ipv4 {
                    return Err(
                        ParseError::new(word.column, "only IPv4 headers have fragments")
                            .with_hint(Some("use -m frag".to_owned())),
                    );
                }
                self.spec.rule.fragment = Some(!invert);
            }
            Main::Source | Main::Destination => {
                let (value, column) = self.value(word, attached)?;
                self.addresses(main, value, column, invert)?;
            }
            Main::InInterface | Main::OutInterface => {
                let (value, column) = self.value(word, attached)?;
                let interface = interface(value, invert).map_err(|m| ParseError::new(column, m))?;
                match main {
                    Main::InInterface => {
                        self.spec.rule.in_interface = interface;
                        self.interfaces[0] = word.column;
                    }
                    _ => {
                        self.spec.rule.out_interface = interface;
                        self.interfaces[1] = word.column;
                    }
                }
            }
            Main::Protocol => {
                let (value, column) = self.value(word, attached)?;
                self.protocol(value, column, invert)?;
            }
            Main::Match => {
                let (value, column) = self.value(word, attached)?;
                if let Some(opaque) = self.opaque(value)? {
                    self.opaque_matches
                        .push((self.line_options.extensions.len(), opaque));
                    return Ok(());
                }
                let Some(spec) = xt::Match::named(self.family, value) else {
                    return Err(unknown_match(value, column, self.family));
                };
                let name = spec.names().iter().find(|name| value == **name);
                self.load(
                    ExtensionSpec::Match(spec),
                    name.copied().unwrap_or_default(),
                    column,
                );
            }
            Main::Jump | Main::Goto => {
                let (value, column) = self.value(word, attached)?;
                self.target(main, value, word.column, column)?;
            }
            Main::SetCounters => {
                let (packets, column) = self.value(word, attached)?;
                // Both in one word with a comma, or in two words.
                let (packets, bytes, of_bytes) = match packets.split_once_str(",") {
                    Some((packets, bytes)) => {
                        let of_bytes = column + packets.len() + 1;
                        (packets.as_bstr(), bytes.as_bstr(), of_bytes)
                    }
                    None => {
                        let Some(bytes) = self.next() else {
                            return Err(ParseError::new(
                                word.column,
                                "-c requires packets and bytes",
                            ));
                        };
                        (packets, bytes.text(), bytes.column)
                    }
                };
                self.spec.counters = Some(Counters {
                    packets: value::decimal(packets).map_err(|m| ParseError::new(column, m))?,
                    bytes: value::decimal(bytes).map_err(|m| ParseError::new(of_bytes, m))?,
                });
            }
            _ => self.verb(main, word, attached)?,
        }
        self.wants_no_option = false;
        Ok(())
    }

    pub(super) fn verb(
        &mut self,
        main: Main,
        word: &'p Word<'a>,
        attached: Option<(&'p [u8], usize)>,
    ) -> Result<(), ParseError> {
        if self.verb.is_some() {
            return Err(ParseError::new(
                word.column,
                "a line can only have one command",
            ));
        }
        let optional = matches!(main, Main::DeleteChain | Main::Flush | Main::Zero);
        let none_follows = self
            .words
            .get(self.at)
            .is_none_or(|next| next.bytes.starts_with(b"-"));
        if !(optional && attached.is_none() && none_follows) {
            let (name, column) = self.value(word, attached)?;
            let last = self.last_chain.take();
            if last.as_ref().is_some_and(|last| last == name) {
                self.chain = last;
            } else {
                match main {
                    Main::NewChain => check_chain_name(name, column)?,
                    _ if optional => check_optional(name, column)?,
                    _ => check_length(name, column)?,
                }
                let mut chain = last.unwrap_or_default();
                chain.clear();
                chain.extend_from_slice(name);
                self.chain = Some(chain);
            }
        }
        let verb = match main {
            Main::Append => Verb::Append,
            Main::Check => Verb::Check,
            Main::Insert => Verb::Insert(self.place()?.unwrap_or(1)),
            Main::Delete => match self.place()? {
                None => Verb::Delete,
                Some(number) => Verb::DeleteNumber(number),
            },
            Main::Replace => match self.place()? {
                Some(number) => Verb::Replace(number),
                None => {
                    let message = "-R requires the number of the rule to replace";
                    return Err(ParseError::new(word.column, message));
                }
            },
            Main::NewChain => Verb::NewChain,
            Main::DeleteChain => Verb::DeleteChain,
            Main::Flush => Verb::Flush,
            Main::Zero => Verb::Zero(self.place()?),
            Main::Policy => {
                let (policy, column) = self.value(word, None)?;
                // For a program it turns out only later whether the chain can have a policy.
                if self.cmdline.is_none() && !matches!(policy.as_bytes(), b"ACCEPT" | b"DROP") {
                    let message = format!("`{policy}` is not a policy (ACCEPT or DROP)");
                    return Err(ParseError::new(column, message));
                }
                Verb::Policy(policy.to_owned())
            }
            _ => {
                let (name, column) = self.value(word, None)?;
                if matches!(name.first(), Some(b'-' | b'!')) {
                    let message = "-E requires old-chain-name and new-chain-name";
                    return Err(ParseError::new(column, message));
                }
                Verb::RenameChain(chain_name(name, column)?)
            }
        };
        self.verb = Some((verb, word.column));
        Ok(())
    }

    /// Parses the number of a rule, if one follows.
    pub(super) fn place(&mut self) -> Result<Option<usize>, ParseError> {
        let Some(word) = self.words.get(self.at) else {
            return Ok(None);
        };
        if !word.bytes.first().is_some_and(u8::is_ascii_digit) {
            return Ok(None);
        }
        self.at += 1;
        match value::number::<u32>(word.text()) {
            Ok(number) if number > 0 => Ok(Some(number as usize)),
            _ => {
                let message = format!("`{}` is not a rule number (from 1)", word.text());
                Err(ParseError::new(word.column, message))
            }
        }
    }

    pub(super) fn addresses(
        &mut self,
        main: Main,
        given: &BStr,
        column: usize,
        invert: bool,
    ) -> Result<(), ParseError> {
        let mut at = column;
        let mut all = given.split(|byte| *byte == b',').map(|one| {
            let here = at;
            at += one.len() + 1;
            if has_no_mask(one, self.family) {
                let zeroes = unspecified(self.family);
                return Ok(Address::masked(zeroes, zeroes, invert));
            }
            value::network(one.as_bstr(), self.family)
                .map(|(address, mask)| Address::masked(address, mask, invert))
                .map_err(|message| {
                    let (other, name) = match self.family {
                        Family::Ipv4 => (Family::Ipv6, "an IPv6"),
                        Family::Ipv6 => (Family::Ipv4, "an IPv4"),
                    };
                    let is_other = value::network(one.as_bstr(), other).is_ok();
                    let hint = is_other.then(|| format!("it is {name} address"));
                    ParseError::new(here, message).with_hint(hint)
                })
        });
        let first = all.next().transpose()?;
        let more = all.collect::<Result<Vec<_>, _>>()?;
        if invert && !more.is_empty() {
            let message = "a negated option takes only one address";
            return Err(ParseError::new(column, message));
        }
        match main {
            Main::Source => (self.spec.rule.source, self.spec.more_sources) = (first, more),
            _ => (self.spec.rule.destination, self.spec.more_destinations) = (first, more),
        }
        if self.spec.number() > MAX_RULES {
            let message = "each pair of a source and a destination is a rule: one line can create at most \
                           65536";
            return Err(ParseError::new(column, message));
        }
        Ok(())
    }

    pub(super) fn protocol(
        &mut self,
        given: &BStr,
        column: usize,
        invert: bool,
    ) -> Result<(), ParseError> {
        let Some(number) = self.names.protocol(given) else {
            let message = format!("`{given}` is not a protocol number or name");
            let known = [
                "tcp", "udp", "icmp", "icmpv6", "sctp", "esp", "udplite", "all",
            ];
            let hint = nearest(given, known).map(|near| format!("did you mean {near}?"));
            return Err(ParseError::new(column, message).with_hint(hint));
        };
        if number != 0 {
            self.spec.rule.protocol = Some(Protocol { number, invert });
        } else if invert {
            return Err(ParseError::new(column, "`! -p all` never matches"));
        }
        Ok(())
    }

    /// Parses the data of an extension as bytes, if it follows the name: `--xt-revision NUMBER
    /// --xt-data HEX`, the format for extensions without a typed value.
    pub(super) fn opaque(&mut self, name: &BStr) -> Result<Option<xt::Opaque>, ParseError> {
        let is_option =
            |at: usize, option: &str| self.words.get(at).is_some_and(|word| word.text() == option);
        if !is_option(self.at, "--xt-revision") || !is_option(self.at + 2, "--xt-data") {
            return Ok(None);
        }
        let (Some(revision), Some(data)) =
            (self.words.get(self.at + 1), self.words.get(self.at + 3))
        else {
            return Ok(None);
        };
        self.at += 4;
        let fault = |column| move |message| ParseError::new(column, message);
        Ok(Some(xt::Opaque {
            name: name.to_str_lossy().into_owned(),
            revision: value::number(revision.text()).map_err(fault(revision.column))?,
            info: value::hex(data.text()).map_err(fault(data.column))?,
        }))
    }

    pub(super) fn target(
        &mut self,
        main: Main,
        name: &BStr,
        option: usize,
        column: usize,
    ) -> Result<(), ParseError> {
        if self.target.is_some() || !matches!(self.spec.rule.target, Target::None) {
            return Err(ParseError::new(option, "a rule can only have one target"));
        }
        let family = self.family;
        if main == Main::Jump
            && let Some(opaque) = self.opaque(name)?
        {
            self.spec.rule.target = Target::Extension(xt::Target::Opaque(opaque));
            return Ok(());
        }
        self.spec.rule.target = match name.as_bytes() {
            _ if main == Main::Goto => Target::Goto(target_name(name, column)?),
            b"ACCEPT" => Target::Accept,
            b"DROP" => Target::Drop,
            b"RETURN" => Target::Return,
            b"QUEUE" => Target::Queue,
            _ if (self.is_chain)(name) => Target::Jump(name.to_owned()),
            _ => match xt::Target::named(family, name) {
                None => Target::Jump(target_name(name, column)?),
                Some(spec) => {
                    let own = spec.names().iter().find(|own| name == **own);
                    self.target = Some(self.line_options.extensions.len());
                    self.load(
                        ExtensionSpec::Target(spec),
                        own.copied().unwrap_or_default(),
                        column,
                    );
                    Target::None
                }
            },
        };
        Ok(())
    }

    /// Completes the rule after all options.
    pub(super) fn rule(&mut self) -> Result<(), ParseError> {
        let spec = &mut *self.spec;
        let protocol = spec.rule.protocol;
        let mut opaque = std::mem::take(&mut self.opaque_matches)
            .into_iter()
            .peekable();
        self.line_options.sort();
        let (mut given, mut origins) =
            (&self.line_options.given[..], &self.line_options.origins[..]);
        for (place, loaded) in self.line_options.extensions.iter().enumerate() {
            while let Some((_, opaque)) = opaque.next_if(|(before, _)| *before <= place) {
                spec.rule.matches.push(xt::Match::Opaque(opaque));
            }
            let own = origins.iter().take_while(|p| p.extension == place).count();
            let (options, others) = given.split_at(own);
            let (places, others_places) = origins.split_at(own);
            (given, origins) = (others, others_places);
            let fault = |error, option| loaded.parse_error(&error, option, options, places);
            let context = Context {
                family: self.family,
                name: loaded.name,
                protocol: protocol.map(|protocol| (protocol.number, protocol.invert)),
                native_log: self.native_log,
                names: self.names,
                truncated: self.truncated.as_ref(),
            };
            match loaded.which {
                ExtensionSpec::Match(extension) => {
                    let read = extension.parse(&context, options);
                    let read = read.map_err(|error| fault(error, "-m"))?;
                    spec.rule.matches.push(read);
                }
                ExtensionSpec::Target(extension) => {
                    let read = extension.parse(&context, options);
                    let read = read.map_err(|error| fault(error, "-j"))?;
                    spec.rule.target = Target::Extension(read);
                }
            }
        }
        spec.rule
            .matches
            .extend(opaque.map(|(_, opaque)| xt::Match::Opaque(opaque)));
        if let Some(truncated) = &mut self.truncated {
            spec.truncated = std::mem::take(truncated.get_mut());
        }
        Ok(())
    }
}
