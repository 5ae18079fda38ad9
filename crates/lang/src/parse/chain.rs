//! Parses chains and their blocks.

use super::error::{Diagnostic, shown};
use super::lexer::Kind;
use super::parser::{Ending, Parser, parse_number};
use super::script::InTable;
use super::tree::{Command, Object, Position, Rule, Verb, names_devices};

use crate::priorities;
use crate::syntax::{Expr, Span, Symbol};
use chainwright::nft::{Chain, ChainFlags, Device, Devices, Family, Hook, Policy, hook_name};

pub(crate) const TYPES: [&str; 3] = ["filter", "nat", "route"];
pub(crate) const HOOKS: [&str; 7] = [
    "prerouting",
    "input",
    "forward",
    "output",
    "postrouting",
    "ingress",
    "egress",
];

impl Parser<'_> {
    /// Parses a chain, after the keyword, and the rules in its block.
    pub(crate) fn chain(
        &mut self,
        verb: Verb,
        at: &InTable,
        start: Span,
        chains: &mut Vec<Command>,
        rules: &mut Vec<Command>,
    ) -> Result<(), Diagnostic> {
        let name = self.name("a chain")?;
        let span = self.since(start);
        let mut chain = Chain::new(at.family, at.table.clone(), name.clone());
        if self.at_sign("{") {
            self.block(|this| {
                if this.chain_entry(&mut chain)? {
                    return Ok(Ending::Line);
                }
                let start = this.current.span;
                let (statements, comment) = this.rule()?;
                let rule = Rule {
                    family: at.family,
                    table: at.table.clone(),
                    chain: name.clone(),
                    position: Position::Any,
                    statements,
                    comment,
                };
                rules.push(Command {
                    verb: Verb::Add,
                    object: Object::Rule(Box::new(rule)),
                    span: this.since(start),
                });
                Ok(Ending::Line)
            })?;
        }
        chains.push(Command {
            verb,
            object: Object::Chain(chain),
            span,
        });
        Ok(())
    }

    /// Parses the operand of `delete chain`. With a block, only the devices in it are deleted.
    pub(crate) fn deleted_chain(
        &mut self,
        verb: Verb,
        at: &InTable,
        start: Span,
    ) -> Result<Command, Diagnostic> {
        let (mut chains, mut rules) = (Vec::new(), Vec::new());
        self.chain(verb, at, start, &mut chains, &mut rules)?;
        if verb == Verb::Destroy
            && let Some(Object::Chain(chain)) = chains.last().map(|chain| &chain.object)
            && names_devices(chain)
        {
            let message = "`destroy chain` cannot remove devices from a chain";
            return Err(Diagnostic::new(start, message).with_hint("use `delete chain`"));
        }
        match (chains.pop(), rules.pop()) {
            (Some(chain), None) => Ok(chain),
            (_, rule) => Err(Diagnostic::new(
                rule.map_or(start, |rule| rule.span),
                "`delete rule` requires a handle",
            )),
        }
    }

    /// Parses a property of a chain, if there is one: hook, policy, flags, comment, devices.
    fn chain_entry(&mut self, chain: &mut Chain<'static>) -> Result<bool, Diagnostic> {
        let start = self.current.span;
        match self.at_any(&["type", "policy", "flags", "comment", "devices"]) {
            Some("type") => self.hook(chain)?,
            Some("policy") => {
                self.advance();
                let word = self.constant("a policy")?;
                if chain.policy.is_some() {
                    return Err(self.repeated(start, "policy"));
                }
                chain.policy = Some(match &*word.text {
                    "accept" => Policy::ACCEPT,
                    "drop" => Policy::DROP,
                    other => {
                        let message = format!("unknown chain policy `{}`", shown(other));
                        return Err(Diagnostic::new(word.span, message)
                            .expecting(["accept", "drop"])
                            .nearest_to(other));
                    }
                });
            }
            Some("flags") => {
                self.advance();
                self.expect("offload")?;
                chain.flags = Some(chain.flags.unwrap_or_default() | ChainFlags::HW_OFFLOAD);
            }
            Some("comment") => {
                self.advance();
                let (comment, span) = self.comment()?;
                if chain.userdata.is_some() {
                    return Err(self.repeated(start, "comment"));
                }
                let commented = chain.clone().with_comment(&comment);
                *chain = commented.map_err(|error| Diagnostic::new(span, error.to_string()))?;
            }
            Some(_) => {
                let devices = self.devices()?;
                add_devices(chain.hook.get_or_insert_default(), devices);
            }
            None => return Ok(false),
        }
        Ok(true)
    }

    /// Parses `type filter hook input priority 0`.
    fn hook(&mut self, chain: &mut Chain<'static>) -> Result<(), Diagnostic> {
        self.expect("type")?;
        if self.at_any(&TYPES).is_none() {
            return Err(self.unknown("chain type", TYPES));
        }
        let kind = self.name("a type")?;
        self.expect("hook")?;
        let span = self.current.span;
        let Some(word) = self.at_any(&HOOKS) else {
            return Err(self.unknown("hook", HOOKS));
        };
        let number = hook_number(chain.family, word, span)?;
        self.advance();
        let mut hook = Hook {
            number: Some(number),
            ..Hook::default()
        };
        if self.eat("device") {
            let device = self.constant("the name of a device")?;
            check_device(&device)?;
            hook.device = Some(device.text.into_string().into());
        } else if self.at("devices") {
            hook.devices = Some(self.devices()?);
        }
        hook.priority = Some(self.priority(chain.family, word)?);
        // Devices may have lines of their own.
        if let Some(Hook {
            devices: Some(devices),
            ..
        }) = chain.hook.take()
        {
            add_devices(&mut hook, devices);
        }
        chain.chain_type = Some(kind);
        chain.hook = Some(hook);
        Ok(())
    }

    /// Parses `priority filter - 10`.
    pub(crate) fn priority(&mut self, family: Family, hook: &str) -> Result<i32, Diagnostic> {
        self.expect("priority")?;
        let start = self.current.span;
        // Only a name can have an offset, and a number only a minus sign.
        let (base, has_offset) = match self.current.kind {
            Kind::Sign("-") => (0, true),
            Kind::Sign("$") | Kind::Word => {
                let has_offset = self.is_word() && parse_number(self.word()).is_none();
                let word = self.constant("a priority")?;
                (priority_of(&word, family, hook)?, has_offset)
            }
            _ => return Err(self.unexpected(["a priority"])),
        };
        let sign = match self.current.kind {
            Kind::Sign("+") if has_offset => 1,
            Kind::Sign("-") if has_offset => -1,
            _ => return Ok(base),
        };
        self.advance();
        let offset: u32 = self.number("a number")?;
        let sum = i64::from(base) + sign * i64::from(offset);
        i32::try_from(sum)
            .map_err(|_| Diagnostic::new(self.since(start), "priority is out of range"))
    }

    /// Parses `devices = { eth0, eth1 }`.
    pub(crate) fn devices(&mut self) -> Result<Devices<'static>, Diagnostic> {
        self.expect("devices")?;
        self.expect_sign("=")?;
        let start = self.current.span;
        if !self.at_sign("$") && !self.at_sign("{") {
            return Err(self.unexpected(["{"]));
        }
        let names = self.initial()?;
        let span = self.since(start);
        let none = || Diagnostic::new(span, "not a list of device names");
        let names = match names {
            Expr::Set(elements) => elements.into_iter().map(|element| element.key).collect(),
            name => vec![Some(name)],
        };
        if names.is_empty() {
            return Err(none());
        }
        let mut symbols = Vec::new();
        for name in names {
            match name {
                Some(Expr::Symbol(name)) => {
                    check_device(&name)?;
                    symbols.push(name);
                }
                _ => return Err(none()),
            }
        }
        Ok(named_devices(symbols.iter().map(|symbol| &*symbol.text)))
    }
}

