//! Reads libnftables' JSON to the same commands as the parser for text.
//!
//! | module | purpose |
//! |---|---|
//! | `node` | JSON with locations |
//! | `fields` | checked access to the keys of an object |
//! | `object`, `statement`, `expr` | counterparts of the writer's modules |
//! | `selector` | selectors |

pub(crate) mod expr;
pub(crate) mod fields;
pub(crate) mod node;
pub(crate) mod object;
pub(crate) mod selector;
pub(crate) mod statement;

use std::collections::HashSet;

pub(crate) use self::fields::Fields;
use self::node::Kind as Json;
pub(crate) use self::node::{Key, Kind, Node};
pub(crate) use self::object::is_object;
pub(crate) use self::selector::option;
use crate::parse::error::shown;
use crate::parse::query::{kinds, reset_words};
use crate::parse::script::{FAMILIES, OBJECTS, VERBS};
use crate::parse::{Command, Diagnostic, Error, Object, Source, Sources, Verb};
use crate::statements;
use crate::syntax::{Expr, Span, Statement, Target, Verdict};
use chainwright::nft::{Family, SetFlags};

/// Supported schema version.
const SCHEMA: u64 = 1;

/// Reader for objects of this family.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader {
    pub(crate) family: Family,
}

/// Reads a document; also returns its source.
///
/// # Errors
/// The first error in the document.
pub(crate) fn parse(source: Source) -> Result<(Vec<Command>, Sources), Error> {
    let mut sources = Sources::default();
    let read = |sources: &mut Sources| {
        let index = sources.add(source, Span::default())?;
        let text = sources.text(index);
        document(&node::document(index, &text)?)
    };
    match read(&mut sources) {
        Ok(commands) => Ok((commands, sources)),
        Err(diagnostic) => Err(sources.explain(diagnostic)),
    }
}

/// Returns the position of an object among consecutive objects without a verb: as in a table block, after all objects
/// that it may refer to.
fn rank(object: &Object) -> usize {
    match object {
        Object::Table(_) => 0,
        Object::Chain(_) => 1,
        Object::Stateful(_) => 2,
        Object::Set(_) => 3,
        Object::Elements(_) => 4,
        Object::Flowtable(_) => 5,
        _ => 6,
    }
}

/// A set by family, table and name.
type SetName = (Family, Vec<u8>, Vec<u8>);

/// Marks the sets that rules update as dynamic. The kernel requires this, and nft up to 1.0.6 does not list it.
fn mark_dynamic(commands: &mut [Command]) {
    fn collect<'s>(statements: impl Iterator<Item = &'s Statement>, names: &mut Vec<&'s str>) {
        for statement in statements {
            match statement {
                Statement::Update(update) => names.push(&update.set),
                Statement::Verdict(Expr::Verdict(
                    Verdict::Jump(Target::Rules(lines)) | Verdict::Goto(Target::Rules(lines)),
                )) => {
                    for line in lines {
                        collect(line.statements.iter(), names);
                    }
                }
                _ => {}
            }
        }
    }
    let mut changed: HashSet<SetName> = HashSet::new();
    for command in &*commands {
        if let Object::Rule(rule) = &command.object {
            let mut names = Vec::new();
            collect(rule.statements.iter().map(|(each, _)| each), &mut names);
            let of_table =
                |name: &str| (rule.family, rule.table.to_vec(), name.as_bytes().to_vec());
            changed.extend(names.into_iter().map(of_table));
        }
    }
    if changed.is_empty() {
        return;
    }
    for command in commands {
        if let Object::Set(declared) = &mut command.object {
            let set = &mut declared.set;
            let (Some(table), Some(name)) = (&set.table, &set.name) else {
                continue;
            };
            if changed.contains(&(set.family, table.to_vec(), name.to_vec())) {
                set.flags = Some(set.flags.unwrap_or_default() | SetFlags::EVAL);
            }
        }
    }
}

/// Maximum nesting in a command: more than in text, and little enough for any stack.
const MAX_DEPTH: usize = 1024;

/// Returns the nesting depth of the result of a node; each operand of an operation adds one level.
fn depth(node: &Node<'_>) -> usize {
    let deepest = |nodes: &[Node<'_>]| nodes.iter().map(depth).max().unwrap_or(0);
    match &node.kind {
        Json::List(entries) => 1 + deepest(entries),
        Json::Object(entries) => {
            let each = entries.iter().map(|(key, value)| match &value.kind {
                Json::List(operands) if expr::operator(&key.text).is_some() => {
                    operands.len() + deepest(operands)
                }
                _ => 1 + depth(value),
            });
            each.max().unwrap_or(0)
        }
        _ => 0,
    }
}

fn document(node: &Node<'_>) -> Result<Vec<Command>, Diagnostic> {
    let fields = Fields::new(node, "a document", &["nftables"])?;
    let entries = fields.need("nftables")?.list("commands and objects")?;
    let mut commands = Vec::with_capacity(entries.len());
    // Objects without a verb, as in listings; the elements of a set follow it.
    let mut listed: Vec<Vec<Command>> = Vec::new();
    let flush_listed = |listed: &mut Vec<Vec<Command>>, commands: &mut Vec<Command>| {
        listed.sort_by_key(|each| each.first().map(|command| rank(&command.object)));
        let first = commands.len();
        commands.extend(listed.drain(..).flatten());
        mark_dynamic(&mut commands[first..]);
    };
    for entry in entries {
        let (key, value) = entry.tagged("command or object")?;
        if depth(value) > MAX_DEPTH {
            let message = format!("nested more than {MAX_DEPTH} levels deep");
            return Err(Diagnostic::new(key.span, message));
        }
        if key.text == "metainfo" {
            metainfo(value)?;
            continue;
        }
        let verb = VERBS.iter().find(|(word, _)| *word == key.text);
        match verb {
            Some((_, verb)) => {
                flush_listed(&mut listed, &mut commands);
                commands.extend(command(*verb, value)?);
            }
            None => {
                let span = key.span_with(value);
                match object::commands(Verb::Add, &key.text, value, span, false)? {
                    Some(found) if key.text != "meter" => listed.push(found),
                    _ => return Err(no_command(key)),
                }
            }
        }
    }
    flush_listed(&mut listed, &mut commands);
    Ok(commands)
}

fn objects() -> impl Iterator<Item = &'static str> {
    let stateful = |of_ct| {
        let names = statements::OBJECTS.iter().map(|kind| kind.name);
        names.filter(move |name| name.starts_with("ct ") == of_ct)
    };
    OBJECTS
        .into_iter()
        .chain(stateful(false))
        .chain(stateful(true))
}

