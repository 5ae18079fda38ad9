//! Parses the objects in manifests.

use std::fmt;
use std::time::SystemTime;

use chainwright_kube::service::{EndpointSlice, InvalidObject, Node, ObjectName, Service};
use k8s_openapi::api::{core::v1 as core, discovery::v1 as discovery};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Annotation of a slice: when the pod or service changed that caused it to be written.
const TRIGGERED: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// The taint of a node that the cluster autoscaler is about to delete.
const TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";

/// The state of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Object {
    /// A service; `None` if a proxy ignores it.
    Service(Option<Box<Service>>),
    /// A slice, `None` if a proxy ignores it; and when the change happened that caused it.
    Slice(Option<EndpointSlice>, Option<SystemTime>),
    /// A node.
    Node(NodeObject),
}

/// A node, and fields that only the agent needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeObject {
    pub(crate) node: Node,
    /// Changes if the node is registered again; `None` in a manifest.
    pub(crate) uid: Option<String>,
    /// Whether load balancers may send to it: it is neither being deleted nor about to be.
    pub(crate) is_eligible: bool,
}

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Service,
    Slice,
    Node,
}

/// Kind and name of an object.
pub(crate) type Key = (Kind, ObjectName);

/// A problem in a manifest, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The line number, from 1.
    pub(crate) line: u64,
    /// The object of a list, the field, and the problem.
    pub(crate) what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

pub(crate) fn service(service: &core::Service) -> Result<Object, InvalidObject> {
    Ok(Object::Service(Service::from_api(service)?.map(Box::new)))
}

pub(crate) fn slice(slice: &discovery::EndpointSlice) -> Result<Object, InvalidObject> {
    let annotations = slice.metadata.annotations.as_ref();
    let triggered = annotations.and_then(|a| a.get(TRIGGERED)?.parse().ok());
    let triggered = triggered.map(|at: k8s_openapi::jiff::Timestamp| at.into());
    Ok(Object::Slice(EndpointSlice::from_api(slice)?, triggered))
}

pub(crate) fn node(node: &core::Node) -> Result<Object, InvalidObject> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let is_to_be_deleted =
        taints.is_some_and(|taints| taints.iter().any(|t| t.key == TO_BE_DELETED));
    Ok(Object::Node(NodeObject {
        uid: node.metadata.uid.clone(),
        is_eligible: node.metadata.deletion_timestamp.is_none() && !is_to_be_deleted,
        node: Node::from_api(node)?,
    }))
}

/// Returns the name of an object, even if a proxy ignores it.
pub(crate) fn name(metadata: &ObjectMeta) -> ObjectName {
    let namespace = metadata.namespace.as_deref().unwrap_or("default");
    ObjectName::new(namespace, metadata.name.as_deref().unwrap_or_default())
}

/// Reads the services, slices and nodes in a file of manifests; ignores other objects.
pub(crate) fn read(text: &str) -> Result<Vec<(Key, Object)>, Problem> {
    let mut objects = Vec::new();
    for (line, document) in documents(text) {
        let value: Option<Value> = serde_saphyr::from_str(document).map_err(|error| {
            let within = error.location().map_or(1, |place| place.line().max(1));
            Problem {
                line: line + within - 1,
                what: without_position(&error.without_snippet().to_string()),
            }
        })?;
        if let Some(value) = value {
            object(value, &mut objects).map_err(|what| Problem { line, what })?;
        }
    }
    Ok(objects)
}

/// Removes the position from an error: the parser knows only the position within the document.
fn without_position(error: &str) -> String {
    let message = error
        .rsplit_once(" at line ")
        .map_or(error, |(message, _)| message);
    message.to_owned()
}

/// Splits a file into documents, each with its first line. A line with this prefix separates documents, whatever the
/// context (YAML 1.2, 9.1.2).
fn documents(text: &str) -> Vec<(u64, &str)> {
    let mut documents = Vec::new();
    let (mut start, mut first) = (0, 1);
    let (mut place, mut line) = (0, 1);
    for content in text.split_inclusive('\n') {
        let rest = content.strip_prefix("---");
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n'])) {
            documents.push((first, &text[start..place]));
            (start, first) = (place, line);
        }
        place += content.len();
        line += 1;
    }
    documents.push((first, &text[start..]));
    let is_some = |line: &str| !line.trim().is_empty() && !line.starts_with('#');
    documents.retain(|(_, document)| document.lines().any(is_some));
    documents
}

