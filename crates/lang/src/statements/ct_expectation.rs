//! `ct expectation`: a connection that is expected to follow the packet's.

use super::ct::{L3Protocol, Protocol, family_name};
use super::prelude::*;
use chainwright::nft::stateful::{CtExpect, HostMilliseconds};

clauses! {
    struct CtExpectation, "a ct expectation" {
        l4proto: Option<u8> = "protocol", Protocol;
        dport: Option<u16> = "dport", Number::new("a port");
        timeout: Option<u32> = "timeout", Timeout;
        size: Option<u8> = "size", Number::new("a size");
        l3proto: Option<u16> = "l3proto", L3Protocol;
    }
}

/// Time in milliseconds.
struct Timeout;

impl Clause<Option<u32>> for Timeout {
    fn parse(
        &self,
        _: &str,
        value: &mut Option<u32>,
        parser: &mut Parser<'_>,
    ) -> Result<bool, Diagnostic> {
        let span = parser.current.span;
        let time = u32::try_from(parser.time()?);
        let time = time.map_err(|_| Diagnostic::new(span, "timeout is longer than 49 days"))?;
        Ok(value.replace(time).is_some())
    }

    fn text(&self, key: &str, value: &Option<u32>, options: &Options) -> Option<String> {
        value.map(|time| format!("{key} {}", options.time(time.into())))
    }

    #[cfg(feature = "json")]
    fn read(&self, key: &str, fields: &Fields<'_, '_>) -> Result<Option<u32>, Diagnostic> {
        fields.number(key, "a number of milliseconds")
    }

    #[cfg(feature = "json")]
    fn json(&self, value: &Option<u32>, _: Writer<'_>) -> Option<Expression<'static>> {
        value.map(Into::into)
    }
}

impl ClauseObject for CtExpectation {
    fn of_data(data: &ObjectData<'_>) -> Option<Self> {
        let ObjectData::CtExpect(expect) = data else {
            return None;
        };
        family_name(expect.l3proto)?;
        Some(Self {
            l4proto: expect.l4proto,
            dport: Some(expect.dport.unwrap_or_default()),
            timeout: Some(expect.timeout.unwrap_or_default().0),
            size: Some(expect.size.unwrap_or_default()),
            l3proto: expect.l3proto,
        })
    }
}

impl Object for CtExpectation {
    const TYPE: ObjectType = ObjectType::CT_EXPECT;
    const NAME: &'static str = "ct expectation";
    const PLURALS: &'static [&'static str] = &["ct expectations"];
    const REFERENCE: &'static str = "ct expectation set";

    fn entry(&mut self, parser: &mut Parser<'_>, _: bool) -> Result<(), Diagnostic> {
        self.parse_entry(parser)
    }

    fn data(self, span: Span, _: bool) -> Result<ObjectData<'static>, Diagnostic> {
        // 0 stands for a missing number.
        let missing = match self {
            Self { l4proto: None, .. } => "missing protocol",
            Self {
                dport: None | Some(0),
                ..
            } => "missing port",
            Self {
                timeout: None | Some(0),
                ..
            } => "missing timeout",
            Self {
                size: None | Some(0),
                ..
            } => "missing size",
            _ => {
                return Ok(ObjectData::CtExpect(CtExpect {
                    l3proto: self.l3proto,
                    l4proto: self.l4proto,
                    dport: self.dport,
                    timeout: self.timeout.map(HostMilliseconds),
                    size: self.size,
                    ..CtExpect::default()
                }));
            }
        };
        Err(Diagnostic::new(span, missing))
    }

    fn lines(data: &ObjectData<'_>, options: &Options) -> Option<Vec<String>> {
        Some(Self::of_data(data)?.texts(options).collect())
    }
}
