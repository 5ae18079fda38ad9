//! Documents with the handles of the objects that they added: the output of `nft -j -e`.

use std::collections::HashMap;

use serde::{Serialize, Serializer};

use super::layout::JanssonLayout;
use super::read::node::{self, Key, Kind, Node};
use crate::parse::script::VERBS;
use crate::parse::{Command, Object, Verb};
use crate::syntax::Span;
use chainwright::nft::Committed;
use chainwright::nft::live::{Event, EventObject};

const HANDLE: &str = "handle";

/// Returns the handles of the objects that commands added, with the commands' locations. `spans` has the location for
/// each operation.
pub(crate) fn handles(
    commands: &[Command],
    spans: &[Span],
    committed: &Committed,
) -> Vec<(Span, u64)> {
    let at: HashMap<u32, &Object> = commands
        .iter()
        .filter(|command| !matches!(command.object, Object::Elements(_)))
        .map(|command| (command.span.start, &command.object))
        .collect();
    let additions = committed.additions();
    let found = additions.filter_map(|(operation, event)| {
        let span = spans.get(operation)?;
        let is_it = at
            .get(&span.start)
            .is_some_and(|object| is_of(object, &event));
        Some((*span, event.handle()?)).filter(|_| is_it)
    });
    found.collect()
}

/// Returns `true` if an event is about this object, rather than about a rule's anonymous set or chain.
fn is_of(object: &Object, event: &Event<'_>) -> bool {
    match (object, event.object()) {
        (Object::Table(_), Ok(EventObject::Table(_)))
        | (Object::Chain(_), Ok(EventObject::Chain(_)))
        | (Object::Set(_), Ok(EventObject::Set(_)))
        | (Object::Flowtable(_), Ok(EventObject::Flowtable(_)))
        | (Object::Stateful(_), Ok(EventObject::Object(_))) => true,
        (Object::Rule(rule), Ok(EventObject::Rule(found))) => found.chain() == &**rule.chain,
        _ => false,
    }
}

/// Returns the document of a text with these handles, in the order of their locations.
pub(crate) fn document(text: &str, handles: &[(Span, u64)]) -> Option<String> {
    let mut document = node::document(0, text).ok()?;
    let Kind::Object(fields) = &mut document.kind else {
        return None;
    };
    let mut sorted = handles.to_vec();
    sorted.sort_by_key(|(span, _)| span.start);
    for (_, list) in fields.iter_mut().filter(|(key, _)| key.text == "nftables") {
        let Kind::List(entries) = &mut list.kind else {
            return None;
        };
        for entry in entries {
            let begin = sorted.partition_point(|(span, _)| span.start < entry.span.start);
            let end = sorted.partition_point(|(span, _)| span.start < entry.span.end);
            let handle = sorted[begin..end].last().map(|(_, handle)| *handle);
            insert_handle(entry, handle);
        }
    }
    Some(JanssonLayout(document).to_string())
}

/// Adds a handle at nft's position (observed in versions 1.0.6 to 1.1.7): at the end of an object that is added or
/// inserted, and next to an object that is created or replaced. Removes an existing handle.
fn insert_handle(entry: &mut Node<'_>, handle: Option<u64>) {
    let Some((key, value)) = only(entry) else {
        return;
    };
    let span = value.span;
    let verb = VERBS.iter().find(|(word, _)| *word == key);
    let found = match verb.map(|(_, verb)| *verb) {
        None if key == "metainfo" => return,
        None => {
            remove_handle(value);
            value
        }
        Some(Verb::Add | Verb::Insert) => {
            let Some((_, object)) = only(value) else {
                return;
            };
            remove_handle(object);
            object
        }
        Some(Verb::Create | Verb::Replace) => {
            match only(value) {
                Some((_, object)) => remove_handle(object),
                None => remove_handle(value),
            }
            value
        }
        Some(_) => return,
    };
    if let (Kind::Object(fields), Some(handle)) = (&mut found.kind, handle) {
        let kind = Kind::Number(handle);
        let text = HANDLE.into();
        fields.push((Key { text, span }, Node { kind, span }));
    }
}

/// Returns the only field of an object.
fn only<'a, 't>(node: &'a mut Node<'t>) -> Option<(String, &'a mut Node<'t>)> {
    match &mut node.kind {
        Kind::Object(fields) => match &mut fields[..] {
            [(key, value)] => Some((key.text.to_string(), value)),
            _ => None,
        },
        _ => None,
    }
}

fn remove_handle(object: &mut Node<'_>) {
    if let Kind::Object(fields) = &mut object.kind {
        fields.retain(|(key, _)| key.text != HANDLE);
    }
}

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.kind {
            // Not valid in a document that was run.
            Kind::Null | Kind::OtherNumber => serializer.serialize_unit(),
            Kind::Bool(value) => serializer.serialize_bool(*value),
            Kind::Number(number) => serializer.serialize_u64(*number),
            Kind::Negative(number) => serializer.serialize_i128(-i128::from(*number)),
            Kind::Text(text) => serializer.serialize_str(text),
            Kind::List(entries) => serializer.collect_seq(entries),
            Kind::Object(fields) => {
                serializer.collect_map(fields.iter().map(|(key, value)| (&key.text, value)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_placed_like_nft() {
        let text = r#"{"nftables":[{"metainfo":{"json_schema_version":1}},
            {"add":{"table":{"handle":9,"name":"t","family":"ip"}}},
            {"create":{"chain":{"family":"ip","table":"t","name":"c"}}},
            {"rule":{"family":"ip","table":"t","chain":"c","expr":[{"accept":null}],"comment":"\u00e9\u0001"}},
            {"delete":{"rule":{"family":"ip","table":"t","chain":"c","handle":3}}}]}"#;
        let at = |word: &str, handle: u64| {
            let start = text.find(word).unwrap() as u32;
            let span = Span {
                source: 0,
                start,
                end: start + 1,
            };
            (span, handle)
        };
        let handles = [at("\"rule\"", 5), at("\"table\"", 4), at("\"chain\"", 2)];
        assert_eq!(
            document(text, &handles).unwrap(),
            "{\"nftables\": [{\"metainfo\": {\"json_schema_version\": 1}}, \
             {\"add\": {\"table\": {\"name\": \"t\", \"family\": \"ip\", \"handle\": 4}}}, \
             {\"create\": {\"chain\": {\"family\": \"ip\", \"table\": \"t\", \"name\": \"c\"}, \"handle\": 2}}, \
             {\"rule\": {\"family\": \"ip\", \"table\": \"t\", \"chain\": \"c\", \"expr\": [{\"accept\": null}], \
             \"comment\": \"é\\u0001\", \"handle\": 5}}, \
             {\"delete\": {\"rule\": {\"family\": \"ip\", \"table\": \"t\", \"chain\": \"c\", \"handle\": 3}}}]}"
        );
        assert_eq!(document("[]", &[]), None);
    }
}
