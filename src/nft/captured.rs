//! Captured bytes as data: the files `NAME.case` in a directory of `tests/data`, whose README describes their format.

pub(super) mod objects;

use std::fmt::Write as _;
use std::path::PathBuf;

use bstr::ByteSlice as _;
use chainwright_sys::nf_tables::{
    NFTA_DATA_VALUE, NFTA_DATA_VERDICT, NFTA_DEVICE_NAME, NFTA_DEVICE_PREFIX, NFTA_EXPR_DATA,
    NFTA_EXPR_NAME, NFTA_TUNNEL_KEY_OPTS_ERSPAN, NFTA_TUNNEL_KEY_OPTS_GENEVE,
    NFTA_TUNNEL_KEY_OPTS_VXLAN, NFTA_VERDICT_CHAIN, NFTA_VERDICT_CHAIN_ID, NFTA_VERDICT_CODE,
};

use super::declare::Field as _;
use super::expr::{ExpressionRef, ObjectType};
use super::stateful::{TunnelErspan, TunnelGeneve, TunnelIp, TunnelVxlan};
use super::{Element, FlowtableHook, ObjectData, SetDesc, SetField};
use crate::netlink::Attributes;

/// Parses a hex dump: pairs of hexadecimal digits, optional blanks, comments from `;` to the end of
/// a line.
pub(crate) fn hex(dump: &str) -> Vec<u8> {
    let lines = dump.lines().map(|line| line.split(';').next());
    let digits: Vec<u32> = lines
        .flatten()
        .flat_map(str::chars)
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).unwrap())
        .collect();
    let bytes = digits.chunks(2);
    bytes.map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// Where the bytes of a case come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Sent by a tool: the encoding has the same bytes.
    Sent,
    /// Listed by a kernel, which has its own order and does not set `NLA_F_NESTED`.
    Listed,
    /// Written by this crate.
    Made,
}

/// One case of a file.
pub(super) struct Case {
    /// The place in the file, and the title, for failures.
    pub(super) place: String,
    line: usize,
    pub(super) title: String,
    /// `None` while the case has no bytes.
    pub(super) origin: Option<Origin>,
    pub(super) bytes: Vec<u8>,
    /// The lines with the bytes, without their indentation.
    pub(super) layout: String,
    /// The expected JSON.
    pub(super) json: String,
    /// The expected line of the debug output.
    pub(super) text: Option<String>,
    /// The expected JSON of the form that the kernel accepts, if it does not accept a listed one.
    pub(super) request: Option<String>,
}

/// The content of a file.
pub(super) struct File {
    pub(super) cases: Vec<Case>,
    /// The number, the name, and the type of each attribute, in the order in which they are written.
    pub(super) attributes: Vec<(u16, String, Wire)>,
}

/// Returns a directory of files.
fn directory(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "data", name]
        .iter()
        .collect()
}

/// Returns the names of the files in a directory, sorted.
pub(super) fn names_in(name: &str) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(directory(name))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|file| file != "README.md")
        .map(|file| {
            let name = file.strip_suffix(".case");
            name.unwrap_or_else(|| panic!("{file} is no .case file"))
                .to_owned()
        })
        .collect();
    names.sort();
    names
}

impl File {
    /// Reads the file of this name; panics with the place of an error.
    pub(super) fn read(directory_name: &str, name: &str) -> Self {
        let path = directory(directory_name).join(format!("{name}.case"));
        let content = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        parse(&format!("{name}.case"), &content)
            .unwrap_or_else(|(line, error)| panic!("{}:{line}: {error}", path.display()))
    }

    /// Returns the case with this title.
    pub(super) fn case(&self, title: &str) -> &Case {
        self.cases
            .iter()
            .find(|case| case.title == title)
            .unwrap_or_else(|| panic!("no case with this title: {title}"))
    }
}

/// The line of an error, and the error.
type ParseError = (usize, String);

