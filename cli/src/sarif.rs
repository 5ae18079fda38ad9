//! SARIF 2.1.0: the format of static analysis results.

use std::collections::HashMap;

use serde::Serialize;

/// URI of the format's schema.
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// A log file with one run.
#[derive(Serialize)]
pub(crate) struct Log {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    tool: Tool,
    invocations: [Invocation; 1],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    artifacts: Vec<Artifact>,
    logical_locations: Vec<LogicalLocation>,
    results: Vec<RunResult>,
}

#[derive(Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Driver {
    name: &'static str,
    semantic_version: &'static str,
    rules: Vec<ReportingDescriptor>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportingDescriptor {
    id: &'static str,
    short_description: Message,
}

#[derive(Serialize)]
struct Message {
    text: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation {
    execution_successful: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_execution_notifications: Vec<Notification>,
}

/// A part of the ruleset that was not examined.
#[derive(Serialize)]
struct Notification {
    level: &'static str,
    message: Message,
}

#[derive(Serialize)]
struct Artifact {
    location: ArtifactLocation,
}

#[derive(Serialize)]
struct ArtifactLocation {
    uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
}

/// A table, a part of a table, or a rule.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogicalLocation {
    name: String,
    fully_qualified_name: String,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_index: Option<usize>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RunResult {
    rule_id: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule_index: Option<usize>,
    level: &'static str,
    message: Message,
    locations: [Location; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    #[serde(skip_serializing_if = "Option::is_none")]
    physical_location: Option<PhysicalLocation>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logical_locations: Vec<LogicalReference>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
}

/// A reference to one of the run's logical locations.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogicalReference {
    fully_qualified_name: String,
    index: usize,
}

/// Part of a location, from the outside: its kind and its name.
pub(crate) type Step = (String, String);

/// A result.
pub(crate) struct Found {
    pub(crate) rule: &'static str,
    /// `error`, `warning` or `note`.
    pub(crate) level: &'static str,
    pub(crate) message: String,
    pub(crate) steps: Vec<Step>,
}

impl Log {
    /// Creates a log. `rules` are the ids of all rules with their descriptions, `file` is the URI of the examined file,
    /// `not_read` describes the parts that were not examined.
    pub(crate) fn new(
        rules: &[(&'static str, &'static str)],
        file: Option<String>,
        not_read: impl IntoIterator<Item = String>,
        found: Vec<Found>,
    ) -> Self {
        let notifications: Vec<_> = not_read
            .into_iter()
            .map(|text| Notification {
                level: "error",
                message: Message { text },
            })
            .collect();
        let mut logical_locations = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        let results = found.into_iter().map(|found| {
            let mut parent: Option<(String, usize)> = None;
            for (kind, name) in found.steps {
                let above = parent.as_ref().map(|(name, _)| format!("{name}/"));
                let full = format!("{}{kind} {name}", above.unwrap_or_default());
                let index = *known.entry(full.clone()).or_insert_with(|| {
                    logical_locations.push(LogicalLocation {
                        name,
                        fully_qualified_name: full.clone(),
                        kind,
                        parent_index: parent.as_ref().map(|(_, index)| *index),
                    });
                    logical_locations.len() - 1
                });
                parent = Some((full, index));
            }
            let logical = parent.map(|(fully_qualified_name, index)| LogicalReference {
                fully_qualified_name,
                index,
            });
            let physical = file.clone().map(|uri| PhysicalLocation {
                artifact_location: ArtifactLocation {
                    uri,
                    index: Some(0),
                },
            });
            RunResult {
                rule_id: found.rule,
                rule_index: rules.iter().position(|(id, _)| *id == found.rule),
                level: found.level,
                message: Message {
                    text: found.message,
                },
                locations: [Location {
                    physical_location: physical,
                    logical_locations: logical.into_iter().collect(),
                }],
            }
        });
        let results = results.collect();
        let descriptors = rules.iter().map(|(id, text)| ReportingDescriptor {
            id,
            short_description: Message {
                text: (*text).to_owned(),
            },
        });
        let artifacts = file.iter().map(|uri| Artifact {
            location: ArtifactLocation {
                uri: uri.clone(),
                index: None,
            },
        });
        Self {
            schema: SCHEMA,
            version: "2.1.0",
            runs: [Run {
                tool: Tool {
                    driver: Driver {
                        name: "chainwright",
                        semantic_version: env!("CARGO_PKG_VERSION"),
                        rules: descriptors.collect(),
                    },
                },
                invocations: [Invocation {
                    execution_successful: notifications.is_empty(),
                    tool_execution_notifications: notifications,
                }],
                artifacts: artifacts.collect(),
                logical_locations,
                results,
            }],
        }
    }
}

/// Returns the relative or absolute reference of a path, percent-encoded.
pub(crate) fn uri(path: &std::path::Path) -> String {
    use std::fmt::Write;
    use std::os::unix::ffi::OsStrExt;
    let bytes = path.as_os_str().as_bytes();
    let mut uri = match bytes.first() {
        Some(b'/') => "file://".to_owned(),
        _ => String::new(),
    };
    for byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(*byte));
            }
            _ => _ = write!(uri, "%{byte:02X}"),
        }
    }
    uri
}
