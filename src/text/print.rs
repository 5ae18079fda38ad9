//! Sentences of nft's language as text.

use std::fmt::{self, Write};

use crate::nft::DataType;
use crate::nft::expr::{
    CtDirection, CtKey, ExthdrOp, FibFlags, FibResult, NumgenType, OsfTtl, PayloadBase,
    XfrmDirection,
};

use super::constant::{self as value, Plain, Quoted};
use super::keys;
use super::list::Options;
use super::syntax::{
    Element, Expr, Line, Operator, Payload, Relation, Statement, Target, Translation, Value,
    Verdict,
};

/// Writes sentences.
pub(super) struct Printer<'o, W> {
    pub(super) out: W,
    pub(super) options: &'o Options,
    /// How deep what is written stands.
    pub(super) depth: usize,
    /// Whether it is what is to be made, which has no state yet.
    pub(super) plans: bool,
    /// Whether all is to stand in one line.
    pub(super) in_line: bool,
}

/// How deep the rules of a chain stand that has a name.
const IN_CHAIN: usize = 2;

/// The units in which `nft` gives bytes.
pub(super) fn bytes(number: u64) -> (u64, &'static str) {
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

/// The levels of what is logged.
pub(super) const LOG_LEVELS: [&str; 9] = [
    "emerg", "alert", "crit", "err", "warn", "notice", "info", "debug", "audit",
];

/// The words for what else of a packet is logged.
pub(super) fn log_flags(flags: u32) -> Vec<&'static str> {
    const ALL: u32 = 0x2f;
    if flags & ALL == ALL {
        return vec!["all"];
    }
    let words = [
        (1, "tcp sequence"),
        (2, "tcp options"),
        (4, "ip options"),
        (8, "skuid"),
        (0x20, "ether"),
    ];
    let words = words.iter().filter(|(flag, _)| flags & flag != 0);
    words.map(|(_, word)| *word).collect()
}

/// What a limit's time is called.
pub(super) fn time_unit(seconds: u64) -> &'static str {
    match seconds {
        1 => "second",
        60 => "minute",
        3600 => "hour",
        86_400 => "day",
        604_800 => "week",
        _ => "error",
    }
}

impl<'o, W: Write> Printer<'o, W> {
    pub(super) const fn new(out: W, options: &'o Options) -> Self {
        Self {
            out,
            options,
            depth: 0,
            plans: false,
            in_line: false,
        }
    }
}

