//! Prints statements.

use std::fmt::{self, Write};

use super::Printer;
use crate::constant::{self as value, Plain, Quoted};
use crate::dialect::Form;
use crate::syntax::{Expr, Relation, Statement, Translation};
use chainwright::nft::DataType;
use chainwright::nft::expr::CtKey;

/// Default burst of a limit, in packets; not printed before nft 1.1.
const DEFAULT_BURST: u32 = 5;

/// Converts a number of bytes to nft's units.
pub(crate) fn bytes(number: u64) -> (u64, &'static str) {
    let mut number = number;
    let mut units = ["bytes", "kbytes", "mbytes"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    while number != 0 && number.is_multiple_of(1024) {
        let Some(next) = units.next() else {
            break;
        };
        number /= 1024;
        unit = next;
    }
    (number, unit)
}

/// Names of log levels.
pub(crate) const LOG_LEVELS: [&str; 9] = [
    "emerg", "alert", "crit", "err", "warn", "notice", "info", "debug", "audit",
];

/// Names of log flags.
pub(crate) const LOG_FLAGS: [(u32, &str); 5] = [
    (1, "tcp sequence"),
    (2, "tcp options"),
    (4, "ip options"),
    (8, "skuid"),
    (0x20, "ether"),
];
/// All log flags together.
pub(crate) const ALL_LOG_FLAGS: u32 = 0x2f;

/// Returns the names of the log flags that are set.
pub(crate) fn log_flags(flags: u32) -> Vec<&'static str> {
    if flags & ALL_LOG_FLAGS == ALL_LOG_FLAGS {
        return vec!["all"];
    }
    let words = LOG_FLAGS.iter().filter(|(flag, _)| flags & flag != 0);
    words.map(|(_, word)| *word).collect()
}

/// Returns the prefix of limits and quotas that match when exceeded.
const fn word_over(over: bool) -> &'static str {
    match over {
        true => "over ",
        false => "",
    }
}