/// Returns the number of a hook.
pub(crate) fn hook_number(family: Family, word: &str, span: Span) -> Result<u32, Diagnostic> {
    let number = (0..8).find(|number| hook_name(family, *number) == Some(word));
    number.ok_or_else(|| {
        let known = (0..8).filter_map(|number| hook_name(family, number));
        let message = format!("the {family} family has no hook `{word}`");
        Diagnostic::new(span, message).expecting(known)
    })
}

/// Adds the devices of a further line.
fn add_devices(hook: &mut Hook<'static>, mut devices: Devices<'static>) {
    if let Some(name) = hook.device.take() {
        devices.push(Device::Name(&name));
    }
    for device in hook.devices.iter().flatten() {
        devices.push(device);
    }
    hook.devices = Some(devices);
}

/// Checks the name of a device.
fn check_device(name: &Symbol) -> Result<(), Diagnostic> {
    match name.text.is_empty() {
        true => Err(Diagnostic::new(name.span, "the name of a device is empty")),
        false => Ok(()),
    }
}

/// Converts device names; a trailing asterisk is a wildcard.
pub(crate) fn named_devices<'n>(
    names: impl DoubleEndedIterator<Item = &'n str>,
) -> Devices<'static> {
    let mut devices = Devices::default();
    // nft sends the last device first.
    for name in names.rev() {
        match name.strip_suffix('*') {
            Some(prefix) if !prefix.ends_with('\\') => {
                devices.push(Device::Prefix(prefix.into()));
            }
            _ => {
                devices.push(Device::Name(name.into()));
            }
        }
    }
    devices
}