fn object(value: Value, to: &mut Vec<(Key, Object)>) -> Result<(), String> {
    let word = |name: &str| value.get(name).and_then(Value::as_str);
    match (word("apiVersion"), word("kind")) {
        (Some("v1"), Some("Service")) => {
            let api: core::Service = typed(value)?;
            let read = service(&api).map_err(|error| error.to_string())?;
            to.push(((Kind::Service, name(&api.metadata)), read));
        }
        (Some("discovery.k8s.io/v1"), Some("EndpointSlice")) => {
            let api: discovery::EndpointSlice = typed(value)?;
            let read = slice(&api).map_err(|error| error.to_string())?;
            to.push(((Kind::Slice, name(&api.metadata)), read));
        }
        (Some("v1"), Some("Node")) => {
            let api: core::Node = typed(value)?;
            let read = node(&api).map_err(|error| error.to_string())?;
            to.push(((Kind::Node, name(&api.metadata)), read));
        }
        (Some(_), Some(kind)) if kind.ends_with("List") => {
            let Value::Object(mut list) = value else {
                return Ok(());
            };
            let Some(Value::Array(items)) = list.remove("items") else {
                return Err("items: missing".to_owned());
            };
            for (n, item) in items.into_iter().enumerate() {
                object(item, to).map_err(|what| format!("items[{n}]: {what}"))?;
            }
        }
        (Some(_), Some(_)) => {}
        (None, _) => return Err("apiVersion: missing".to_owned()),
        (_, None) => return Err("kind: missing".to_owned()),
    }
    Ok(())
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let (path, error) = (error.path().to_string(), error.into_inner());
        format!("{path}: {error}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_lists_and_languages() {
        let text = r#"# Some services.
---
apiVersion: v1
kind: Service
metadata: { name: web }
spec: { clusterIP: 10.96.0.1, ports: [{ port: 80 }] }
---
{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}},
  {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node1"}},
  {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
   "metadata": {"name": "s", "annotations": {"endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:00Z"},
     "labels": {"kubernetes.io/service-name": "web"}},
   "addressType": "IPv4", "endpoints": [{"addresses": ["10.244.0.1"]}]}
]}
---
"#;
        let objects = read(text).unwrap();
        let kinds: Vec<_> = objects.iter().map(|((kind, _), _)| *kind).collect();
        assert_eq!(kinds, [Kind::Service, Kind::Node, Kind::Slice]);
        assert!(matches!(&objects[2].1, Object::Slice(Some(_), Some(_))));
    }

    #[test]
    fn deleted_node_is_not_eligible() {
        for (rest, is_eligible) in [
            ("", true),
            ("spec: { taints: [] }", true),
            (
                "spec: { taints: [{ key: node.kubernetes.io/unschedulable, effect: NoSchedule }] }",
                true,
            ),
            ("spec: { unschedulable: true }", true),
            (
                "spec: { taints: [{ key: ToBeDeletedByClusterAutoscaler, effect: NoSchedule, value: '1' }] }",
                false,
            ),
            (
                "spec: { taints: [{ key: a, effect: NoExecute }, { key: ToBeDeletedByClusterAutoscaler, effect: NoExecute }] }",
                false,
            ),
            (
                "spec: { taints: [{ key: DeletionCandidateOfClusterAutoscaler, effect: PreferNoSchedule }] }",
                true,
            ),
        ] {
            let text = format!("apiVersion: v1\nkind: Node\nmetadata: {{ name: a }}\n{rest}\n");
            let objects = read(&text).unwrap();
            let [(_, Object::Node(node))] = &objects[..] else {
                panic!("{text}")
            };
            assert_eq!(node.is_eligible, is_eligible, "{text}");
        }
        let deleted = "apiVersion: v1\nkind: Node\nmetadata: { name: a, uid: u, deletionTimestamp: '2026-01-01T00:00:00Z' }\n";
        let objects = read(deleted).unwrap();
        let [(_, Object::Node(node))] = &objects[..] else {
            panic!()
        };
        assert_eq!((node.is_eligible, node.uid.as_deref()), (false, Some("u")));
    }

    #[test]
    fn problems_include_their_location() {
        let bad = |text: &str| read(text).unwrap_err();
        let syntax = bad("apiVersion: v1\nkind: ConfigMap\n---\na: 1\nb: [1\nc: 2\n");
        assert!((5..=7).contains(&syntax.line), "{syntax}");
        let shape = bad(
            "---\napiVersion: v1\nkind: Service\nmetadata: { name: a }\nspec: { ports: [{ port: x }] }\n",
        );
        assert_eq!(shape.line, 1);
        assert!(shape.what.starts_with("spec.ports[0].port: "), "{shape}");
        let sense = bad(
            "{kind: List, apiVersion: v1, items: [{kind: Node, apiVersion: v1, metadata: {}}]}",
        );
        assert_eq!(
            sense.to_string(),
            "line 1: items[0]: Node : metadata.name: missing"
        );
        assert_eq!(bad("kind: Service\n").what, "apiVersion: missing");
    }
}
