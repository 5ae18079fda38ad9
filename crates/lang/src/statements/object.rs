//! Code that all kinds of stateful objects share.

use super::{NAMED, OBJECTS, Statement};
#[cfg(feature = "json")]
use crate::json::{Fields, Record, Writer};
use crate::list::Options;
use crate::parse::Diagnostic;
use crate::parse::parser::{Ending, Parser};
use crate::syntax::{Expr, Span};
use chainwright::nft::ObjectData;
use chainwright::nft::expr::ObjectType;

/// Stateful object of one type, while its declaration is parsed.
pub(crate) trait Object: Default {
    const TYPE: ObjectType;
    /// Keywords of a declaration: `counter`, `ct helper`.
    const NAME: &'static str;
    /// Keywords of a list of all objects.
    const PLURALS: &'static [&'static str];
    /// Words of the statement that refers to an object: `counter name`, `ct helper set`.
    const REFERENCE: &'static str;
    /// Whether the declaration must be in braces.
    const NEEDS_BRACES: bool = true;
    /// Whether `reset` sets its state to zero.
    const HAS_RESET: bool = false;

    /// Whether an assignment of this value to this selector refers to an object, if the statement is an assignment.
    const IS_ASSIGNED: Option<fn(&Expr, &Expr) -> bool> = None;

    /// Parses an entry of the declaration. `is_block` means that the declaration is in braces.
    fn entry(&mut self, parser: &mut Parser<'_>, is_block: bool) -> Result<(), Diagnostic>;

    /// Returns the parsed object. `span` is the location of its name.
    fn data(self, span: Span, is_block: bool) -> Result<ObjectData<'static>, Diagnostic>;

    /// Returns the lines of a listing; `None` if nft's language cannot represent the object.
    fn lines(data: &ObjectData<'_>, options: &Options) -> Option<Vec<String>>;
}

/// JSON of an object.
#[cfg(feature = "json")]
pub(crate) trait ObjectJson: Object {
    /// Keys of the object's own fields.
    const KEYS: &'static [&'static str];

    fn read(fields: &Fields<'_, '_>) -> Result<Self, Diagnostic>;

    /// Writes the fields; `None` if nft's language cannot represent the object.
    fn record(data: &ObjectData<'_>, writer: Writer<'_>) -> Option<Record<'static>>;
}

#[cfg(not(feature = "json"))]
pub(crate) trait ObjectJson: Object {}
#[cfg(not(feature = "json"))]
impl<O: Object> ObjectJson for O {}

/// Parsed data of an object, and its comment with the location of it.
pub(crate) type Declaration = (ObjectData<'static>, Option<(String, Span)>);

/// A kind of stateful objects.
pub(crate) struct ObjectKind {
    pub(crate) object_type: ObjectType,
    pub(crate) name: &'static str,
    pub(crate) plurals: &'static [&'static str],
    pub(crate) has_reset: bool,
    reference: &'static str,
    is_assigned: Option<fn(&Expr, &Expr) -> bool>,
    /// Parses a declaration after the object's name.
    pub(crate) parse: fn(&mut Parser<'_>, Span) -> Result<Declaration, Diagnostic>,
    pub(crate) lines: fn(&ObjectData<'_>, &Options) -> Option<Vec<String>>,
    #[cfg(feature = "json")]
    pub(crate) keys: &'static [&'static str],
    #[cfg(feature = "json")]
    pub(crate) read: fn(&Fields<'_, '_>, Span) -> Result<ObjectData<'static>, Diagnostic>,
    #[cfg(feature = "json")]
    pub(crate) record: fn(&ObjectData<'_>, Writer<'_>) -> Option<Record<'static>>,
}

impl ObjectKind {
    pub(super) const fn of<O: ObjectJson>() -> Self {
        Self {
            object_type: O::TYPE,
            name: O::NAME,
            plurals: O::PLURALS,
            has_reset: O::HAS_RESET,
            reference: O::REFERENCE,
            is_assigned: O::IS_ASSIGNED,
            parse: declaration::<O>,
            lines: O::lines,
            #[cfg(feature = "json")]
            keys: O::KEYS,
            #[cfg(feature = "json")]
            read: |fields, span| O::read(fields)?.data(span, true),
            #[cfg(feature = "json")]
            record: O::record,
        }
    }

    /// Returns the kind of this type; `None` if nft's language cannot declare such objects.
    pub(crate) fn find(object_type: ObjectType) -> Option<&'static Self> {
        let mut kinds = OBJECTS.iter();
        kinds.find(|kind| kind.object_type == object_type)
    }
}

/// Parses the declaration of an object after its name.
fn declaration<O: Object>(parser: &mut Parser<'_>, span: Span) -> Result<Declaration, Diagnostic> {
    let (mut object, mut comment) = (O::default(), None);
    let is_block = parser.at_sign("{");
    if is_block {
        parser.block(|parser| {
            let start = parser.current.span;
            match parser.eat("comment") {
                false => object.entry(parser, true)?,
                true => {
                    if comment.replace(parser.comment()?).is_some() {
                        return Err(parser.repeated(start, "comment"));
                    }
                }
            }
            Ok(match O::NEEDS_BRACES {
                true => Ending::Line,
                false => Ending::Any,
            })
        })?;
    } else if !parser.at_end() {
        if O::NEEDS_BRACES || parser.at("comment") {
            return Err(parser.unexpected(["{"]));
        }
        object.entry(parser, false)?;
    }
    Ok((object.data(span, is_block)?, comment))
}

/// Parses a statement that only refers to an object, if there is one: `ct timeout set "x"`, `tunnel name "x"`.
pub(crate) fn parse_reference(parser: &mut Parser<'_>) -> Result<Option<Statement>, Diagnostic> {
    for kind in OBJECTS.iter().filter(|kind| kind.is_assigned.is_none()) {
        let mut words = kind.reference.split(' ');
        if let (Some(first), Some(second)) = (words.next(), words.next())
            && parser.at_two(first, &[second])
        {
            parser.advance();
            parser.advance();
            words.try_for_each(|word| parser.expect(word))?;
            return parser.object_for(kind.object_type).map(Some);
        }
    }
    Ok(None)
}

/// Returns the word of the statement that may name objects of this type.
fn naming_word(object_type: ObjectType) -> Option<&'static str> {
    let mut named = NAMED.iter();
    let (_, words) = named.find(|(named, _)| *named == Some(object_type))?;
    words.first().copied()
}

/// Returns the keywords of an object type: `ct helper`.
pub(crate) fn object_name(object_type: ObjectType) -> &'static str {
    let kind = ObjectKind::find(object_type).map(|kind| kind.name);
    kind.or_else(|| naming_word(object_type))
        .unwrap_or("unknown")
}

/// Returns the words of the statement that refers to an object; `None` if there is none.
pub(crate) fn reference(object_type: ObjectType) -> Option<String> {
    match ObjectKind::find(object_type) {
        Some(kind) => Some(kind.reference.to_owned()),
        None => naming_word(object_type).map(|word| format!("{word} name")),
    }
}

/// Returns the type of the objects that an assignment assigns, if any.
pub(crate) fn assigned(target: &Expr, value: &Expr) -> Option<ObjectType> {
    let mut kinds = OBJECTS.iter();
    let kind = kinds.find(|kind| kind.is_assigned.is_some_and(|is| is(target, value)));
    kind.map(|kind| kind.object_type)
}
