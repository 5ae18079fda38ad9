//! Which tests are run: cargo builds them, as for this machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::Result;
use crate::machine::USERS;

/// A program of tests.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// Its name, that of its file in `tests/`.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) arguments: Vec<String>,
}

impl Program {
    /// Removes what an earlier run of it left among the results.
    pub(crate) fn forget(&self, results: &Path) {
        for user in USERS {
            for kind in ["log", "status"] {
                let _ = std::fs::remove_file(results.join(format!("{}.{user}.{kind}", self.name)));
            }
        }
    }
}

/// A program of which tests are run without `--all`.
struct Chosen {
    name: &'static str,
    /// Tests that are left to `--all`, by what their names begin with or contain.
    without: &'static [&'static str],
}

/// What is run without `--all`: between them they send every kind of message, in a time that emulation bears.
/// Left out are tests that are load more than anything else, those that try chance for as long as they can,
/// and those that start the real tools a thousand times. The first looks at a kernel that has loaded nothing
/// yet.
const CHOSEN: [Chosen; 20] = [
    Chosen {
        name: "modules",
        without: &[],
    },
    Chosen {
        name: "kernels",
        without: &[],
    },
    Chosen {
        name: "listing",
        without: &[
            "a_listing_can_be_dropped_half_read",
            "listing_allocates_the_same",
            "appending_allocates_nothing",
            "reading_a_legacy_table_allocates",
            "refreshing_a_list_of_the_same",
        ],
    },
    Chosen {
        name: "objects",
        without: &["a_listing_that_a_change_runs_across"],
    },
    Chosen {
        name: "owned",
        without: &[],
    },
    Chosen {
        name: "sets",
        without: &[
            "a_hundred_thousand_elements",
            "a_listing_that_a_change_runs_across",
        ],
    },
    Chosen {
        name: "transaction",
        without: &[
            "a_hundred_thousand_chains",
            "a_chain_is_not_missed_for_a_race",
            "a_chain_is_never_missed_while",
            "a_listing_that_a_change_runs_across",
            "a_kept_list_is_of_the_generation",
            "ten_thousand",
        ],
    },
    Chosen {
        name: "nft_oracle",
        without: &[
            "every_expression_of_the_rulesets",
            "kube_proxys_",
            "filters_show",
            "look_ups_find",
        ],
    },
    Chosen {
        name: "snapshot",
        without: &[
            "rulesets_of_real_clients",
            "the_bytecode_is_what_nft_prints",
            "a_ruleset_does_not_differ",
        ],
    },
    Chosen {
        name: "restore",
        without: &["sets_of_any_intervals"],
    },
    Chosen {
        name: "backup",
        without: &[
            "of_whatever_is_loaded",
            "every_bit_counts",
            "a_truncated_file",
            "lengths_that_lie",
        ],
    },
    Chosen {
        name: "command",
        without: &[
            "the_demo",
            "a_listing_is_of_one_generation",
            "small_measurements",
        ],
    },
    Chosen {
        name: "command_iptables",
        without: &[],
    },
    Chosen {
        name: "kubelet",
        without: &["a_rival_that_commits_all_the_time"],
    },
    Chosen {
        name: "legacy_oracle",
        without: &[],
    },
    Chosen {
        name: "legacy_replace",
        without: &[],
    },
    Chosen {
        name: "iptables",
        without: &["kube_proxy_1_20"],
    },
    Chosen {
        name: "iptables_atomic",
        without: &[
            "a_thousand_changes",
            "changes_read_whole_chains",
            "nobody_sees_a_part",
            "parallel_changes",
            "a_hundred_writers",
        ],
    },
    Chosen {
        name: "ipset",
        without: &[],
    },
    Chosen {
        name: "netns",
        without: &[
            "all_of_this_works_for_an_ordinary_user",
            "many_sandboxes",
            "from_many_threads",
        ],
    },
];

/// What is left out of the chosen tests, in words for the table.
pub(crate) fn left_out() -> String {
    let some = CHOSEN.iter().filter(|chosen| !chosen.without.is_empty());
    let parts = some.map(|chosen| {
        let names = chosen.without.iter().map(|name| format!("`{name}`"));
        let names: Vec<_> = names.collect();
        format!("of `{}` {}", chosen.name, names.join(", "))
    });
    parts.collect::<Vec<_>>().join("; ")
}

/// Builds the integration tests that are to be run, no others, and says where they are.
pub(crate) fn build(checkout: &Path, named: &[String], all: bool) -> Result<Vec<Program>> {
    let names: Vec<&str> = match named {
        [] if all => vec!["*"],
        [] => CHOSEN.iter().map(|chosen| chosen.name).collect(),
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
    let chosen: Vec<(&str, &[&str])> = match named {
        [] => CHOSEN
            .iter()
            .map(|chosen| (chosen.name, if all { &[] } else { chosen.without }))
            .collect(),
        some => some.iter().map(|name| (name.as_str(), &[][..])).collect(),
    };
    let mut plan = Vec::new();
    for (name, without) in &chosen {
        let program = built.iter().find(|program| program.name == *name);
        let mut program = program
            .ok_or_else(|| format!("there is no integration test `{name}`"))?
            .clone();
        for left_out in *without {
            program
                .arguments
                .extend(["--skip".to_owned(), (*left_out).to_owned()]);
        }
        plan.push(program);
    }
    if all && named.is_empty() {
        let rest = built.into_iter();
        plan.extend(rest.filter(|program| !chosen.iter().any(|(name, _)| *name == program.name)));
    }
    if let Some(filter) = filter {
        for program in &mut plan {
            program.arguments.push(filter.to_owned());
        }
    }
    Ok(plan)
}
