//! Parses stateful objects.

use std::collections::BTreeMap;

use super::error::{Diagnostic, shown};
use super::parser::{Ending, Parser, has_ordered_units, parse_number, parse_time};
use super::script::{FAMILIES, InTable};
use super::tree::{Command, Object, Verb};
use crate::hooks;
use crate::stateful::instruction;
use crate::syntax::{Span, Statement};
use chainwright::nft::expr::{Counter, Decoded, Limit, ObjectType, Synproxy, SynproxyFlags};
use chainwright::nft::stateful::{
    CtExpect, CtHelper, CtTimeout, HostMilliseconds, Secmark, Timeouts, TunnelObject,
};
use chainwright::nft::{Family, Name, ObjectData, StatefulObject};

/// Entries of an object's block.
#[derive(Default)]
pub(crate) struct Entries {
    /// Whether the entries are in braces.
    is_block: bool,
    pub(crate) comment: Option<(String, Span)>,
    pub(crate) statement: Option<Statement>,
    pub(crate) helper: Option<String>,
    pub(crate) l4proto: Option<u8>,
    pub(crate) l3proto: Option<u16>,
    pub(crate) dport: Option<u16>,
    pub(crate) timeout: Option<u32>,
    pub(crate) size: Option<u8>,
    /// States with timeouts in seconds.
    pub(crate) policy: Vec<(String, u32, Span)>,
    pub(crate) context: Option<String>,
    pub(crate) tunnel: TunnelObject<'static>,
}

