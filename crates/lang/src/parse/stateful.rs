//! Parses stateful statements of rules, elements and objects.

use super::error::{Diagnostic, shown};
use super::parser::{Parser, number, parse_number};
use crate::syntax::{Span, Statement};
use crate::units;

/// Units of bytes.
pub(crate) const BYTES: [(&str, u64); 3] = [("bytes", 1), ("kbytes", 1 << 10), ("mbytes", 1 << 20)];

/// Default burst of a limit, in packets.
pub(crate) const DEFAULT_BURST: u32 = 5;

impl Parser<'_> {
    /// Parses a stateful statement, if there is one.
    pub(crate) fn stateful(&mut self) -> Result<Option<Statement>, Diagnostic> {
        if !self.is_word() {
            return Ok(None);
        }
        let is_count = self.at_two("ct", &["count"]);
        Ok(Some(match self.word() {
            "counter" => {
                self.advance();
                match self.named_object("counter name")? {
                    Some(object) => object,
                    None => self.counter()?,
                }
            }
            "limit" => {
                self.advance();
                match self.named_object("limit name")? {
                    Some(object) => object,
                    None => self.limit()?,
                }
            }
            "quota" => {
                self.advance();
                match self.named_object("quota name")? {
                    Some(object) => object,
                    None => self.quota()?,
                }
            }
            "last" => {
                self.advance();
                let used = match self.eat("used") && !self.eat("never") {
                    true => Some(self.time()?),
                    false => None,
                };
                Statement::Last(used)
            }
            "ct" if is_count => {
                self.advance();
                self.advance();
                match self.named_object("ct count name")? {
                    Some(object) => object,
                    None => {
                        let over = self.over();
                        let count = self.number("a number of connections")?;
                        Statement::Connections { count, over }
                    }
                }
            }
            _ => return Ok(None),
        }))
    }

    /// Parses the optional `over` or `until`; returns whether it is `over`. `until` is the default.
    fn over(&mut self) -> bool {
        self.eat_any(&["over", "until"]) == Some("over")
    }

    /// Parses the optional `packets 1 bytes 2`, in any order.
    fn counter(&mut self) -> Result<Statement, Diagnostic> {
        let (mut packets, mut bytes) = (0, 0);
        while let Some(word) = self.eat_any(&["packets", "bytes"]) {
            match word {
                "packets" => packets = self.number("a number of packets")?,
                _ => bytes = self.number("a number of bytes")?,
            }
        }
        Ok(Statement::Counter { packets, bytes })
    }

    /// Parses `over 10 mbytes used 1 kbytes`.
    pub(crate) fn quota(&mut self) -> Result<Statement, Diagnostic> {
        let over = self.over();
        let bytes = self.bytes()?;
        let used = match self.eat("used") {
            true => self.bytes()?,
            false => 0,
        };
        Ok(Statement::Quota { bytes, used, over })
    }

    /// Parses `rate over 5/second burst 7 packets`.
    pub(crate) fn limit(&mut self) -> Result<Statement, Diagnostic> {
        self.expect("rate")?;
        let over = self.over();
        let start = self.current.span;
        let (rate, glued) = self.glued_number("a rate like 5/second")?;
        let (bytes, unit) = self.rate_unit(&glued)?;
        let rate = rate_of(rate, bytes, self.since(start))?;
        let mut burst = match bytes {
            Some(_) => 0,
            None => DEFAULT_BURST,
        };
        if self.eat("burst") {
            let start = self.current.span;
            let (number, glued) = self.glued_number("a number")?;
            let unit = match glued.is_empty() {
                true => self.word_of_burst()?,
                false => glued,
            };
            let size = match (&*unit, bytes) {
                ("packets", None) => 1,
                (unit, Some(_)) => size_of_bytes(unit).ok_or_else(|| {
                    let message = "the burst of a byte rate must be in bytes";
                    Diagnostic::new(self.since(start), message)
                        .expecting(BYTES.map(|(name, _)| name))
                })?,
                _ => {
                    let message = "the burst of a packet rate must be in packets";
                    return Err(Diagnostic::new(self.since(start), message).expecting(["packets"]));
                }
            };
            burst = burst_of(number, size, bytes.is_some(), self.since(start))?;
        }
        Ok(Statement::Limit {
            rate,
            unit,
            burst,
            bytes: bytes.is_some(),
            over,
        })
    }

    fn word_of_burst(&mut self) -> Result<String, Diagnostic> {
        let known = ["packets", "bytes", "kbytes", "mbytes"];
        self.one_of(&known).map(str::to_owned)
    }

    /// Parses a number with optional letters at its end.
    fn glued_number(&mut self, what: &str) -> Result<(u64, String), Diagnostic> {
        let word = match self.is_word() {
            true => self.word(),
            false => "",
        };
        let digits = match number(word) {
            Some(_) => word.len(),
            None => word.bytes().take_while(u8::is_ascii_digit).count(),
        };
        if digits == 0 {
            return Err(self.unexpected([what]));
        }
        let (digits, rest) = word.split_at(digits);
        let Some(number) = parse_number(digits) else {
            let message = format!("`{}` is not a number, or is too large", shown(digits));
            return Err(Diagnostic::new(self.current.span, message));
        };
        let rest = rest.to_owned();
        self.advance();
        Ok((number, rest))
    }

    /// Parses the unit of a rate: `/second`, `mbytes/second`.
    fn rate_unit(&mut self, glued: &str) -> Result<(Option<u64>, &'static str), Diagnostic> {
        let unknown = |this: &Self| {
            this.unexpected(["/second", "/minute", "/hour", "/day", "/week"])
                .with_hint("use a rate like 5/second or 10 mbytes/minute")
        };
        // `mbytes/second` is one token, `5/second` three.
        let mut size = match glued {
            "" => None,
            glued => Some(size_of_bytes(glued).ok_or_else(|| unknown(self))?),
        };
        if size.is_none() && self.is_word() {
            let word = self.word();
            let (bytes, time) = word.split_once('/').unwrap_or((word, ""));
            size = Some(size_of_bytes(bytes).ok_or_else(|| unknown(self))?);
            if !time.is_empty() {
                let time = unit(time).ok_or_else(|| unknown(self))?;
                self.advance();
                return Ok((size, time));
            }
            self.advance();
        }
        if !self.eat_sign("/") {
            return Err(unknown(self));
        }
        let time = match self.is_word() {
            true => unit(self.word()),
            false => None,
        };
        let time = time.ok_or_else(|| self.unexpected(units::times()))?;
        self.advance();
        Ok((size, time))
    }

    /// Parses a number of bytes: `10 mbytes`.
    fn bytes(&mut self) -> Result<u64, Diagnostic> {
        let start = self.current.span;
        let (number, glued) = self.glued_number("a number of bytes like 10 mbytes")?;
        let size = match &*glued {
            "" => {
                let unit = self.one_of(&BYTES.map(|(name, _)| name))?;
                size_of_bytes(unit)
            }
            glued => size_of_bytes(glued),
        };
        let Some(size) = size else {
            let message = format!("invalid number of bytes `{}`", shown(&glued));
            return Err(Diagnostic::new(start, message).expecting(BYTES.map(|(name, _)| name)));
        };
        bytes_of(number, size, self.since(start))
    }

    /// Parses `mss 1460 wscale 7 timestamp sack-perm`.
    pub(crate) fn synproxy(&mut self) -> Result<Statement, Diagnostic> {
        self.expect("synproxy")?;
        if let Some(object) = self.named_object("synproxy name")? {
            return Ok(object);
        }
        let (mss, window_scale, timestamp, sack_permitted) = self.synproxy_options()?;
        Ok(Statement::Synproxy {
            mss,
            window_scale,
            timestamp,
            sack_permitted,
        })
    }

    /// Parses a window scale.
    pub(crate) fn window_scale(&mut self) -> Result<u8, Diagnostic> {
        let span = self.current.span;
        scale_of_window(self.number("a scale")?, span)
    }

    /// Parses `mss 1460 wscale 7 timestamp sack-perm` after the keyword was parsed.
    pub(crate) fn synproxy_options(
        &mut self,
    ) -> Result<(Option<u16>, Option<u8>, bool, bool), Diagnostic> {
        let (mut mss, mut window_scale) = (None, None);
        let (mut timestamp, mut sack_permitted) = (false, false);
        loop {
            match self.eat_any(&["mss", "wscale", "timestamp", "sack-perm"]) {
                Some("mss") => mss = Some(self.number("a size")?),
                Some("wscale") => window_scale = Some(self.window_scale()?),
                Some("timestamp") => timestamp = true,
                Some(_) => sack_permitted = true,
                None => return Ok((mss, window_scale, timestamp, sack_permitted)),
            }
        }
    }
}