/// Parses a priority: a name or a number.
pub(crate) fn priority_of(word: &Symbol, family: Family, hook: &str) -> Result<i32, Diagnostic> {
    let text = &*word.text;
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if let Some(number) = parse_number(digits) {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let number = if is_negative { -number } else { number };
        return i32::try_from(number)
            .map_err(|_| Diagnostic::new(word.span, "priority is out of range"));
    }
    let known = priorities::priorities(family);
    if let Some((name, number)) = known.iter().find(|(name, _)| *name == text) {
        return match priorities::hook_of_priority(name) {
            Some(of) if !priorities::is_priority_at(name, family, hook) => Err(Diagnostic::new(
                word.span,
                format!("priority `{name}` belongs to hook {of}, not to {hook}"),
            )
            .with_hint(format!("its value is {number}"))),
            _ => Ok(*number),
        };
    }
    // The value of a variable may include the offset.
    if word.is_quoted
        && let Some(at) = text.find(['+', '-'])
        && let Some(name) = text[..at].strip_suffix(' ')
        && known.iter().any(|(known, _)| *known == name)
        && let Some(offset) = text[at + 1..].strip_prefix(' ')
        && let Some(offset) = parse_number(offset)
    {
        let name = Symbol {
            text: name.into(),
            is_quoted: false,
            span: word.span,
        };
        let base = i64::from(priority_of(&name, family, hook)?);
        let offset = i64::try_from(offset).unwrap_or(i64::MAX / 2);
        let sum = match text[at..].starts_with('+') {
            true => base + offset,
            false => base - offset,
        };
        return i32::try_from(sum)
            .map_err(|_| Diagnostic::new(word.span, "priority is out of range"));
    }
    let diagnostic = Diagnostic::new(word.span, format!("unknown priority `{}`", shown(text)))
        .expecting(known.iter().map(|(name, _)| *name).chain(["a number"]));
    let glued = known.iter().find_map(|(name, _)| {
        let offset = text.strip_prefix(name)?.strip_prefix('-')?;
        Some(format!("write it with spaces: {name} - {}", shown(offset)))
    });
    Err(match glued {
        Some(glued) => diagnostic.with_hint(glued),
        None => diagnostic.nearest_to(text),
    })
}
