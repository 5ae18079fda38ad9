//! Captured expressions as data: `tests/data/expr/NAME.case` has the cases of the expression NAME.
//! The README beside them describes the format.

use std::fmt::{Debug, Write as _};
use std::path::PathBuf;

use chainwright_sys::nf_tables::{
    NFTA_DATA_VALUE, NFTA_DATA_VERDICT, NFTA_VERDICT_CHAIN, NFTA_VERDICT_CHAIN_ID,
    NFTA_VERDICT_CODE,
};

use super::*;
use crate::nft::captured::hex;

/// Where the bytes of a case come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Sent by a tool: the encoding has the same bytes.
    Sent,
    /// Listed by a kernel, which has its own order and does not set `NLA_F_NESTED`.
    Listed,
    /// Written by this crate.
    Made,
}

/// One case of a file.
struct Case {
    line: usize,
    title: String,
    origin: Origin,
    /// The encoded list element.
    element: Vec<u8>,
    /// The lines with the bytes, without their indentation.
    layout: String,
    /// The expected JSON.
    json: String,
    /// The expected line of bytecode.
    text: Option<String>,
    /// The expected JSON of the form that the kernel accepts, if it does not accept a listed one.
    request: Option<String>,
}

/// The file of one expression.
struct File {
    cases: Vec<Case>,
    /// The number, the name, and the type of each attribute, in the order in which they are written.
    attributes: Vec<(u16, String, Wire)>,
}

/// Returns the directory of the files.
fn directory() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "data", "expr"]
        .iter()
        .collect()
}

/// Reads the file of this expression; panics with the place of an error.
fn read(name: &str) -> File {
    let path = directory().join(format!("{name}.case"));
    let content = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    parse(name, &content)
        .unwrap_or_else(|(line, error)| panic!("{}:{line}: {error}", path.display()))
}

/// The line of an error, and the error.
type ParseError = (usize, String);

/// Parses the content of a file.
fn parse(name: &str, content: &str) -> Result<File, ParseError> {
    let mut attributes = None;
    let mut cases: Vec<Case> = Vec::new();
    let mut source = false;
    let mut lines = content
        .lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line))
        .peekable();
    while let Some((at, line)) = lines.next() {
        let fail = |error: &str| Err((at, format!("{error}: {line}")));
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        // The indented lines that follow belong to this one.
        let mut block = Vec::new();
        while let Some((at, line)) = lines.next_if(|(_, line)| line.starts_with("  ")) {
            block.push((at, &line[2..]));
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if !block.is_empty()
            && !matches!(word, "attributes" | "source" | "sent" | "listed" | "made")
        {
            return Err((block[0].0, "unexpected indentation".into()));
        }
        match word {
            "attributes" if attributes.is_none() && cases.is_empty() => {
                let read = block.iter().map(|&(at, line)| {
                    attribute(line).ok_or_else(|| (at, format!("no attribute: {line}")))
                });
                attributes = Some(read.collect::<Result<Vec<_>, _>>()?);
            }
            "source" if !rest.is_empty() => source = true,
            "case" if !source => return fail("a case without a `source`"),
            "case" => {
                if cases.iter().any(|case| case.title == rest) {
                    return fail("a second case of this title");
                }
                cases.push(Case {
                    line: at,
                    title: rest.into(),
                    origin: Origin::Made,
                    element: Vec::new(),
                    layout: String::new(),
                    json: String::new(),
                    text: None,
                    request: None,
                });
            }
            _ => {
                let Some(case) = cases.last_mut() else {
                    return fail("expected a case before");
                };
                let origin = match word {
                    "sent" => Some(Origin::Sent),
                    "listed" => Some(Origin::Listed),
                    "made" => Some(Origin::Made),
                    _ => None,
                };
                match (word, origin) {
                    (_, Some(origin)) if case.element.is_empty() && rest.is_empty() => {
                        case.origin = origin;
                        (case.layout, case.element) = bytes(name, &block)?;
                    }
                    ("json", None) if case.json.is_empty() => case.json = rest.into(),
                    ("request", None)
                        if case.request.is_none() && case.origin == Origin::Listed =>
                    {
                        case.request = Some(rest.into());
                    }
                    ("text", None) if case.text.is_none() => case.text = Some(rest.into()),
                    _ => return fail("unknown, given twice, or not for these bytes"),
                }
            }
        }
    }
    match cases
        .iter()
        .find(|case| case.element.is_empty() || case.json.is_empty())
    {
        Some(case) => Err((case.line, "a case without bytes or without JSON".into())),
        None if cases.is_empty() => Err((1, "no cases".into())),
        None => Ok(File {
            cases,
            attributes: attributes.ok_or_else(|| (1, "no `attributes`".to_owned()))?,
        }),
    }
}