impl Parser<'_> {
    /// Parses a stateful object, behind the keywords of its type.
    pub(crate) fn stateful_object(
        &mut self,
        verb: Verb,
        at: &InTable,
        object_type: ObjectType,
        start: Span,
    ) -> Result<Command, Diagnostic> {
        let name = self.name("an object")?;
        let span = self.since(start);
        let mut entries = Entries::default();
        if self.at_sign("{") {
            entries.is_block = true;
            self.block(|this| this.object_entry(object_type, &mut entries))?;
            if object_type == ObjectType::QUOTA && entries.statement.is_none() {
                entries.statement = Some(Statement::Quota {
                    bytes: 0,
                    used: 0,
                    over: false,
                });
            }
        } else if !self.at_end() {
            // Without braces, there is only the state.
            if !has_state(object_type) || self.at("comment") {
                return Err(self.unexpected(["{"]));
            }
            self.object_entry(object_type, &mut entries)?;
        }
        let object = entries.object(at, name, object_type, span)?;
        Ok(Command {
            verb,
            object: Object::Stateful(object),
            span,
        })
    }

    /// Parses an entry of an object's block.
    fn object_entry(
        &mut self,
        kind: ObjectType,
        entries: &mut Entries,
    ) -> Result<Ending, Diagnostic> {
        let start = self.current.span;
        if self.eat("comment") {
            if entries.comment.replace(self.comment()?).is_some() {
                return Err(self.repeated(start, "comment"));
            }
            return Ok(Ending::of(kind));
        }
        match kind {
            ObjectType::COUNTER => match self.at("packets") {
                true => {
                    self.advance();
                    let packets = self.number("a number of packets")?;
                    self.expect("bytes")?;
                    let bytes = self.number("a number of bytes")?;
                    entries.statement = Some(Statement::Counter { packets, bytes });
                }
                false => return Err(self.no_entry("a counter", &["packets", "comment"])),
            },
            ObjectType::QUOTA => entries.statement = Some(self.quota()?),
            ObjectType::LIMIT => entries.statement = Some(self.limit()?),
            ObjectType::SYNPROXY => self.synproxy_entry(entries)?,
            ObjectType::SECMARK => {
                entries.context = Some(self.string("a security context")?);
            }
            ObjectType::TUNNEL => self.tunnel_entry(&mut entries.tunnel)?,
            kind => self.tracking_entry(kind, entries)?,
        }
        Ok(Ending::of(kind))
    }

    /// Parses `mss 1460 wscale 7 timestamp sack-perm`, in this order, on one line or on three.
    fn synproxy_entry(&mut self, entries: &mut Entries) -> Result<(), Diagnostic> {
        if !self.eat("mss") {
            return Err(self.no_entry("a synproxy", &["mss", "comment"]));
        }
        let mss = Some(self.number("a size")?);
        let has_lines = self.at_separator() && entries.is_block;
        if has_lines {
            self.skip_separators();
        }
        self.expect("wscale")?;
        let window_scale = Some(self.window_scale()?);
        if has_lines {
            self.end_of_line()?;
            self.skip_separators();
        }
        entries.statement = Some(Statement::Synproxy {
            mss,
            window_scale,
            timestamp: self.eat("timestamp"),
            sack_permitted: self.eat("sack-perm"),
        });
        Ok(())
    }

    /// Parses an entry of a conntrack helper, timeout or expectation.
    fn tracking_entry(
        &mut self,
        kind: ObjectType,
        entries: &mut Entries,
    ) -> Result<(), Diagnostic> {
        let (what, known): (_, &[&str]) = match kind {
            ObjectType::CT_HELPER => ("a ct helper", &["type", "l3proto", "comment"]),
            ObjectType::CT_TIMEOUT => (
                "a ct timeout",
                &["protocol", "l3proto", "policy", "comment"],
            ),
            _ => (
                "a ct expectation",
                &["protocol", "dport", "timeout", "size", "l3proto", "comment"],
            ),
        };
        let Some(word) = self.eat_any(known) else {
            return Err(self.no_entry(what, known));
        };
        match word {
            "type" => {
                let start = self.current.span;
                if !self.is_quoted() {
                    return Err(self.unexpected(["the name of a helper in quotation marks"]));
                }
                let helper = self.string("the name of a helper")?;
                self.expect("protocol")?;
                entries.l4proto = Some(self.protocol()?);
                if entries.helper.replace(helper).is_some() {
                    return Err(self.repeated(start, "type"));
                }
            }
            "protocol" => entries.l4proto = Some(self.protocol()?),
            "l3proto" => {
                let word = self.one_of(&FAMILIES)?;
                let family: Family = word.parse().unwrap_or_default();
                entries.l3proto = Some(family.0.into());
            }
            "dport" => entries.dport = Some(self.number("a port")?),
            "timeout" => {
                let span = self.current.span;
                let time = u32::try_from(self.time()?);
                entries.timeout = Some(
                    time.map_err(|_| Diagnostic::new(span, "timeout is longer than 49 days"))?,
                );
            }
            "size" => entries.size = Some(self.number("a size")?),
            "policy" => self.timeout_policy(entries)?,
            _ => {}
        }
        Ok(())
    }

    /// Parses the protocol of connections: nft's language has words for these two.
    fn protocol(&mut self) -> Result<u8, Diagnostic> {
        let number = match self.one_of(&["tcp", "udp"])? {
            "tcp" => libc::IPPROTO_TCP,
            _ => libc::IPPROTO_UDP,
        };
        Ok(number as u8)
    }

    /// Parses `policy = { established : 100, close : 4 }`, behind the keyword.
    fn timeout_policy(&mut self, entries: &mut Entries) -> Result<(), Diagnostic> {
        self.expect_sign("=")?;
        self.expect_sign("{")?;
        // nft lists the defaults so, and does not read it.
        if self.eat_sign("}") {
            return Ok(());
        }
        loop {
            let span = self.current.span;
            let state = self.name_text("a state")?;
            self.expect_sign(":")?;
            let word = Some(self.word()).filter(|_| self.is_word());
            let is_plain = |word: &str| parse_number(word).is_some();
            let word = word.filter(|word| is_plain(word) || has_ordered_units(word));
            let time = word.and_then(parse_time);
            let seconds = time.and_then(|time| u32::try_from(time / 1000).ok());
            let Some(seconds) = seconds else {
                return Err(self.unexpected(["a number of seconds"]));
            };
            self.advance();
            entries.policy.push((state, seconds, span));
            if self.eat_sign("}") {
                return Ok(());
            }
            if !self.eat_sign(",") {
                return Err(self.unexpected([",", "}"]));
            }
        }
    }
}

/// Returns `true` if an object is one stateful statement, which may be written without braces.
const fn has_state(kind: ObjectType) -> bool {
    matches!(
        kind,
        ObjectType::COUNTER
            | ObjectType::QUOTA
            | ObjectType::LIMIT
            | ObjectType::SYNPROXY
            | ObjectType::SECMARK
    )
}

impl Ending {
    /// Returns how an entry of an object ends.
    const fn of(kind: ObjectType) -> Self {
        match has_state(kind) {
            true => Self::Any,
            false => Self::Line,
        }
    }
}

