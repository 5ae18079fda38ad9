//! Which tests are run: cargo builds them, as for this machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::Result;

/// A program of tests.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// Its name, that of its file in `tests/`.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) arguments: Vec<String>,
}

/// What is run without `--all`: between them they send every kind of message, in a time that emulation bears.
/// The first looks at a kernel that has loaded nothing yet.
/// The first looks at a kernel that has loaded nothing yet.
const CHOSEN: [&str; 18] = [
    "modules",
    "kernels",
    "listing",
    "objects",
    "owned",
    "sets",
    "rules",
    "snapshot",
    "backup",
    "command",
    "command_iptables",
    "kubelet",
    "legacy_oracle",
    "legacy_replace",
    "iptables",
    "iptables_atomic",
    "ipset",
    "netns",
];

/// Builds the integration tests of these names, or all, and says where they are.
pub(crate) fn build(checkout: &Path, named: &[String]) -> Result<Vec<Program>> {
    let names: Vec<&str> = match named {
        [] => vec!["*"],
        some => some.iter().map(String::as_str).collect(),
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(checkout)
        .args([
            "test",
            "--package",
            "chainwright",
            "--all-features",
            "--no-run",
        ])
        .args(["--message-format", "json-render-diagnostics"])
        .args(names.iter().flat_map(|name| ["--test", name]))
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo cannot be run: {error}"))?;
    if !output.status.success() {
        return Err("the tests do not compile".to_owned());
    }
    let text = String::from_utf8(output.stdout).map_err(|error| error.to_string())?;
    let mut programs = Vec::new();
    for line in text.lines().filter(|line| line.starts_with('{')) {
        let message: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let is_test = message["target"]["kind"] == serde_json::json!(["test"]);
        if let (true, Some(path), Some(name)) = (
            is_test,
            message["executable"].as_str(),
            message["target"]["name"].as_str(),
        ) {
            programs.push(Program {
                name: name.to_owned(),
                path: path.into(),
                arguments: vec!["--show-output".into(), "--test-threads=2".into()],
            });
        }
    }
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(programs)
}

/// Those of the programs that are to be run, in order.
pub(crate) fn plan(
    built: Vec<Program>,
    named: &[String],
    all: bool,
    filter: Option<&str>,
) -> Result<Vec<Program>> {
    let names: Vec<&str> = match named {
        [] => CHOSEN.to_vec(),
        some => some.iter().map(String::as_str).collect(),
    };
    let mut plan = Vec::new();
    for name in &names {
        let program = built.iter().find(|program| program.name == *name);
        plan.push(
            program
                .ok_or_else(|| format!("there is no integration test `{name}`"))?
                .clone(),
        );
    }
    if all && named.is_empty() {
        let rest = built.into_iter();
        plan.extend(rest.filter(|program| !names.contains(&program.name.as_str())));
    }
    if let Some(filter) = filter {
        for program in &mut plan {
            program.arguments.push(filter.to_owned());
        }
    }
    Ok(plan)
}
