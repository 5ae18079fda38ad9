//! Reads tables and their objects.

use super::Reader;
use super::expr::milliseconds;
use super::fields::Fields;
use super::node::{Kind, Node};
use crate::parse::chain::{HOOKS, TYPES, hook_number, named_devices, priority_of};
use crate::parse::error::shown;
use crate::parse::object::object;
use crate::parse::parser::MAX_NAME_LENGTH;
use crate::parse::script::{FAMILIES, InTable, only_named};
use crate::parse::selectors::type_names;
use crate::parse::{
    Command, Declared, Diagnostic, ElementList, Elements, Object, Position, Rule, SetDeclaration,
    Verb, set, table,
};
use crate::statements::{OBJECTS, ObjectKind};
use crate::syntax::{Expr, Span, Statement};
use chainwright::nft::{
    Chain, ChainFlags, DataType, Devices, Family, Flowtable, FlowtableFlags, Hook, Milliseconds,
    Milliseconds32, Name, Policy, Set, SetPolicy, StatefulObject, Table,
};

/// Returns `true` if the value is an object name, or a map to objects.
pub(crate) fn is_object(node: &Node<'_>) -> bool {
    match &node.kind {
        Kind::Text(_) => true,
        Kind::Object(entries) => matches!(&entries[..], [(key, _)] if key.text == "map"),
        _ => false,
    }
}

/// Returns the kind of stateful objects of this name.
fn stateful(name: &str) -> Option<&'static ObjectKind> {
    OBJECTS.iter().find(|kind| kind.name == name)
}

const TABLE: [&str; 5] = ["family", "name", "handle", "flags", "comment"];
const CHAIN: [&str; 12] = [
    "family", "table", "name", "handle", "newname", "type", "hook", "prio", "dev", "policy",
    "flags", "comment",
];
const RULE: [&str; 7] = [
    "family", "table", "chain", "expr", "handle", "index", "comment",
];
const SET: [&str; 16] = [
    "family",
    "table",
    "name",
    "handle",
    "type",
    "policy",
    "flags",
    "elem",
    "timeout",
    "gc-interval",
    "size",
    "count", // number of elements, written by nft 1.1.7
    "auto-merge",
    "comment",
    "stmt",
    "map",
];
const FLOWTABLE: [&str; 8] = [
    "family", "table", "name", "handle", "hook", "prio", "dev", "flags",
];

/// Reads an object's family and table, and returns a reader for its contents.
pub(crate) fn in_table(fields: &Fields<'_, '_>) -> Result<(InTable, Reader), Diagnostic> {
    let family = family(fields)?;
    let table = name(fields, "table", "a table")?;
    Ok((InTable { family, table }, Reader { family }))
}

pub(crate) fn family(fields: &Fields<'_, '_>) -> Result<Family, Diagnostic> {
    let word = fields.need("family")?.word("family", &FAMILIES)?;
    Ok(word.parse().unwrap_or_default())
}

/// Reads a required name.
pub(crate) fn name(
    fields: &Fields<'_, '_>,
    key: &str,
    of: &str,
) -> Result<Name<'static>, Diagnostic> {
    let node = fields.need(key)?;
    let text = node.text(&format!("the name of {of}"))?;
    checked(text, of, node.span).map(|name| name.to_owned().into())
}

/// Checks that the kernel accepts a name.
pub(crate) fn checked<'n>(name: &'n str, of: &str, span: Span) -> Result<&'n str, Diagnostic> {
    match name.len() {
        0 => Err(Diagnostic::new(span, format!("the name of {of} is empty"))),
        _ if name.contains(char::REPLACEMENT_CHARACTER) => {
            let message = format!("the name of {of} has bytes that JSON cannot represent");
            Err(Diagnostic::new(span, message))
        }
        1..=MAX_NAME_LENGTH => Ok(name),
        _ => {
            let message = format!("name is longer than {MAX_NAME_LENGTH} bytes");
            Err(Diagnostic::new(span, message))
        }
    }
}

/// Reads a handle if there is no name; `flush` requires a name.
pub(crate) fn handle_instead(
    verb: Verb,
    fields: &Fields<'_, '_>,
) -> Result<Option<u64>, Diagnostic> {
    if verb == Verb::Flush {
        fields.need("name")?;
    }
    match fields.has("name") {
        true => Ok(None),
        false => fields.number("handle", "a handle"),
    }
}