/// Parses the content of a file.
fn parse(place: &str, content: &str) -> Result<File, ParseError> {
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
                    place: format!("{place}:{at}: {rest}"),
                    line: at,
                    title: rest.into(),
                    origin: None,
                    bytes: Vec::new(),
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
                    (_, Some(_)) if case.origin.is_none() && rest.is_empty() => {
                        case.origin = origin;
                        (case.layout, case.bytes) = bytes(&block)?;
                    }
                    ("json", None) if case.json.is_empty() => case.json = rest.into(),
                    ("request", None)
                        if case.request.is_none() && case.origin == Some(Origin::Listed) =>
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
        .find(|case| case.origin.is_none() || case.json.is_empty())
    {
        Some(case) => Err((case.line, "a case without bytes or without JSON".into())),
        None if cases.is_empty() => Err((1, "no cases".into())),
        None => Ok(File {
            cases,
            attributes: attributes.unwrap_or_default(),
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

/// Returns the layout of a case as its lines have it, and the bytes.
fn bytes(block: &[(usize, &str)]) -> Result<(String, Vec<u8>), ParseError> {
    let (mut layout, mut bytes) = (String::new(), Vec::new());
    for &(at, line) in block {
        writeln!(layout, "{line}").unwrap();
        let words = line.split_whitespace();
        for word in words.skip_while(|word| word.len() > 2) {
            match u8::from_str_radix(word, 16) {
                Ok(byte) if word.len() == 2 => bytes.push(byte),
                _ => return Err((at, format!("no byte: {word}"))),
            }
        }
    }
    Ok((layout, bytes))
}

macro_rules! names {
    ($($NAME:ident)*) => { &[$(($NAME, stringify!($NAME))),*] };
}

/// Names of attributes by number.
pub(super) type AttributeNames = &'static [(u16, &'static str)];

pub(super) const EXPRESSION: AttributeNames = names![NFTA_EXPR_NAME NFTA_EXPR_DATA];
const DATA: AttributeNames = names![NFTA_DATA_VALUE NFTA_DATA_VERDICT];
const VERDICT: AttributeNames = names![NFTA_VERDICT_CODE NFTA_VERDICT_CHAIN NFTA_VERDICT_CHAIN_ID];
const DEVICES: AttributeNames = names![NFTA_DEVICE_NAME NFTA_DEVICE_PREFIX];
const TUNNEL_OPTIONS: AttributeNames =
    names![NFTA_TUNNEL_KEY_OPTS_VXLAN NFTA_TUNNEL_KEY_OPTS_ERSPAN NFTA_TUNNEL_KEY_OPTS_GENEVE];

/// What an attribute's payload consists of.
#[derive(Clone, Copy)]
enum Inside {
    Attributes(AttributeNames),
    /// List elements, whose attributes have these names. nft numbers the elements of a set, so they have any type.
    List(AttributeNames),
    /// A timeout for each state.
    States,
}

/// Returns what an attribute with this name contains, if it is a nested one of the same content everywhere.
fn inside(name: &str) -> Option<Inside> {
    Some(Inside::Attributes(match name {
        "NFTA_DYNSET_EXPR" | "NFTA_INNER_EXPR" | "NFTA_SET_EXPR" | "NFTA_SET_ELEM_EXPR" => {
            EXPRESSION
        }
        "NFTA_BITWISE_MASK"
        | "NFTA_BITWISE_XOR"
        | "NFTA_BITWISE_DATA"
        | "NFTA_CMP_DATA"
        | "NFTA_IMMEDIATE_DATA"
        | "NFTA_RANGE_FROM_DATA"
        | "NFTA_RANGE_TO_DATA"
        | "NFTA_SET_ELEM_KEY"
        | "NFTA_SET_ELEM_KEY_END"
        | "NFTA_SET_ELEM_DATA" => DATA,
        "NFTA_DATA_VERDICT" => VERDICT,
        "NFTA_SET_DESC" => SetDesc::ATTRIBUTES,
        "NFTA_FLOWTABLE_HOOK" => FlowtableHook::ATTRIBUTES,
        "NFTA_FLOWTABLE_HOOK_DEVS" => DEVICES,
        "NFTA_TUNNEL_KEY_IP" => TunnelIp::ATTRIBUTES,
        "NFTA_TUNNEL_KEY_OPTS" => TUNNEL_OPTIONS,
        "NFTA_TUNNEL_KEY_OPTS_VXLAN" => TunnelVxlan::ATTRIBUTES,
        "NFTA_TUNNEL_KEY_OPTS_ERSPAN" => TunnelErspan::ATTRIBUTES,
        "NFTA_TUNNEL_KEY_OPTS_GENEVE" => TunnelGeneve::ATTRIBUTES,
        "NFTA_DYNSET_EXPRESSIONS"
        | "NFTA_RULE_EXPRESSIONS"
        | "NFTA_SET_EXPRESSIONS"
        | "NFTA_SET_ELEM_EXPRESSIONS" => return Some(Inside::List(EXPRESSION)),
        "NFTA_SET_DESC_CONCAT" => return Some(Inside::List(SetField::ATTRIBUTES)),
        "NFTA_SET_ELEM_LIST_ELEMENTS" => return Some(Inside::List(Element::ATTRIBUTES)),
        "NFTA_CT_TIMEOUT_DATA" => return Some(Inside::States),
        _ => return None,
    }))
}

/// Lays out encoded attributes with these names, one a line, nested ones indented.
pub(super) fn lay_out(out: &mut String, attributes: &[u8], names: AttributeNames) {
    lay_out_at(out, attributes, Inside::Attributes(names), 0);
}

/// Lays out the elements of a list, whose attributes have these names.
pub(super) fn lay_out_list(out: &mut String, list: &[u8], names: AttributeNames) {
    lay_out_at(out, list, Inside::List(names), 0);
}

fn lay_out_at(out: &mut String, bytes: &[u8], content: Inside, depth: usize) {
    // The content of an expression's or object's data depends on the attribute before it.
    let mut data: AttributeNames = &[];
    for attribute in Attributes::new(bytes) {
        let attribute = attribute.unwrap();
        let (name, nested) = match content {
            Inside::List(names) => ("NFTA_LIST_ELEM".to_owned(), Some(Inside::Attributes(names))),
            Inside::States => (format!("state_{}", attribute.kind), None),
            Inside::Attributes(names) => {
                let known = names.iter().find(|(kind, _)| *kind == attribute.kind);
                let &(_, name) =
                    known.unwrap_or_else(|| panic!("no name: {attribute:?} in {names:?}"));
                match name {
                    "NFTA_EXPR_NAME" => {
                        let name = attribute.payload.trim_end_with(|c| c == '\0');
                        data = ExpressionRef::new(name.into(), &[]).attribute_names();
                    }
                    "NFTA_OBJ_TYPE" => {
                        let object_type = ObjectType::decode(attribute.payload).unwrap();
                        data = ObjectData::attribute_names(object_type);
                    }
                    _ => {}
                }
                let nested = match name {
                    "NFTA_EXPR_DATA" | "NFTA_OBJ_DATA" => Some(Inside::Attributes(data)),
                    _ => inside(name),
                };
                (name.to_owned(), nested)
            }
        };
        let (header, payload) = attribute.raw.split_at(4);
        let label = format!("{:width$}{name}", "", width = 2 * depth);
        write!(out, "{label:<34}{}", spaced(header)).unwrap();
        match nested {
            Some(nested) => {
                out.push('\n');
                lay_out_at(out, payload, nested, depth + 1);
            }
            None => {
                let lines: Vec<_> = payload.chunks(16).map(spaced).collect();
                let lines = lines.join(&format!("\n{:47}", ""));
                writeln!(out, "{}{lines}", if lines.is_empty() { "" } else { " " }).unwrap();
            }
        }
    }
}

/// Formats bytes with a blank before each.
pub(super) fn spaced(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!(" {b:02x}")).collect()
}

/// Formats bytes for readable comparisons.
pub(super) fn dump(bytes: &[u8]) -> String {
    bytes
        .chunks(4)
        .map(|word| word.iter().map(|b| format!("{b:02x}")).collect::<String>())
        .collect::<Vec<_>>()
        .join(" ")
}

macro_rules! wires {
    ($( $(#[$doc:meta])* $Wire:ident = $name:literal, )*) => {
        /// The type of an attribute's payload.
        #[derive(Clone, Copy)]
        pub(super) enum Wire {
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