pub(crate) fn size_of_bytes(name: &str) -> Option<u64> {
    let found = BYTES.iter().find(|(known, _)| *known == name);
    found.map(|(_, size)| *size)
}

/// Returns the unit of time of a rate.
pub(crate) fn unit(word: &str) -> Option<&'static str> {
    units::times().find(|known| *known == word)
}

/// Returns a rate in packets, or in bytes if the size of its unit is given.
pub(crate) fn rate_of(rate: u64, bytes: Option<u64>, span: Span) -> Result<u64, Diagnostic> {
    let rate = rate.checked_mul(bytes.unwrap_or(1));
    rate.filter(|rate| *rate > 0).ok_or_else(|| {
        let message = "rate is 0 or too large";
        Diagnostic::new(span, message)
    })
}

/// Returns a burst in packets or bytes.
pub(crate) fn burst_of(
    number: u64,
    size: u64,
    is_bytes: bool,
    span: Span,
) -> Result<u32, Diagnostic> {
    if number == 0 && !is_bytes {
        return Err(Diagnostic::new(span, "packet burst must be at least 1"));
    }
    let all = number.checked_mul(size);
    let all = all.and_then(|all| u32::try_from(all).ok());
    all.ok_or_else(|| Diagnostic::new(span, "burst is larger than 4294967295"))
}

/// Multiplies a number by a unit of bytes.
pub(crate) fn bytes_of(number: u64, size: u64, span: Span) -> Result<u64, Diagnostic> {
    let all = number.checked_mul(size);
    all.ok_or_else(|| Diagnostic::new(span, "number of bytes is too large"))
}

/// Checks the window scale against the kernel's maximum.
pub(crate) fn scale_of_window(scale: u8, span: Span) -> Result<u8, Diagnostic> {
    const MAX_SCALE: u8 = 14;
    match scale {
        0..=MAX_SCALE => Ok(scale),
        _ => Err(Diagnostic::new(span, "window scale is larger than 14")),
    }
}
