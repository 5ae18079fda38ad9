//! `synproxy`: answers the handshake of a TCP connection before the packet reaches its destination.

use super::prelude::*;
use chainwright::nft::expr::SynproxyFlags;

clauses! {
    /// Options that the proxy offers to clients.
    struct Synproxy, "a synproxy" {
        mss: Option<u16> = "mss", Number::new("a size");
        window_scale: Option<u8> = "wscale",
            Number::new("a scale").at_most(14, "window scale is larger than 14");
        flags: SynproxyFlags = "flags", Flags { what: "synproxy flag", names: &FLAGS };
    }
}

const FLAGS: [(SynproxyFlags, &str); 2] = [
    (SynproxyFlags::TIMESTAMP, "timestamp"),
    (SynproxyFlags::SACK_PERM, "sack-perm"),
];

impl Synproxy {
    fn expression(&self) -> expr::Synproxy {
        let mut flags = self.flags;
        flags.set(SynproxyFlags::MSS, self.mss.is_some());
        flags.set(SynproxyFlags::WSCALE, self.window_scale.is_some());
        let (mss, scale) = (self.mss, self.window_scale);
        expr::Synproxy::new(mss.unwrap_or_default(), scale.unwrap_or_default(), flags)
    }
}

impl ClauseObject for Synproxy {
    fn of_data(data: &ObjectData<'_>) -> Option<Self> {
        let ObjectData::Synproxy(data) = data else {
            return None;
        };
        let flags = data.flags.unwrap_or_default();
        let has = |flag| flags.contains(flag);
        Some(Self {
            mss: has(SynproxyFlags::MSS).then(|| data.mss.unwrap_or_default()),
            window_scale: has(SynproxyFlags::WSCALE).then(|| data.wscale.unwrap_or_default()),
            flags,
        })
    }
}

impl Text for Synproxy {
    const WORDS: &'static [&'static str] = &["synproxy"];
    const OBJECT: Option<ObjectType> = Some(ObjectType::SYNPROXY);

    fn parse(parser: &mut Parser<'_>, _: &str) -> Result<Self, Diagnostic> {
        Self::parse_all(parser, |_, _| None)
    }

    fn print<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
        printer.out.write_str("synproxy")?;
        self.print_all(printer)
    }
}

impl Linearize for Synproxy {
    fn linearize(&self, rule: &mut RuleBuilder<'_, '_>) -> Result<(), Diagnostic> {
        rule.push(&self.expression());
        Ok(())
    }
}

impl Delinearize<expr::Synproxy> for Synproxy {
    fn delinearize(synproxy: &expr::Synproxy, _: &mut Reader<'_, '_>) -> Option<Self> {
        let flags = synproxy.flags.unwrap_or_default();
        let sizes = SynproxyFlags::MSS | SynproxyFlags::WSCALE;
        let named = SynproxyFlags::TIMESTAMP | SynproxyFlags::SACK_PERM;
        (sizes | named).contains(flags).then_some(())?;
        // nft prints both sizes or none.
        let both = flags.intersects(sizes);
        Some(Self {
            mss: both.then_some(synproxy.mss.unwrap_or_default()),
            window_scale: both.then_some(synproxy.wscale.unwrap_or_default()),
            flags: flags & named,
        })
    }
}

impl Object for Synproxy {
    const TYPE: ObjectType = ObjectType::SYNPROXY;
    const NAME: &'static str = "synproxy";
    const PLURALS: &'static [&'static str] = &["synproxys", "synproxies"];
    const REFERENCE: &'static str = "synproxy name";
    const NEEDS_BRACES: bool = false;

    /// Parses `mss 1460 wscale 7 timestamp sack-perm`, in this order, on one line or on three.
    fn entry(&mut self, parser: &mut Parser<'_>, is_block: bool) -> Result<(), Diagnostic> {
        if !parser.eat("mss") {
            return Err(parser.no_entry("a synproxy", &["mss", "comment"]));
        }
        *self = Self::default();
        self.parse_one("mss", parser)?;
        let has_lines = parser.at_separator() && is_block;
        if has_lines {
            parser.skip_separators();
        }
        parser.expect("wscale")?;
        self.parse_one("wscale", parser)?;
        if has_lines {
            parser.end_of_line()?;
            parser.skip_separators();
        }
        for (flag, word) in FLAGS {
            self.flags.set(flag, parser.eat(word));
        }
        Ok(())
    }

    fn data(self, _: Span, _: bool) -> Result<ObjectData<'static>, Diagnostic> {
        Ok(self.expression().into())
    }

    fn lines(data: &ObjectData<'_>, options: &Options) -> Option<Vec<String>> {
        let object = Self::of_data(data)?;
        let mut lines: Vec<_> = object.texts(options).collect();
        // The blanks are those of nft.
        match lines.last_mut() {
            Some(line) if line == "timestamp" => line.push(' '),
            Some(line) if line == "sack-perm" => line.insert(0, ' '),
            _ => {}
        }
        Some(lines)
    }
}