impl<W: Write> Printer<'_, W> {
    pub(super) fn indent(&mut self) -> fmt::Result {
        for _ in 0..self.depth {
            self.out.write_char('\t')?;
        }
        Ok(())
    }

    /// The rules of a chain.
    pub(super) fn rules(&mut self, rules: impl Iterator<Item = Line>) -> fmt::Result {
        for rule in rules {
            self.indent()?;
            self.rule(&rule)?;
            self.out.write_char('\n')?;
        }
        Ok(())
    }

    /// A rule, without what is before and behind it in its line.
    pub(super) fn rule(&mut self, rule: &Line) -> fmt::Result {
        let is_opaque = rule.is_opaque();
        if is_opaque {
            self.out.write_char('#')?;
        }
        for (index, statement) in rule.statements.iter().enumerate() {
            if index > 0 || is_opaque {
                self.out.write_char(' ')?;
            }
            self.statement(statement)?;
        }
        if let Some(comment) = &rule.comment {
            write!(self.out, " comment {}", Quoted(comment.as_str().into()))?;
        }
        // nft gives rules of chains without a name none.
        match self.depth > IN_CHAIN {
            true => Ok(()),
            false => self.handle(rule.handle),
        }
    }

    pub(super) fn handle(&mut self, handle: u64) -> fmt::Result {
        match self.options.handles {
            true => write!(self.out, " # handle {handle}"),
            false => Ok(()),
        }
    }

    pub(super) fn statement(&mut self, statement: &Statement) -> fmt::Result {
        match statement {
            Statement::Match {
                left,
                relation,
                right,
            } => {
                self.expr(left)?;
                if *relation != Relation::Implicit {
                    write!(self.out, " {}", relation.sign())?;
                }
                self.out.write_char(' ')?;
                match right {
                    // Several flags that are one value.
                    Expr::Value(value) if left.is_bitmask() && value.number.count_ones() > 1 => {
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
            Statement::Limit {
                rate,
                unit,
                burst,
                bytes: of_bytes,
                over,
            } => {
                let over = if *over { "over " } else { "" };
                match of_bytes {
                    true => {
                        let (rate, bytes_unit) = bytes(*rate);
                        let unit = time_unit(*unit);
                        write!(self.out, "limit rate {over}{rate} {bytes_unit}/{unit}")?;
                        if *burst > 0 {
                            let (burst, unit) = bytes(u64::from(*burst));
                            write!(self.out, " burst {burst} {unit}")?;
                        }
                    }
                    false => {
                        let unit = time_unit(*unit);
                        write!(self.out, "limit rate {over}{rate}/{unit}")?;
                        if *burst > 0 && *burst != 5 {
                            write!(self.out, " burst {burst} packets")?;
                        }
                    }
                }
                Ok(())
            }
            Statement::Quota { .. } => {
                self.out.write_str("quota ")?;
                self.quota(statement)
            }
            Statement::Connections { count, over } => {
                let over = if *over { "over " } else { "" };
                write!(self.out, "ct count {over}{count}")
            }
            Statement::Last(ago) => {
                self.out.write_str("last")?;
                match ago {
                    _ if self.is_stateless() => Ok(()),
                    Some(ago) => {
                        write!(self.out, " used {}", crate::nft::Milliseconds(*ago))
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
                    self.value(code)?;
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
                    if let Some(family) = family {
                        write!(self.out, " {family}")?;
                    }
                    if *prefix {
                        self.out.write_str(" prefix")?;
                    }
                    self.out.write_str(" to ")?;
                    if let Some(address) = address {
                        self.address(address, port.is_some())?;
                    }
                    if let Some(port) = port {
                        self.out.write_char(':')?;
                        self.expr(port)?;
                    }
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
                if let Some(family) = family {
                    write!(self.out, " {family}")?;
                }
                self.out.write_str(" to ")?;
                if let Some(address) = address {
                    self.address(address, true)?;
                }
                if let Some(port) = port {
                    self.out.write_char(':')?;
                    self.expr(port)?;
                }
                Ok(())
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
                    // Several events at once are a list.
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
                if *timestamp {
                    self.out.write_str(" timestamp")?;
                }
                if *sack_permitted {
                    self.out.write_str(" sack-perm")?;
                }
                Ok(())
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
                if let Some(family) = family {
                    write!(self.out, " {family}")?;
                }
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
                // Names in it could end the comment.
                write!(self.out, "{}", Plain(instruction.as_str().into()))
            }
        }
    }

    /// `over 10 mbytes used 3 mbytes`
    pub(super) fn quota(&mut self, quota: &Statement) -> fmt::Result {
        let Statement::Quota {
            bytes: allowed,
            used,
            over,
        } = quota
        else {
            return Ok(());
        };
        let over = if *over { "over " } else { "" };
        let (allowed, unit) = bytes(*allowed);
        write!(self.out, "{over}{allowed} {unit}")?;
        if *used > 0 && !self.is_stateless() {
            let (used, unit) = bytes(*used);
            write!(self.out, " used {used} {unit}")?;
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

    /// An address that a packet is sent to; with its port behind it one of IPv6 stands in brackets.
    fn address(&mut self, address: &Expr, with_port: bool) -> fmt::Result {
        let is_v6 = |expr: &Expr| matches!(expr, Expr::Value(value) if value.data_type == DataType::IPV6_ADDR);
        match address {
            Expr::Range(from, to) if with_port && is_v6(from) => {
                self.out.write_char('[')?;
                self.expr(from)?;
                self.out.write_str("]-[")?;
                self.expr(to)?;
                self.out.write_char(']')
            }
            address if with_port && is_v6(address) => {
                self.out.write_char('[')?;
                self.expr(address)?;
                self.out.write_char(']')
            }
            address => self.expr(address),
        }
    }

    /// An element as a rule writes it: what it is to be made of.
    fn update(&mut self, element: &Element) -> fmt::Result {
        self.plans = true;
        let written = self.element_with(element, true);
        self.plans = false;
        written
    }

    const fn is_stateless(&self) -> bool {
        self.options.stateless || self.plans
    }

    /// An element of a set.
    pub(super) fn element(&mut self, element: &Element) -> fmt::Result {
        self.element_with(element, false)
    }

    fn element_with(&mut self, element: &Element, timeout_first: bool) -> fmt::Result {
        match &element.key {
            Some(key) => self.expr(key)?,
            None => self.out.write_char('*')?,
        }
        let timeout = |this: &mut Self| match element.timeout {
            Some(time) => write!(this.out, " timeout {}", crate::nft::Milliseconds(time)),
            None => Ok(()),
        };
        if timeout_first {
            timeout(self)?;
        }
        for statement in &element.statements {
            self.out.write_char(' ')?;
            self.statement(statement)?;
        }
        if !timeout_first {
            timeout(self)?;
        }
        if let Some(left) = element.expires.filter(|_| !self.options.stateless) {
            write!(self.out, " expires {}", crate::nft::Milliseconds(left))?;
        }
        if let Some(comment) = &element.comment {
            write!(self.out, " comment {}", Quoted(comment.as_str().into()))?;
        }
        if let Some(data) = &element.data {
            self.out.write_str(" : ")?;
            self.expr(data)?;
        }
        Ok(())
    }

    pub(super) fn expr(&mut self, expr: &Expr) -> fmt::Result {
        match expr {
            Expr::Value(value) => self.value(value),
            Expr::Payload(payload) => self.payload(payload),
            Expr::Option(option) => self.option(option),
            Expr::Meta(key) => self.out.write_str(keys::meta(*key).0),
            Expr::Ct(key, direction, data_type) => {
                let direction = match direction {
                    Some(CtDirection::ORIGINAL) => "original ",
                    Some(CtDirection::REPLY) => "reply ",
                    _ => "",
                };
                // An address that is the table's says its version nevertheless.
                let version = match (*key, *data_type) {
                    (CtKey::SRC | CtKey::DST, DataType::IPV4_ADDR) => "ip ",
                    (CtKey::SRC | CtKey::DST, DataType::IPV6_ADDR) => "ip6 ",
                    _ => "",
                };
                write!(self.out, "ct {direction}{version}{}", keys::ct(*key).0)
            }
            Expr::Rt(key) => write!(self.out, "rt {}", keys::rt(*key).0),
            Expr::Socket(key, level) => {
                write!(self.out, "socket {}", keys::socket(*key).0)?;
                match *key == crate::nft::expr::SocketKey::CGROUPV2 {
                    true => write!(self.out, " level {level}"),
                    false => Ok(()),
                }
            }
            Expr::Fib(flags, result) => self.fib(*flags, *result),
            Expr::Osf { ttl, version } => {
                let ttl = match *ttl {
                    OsfTtl::LESS => "ttl loose ",
                    OsfTtl::NOCHECK => "ttl skip ",
                    _ => "",
                };
                let what = if *version { "version" } else { "name" };
                write!(self.out, "osf {ttl}{what}")
            }
            Expr::Xfrm {
                direction,
                key,
                number,
            } => {
                let direction = match *direction {
                    XfrmDirection::OUT => "out",
                    _ => "in",
                };
                write!(self.out, "ipsec {direction} ")?;
                if *number > 0 {
                    write!(self.out, "spnum {number} ")?;
                }
                self.out.write_str(keys::xfrm(*key).0)
            }
            Expr::Numgen {
                kind,
                modulus,
                offset,
            } => {
                let kind = match *kind {
                    NumgenType::INCREMENTAL => "inc",
                    _ => "random",
                };
                write!(self.out, "numgen {kind} mod {modulus}")?;
                self.offset(*offset)
            }
            Expr::Hash {
                key,
                modulus,
                seed,
                offset,
            } => {
                match key {
                    Some(key) => {
                        self.out.write_str("jhash ")?;
                        self.expr(key)?;
                    }
                    None => self.out.write_str("symhash")?,
                }
                write!(self.out, " mod {modulus}")?;
                if let Some(seed) = seed {
                    write!(self.out, " seed {seed:#x}")?;
                }
                self.offset(*offset)
            }
            Expr::Binary(operator, left, right) => {
                self.operand(*operator, left)?;
                write!(self.out, " {} ", operator.sign())?;
                self.operand(*operator, right)
            }
            Expr::Prefix(value, bits) => {
                self.expr(value)?;
                write!(self.out, "/{bits}")
            }
            Expr::Range(from, to) => {
                self.limit(from)?;
                self.out.write_char('-')?;
                self.limit(to)
            }
            Expr::Beginning(value, bits) => {
                value::beginning(&mut self.out, value.number, value.bits, *bits)
            }
            Expr::Concat(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    if index > 0 {
                        self.out.write_str(" . ")?;
                    }
                    self.expr(part)?;
                }
                Ok(())
            }
            Expr::Flags(flags) => {
                for (index, flag) in flags.iter().enumerate() {
                    if index > 0 {
                        self.out.write_char(',')?;
                    }
                    self.expr(flag)?;
                }
                Ok(())
            }
            Expr::Masked(flags, of) => {
                self.expr(flags)?;
                self.out.write_str(" / ")?;
                self.expr(of)
            }
            Expr::Set(elements) => {
                self.out.write_str("{ ")?;
                for (index, element) in elements.iter().enumerate() {
                    if index > 0 {
                        self.out.write_str(", ")?;
                    }
                    self.element(element)?;
                }
                self.out.write_str(" }")
            }
            Expr::Reference(name) => write!(self.out, "@{}", Plain(name.as_str().into())),
            Expr::Map(key, map) => {
                self.expr(key)?;
                self.out.write_str(" map ")?;
                self.expr(map)
            }
            Expr::Verdict(verdict) => self.verdict(verdict),
            Expr::Object(name) => write!(self.out, "{}", Quoted(name.as_str().into())),
        }
    }

    fn offset(&mut self, offset: u32) -> fmt::Result {
        match offset {
            0 => Ok(()),
            offset => write!(self.out, " offset {offset}"),
        }
    }

    fn operand(&mut self, operator: Operator, operand: &Expr) -> fmt::Result {
        match operand {
            Expr::Binary(inner, ..) if inner.precedence() < operator.precedence() => {
                self.out.write_char('(')?;
                self.expr(operand)?;
                self.out.write_char(')')
            }
            operand => self.expr(operand),
        }
    }

    /// The first or last value of a range: a number, whatever names the type has.
    fn limit(&mut self, limit: &Expr) -> fmt::Result {
        match limit {
            Expr::Value(value) => value::numeric(&mut self.out, value, self.options),
            limit => self.expr(limit),
        }
    }

    fn value(&mut self, value: &Value) -> fmt::Result {
        value::plain(&mut self.out, value, self.options)
    }

    fn flags(&mut self, value: &Value, between: &str) -> fmt::Result {
        value::flags(&mut self.out, value, between, self.options)
    }

    fn verdict(&mut self, verdict: &Verdict) -> fmt::Result {
        let (word, target) = match verdict {
            Verdict::Accept => return self.out.write_str("accept"),
            Verdict::Drop => return self.out.write_str("drop"),
            Verdict::Continue => return self.out.write_str("continue"),
            Verdict::Break => return self.out.write_str("break"),
            Verdict::Return => return self.out.write_str("return"),
            Verdict::Jump(target) => ("jump", target),
            Verdict::Goto(target) => ("goto", target),
        };
        match target {
            Target::Chain(name) => write!(self.out, "{word} {}", Plain(name.as_str().into())),
            Target::Rules(rules) if self.in_line => {
                write!(self.out, "{word} {{ ")?;
                for (index, rule) in rules.iter().enumerate() {
                    if index > 0 {
                        self.out.write_str("; ")?;
                    }
                    self.rule(rule)?;
                }
                self.out.write_str(" }")
            }
            Target::Rules(rules) => {
                writeln!(self.out, "{word} {{")?;
                self.depth += 1;
                self.rules(rules.iter().cloned())?;
                self.depth -= 1;
                self.indent()?;
                self.out.write_char('}')
            }
        }
    }

    fn payload(&mut self, payload: &Payload) -> fmt::Result {
        if let Some((protocol, field)) = payload.field {
            return write!(
                self.out,
                "{} {}",
                protocol.name, protocol.fields[field].name
            );
        }
        let base = match payload.base {
            PayloadBase::LINK => "ll",
            PayloadBase::NETWORK => "nh",
            PayloadBase::TRANSPORT => "th",
            _ => "ih",
        };
        write!(self.out, "@{base},{},{}", payload.offset, payload.bits)
    }

    fn option(&mut self, option: &super::syntax::OptionField) -> fmt::Result {
        let extension = option.extension;
        let kind = match extension.kind {
            ExthdrOp::TCPOPT => "tcp option ",
            ExthdrOp::IPV4 => "ip option ",
            ExthdrOp::SCTP => "sctp chunk ",
            _ if option.presence => "exthdr ",
            _ => "",
        };
        self.out.write_str(kind)?;
        let is_whole = option.presence || (option.bits == 0 && option.offset == 0);
        match (is_whole, option.field()) {
            (true, _) if extension.name.is_empty() => write!(self.out, "{}", option.number),
            (true, _) => self.out.write_str(extension.name),
            (false, Some(field)) if !extension.name.is_empty() => {
                write!(self.out, "{} {}", extension.name, field.name)
            }
            _ => write!(
                self.out,
                "@{},{},{}",
                option.number, option.offset, option.bits
            ),
        }
    }

    fn fib(&mut self, flags: FibFlags, result: FibResult) -> fmt::Result {
        self.out.write_str("fib ")?;
        let mut first = true;
        for (flag, word) in keys::FIB_FLAGS {
            if flags.contains(flag) {
                if !first {
                    self.out.write_str(" . ")?;
                }
                self.out.write_str(word)?;
                first = false;
            }
        }
        let result = match result {
            FibResult::OIF => " oif",
            FibResult::OIFNAME => " oifname",
            _ => " type",
        };
        self.out.write_str(result)
    }
}