/// Returns `true` if a verb refers to an existing object by name or handle.
pub(crate) const fn is_by_name(verb: Verb) -> bool {
    !matches!(
        verb,
        Verb::Add | Verb::Create | Verb::Insert | Verb::Replace
    )
}

/// Adds a comment to an object.
fn commented<T>(
    fields: &Fields<'_, '_>,
    object: T,
    put: impl FnOnce(T, &str) -> Result<T, String>,
) -> Result<T, Diagnostic> {
    match fields.get("comment") {
        None => Ok(object),
        Some(node) => {
            let comment = node.lossless_text("a comment")?;
            put(object, comment).map_err(|error| Diagnostic::new(node.span, error))
        }
    }
}

/// Reads device names.
fn devices(node: &Node<'_>) -> Result<Devices<'static>, Diagnostic> {
    let names = node.one_or_many().iter();
    let names: Vec<&str> = names
        .map(|node| checked(node.text("the name of a device")?, "a device", node.span))
        .collect::<Result<_, _>>()?;
    Ok(named_devices(names.into_iter()))
}

/// Reads a command about an object of this kind; `None` if the kind is unknown.
pub(crate) fn commands(
    verb: Verb,
    kind: &str,
    node: &Node<'_>,
    span: Span,
    has_verb: bool,
) -> Result<Option<Vec<Command>>, Diagnostic> {
    let object = match kind {
        "table" => Object::Table(self::table(verb, node)?),
        "chain" => chain(verb, node)?,
        "rule" => Object::Rule(Box::new(rule(verb, node, has_verb)?)),
        "set" | "map" | "meter" => {
            let mut commands = set(verb, node, kind == "map", span)?;
            if let [Command { object, .. }] = &mut commands[..]
                && let (Object::Set(declared), Verb::List, "meter") = (&*object, verb, kind)
            {
                *object = Object::Meter(declared.set.clone());
            }
            return Ok(Some(commands));
        }
        "element" => elements(node)?,
        "flowtable" => Object::Flowtable(flowtable(verb, node)?),
        kind => match stateful(kind) {
            Some(kind) => Object::Stateful(stateful_object(verb, kind, node, span)?),
            None => return Ok(None),
        },
    };
    Ok(Some(vec![Command { verb, object, span }]))
}

fn table(verb: Verb, node: &Node<'_>) -> Result<Table<'static>, Diagnostic> {
    let fields = Fields::new(node, "a table", &TABLE)?;
    let family = family(&fields)?;
    if is_by_name(verb) {
        let handle = handle_instead(verb, &fields)?;
        return Ok(Table {
            family,
            name: match handle {
                Some(_) => None,
                None => Some(name(&fields, "name", "a table")?),
            },
            handle,
            ..Table::empty()
        });
    }
    let mut table = Table::new(family, name(&fields, "name", "a table")?);
    table.flags = fields.flags("table flag", &table::FLAGS)?;
    commented(&fields, table, |table, comment| {
        table
            .with_comment(comment)
            .map_err(|error| error.to_string())
    })
}

fn chain(verb: Verb, node: &Node<'_>) -> Result<Object, Diagnostic> {
    let fields = Fields::new(node, "a chain", &CHAIN)?;
    let (at, _) = in_table(&fields)?;
    if verb != Verb::Rename
        && let Some(renamed) = fields.get("newname")
    {
        return Err(Diagnostic::new(
            renamed.span,
            "use `rename` to rename a chain",
        ));
    }
    if is_by_name(verb) {
        // A chain from a listing is deleted as a whole.
        if let Some(devices) = fields.get("dev")
            && !fields.has("hook")
        {
            let message = "JSON cannot delete single devices";
            return Err(Diagnostic::new(devices.span, message)
                .with_hint("use nft's text syntax: delete chain … { devices = { … }; }"));
        }
        let handle = handle_instead(verb, &fields)?;
        let chain = Chain {
            family: at.family,
            table: Some(at.table),
            name: match handle {
                Some(_) => None,
                None => Some(name(&fields, "name", "a chain")?),
            },
            handle,
            ..Chain::empty()
        };
        return Ok(match verb {
            Verb::Rename => Object::Renamed(chain, name(&fields, "newname", "a chain")?),
            _ => Object::Chain(chain),
        });
    }
    let mut chain = Chain::new(at.family, at.table, name(&fields, "name", "a chain")?);
    if ["type", "hook", "prio", "dev"]
        .iter()
        .any(|key| fields.has(key))
    {
        let kind = fields.need("type")?.word("chain type", &TYPES)?;
        let node = fields.need("hook")?;
        let word = node.word("hook", &HOOKS)?;
        let mut hook = Hook {
            number: Some(hook_number(chain.family, word, node.span)?),
            priority: Some(priority(fields.need("prio")?, chain.family, word)?),
            ..Hook::default()
        };
        match fields.get("dev").map(|node| (&node.kind, node)) {
            None => {}
            Some((Kind::Text(device), node)) => {
                let device = checked(device, "a device", node.span)?;
                match device.ends_with('*') {
                    true => hook.devices = Some(devices(node)?),
                    false => hook.device = Some(device.to_owned().into()),
                }
            }
            Some((_, node)) => hook.devices = Some(devices(node)?),
        }
        chain.chain_type = Some(kind.to_owned().into());
        chain.hook = Some(hook);
    }
    let policy = fields.word("policy", "chain policy", &["accept", "drop"])?;
    chain.policy = policy.map(|word| match word {
        "drop" => Policy::DROP,
        _ => Policy::ACCEPT,
    });
    if !fields
        .words("flags", "chain flag", &["offload"])?
        .is_empty()
    {
        chain.flags = Some(ChainFlags::HW_OFFLOAD);
    }
    let chain = commented(&fields, chain, |chain, comment| {
        chain
            .with_comment(comment)
            .map_err(|error| error.to_string())
    })?;
    Ok(Object::Chain(chain))
}

/// Reads a priority: a number or a name.
fn priority(node: &Node<'_>, family: Family, hook: &str) -> Result<i32, Diagnostic> {
    match node.kind {
        Kind::Number(_) | Kind::Negative(_) | Kind::Text(_) => {
            priority_of(&node.symbol("a priority")?, family, hook)
        }
        _ => Err(node.wrong(["a priority"])),
    }
}

fn rule(verb: Verb, node: &Node<'_>, has_verb: bool) -> Result<Rule, Diagnostic> {
    let fields = Fields::new(node, "a rule", &RULE)?;
    let (InTable { family, table }, reader) = in_table(&fields)?;
    let chain = name(&fields, "chain", "a chain")?;
    let position = match (fields.get("handle"), fields.get("index")) {
        // Handles from listings are those of the original rules.
        (Some(handle), _) if !has_verb => {
            handle.number::<u64>("a handle")?;
            Position::Any
        }
        (Some(_), Some(index)) => {
            let message = "a rule's position is a handle or an index, not both";
            return Err(Diagnostic::new(index.span, message));
        }
        (Some(handle), None) => Position::Handle(handle.number("a handle")?),
        (None, Some(index)) => match verb {
            Verb::Replace => return Err(fields.missing("handle")),
            _ => Position::Index(index.number("a rule index")?),
        },
        (None, None) => Position::Any,
    };
    let has_no_statements = is_by_name(verb);
    if position == Position::Any && (has_no_statements || verb == Verb::Replace) {
        return Err(fields.missing("handle"));
    }
    let (statements, comment) = match has_no_statements {
        true => (Vec::new(), None),
        false => {
            let comment = fields
                .get("comment")
                .map(|node| node.lossless_text("a comment"));
            let statements = reader.statements(fields.need("expr")?)?;
            (statements, comment.transpose()?.map(str::to_owned))
        }
    };
    Ok(Rule {
        family,
        table,
        chain,
        position,
        statements,
        comment,
    })
}

fn set(verb: Verb, node: &Node<'_>, is_map: bool, span: Span) -> Result<Vec<Command>, Diagnostic> {
    let of = if is_map { "a map" } else { "a set" };
    let known = match is_map {
        true => &SET[..],
        false => &SET[..SET.len() - 1],
    };
    let fields = Fields::new(node, of, known)?;
    let (at, reader) = in_table(&fields)?;
    let of_set = |declared| Command {
        verb,
        object: Object::Set(Box::new(declared)),
        span,
    };
    if is_by_name(verb) {
        let handle = handle_instead(verb, &fields)?;
        let mut set = match handle {
            Some(_) => Set {
                family: at.family,
                table: Some(at.table),
                ..Set::empty()
            },
            None => Set::named(at.family, at.table, name(&fields, "name", of)?),
        };
        set.handle = handle;
        return Ok(vec![of_set(only_named(set, is_map))]);
    }
    let name = name(&fields, "name", of)?;
    let set = Set::named(at.family, at.table.clone(), name.clone());
    let mut declared = reader.declaration(&fields, only_named(set, is_map))?;
    let mut commands = Vec::new();
    if let Some(node) = fields.get("elem") {
        let mut elements = Vec::new();
        for entry in node.one_or_many() {
            reader.element(entry, &mut |element| elements.push(element))?;
        }
        // Statements of elements are in the order of the set's declaration, if it has one.
        let order = |statement: &Statement| {
            let kind = std::mem::discriminant(statement);
            let mut existing = declared.statements.iter();
            existing.position(|(existing, _)| std::mem::discriminant(existing) == kind)
        };
        for element in &mut elements {
            element.statements.sort_by_key(order);
        }
        let mut data = elements.iter().filter_map(|element| element.data.as_ref());
        declared.data_is_interval = data.any(Expr::is_interval);
        commands.push(Command {
            verb: Verb::Add,
            object: Object::Elements(Elements {
                family: at.family,
                table: at.table,
                set: name,
                elements: elements.into_iter().collect(),
            }),
            span: node.span,
        });
    }
    commands.insert(0, of_set(declared));
    Ok(commands)
}

impl Reader {
    /// Checks a name and returns it.
    pub(crate) fn name_of(self, name: &str, of: &str, span: Span) -> Result<String, Diagnostic> {
        checked(name, of, span).map(str::to_owned)
    }

    /// Reads the declaration of a set.
    fn declaration(
        self,
        fields: &Fields<'_, '_>,
        mut declared: SetDeclaration,
    ) -> Result<SetDeclaration, Diagnostic> {
        let keys = fields.need("type")?;
        declared.keys = Some((self.declared(keys)?, keys.span));
        if declared.is_map {
            let data = fields.need("map")?;
            let objects = match &data.kind {
                Kind::Text(word) => stateful(word),
                _ => None,
            };
            let is = |name| matches!(&data.kind, Kind::Text(word) if word == name);
            let is_typeof = matches!(declared.keys, Some((Declared::Typeof(_), _)));
            let data_type = match objects {
                Some(kind) => Declared::Objects(kind.object_type),
                None if is_typeof && is("queue") => Declared::Typeof(Expr::QueueNumber),
                None if is("verdict") => Declared::Types(vec![DataType::VERDICT]),
                None => self.declared(data)?,
            };
            declared.data = Some((data_type, data.span));
        }
        let set = &mut declared.set;
        set.flags = fields.flags("set flag", &set::FLAGS)?;
        if let Some(time) = fields.get("timeout") {
            set.timeout = Some(Milliseconds(milliseconds(time)?));
        }
        if let Some(node) = fields.get("gc-interval") {
            let time = u32::try_from(milliseconds(node)?);
            let time =
                time.map_err(|_| Diagnostic::new(node.span, "interval is longer than 49 days"))?;
            set.gc_interval = Some(Milliseconds32(time));
        }
        if let Some(size) = fields.number("size", "a set size")? {
            set.description.get_or_insert_default().size = Some(size);
        }
        let policies = ["performance", "memory"];
        set.policy = fields
            .word("policy", "set policy", &policies)?
            .map(|word| match word {
                "memory" => SetPolicy::MEMORY,
                _ => SetPolicy::PERFORMANCE,
            });
        declared.auto_merge = fields.flag("auto-merge")?;
        let comment = fields
            .get("comment")
            .map(|node| node.lossless_text("a comment"));
        declared.comment = comment.transpose()?.map(str::to_owned);
        if let Some(statements) = fields.get("stmt") {
            declared.statements = self.kept(statements)?;
        }
        Ok(declared)
    }

    /// Reads the types of keys or data: names, or a `typeof` expression.
    fn declared(self, node: &Node<'_>) -> Result<Declared, Diagnostic> {
        if let Kind::Object(_) = node.kind {
            let fields = Fields::new(node, "a type", &["typeof"])?;
            return self.left(fields.need("typeof")?).map(Declared::Typeof);
        }
        let mut types = Vec::new();
        for part in node.one_or_many() {
            let text = part.text("a type")?;
            for word in text.split(" . ") {
                let found = type_names().find(|(known, _)| *known == word);
                let Some((_, data_type)) = found else {
                    let message = format!("unknown type `{}`", shown(word));
                    return Err(Diagnostic::new(part.span, message)
                        .expecting(type_names().map(|(name, _)| name))
                        .nearest_to(word));
                };
                types.push(data_type);
            }
        }
        match types.is_empty() {
            false => Ok(Declared::Types(types)),
            true => Err(Diagnostic::new(node.span, "empty list")),
        }
    }
}

fn elements(node: &Node<'_>) -> Result<Object, Diagnostic> {
    let fields = Fields::new(node, "elements", &["family", "table", "name", "elem"])?;
    let (at, reader) = in_table(&fields)?;
    let mut elements = ElementList::default();
    for entry in fields.need("elem")?.one_or_many() {
        reader.element(entry, &mut |element| elements.push(element))?;
    }
    Ok(Object::Elements(Elements {
        family: at.family,
        table: at.table,
        set: name(&fields, "name", "a set")?,
        elements,
    }))
}

fn flowtable(verb: Verb, node: &Node<'_>) -> Result<Flowtable<'static>, Diagnostic> {
    let fields = Fields::new(node, "a flowtable", &FLOWTABLE)?;
    let (at, _) = in_table(&fields)?;
    if is_by_name(verb) {
        if let Some(devices) = fields.get("dev")
            && !fields.has("hook")
        {
            let message = "JSON cannot delete single devices";
            return Err(Diagnostic::new(devices.span, message)
                .with_hint("use nft's text syntax: delete flowtable … { devices = { … }; }"));
        }
        let handle = handle_instead(verb, &fields)?;
        return Ok(Flowtable {
            family: at.family,
            table: Some(at.table),
            name: match handle {
                Some(_) => None,
                None => Some(name(&fields, "name", "a flowtable")?),
            },
            handle,
            ..Flowtable::empty()
        });
    }
    let name = name(&fields, "name", "a flowtable")?;
    let mut flowtable = match ["hook", "prio", "dev"].iter().any(|key| fields.has(key)) {
        false => Flowtable::named(at.family, at.table, name),
        true => {
            fields.need("hook")?.word("flowtable hook", &["ingress"])?;
            let priority = priority(fields.need("prio")?, Family::NETDEV, "ingress")?;
            let devices = match fields.get("dev") {
                Some(node) => devices(node)?,
                None => Devices::default(),
            };
            Flowtable::new(at.family, at.table, name, priority, devices)
        }
    };
    let names = [
        ("offload", FlowtableFlags::HW_OFFLOAD),
        ("counter", FlowtableFlags::COUNTER),
    ];
    flowtable.flags = fields.flags("flowtable flag", &names)?;
    Ok(flowtable)
}

fn stateful_object(
    verb: Verb,
    kind: &ObjectKind,
    node: &Node<'_>,
    span: Span,
) -> Result<StatefulObject<'static>, Diagnostic> {
    let common = ["family", "table", "name", "handle", "comment"];
    let known = [&common, kind.keys].concat();
    let fields = Fields::new(node, &format!("a {}", kind.name), &known)?;
    let (at, _) = in_table(&fields)?;
    if is_by_name(verb) {
        return Ok(match handle_instead(verb, &fields)? {
            Some(handle) => StatefulObject {
                family: at.family,
                table: Some(at.table),
                object_type: Some(kind.object_type),
                handle: Some(handle),
                ..StatefulObject::empty()
            },
            None => {
                let name = name(&fields, "name", "an object")?;
                StatefulObject::named(at.family, at.table, kind.object_type, name)
            }
        });
    }
    let name = name(&fields, "name", "an object")?;
    let comment = match fields.get("comment") {
        Some(node) => Some((node.lossless_text("a comment")?.to_owned(), node.span)),
        None => None,
    };
    object(&at, name, ((kind.read)(&fields, span)?, comment))
}
