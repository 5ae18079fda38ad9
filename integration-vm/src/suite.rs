//! Which tests are run: cargo builds them, as for this machine.

use std::fmt::Write;
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
    /// Tests that are run as root alone.
    pub(crate) root_alone: &'static [&'static str],
    /// How many rounds its tests go at random, where that is fewer than otherwise: variables and numbers.
    pub(crate) rounds: &'static [(&'static str, &'static str)],
}

impl Program {
    /// Its arguments for one of the users.
    pub(crate) fn arguments(&self, user: &str) -> Vec<String> {
        let mut arguments = self.arguments.clone();
        if user != USERS[0] {
            for name in self.root_alone {
                arguments.extend(["--skip".to_owned(), (*name).to_owned()]);
            }
        }
        arguments
    }

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
    /// Tests that are run as root, and as an ordinary user with `--all`.
    root_alone: &'static [&'static str],
    /// Variables that say how many rounds tests go at random, and how many they go without `--all`.
    rounds: &'static [(&'static str, &'static str)],
}

impl Chosen {
    const fn all_of(name: &'static str) -> Self {
        Self::most_of(name, &[])
    }

    const fn most_of(name: &'static str, without: &'static [&'static str]) -> Self {
        Self {
            name,
            without,
            root_alone: &[],
            rounds: &[],
        }
    }

    const fn rounds(mut self, rounds: &'static [(&'static str, &'static str)]) -> Self {
        self.rounds = rounds;
        self
    }

    const fn root_alone(mut self, root_alone: &'static [&'static str]) -> Self {
        self.root_alone = root_alone;
        self
    }
}