impl<W: Write> Printer<'_, W> {
    pub(crate) fn statement(&mut self, statement: &Statement) -> fmt::Result {
        match statement {
            Statement::Match {
                left,
                relation,
                right,
            } => {
                match (left, right) {
                    (Expr::Fib(flags, _), Expr::Value(_) | Expr::Symbol(_))
                        if !self.options.has(Form::FibCheck) =>
                    {
                        self.fib(left, *flags, "oif")?;
                    }
                    (left, _) => self.expr(left)?,
                }
                if *relation != Relation::Implicit {
                    write!(self.out, " {}", relation.sign())?;
                }
                self.out.write_char(' ')?;
                match right {
                    // Several flags in one value.
                    Expr::Value(value)
                        if left.is_bitmask()
                            && value.number.count_ones() > 1
                            && !self.has_names(left) =>
                    {
                        value::numeric(&mut self.out, value, self.options)
                    }
                    right => self.expr(right),
                }
            }
            Statement::Verdict(verdict) => self.expr(verdict),
            Statement::VerdictMap(key, map) => {
                self.expr(key)?;
                self.out.write_str(" vmap ")?;
                self.expr(map)
            }
            Statement::Counter { packets, bytes } => {
                self.out.write_str("counter")?;
                match self.is_stateless() {
                    true => Ok(()),
                    false => write!(self.out, " packets {packets} bytes {bytes}"),
                }
            }
            Statement::Limit { .. } => {
                self.out.write_str("limit ")?;
                self.rate(statement, self.options.has(Form::DefaultBurst))
            }
            Statement::Quota { .. } => {
                self.out.write_str("quota ")?;
                self.quota(statement)
            }
            Statement::Connections { count, over } => {
                write!(self.out, "ct count {}{count}", word_over(*over))
            }
            Statement::Last(ago) => {
                self.out.write_str("last")?;
                match ago {
                    _ if self.is_stateless() => Ok(()),
                    Some(ago) => {
                        write!(self.out, " used {}", self.options.time(*ago))
                    }
                    None => self.out.write_str(" used never"),
                }
            }
            Statement::Log {
                prefix,
                group,
                snaplen,
                queue_threshold,
                level,
                flags,
            } => self.log(
                prefix.as_deref(),
                [
                    group.map(u32::from),
                    *snaplen,
                    queue_threshold.map(u32::from),
                ],
                *level,
                *flags,
            ),
            Statement::Reject(None) => self.out.write_str("reject"),
            Statement::Reject(Some((words, code))) => {
                write!(self.out, "reject with {words}")?;
                if let Some(code) = code {
                    self.out.write_char(' ')?;
                    value::reason(&mut self.out, code, self.options)?;
                }
                Ok(())
            }
            Statement::Translate {
                kind,
                family,
                prefix,
                address,
                port,
                flags,
            } => {
                self.out.write_str(match kind {
                    Translation::Source => "snat",
                    Translation::Destination => "dnat",
                    Translation::Masquerade => "masquerade",
                    Translation::Redirect => "redirect",
                })?;
                if address.is_some() || port.is_some() {
                    self.word(*family)?;
                    self.word(prefix.then_some("prefix"))?;
                    self.destination(address.as_ref(), port.as_ref(), port.is_some())?;
                }
                if !flags.is_empty() {
                    write!(self.out, " {}", flags.join(","))?;
                }
                Ok(())
            }
            Statement::Tproxy {
                family,
                address,
                port,
            } => {
                self.out.write_str("tproxy")?;
                self.word(*family)?;
                self.destination(address.as_ref(), port.as_ref(), true)
            }
            Statement::Queue { numbers, flags } => {
                self.out.write_str("queue")?;
                if !flags.is_empty() {
                    write!(self.out, " flags {}", flags.join(","))?;
                }
                if let Some(numbers) = numbers {
                    self.out.write_str(" to ")?;
                    self.expr(numbers)?;
                }
                Ok(())
            }
            Statement::Set(target, to) => {
                self.expr(target)?;
                self.out.write_str(" set ")?;
                match (target, to) {
                    // Several events are printed as a list.
                    (Expr::Ct(CtKey::EVENTMASK, ..), Expr::Value(events)) => {
                        self.flags(events, ",")
                    }
                    _ => self.expr(to),
                }
            }
            Statement::Reset(option) => {
                self.out.write_str("reset ")?;
                self.expr(option)
            }
            Statement::Notrack => self.out.write_str("notrack"),
            Statement::FlowAdd(table) => {
                write!(self.out, "flow add @{}", Plain(table.as_str().into()))
            }
            Statement::Synproxy {
                mss,
                window_scale,
                timestamp,
                sack_permitted,
            } => {
                self.out.write_str("synproxy")?;
                if let Some(mss) = mss {
                    write!(self.out, " mss {mss}")?;
                }
                if let Some(scale) = window_scale {
                    write!(self.out, " wscale {scale}")?;
                }
                self.word(timestamp.then_some("timestamp"))?;
                self.word(sack_permitted.then_some("sack-perm"))
            }
            Statement::Duplicate { address, device } => {
                self.out.write_str("dup to ")?;
                if let Some(address) = address {
                    self.expr(address)?;
                }
                match (address, device) {
                    (Some(_), Some(device)) => {
                        self.out.write_str(" device ")?;
                        self.expr(device)
                    }
                    (None, Some(device)) => self.expr(device),
                    (_, None) => Ok(()),
                }
            }
            Statement::Forward {
                family,
                address,
                device,
            } => {
                self.out.write_str("fwd")?;
                self.word(*family)?;
                self.out.write_str(" to ")?;
                if let Some(address) = address {
                    self.expr(address)?;
                    self.out.write_str(" device ")?;
                }
                self.expr(device)
            }
            Statement::Update { word, set, element } => {
                write!(self.out, "{word} @{} {{ ", Plain(set.as_str().into()))?;
                self.update(element)?;
                self.out.write_str(" }")
            }
            Statement::Meter {
                name,
                size,
                element,
            } => {
                write!(self.out, "meter {}", Plain(name.as_str().into()))?;
                if let Some(size) = size {
                    write!(self.out, " size {size}")?;
                }
                self.out.write_str(" { ")?;
                self.update(element)?;
                self.out.write_str(" }")
            }
            Statement::Object(words, object) => {
                write!(self.out, "{words} ")?;
                self.expr(object)
            }
            Statement::Extension(kind, name) => {
                write!(self.out, "xt {kind} {}", Quoted(name.as_str().into()))
            }
            Statement::Opaque(instruction) => {
                // Control characters in names could end the comment.
                write!(self.out, "{}", Plain(instruction.as_str().into()))
            }
        }
    }

    /// Returns `true` if several flags that are compared with this expression are printed by name.
    fn has_names(&self, left: &Expr) -> bool {
        matches!(left, Expr::Binary(..)) && self.options.has(Form::FlagMasks)
    }

    /// Prints ` to 192.0.2.1:80`.
    fn destination(
        &mut self,
        address: Option<&Expr>,
        port: Option<&Expr>,
        in_brackets: bool,
    ) -> fmt::Result {
        self.out.write_str(" to ")?;
        if let Some(address) = address {
            self.address(address, in_brackets)?;
        }
        if let Some(port) = port {
            self.out.write_char(':')?;
            self.expr(port)?;
        }
        Ok(())
    }

    /// Prints `10 mbytes`.
    fn bytes(&mut self, number: u64) -> fmt::Result {
        let (number, unit) = bytes(number);
        write!(self.out, "{number} {unit}")
    }

    /// Prints `rate over 10 mbytes/second burst 3 mbytes`. `has_burst` is whether to print a default burst.
    pub(crate) fn rate(&mut self, limit: &Statement, has_burst: bool) -> fmt::Result {
        let Statement::Limit {
            rate,
            unit,
            burst,
            bytes,
            over,
        } = limit
        else {
            return Ok(());
        };
        write!(self.out, "rate {}", word_over(*over))?;
        match bytes {
            true => self.bytes(*rate)?,
            false => write!(self.out, "{rate}")?,
        }
        write!(self.out, "/{unit}")?;
        match (bytes, *burst) {
            (_, 0) => Ok(()),
            (false, DEFAULT_BURST) if !has_burst => Ok(()),
            (true, burst) => {
                self.out.write_str(" burst ")?;
                self.bytes(burst.into())
            }
            (false, burst) => write!(self.out, " burst {burst} packets"),
        }
    }

    /// Prints `over 10 mbytes used 3 mbytes`.
    pub(crate) fn quota(&mut self, quota: &Statement) -> fmt::Result {
        let Statement::Quota { bytes, used, over } = quota else {
            return Ok(());
        };
        self.out.write_str(word_over(*over))?;
        self.bytes(*bytes)?;
        if *used > 0 && !self.is_stateless() {
            self.out.write_str(" used ")?;
            self.bytes(*used)?;
        }
        Ok(())
    }

    fn log(
        &mut self,
        prefix: Option<&str>,
        [group, snaplen, queue_threshold]: [Option<u32>; 3],
        level: Option<u32>,
        flags: u32,
    ) -> fmt::Result {
        const WARN: u32 = 4;
        self.out.write_str("log")?;
        if let Some(prefix) = prefix {
            write!(self.out, " prefix {}", Quoted(prefix.into()))?;
        }
        if let Some(group) = group {
            write!(self.out, " group {group}")?;
        }
        if let Some(length) = snaplen {
            write!(self.out, " snaplen {length}")?;
        }
        if let Some(threshold) = queue_threshold {
            write!(self.out, " queue-threshold {threshold}")?;
        }
        if let Some(level) = level.filter(|level| *level != WARN) {
            match LOG_LEVELS.get(level as usize) {
                Some(name) => write!(self.out, " level {name}")?,
                None => write!(self.out, " level {level}")?,
            }
        }
        let mut words = log_flags(flags);
        if let ["tcp sequence", "tcp options", ..] = words[..] {
            words.splice(..2, ["tcp sequence,options"]);
        }
        words
            .iter()
            .try_for_each(|words| write!(self.out, " flags {words}"))
    }

    /// Prints a NAT or tproxy address; an IPv6 address in brackets if a port may follow.
    fn address(&mut self, address: &Expr, in_brackets: bool) -> fmt::Result {
        let is_v6 = |expr: &Expr| match expr {
            Expr::Value(value) => value.data_type == DataType::IPV6_ADDR,
            Expr::Symbol(symbol) => symbol.text.contains(':') && !symbol.is_quoted,
            _ => false,
        };
        match address {
            Expr::Range(from, to) if in_brackets && is_v6(from) => {
                self.out.write_char('[')?;
                self.expr(from)?;
                self.out.write_str("]-[")?;
                self.expr(to)?;
                self.out.write_char(']')
            }
            address if in_brackets && is_v6(address) => {
                self.out.write_char('[')?;
                self.expr(address)?;
                self.out.write_char(']')
            }
            address => self.expr(address),
        }
    }
}