fn no_command(key: &Key<'_>) -> Diagnostic {
    if key.text == "opaque" {
        return expr::opaque(key.span);
    }
    let verbs = VERBS.iter().map(|(word, _)| *word);
    let known = verbs.chain(objects()).chain(["metainfo"]);
    let message = format!("unknown command or object `{}`", shown(&key.text));
    Diagnostic::new(key.span, message)
        .expecting(known)
        .nearest_to(&key.text)
}

/// Checks the metadata of the document; only the schema version matters.
fn metainfo(node: &Node<'_>) -> Result<(), Diagnostic> {
    let known = ["version", "release_name", "json_schema_version"];
    let fields = Fields::new(node, "metainfo", &known)?;
    for key in ["version", "release_name"] {
        if let Some(node) = fields.get(key) {
            node.text("a name")?;
        }
    }
    match fields.get("json_schema_version") {
        None => Ok(()),
        Some(node) => match node.number::<u64>("a schema version")? {
            0..=SCHEMA => Ok(()),
            version => Err(Diagnostic::new(
                node.span,
                format!(
                    "unsupported schema version {version}: the newest supported one is {SCHEMA}"
                ),
            )),
        },
    }
}

/// Reads the operand of a verb.
fn command(verb: Verb, node: &Node<'_>) -> Result<Vec<Command>, Diagnostic> {
    // The kind of object is implied, and the crate `nftables` omits it.
    let is_plain = match &node.kind {
        Json::Object(entries) => entries.iter().any(|(key, _)| key.text == "family"),
        _ => false,
    };
    let plain = match verb {
        Verb::Replace if is_plain => Some("rule"),
        Verb::Rename if is_plain => Some("chain"),
        _ => None,
    };
    if let Some(kind) = plain {
        let found = object::commands(verb, kind, node, node.span, true)?;
        return Ok(found.unwrap_or_default());
    }
    let (key, value) = node.tagged("object")?;
    let span = key.span_with(value);
    let known: Vec<&str> = match verb {
        Verb::Insert | Verb::Replace => vec!["rule"],
        Verb::Rename => vec!["chain"],
        Verb::Flush => vec!["ruleset", "table", "chain", "set", "map", "meter"],
        Verb::Reset => reset_words(),
        Verb::List => {
            let singles = ["ruleset", "meter"].into_iter().chain(objects());
            singles.chain(kinds().map(|(word, _)| word)).collect()
        }
        Verb::Get => vec!["element"],
        Verb::Add | Verb::Create | Verb::Delete | Verb::Destroy => objects().collect(),
    };
    if !known.contains(&&*key.text) {
        if key.text == "opaque" {
            return Err(expr::opaque(key.span));
        }
        let word = VERBS.iter().find(|(_, known)| *known == verb);
        let word = word.map_or("", |(word, _)| word);
        let message = format!("`{word}` does not support `{}`", shown(&key.text));
        return Err(Diagnostic::new(key.span, message)
            .expecting(known)
            .nearest_to(&key.text));
    }
    if key.text == "ruleset" {
        let (family, table) = any_family(value)?;
        if table.is_some() {
            let message = "`ruleset` takes a family, not a table";
            return Err(Diagnostic::new(value.span, message));
        }
        let object = Object::Ruleset(family);
        return Ok(vec![Command { verb, object, span }]);
    }
    if let Some((_, kind)) = kinds().find(|(word, _)| *word == key.text) {
        let (family, table) = any_family(value)?;
        let object = Object::Kind(kind, family, table.map(Into::into));
        return Ok(vec![Command { verb, object, span }]);
    }
    match object::commands(verb, &key.text, value, span, true)? {
        Some(commands) => Ok(commands),
        None => Err(no_command(key)),
    }
}

/// Reads an optional family and table.
fn any_family(node: &Node<'_>) -> Result<(Family, Option<String>), Diagnostic> {
    if node.is_null() {
        return Ok((Family::UNSPEC, None));
    }
    let fields = Fields::new(node, "a scope", &["family", "table"])?;
    let word = fields.word("family", "family", &FAMILIES)?;
    let family = word
        .and_then(|word| word.parse().ok())
        .unwrap_or(Family::UNSPEC);
    let table = match fields.get("table") {
        None => None,
        Some(node) => {
            let name = object::checked(node.text("the name of a table")?, "a table", node.span)?;
            Some(name.to_owned())
        }
    };
    Ok((family, table))
}