/// Parses a line of the table of attributes.
fn attribute(line: &str) -> Option<(u16, String, Wire)> {
    let mut words = line.split_whitespace();
    let parsed = (
        words.next()?.parse().ok()?,
        words.next()?.to_owned(),
        Wire::from_name(words.next()?)?,
    );
    words.next().is_none().then_some(parsed)
}

/// Returns the layout of a case as its lines have it, and the encoded list element. Where the lines have
/// only the attributes, the element is wrapped around them.
fn bytes(name: &str, block: &[(usize, &str)]) -> Result<(String, Vec<u8>), ParseError> {
    let (mut layout, mut bytes) = (String::new(), Vec::new());
    for &(at, line) in block {
        writeln!(layout, "{line}").unwrap();
        let words = line.split_whitespace();
        for word in words.skip_while(|word| word.starts_with("NFTA_")) {
            match u8::from_str_radix(word, 16) {
                Ok(byte) if word.len() == 2 => bytes.push(byte),
                _ => return Err((at, format!("no byte: {word}"))),
            }
        }
    }
    if !layout.starts_with("NFTA_LIST_ELEM ") {
        bytes = element(name, &bytes);
    }
    Ok((layout, bytes))
}

macro_rules! names {
    ($($NAME:ident)*) => { &[$(($NAME, stringify!($NAME))),*] };
}

/// Names of attributes by number.
type AttributeNames = &'static [(u16, &'static str)];

const LIST: AttributeNames = names![NFTA_LIST_ELEM];
const EXPRESSION: AttributeNames = names![NFTA_EXPR_NAME NFTA_EXPR_DATA];
const DATA: AttributeNames = names![NFTA_DATA_VALUE NFTA_DATA_VERDICT];
const VERDICT: AttributeNames = names![NFTA_VERDICT_CODE NFTA_VERDICT_CHAIN NFTA_VERDICT_CHAIN_ID];

/// Lays out encoded attributes with these names, one a line, nested ones indented.
fn lay_out(out: &mut String, attributes: &[u8], names: AttributeNames, depth: usize) {
    let mut inner: AttributeNames = &[];
    for attribute in Attributes::new(attributes) {
        let attribute = attribute.unwrap();
        let known = names.iter().find(|(kind, _)| *kind == attribute.kind);
        let &(_, name) = known.unwrap_or_else(|| panic!("no name: {attribute:?} in {names:?}"));
        let nested = match name {
            "NFTA_EXPR_NAME" => {
                let name = attribute.payload.trim_end_with(|c| c == '\0');
                inner = ExpressionRef::new(name.into(), &[]).attribute_names();
                None
            }
            "NFTA_EXPR_DATA" => Some(inner),
            "NFTA_LIST_ELEM" | "NFTA_DYNSET_EXPR" | "NFTA_INNER_EXPR" => Some(EXPRESSION),
            "NFTA_DYNSET_EXPRESSIONS" => Some(LIST),
            "NFTA_BITWISE_MASK"
            | "NFTA_BITWISE_XOR"
            | "NFTA_BITWISE_DATA"
            | "NFTA_CMP_DATA"
            | "NFTA_IMMEDIATE_DATA"
            | "NFTA_RANGE_FROM_DATA"
            | "NFTA_RANGE_TO_DATA" => Some(DATA),
            "NFTA_DATA_VERDICT" => Some(VERDICT),
            _ => None,
        };
        let (header, payload) = attribute.raw.split_at(4);
        let spaced = |bytes: &[u8]| {
            bytes
                .iter()
                .map(|b| format!(" {b:02x}"))
                .collect::<String>()
        };
        let label = format!("{:width$}{name}", "", width = 2 * depth);
        write!(out, "{label:<34}{}", spaced(header)).unwrap();
        match nested {
            Some(names) => {
                out.push('\n');
                lay_out(out, payload, names, depth + 1);
            }
            None => {
                let lines: Vec<_> = payload.chunks(16).map(spaced).collect();
                let lines = lines.join(&format!("\n{:47}", ""));
                writeln!(out, "{}{lines}", if lines.is_empty() { "" } else { " " }).unwrap();
            }
        }
    }
}