/// What is run without `--all`: between them they send every kind of message, in a time that emulation bears.
/// Left out are tests that are load more than anything else, those that try chance for as long as they can,
/// and those that start the real tools a thousand times. The first looks at a kernel that has loaded nothing
/// yet.
const CHOSEN: [Chosen; 31] = [
    Chosen::all_of("modules"),
    Chosen::all_of("kernels"),
    Chosen::most_of(
        "listing",
        &[
            "a_listing_can_be_dropped_half_read",
            "listing_allocates_the_same",
            "appending_allocates_nothing",
            "reading_a_legacy_table_allocates",
            "refreshing_a_list_of_the_same",
        ],
    ),
    Chosen::most_of("objects", &["a_listing_that_a_change_runs_across"]),
    Chosen::all_of("owned"),
    Chosen::most_of(
        "sets",
        &[
            "a_hundred_thousand_elements",
            "a_listing_that_a_change_runs_across",
        ],
    ),
    Chosen::most_of(
        "transaction",
        &[
            "a_hundred_thousand_chains",
            "a_chain_is_not_missed_for_a_race",
            "a_chain_is_never_missed_while",
            "a_listing_that_a_change_runs_across",
            "a_kept_list_is_of_the_generation",
            "rules_that_iptables_wrote",
            "ten_thousand",
        ],
    ),
    Chosen::most_of(
        "nft_oracle",
        &[
            "every_expression_of_the_rulesets",
            "kube_proxys_",
            "filters_show",
            "look_ups_find",
        ],
    ),
    Chosen::most_of(
        "snapshot",
        &[
            "what_times_out_meanwhile",
            "rulesets_of_real_clients",
            "the_bytecode_is_what_nft_prints",
            "a_ruleset_does_not_differ",
        ],
    )
    .root_alone(&["every_ruleset_comes_back"]),
    Chosen::most_of(
        "plan",
        &[
            "a_reconciliation_gets_through",
            "a_restoration_touches_nothing",
            "between_equal_rulesets",
            "from_any_ruleset",
        ],
    ),
    Chosen::all_of("anew"),
    Chosen::all_of("trees").rounds(&[("TREES", "40")]),
    Chosen::most_of(
        "mirror",
        &[
            "beside_writers_that_hardly_pause",
            "every_ruleset_is_shown",
            "what_is_gone_takes_no_memory",
            "what_is_lost_is_read_anew",
        ],
    )
    .rounds(&[("MIRROR_COMMITS", "60")]),
    Chosen::most_of("mirror_elements", &["a_plan_takes_no_more"]).rounds(&[("MIRROR_PLANS", "45")]),
    Chosen::all_of("reconcile_chain")
        .rounds(&[("CHAIN_ROUNDS", "3")])
        .root_alone(&["a_chain_holds", "rules_stand_before"]),
    Chosen::most_of(
        "live",
        &[
            "a_beginning_is_whole",
            "a_large_transaction",
            "what_four_writers_do",
            "what_is_told_of_every_ruleset",
        ],
    ),
    Chosen::most_of("guard", &["lost_notifications", "without_a_pause"]),
    Chosen::most_of("commit_echo", &["beside_another_writer", "ten_thousand"]),
    Chosen::most_of("groups", &["one_bad_service_of_a_thousand"]),
    Chosen::most_of(
        "preflight",
        &["rulesets_that_are_there", "it_says_what_a_rule_by_itself"],
    ),
    Chosen::most_of("restore", &["sets_of_any_intervals"]),
    Chosen::most_of(
        "backup",
        &[
            "a_truncated_file",
            "are_refused",
            "every_bit_counts",
            "is_refused",
            "of_whatever_is_loaded",
            "survives",
        ],
    ),
    Chosen::most_of(
        "command",
        &[
            "a_listing_is_of_one_generation",
            "a_reader_who_had_enough",
            "as_nft_writes",
            "bytecode",
            "cannot_be_written",
            "chosen_and_counted",
            "counters_differ",
            "files_that_are_none",
            "forge",
            "json",
            "kubelets_chains",
            "listed_with_their_types",
            "namespace",
            "stand_under_their_chains",
            "small_measurements",
            "the_demo",
            "wider",
            "without_privileges",
            "wrong_arguments",
        ],
    ),
    Chosen::most_of(
        "command_iptables",
        &[
            "a_table_that_is_not_in_the_text",
            "an_error_shows",
            "as_the_real_tool_reads_them",
            "chains_with_odd_names",
            "differences",
            "kubelets_chains",
            "private_words",
            "profiles",
            "tables_of_sets",
            "the_exit_code",
            "the_lock",
            "the_other_backend",
            "the_table_security",
            "what_",
        ],
    ),
    Chosen::most_of(
        "kubelet",
        &[
            "a_rival_that_commits_all_the_time",
            "edits_by_iptables",
            "iptables_finds_each_rule",
            "two_at_once",
        ],
    )
    .root_alone(&["kubelets_commands", "rules_of_iptables", "what_is_damaged"]),
    Chosen::most_of("legacy_oracle", &["kube_proxys_tables"]),
    Chosen::all_of("legacy_replace").root_alone(&["a_new_ipv4_table", "the_tools_wait"]),
    Chosen::most_of("iptables", &["kube_proxy_1_20"]).root_alone(&["kube_proxy_1_36"]),
    Chosen::most_of(
        "iptables_atomic",
        &[
            "a_thousand_changes",
            "changes_read_whole_chains",
            "nobody_sees_a_part",
            "parallel_changes",
            "a_hundred_writers",
        ],
    ),
    Chosen::all_of("ipset"),
    Chosen::most_of(
        "netns",
        &[
            "all_of_this_works_for_an_ordinary_user",
            "many_sandboxes",
            "from_many_threads",
        ],
    ),
];

/// What is left out of the chosen tests, a line for each program, for the table.
pub(crate) fn left_out() -> String {
    let mut lines = String::new();
    for chosen in &CHOSEN {
        for (variable, count) in chosen.rounds {
            let _ = writeln!(
                lines,
                "- `{}`: all rounds but `{variable}={count}`",
                chosen.name
            );
        }
        for (names, who) in [
            (chosen.without, ""),
            (chosen.root_alone, ", as an ordinary user"),
        ] {
            if !names.is_empty() {
                let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
                let _ = writeln!(lines, "- `{}`{who}: {}", chosen.name, names.join(", "));
            }
        }
    }
    lines
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
                root_alone: &[],
                rounds: &[],
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
        [] => CHOSEN.iter().map(|chosen| chosen.name).collect(),
        some => some.iter().map(String::as_str).collect(),
    };
    let mut plan = Vec::new();
    for name in &names {
        let program = built.iter().find(|program| program.name == *name);
        let mut program = program
            .ok_or_else(|| format!("there is no integration test `{name}`"))?
            .clone();
        let chosen = CHOSEN.iter().find(|chosen| chosen.name == *name);
        if let (Some(chosen), false, None) = (chosen, all, filter) {
            for name in chosen.without {
                program
                    .arguments
                    .extend(["--skip".to_owned(), (*name).to_owned()]);
            }
            program.root_alone = chosen.root_alone;
            program.rounds = chosen.rounds;
        }
        plan.push(program);
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
