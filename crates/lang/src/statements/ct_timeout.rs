//! `ct timeout`: how long a connection remains tracked in each of its states.

use std::collections::BTreeMap;

use super::ct::{L3Protocol, Protocol, family_name};
use super::prelude::*;
use crate::dialect::Form;
use crate::parse::parser::{has_ordered_units, parse_number, parse_time};
use chainwright::nft::stateful::{self, Timeouts};

clauses! {
    struct CtTimeout, "a ct timeout" {
        l4proto: Option<u8> = "protocol", Protocol;
        l3proto: Option<u16> = "l3proto", L3Protocol;
        policy: Vec<StateTimeout> = "policy", Policy;
    }
}

/// Timeout of a state in seconds, with the location of the state's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StateTimeout {
    state: String,
    seconds: u32,
    span: Span,
}

struct Policy;

impl Clause<Vec<StateTimeout>> for Policy {
    /// Parses `= { established : 100, close : 4 }`.
    fn parse(
        &self,
        _: &str,
        value: &mut Vec<StateTimeout>,
        parser: &mut Parser<'_>,
    ) -> Result<bool, Diagnostic> {
        parser.expect_sign("=")?;
        parser.expect_sign("{")?;
        // nft lists the defaults so, and does not read it.
        if parser.eat_sign("}") {
            return Ok(false);
        }
        loop {
            let span = parser.current.span;
            let state = parser.name_text("a state")?;
            parser.expect_sign(":")?;
            let word = Some(parser.word()).filter(|_| parser.is_word());
            let is_plain = |word: &str| parse_number(word).is_some();
            let word = word.filter(|word| is_plain(word) || has_ordered_units(word));
            let time = word.and_then(parse_time);
            let seconds = time.and_then(|time| u32::try_from(time / 1000).ok());
            let Some(seconds) = seconds else {
                return Err(parser.unexpected(["a number of seconds"]));
            };
            parser.advance();
            value.push(StateTimeout {
                state,
                seconds,
                span,
            });
            if parser.eat_sign("}") {
                return Ok(false);
            }
            if !parser.eat_sign(",") {
                return Err(parser.unexpected([",", "}"]));
            }
        }
    }

    fn text(&self, key: &str, value: &Vec<StateTimeout>, options: &Options) -> Option<String> {
        let has_units = options.has(Form::TimeoutUnits);
        let times = value
            .iter()
            .map(|StateTimeout { state, seconds, .. }| match has_units {
                true => format!("{state} : {}", options.time(u64::from(*seconds) * 1000)),
                false => format!("{state} : {seconds}"),
            });
        let times: Vec<_> = times.collect();
        Some(format!("{key} = {{ {} }}", times.join(", ")))
    }

    #[cfg(feature = "json")]
    fn read(&self, key: &str, fields: &Fields<'_, '_>) -> Result<Vec<StateTimeout>, Diagnostic> {
        let Some(node) = fields.get(key) else {
            return Ok(Vec::new());
        };
        let Kind::Object(policy) = &node.kind else {
            return Err(node.wrong(["an object with the seconds for each state"]));
        };
        let policy = policy.iter().map(|(state, seconds)| {
            Ok(StateTimeout {
                state: state.text.to_string(),
                seconds: seconds.number("a number of seconds")?,
                span: state.span,
            })
        });
        policy.collect()
    }

    #[cfg(feature = "json")]
    fn json(&self, value: &Vec<StateTimeout>, _: Writer<'_>) -> Option<Expression<'static>> {
        let each = value.iter();
        let each = each.map(|each| (each.state.clone().into(), each.seconds.into()));
        Some(match value.is_empty() {
            true => Expression::Null(()),
            false => Expression::Record(each.collect()),
        })
    }
}

/// Returns the states of a protocol's connections, with nft's default timeouts in seconds.
const fn states(protocol: u8) -> &'static [(&'static str, u32)] {
    const TCP: &[(&str, u32)] = &[
        ("syn_sent", 120),
        ("syn_recv", 60),
        ("established", 432_000),
        ("fin_wait", 120),
        ("close_wait", 60),
        ("last_ack", 30),
        ("time_wait", 120),
        ("close", 10),
        ("syn_sent2", 120),
        ("retrans", 300),
        ("unack", 300),
    ];
    const UDP: &[(&str, u32)] = &[("unreplied", 30), ("replied", 120)];
    match protocol as i32 {
        libc::IPPROTO_TCP => TCP,
        libc::IPPROTO_UDP => UDP,
        _ => &[],
    }
}

impl ClauseObject for CtTimeout {
    /// Reads an object, with the timeouts that differ from the defaults; `None` if nft has no name for a part of it.
    fn of_data(data: &ObjectData<'_>) -> Option<Self> {
        let ObjectData::CtTimeout(timeout) = data else {
            return None;
        };
        family_name(timeout.l3proto)?;
        let states = states(timeout.l4proto?);
        (!states.is_empty()).then_some(())?;
        let mut policy = Vec::new();
        for (state, seconds) in timeout.timeouts.iter().flat_map(Timeouts::iter) {
            let (name, default_timeout) = states.get(usize::from(state).checked_sub(1)?)?;
            if seconds != *default_timeout {
                policy.push(StateTimeout {
                    state: (*name).to_owned(),
                    seconds,
                    span: Span::default(),
                });
            }
        }
        Some(Self {
            l4proto: timeout.l4proto,
            l3proto: timeout.l3proto,
            policy,
        })
    }
}

impl Object for CtTimeout {
    const TYPE: ObjectType = ObjectType::CT_TIMEOUT;
    const NAME: &'static str = "ct timeout";
    const PLURALS: &'static [&'static str] = &["ct timeouts"];
    const REFERENCE: &'static str = "ct timeout set";

    fn entry(&mut self, parser: &mut Parser<'_>, _: bool) -> Result<(), Diagnostic> {
        self.parse_entry(parser)
    }

    /// The object has the timeouts of all states. Missing ones are nft's defaults, not this machine's settings.
    fn data(self, span: Span, _: bool) -> Result<ObjectData<'static>, Diagnostic> {
        let l4proto = self
            .l4proto
            .ok_or_else(|| Diagnostic::new(span, "missing protocol"))?;
        let states = states(l4proto);
        let default_timeout = states.iter().map(|(_, seconds)| *seconds);
        let mut all: BTreeMap<u16, u32> = (1..).zip(default_timeout).collect();
        for StateTimeout {
            state,
            seconds,
            span,
        } in self.policy
        {
            let mut numbered = (1_u16..).zip(states);
            let Some((number, _)) = numbered.find(|(_, (name, _))| *name == state) else {
                let message = format!("unknown connection state `{}`", shown(&state));
                return Err(Diagnostic::new(span, message)
                    .expecting(states.iter().map(|(state, _)| *state))
                    .nearest_to(&state));
            };
            all.insert(number, seconds);
        }
        Ok(ObjectData::CtTimeout(stateful::CtTimeout {
            l3proto: self.l3proto,
            l4proto: Some(l4proto),
            timeouts: Some(Timeouts::new(&all.into_iter().collect::<Vec<_>>())),
            ..stateful::CtTimeout::default()
        }))
    }

    fn lines(data: &ObjectData<'_>, options: &Options) -> Option<Vec<String>> {
        Some(Self::of_data(data)?.texts(options).collect())
    }
}