impl Case {
    /// Returns the place in the file, and the title, for failures.
    fn place(&self, name: &str) -> String {
        format!("{name}.case:{}: {}", self.line, self.title)
    }

    /// Asserts that the bytes decode to the expression that the JSON and the text have, and that this
    /// expression encodes to the bytes.
    fn check(&self, name: &str) {
        let place = self.place(name);
        // A failed test shows it, whatever fails below.
        println!("{place}");
        let expression = only(&self.element);
        assert_eq!(expression.name, name, "{place}");
        let mut layout = String::new();
        if self.layout.starts_with("NFTA_LIST_ELEM ") {
            lay_out(&mut layout, &self.element, LIST, 0);
        } else {
            lay_out(
                &mut layout,
                expression.attributes,
                expression.attribute_names(),
                0,
            );
        }
        assert!(
            layout == self.layout,
            "{place}: the layout is\n{layout}\nnot\n{}",
            self.layout
        );

        let decoded = expression
            .decode()
            .unwrap_or_else(|error| panic!("{place}: {error}"));
        let mut list = Expressions::new();
        list.push_decoded(&decoded);
        if self.origin == Origin::Listed {
            assert_eq!(list.as_bytes().len(), self.element.len(), "{place}");
            assert_eq!(
                only(list.as_bytes()).decode().as_ref(),
                Ok(&decoded),
                "{place}"
            );
        } else {
            assert_eq!(dump(list.as_bytes()), dump(&self.element), "{place}");
        }
        if let Some(text) = &self.text {
            assert_eq!(&decoded.to_string(), text, "{place}");
        }
        #[cfg(feature = "serde")]
        {
            assert_eq!(
                serde_json::to_string(&decoded).unwrap(),
                self.json,
                "{place}"
            );
            // Nested attributes that a kernel listed are written with `NLA_F_NESTED` again.
            let again: Decoded<'_> = serde_json::from_str(&self.json).unwrap();
            assert_eq!(serde_json::to_string(&again).unwrap(), self.json, "{place}");
            assert!(
                again == decoded || self.origin == Origin::Listed,
                "{place}: {again:?}"
            );
            if self.origin == Origin::Listed {
                let request = expression.to_request();
                let request = request.map(|request| serde_json::to_string(&request).unwrap());
                assert_eq!(request, self.request, "{place}");
            }
        }
        assert_truncations(&self.element);
        assert_unknown_is_preserved(&expression);
    }
}

/// Every expression has a file, every file an expression, and all of their cases hold.
#[test]
fn every_case_holds() {
    let mut files: Vec<_> = std::fs::read_dir(directory())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|file| file != "README.md")
        .collect();
    files.sort();
    let expected: Vec<_> = NAMES.iter().map(|name| format!("{name}.case")).collect();
    assert_eq!(files, expected);
    for &name in NAMES {
        let file = read(name);
        assert_layout(name, &file.attributes);
        file.cases.iter().for_each(|case| case.check(name));
    }
}

/// Errors in a file have a line.
#[test]
fn errors_name_the_line() {
    let attributes = "attributes\n  1 NFTA_COUNTER_BYTES be64\n";
    for (content, line) in [
        ("attributes\n  1 NFTA_COUNTER_BYTES\n", 2),
        ("attributes\n  1 NFTA_COUNTER_BYTES be63\n", 2),
        ("case x\n", 1),
        ("source x\n\nsent\n", 3),
        ("source x\ncase x\ncase x\n", 3),
        ("source x\ncase x\nsent\n  NFTA_COUNTER_BYTES 0\n", 4),
        ("source x\ncase x\ntext x\ntext x\n", 4),
        ("source x\ncase x\n  NFTA_COUNTER_BYTES\n", 3),
        ("source x\ncase x\nother x\n", 3),
        ("source x\ncase x\nrequest x\n", 3),
        ("source x\n\ncase x\n", 3),
    ] {
        assert_eq!(
            parse("counter", content).err().map(|(line, _)| line),
            Some(line),
            "{content}"
        );
        let content = format!("{attributes}{content}");
        assert!(parse("counter", &content).is_err(), "{content}");
    }
    assert!(parse("counter", attributes).is_err());
    assert!(parse("counter", &format!("{attributes}source x\ncase x\n")).is_err());
}