impl Entries {
    /// Creates the object.
    pub(crate) fn object(
        mut self,
        at: &InTable,
        name: Name<'static>,
        object_type: ObjectType,
        span: Span,
    ) -> Result<StatefulObject<'static>, Diagnostic> {
        let comment = self.comment.take();
        let data = self.data(object_type, span)?;
        let object = StatefulObject::new(at.family, at.table.clone(), name, data);
        match comment {
            None => Ok(object),
            Some((comment, span)) => object
                .with_comment(&comment)
                .map_err(|error| Diagnostic::new(span, error.to_string())),
        }
    }

    /// Creates the data of an object.
    fn data(self, object_type: ObjectType, span: Span) -> Result<ObjectData<'static>, Diagnostic> {
        let missing = |what: &str| Diagnostic::new(span, format!("missing {what}"));
        let parsed = self.statement.as_ref().and_then(instruction);
        Ok(match (object_type, parsed) {
            (ObjectType::COUNTER, Some(Decoded::Counter(counter))) => Counter::new(
                counter.packets.unwrap_or_default(),
                counter.bytes.unwrap_or_default(),
            )
            .into(),
            (ObjectType::COUNTER, _) => Counter::new(0, 0).into(),
            (ObjectType::QUOTA, Some(Decoded::Quota(quota))) => quota.into(),
            (ObjectType::QUOTA, _) => return Err(missing("quota size")),
            (ObjectType::LIMIT, Some(Decoded::Limit(limit))) => Limit {
                burst: Some(limit.burst.unwrap_or_default()),
                ..limit
            }
            .into(),
            (ObjectType::LIMIT, _) => return Err(missing("limit rate")),
            (ObjectType::SYNPROXY, Some(Decoded::Synproxy(synproxy))) => synproxy.into(),
            (ObjectType::SYNPROXY, _) => Synproxy::new(0, 0, SynproxyFlags::empty()).into(),
            (ObjectType::SECMARK, _) => {
                let context = self.context.ok_or_else(|| missing("security context"))?;
                Secmark {
                    context: Some(context.into()),
                    ..Secmark::default()
                }
                .into()
            }
            (ObjectType::TUNNEL, _) => TunnelObject {
                id: Some(self.tunnel.id.ok_or_else(|| missing("id"))?),
                ..self.tunnel
            }
            .into(),
            (ObjectType::CT_HELPER, _) => CtHelper {
                helper: Some(self.helper.ok_or_else(|| missing("helper type"))?.into()),
                l3proto: self.l3proto,
                l4proto: Some(self.l4proto.ok_or_else(|| missing("protocol"))?),
                ..CtHelper::default()
            }
            .into(),
            (ObjectType::CT_TIMEOUT, _) => {
                let l4proto = self.l4proto.ok_or_else(|| missing("protocol"))?;
                CtTimeout {
                    l3proto: self.l3proto,
                    l4proto: Some(l4proto),
                    timeouts: Some(timeouts(l4proto, &self.policy)?),
                    ..CtTimeout::default()
                }
                .into()
            }
            _ => CtExpect {
                l3proto: self.l3proto,
                l4proto: Some(self.l4proto.ok_or_else(|| missing("protocol"))?),
                dport: Some(filled(self.dport).ok_or_else(|| missing("port"))?),
                timeout: Some(HostMilliseconds(
                    filled(self.timeout).ok_or_else(|| missing("timeout"))?,
                )),
                size: Some(filled(self.size).ok_or_else(|| missing("size"))?),
                ..CtExpect::default()
            }
            .into(),
        })
    }
}

/// Returns a number unless it is 0, which stands for a missing one.
fn filled<N: Default + PartialEq>(number: Option<N>) -> Option<N> {
    number.filter(|number| *number != N::default())
}

/// Returns the timeouts of all states. Missing ones are nft's defaults, not this machine's settings.
fn timeouts(l4proto: u8, parsed: &[(String, u32, Span)]) -> Result<Timeouts<'static>, Diagnostic> {
    let states = hooks::states(l4proto);
    let usual = states.iter().map(|(_, seconds)| *seconds);
    let mut all: BTreeMap<u16, u32> = (1..).zip(usual).collect();
    for (name, seconds, span) in parsed {
        let numbered = (1_u16..).zip(states);
        let Some((number, _)) = numbered.into_iter().find(|(_, (state, _))| state == name) else {
            let message = format!("unknown connection state `{}`", shown(name));
            return Err(Diagnostic::new(*span, message)
                .expecting(states.iter().map(|(state, _)| *state))
                .nearest_to(name));
        };
        all.insert(number, *seconds);
    }
    Ok(Timeouts::new(&all.into_iter().collect::<Vec<_>>()))
}