/// Asserts that `built` is the expression of the case with this title.
pub(in crate::nft::expr) fn assert_built<'a, E: Expression + Into<Decoded<'a>> + Debug>(
    title: &str,
    built: E,
) {
    let file = read(E::NAME);
    let case = file.cases.iter().find(|case| case.title == title);
    let case = case.unwrap_or_else(|| panic!("no case of {}: {title}", E::NAME));
    let decoded = only(&case.element).decode();
    assert_eq!(decoded, Ok(built.into()), "{}", case.place(E::NAME));
}

/// Formats bytes for readable comparisons.
fn dump(bytes: &[u8]) -> String {
    bytes
        .chunks(4)
        .map(|word| word.iter().map(|b| format!("{b:02x}")).collect::<String>())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the only expression of a list.
fn only(list: &[u8]) -> ExpressionRef<'_> {
    let mut all = elements(list);
    let expression = all.next().unwrap().unwrap();
    assert!(all.next().is_none());
    assert_eq!(dump(expression.raw), dump(list));
    expression
}

/// Asserts that truncated bytes are parsed as far as they are complete, or refused.
fn assert_truncations(list: &[u8]) {
    let whole = only(list);
    for end in 0..whole.attributes.len() {
        let cut = expression(
            std::str::from_utf8(whole.name).unwrap(),
            &whole.attributes[..end],
        );
        let complete = Attributes::new(cut.attributes).all(|item| item.is_ok());
        assert_eq!(cut.decode().is_ok(), complete, "cut at {end}: {cut:?}");
    }
    for end in 0..list.len() {
        let mut cut = elements(&list[..end]);
        match cut.next() {
            None => assert_eq!(end, 0),
            // Only padding remains.
            Some(Ok(expression)) => assert_eq!(expression.attributes, whole.attributes),
            Some(Err(_)) => assert!(cut.next().is_none()),
        }
    }
}

/// Asserts that unknown attributes do not affect the result, and are written after all others.
fn assert_unknown_is_preserved(expression: &ExpressionRef<'_>) {
    let before = written(|writer| _ = writer.bytes(60, &[1, 2, 3]));
    let behind = written(|writer| {
        writer.nested(61, |writer| {
            writer.be32(1, 0);
        });
    });
    let more = [&before[..], expression.attributes, &behind].concat();
    let more = ExpressionRef {
        attributes: &more,
        ..*expression
    };
    let decoded = more.decode().unwrap();
    assert!(expression.decode().unwrap().unknown().is_empty());
    assert_eq!(decoded.unknown().iter().count(), 2);
    let (mut plain, mut kept) = (Expressions::new(), Expressions::new());
    plain.push_decoded(&expression.decode().unwrap());
    kept.push_decoded(&decoded);
    assert_eq!(
        dump(only(kept.as_bytes()).attributes),
        dump(&[only(plain.as_bytes()).attributes, &before, &behind].concat()),
    );
}

macro_rules! wires {
    ($( $(#[$doc:meta])* $Wire:ident = $name:literal, )*) => {
        /// The type of an attribute's payload.
        #[derive(Clone, Copy)]
        enum Wire {
            $($(#[$doc])* $Wire,)*
        }

        impl Wire {
            /// Returns the type with this name in a file.
            fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$Wire),)*
                    _ => None,
                }
            }
        }
    };
}

wires! {
    /// One byte.
    U8 = "u8",
    /// Big-endian, two bytes.
    Be16 = "be16",
    /// Big-endian, four bytes.
    Be32 = "be32",
    /// Big-endian, eight bytes.
    Be64 = "be64",
    /// A string that ends in a NUL.
    Text = "string",
    /// A string that is written without a NUL, and accepted with one.
    EndMissing = "string-without-nul",
    /// Any bytes.
    Bytes = "bytes",
    /// Nested: a value or a verdict.
    Data = "data",
    /// Nested: an expression.
    Expression = "expression",
    /// Nested: a list of expressions.
    Expressions = "expressions",
}

/// Asserts that the attributes are those of `layout` (number, name, payload), written in this order, and that
/// attributes that are too short or incorrectly nested are refused by name.
fn assert_layout(of: &str, layout: &[(u16, String, Wire)]) {
    let named: Vec<_> = layout
        .iter()
        .map(|(kind, name, _)| (*kind, &name[..]))
        .collect();
    let declared = expression(of, &[]).attribute_names();
    let declared = declared.iter().filter(|(_, name)| !name.ends_with("_PAD"));
    assert!(
        declared.eq(&named),
        "{of}.case has the attributes {named:?}"
    );
    for (kind, name, wire) in layout {
        let kind = *kind;
        let wrap = |payload: &[u8]| written(|writer| _ = writer.bytes(kind, payload));
        // Decodes and encodes the attribute after an unknown one, which comes last in the output.
        let copy = |payload: &[u8]| {
            let unknown = written(|writer| _ = writer.be32(60, 0));
            let attributes = [&unknown[..], &wrap(payload)].concat();
            let mut list = Expressions::new();
            list.push_decoded(&expression(of, &attributes).decode()?);
            let copied = only(list.as_bytes()).attributes;
            let known = copied
                .strip_suffix(&unknown[..])
                .expect("the unknown attribute is missing");
            Ok::<_, Malformed>(known.to_vec())
        };
        let same = |payload: &[u8], expected: Vec<u8>| {
            let copied = copy(payload).map(|copied| dump(&copied));
            assert_eq!(copied, Ok(dump(&expected)), "{of}.case: {name}");
        };
        let refused = |payload: &[u8]| {
            let malformed = copy(payload).map_err(|malformed| (malformed.what, malformed.offset));
            assert_eq!(malformed, Err((&name[..], 8)), "{of}.case: {name}");
        };
        let same_nested = |payload: &str| {
            let payload = hex(payload);
            let mut nested = wrap(&payload);
            nested[3] |= 0x80; // NLA_F_NESTED
            same(&payload, nested);
        };
        let number = |length: usize| {
            let payload = &[0xf1, 2, 3, 4, 5, 6, 7, 8][..length];
            same(payload, wrap(payload));
            (0..length).for_each(|short| refused(&payload[..short]));
        };
        match wire {
            Wire::U8 => number(1),
            Wire::Be16 => number(2),
            Wire::Be32 => number(4),
            Wire::Be64 => number(8),
            Wire::Text => {
                same(b"", wrap(b"\0"));
                same(b"abc\0", wrap(b"abc\0"));
                same(b"abc", wrap(b"abc\0"));
            }
            Wire::EndMissing => {
                same(b"", wrap(b"\0"));
                same(b"abc\0", wrap(b"abc"));
                same(b"abc", wrap(b"abc"));
            }
            Wire::Bytes => {
                same(b"", wrap(b""));
                same(b"abc", wrap(b"abc"));
            }
            Wire::Data => {
                for good in [
                    "05000100 07000000",
                    "0c000280 08000100 00000001",
                    // Neither a value nor a verdict; a verdict without a code.
                    "08000300 00000000",
                    "04000280",
                ] {
                    same_nested(good);
                }
                for bad in [
                    // Not nested: nothing, a bare number, a length that does not fit.
                    "",
                    "00000001",
                    "ffff0100 00000000",
                ] {
                    refused(&hex(bad));
                }
            }
            Wire::Expression => {
                for good in [
                    // A name; a name and data; data before a name, and without `NLA_F_NESTED`.
                    "06000100 61000000",
                    "06000100 61000000 04000280",
                    "08000200 00000000 06000100 61000000",
                ] {
                    same_nested(good);
                }
                // Nothing, no name, a length that does not fit.
                for bad in ["", "04000280", "ffff0100 61000000"] {
                    refused(&hex(bad));
                }
            }
            Wire::Expressions => {
                for good in ["", "0c000180 06000100 61000000", "00000001", "ffff0100"] {
                    same_nested(good);
                }
            }
        }
    }
}
