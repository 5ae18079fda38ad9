//! Selects the tests to run: cargo builds them, as for the host.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::Result;
use crate::machine::USERS;

/// A module of a test program, run separately.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// The names of program and module: `nft::sets` is `tests/nft/sets.rs`.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// The names of its tests.
    tests: Vec<String>,
    /// Tests that run only as root.
    pub(crate) root_only: &'static [&'static str],
    /// The reduced numbers of rounds of its randomized tests: variables and numbers.
    pub(crate) rounds: &'static [(&'static str, &'static str)],
}

impl Program {
    /// Its arguments for one of the users.
    pub(crate) fn arguments(&self, user: &str) -> Vec<String> {
        let mut arguments: Vec<String> = ["--show-output", "--test-threads=2", "--exact"]
            .map(String::from)
            .into();
        let left_out = if user == USERS[0] {
            &[]
        } else {
            self.root_only
        };
        let tests = self
            .tests
            .iter()
            .filter(|test| !contains_any(test, left_out));
        let before = arguments.len();
        arguments.extend(tests.cloned());
        if arguments.len() == before {
            // Without a name the program would run all of its tests; no test has this one.
            arguments.push(self.name.clone());
        }
        arguments
    }

    /// Removes the results of an earlier run.
    pub(crate) fn remove_results(&self, results: &Path) {
        for user in USERS {
            for kind in ["log", "status"] {
                let _ = std::fs::remove_file(results.join(format!("{}.{user}.{kind}", self.name)));
            }
        }
    }
}

/// Whether the name of a test, without that of its module, contains one of the words.
fn contains_any(test: &str, words: &[&str]) -> bool {
    let name = test.split_once("::").map_or(test, |(_, name)| name);
    words.iter().any(|word| name.contains(word))
}

/// A module whose tests run without `--all`.
struct ChosenModule {
    name: &'static str,
    /// Tests that run only with `--all`, by the beginning of their names or a part of them.
    without: &'static [&'static str],
    /// Tests that run as root, and as a user without privileges only with `--all`.
    root_only: &'static [&'static str],
    /// Variables that set the number of rounds of randomized tests, and their values without `--all`.
    rounds: &'static [(&'static str, &'static str)],
}

impl ChosenModule {
    const fn all_of(name: &'static str) -> Self {
        Self::most_of(name, &[])
    }

    const fn most_of(name: &'static str, without: &'static [&'static str]) -> Self {
        Self {
            name,
            without,
            root_only: &[],
            rounds: &[],
        }
    }

    const fn rounds(mut self, rounds: &'static [(&'static str, &'static str)]) -> Self {
        self.rounds = rounds;
        self
    }

    const fn root_only(mut self, root_only: &'static [&'static str]) -> Self {
        self.root_only = root_only;
        self
    }
}

/// The tests that run without `--all`: together they send every kind of message, in a time that is acceptable
/// under emulation. Omitted are tests that mostly create load, randomized tests that run as long as possible,
/// and tests that start the real tools a thousand times. The first one requires a kernel that has not loaded
/// anything yet.
const CHOSEN: [ChosenModule; 31] = [
    ChosenModule::all_of("command::modules"),
    ChosenModule::all_of("system::kernels"),
    ChosenModule::most_of(
        "nft::listing",
        &[
            "a_listing_can_be_dropped_half_read",
            "listing_allocates_the_same",
            "appending_allocates_nothing",
            "reading_a_legacy_table_allocates",
            "refreshing_a_list_of_the_same",
        ],
    ),
    ChosenModule::most_of("nft::objects", &["a_concurrent_change_interrupts"]),
    ChosenModule::all_of("nft::owned"),
    ChosenModule::most_of(
        "nft::sets",
        &[
            "a_hundred_thousand_elements",
            "a_concurrent_change_interrupts",
        ],
    ),
    ChosenModule::most_of(
        "nft::transaction",
        &[
            "a_hundred_thousand_chains",
            "a_chain_is_not_missed_for_a_race",
            "a_chain_is_never_missed_while",
            "an_interrupted_listing",
            "a_kept_list_has_the_stated_generation",
            "rules_that_iptables_wrote",
            "ten_thousand",
        ],
    ),
    ChosenModule::most_of(
        "lang::oracle",
        &[
            "every_expression_of_the_rulesets",
            "kube_proxys_",
            "filters_show",
            "lookups_match_listings",
        ],
    ),
    ChosenModule::most_of(
        "snapshot::round_trip",
        &[
            "expiring_elements",
            "client_rulesets",
            "bytecode_matches_nft",
            "a_ruleset_does_not_differ",
        ],
    )
    .root_only(&["every_ruleset_is_restored"]),
    ChosenModule::most_of(
        "snapshot::plan",
        &[
            "reconciliation_succeeds",
            "a_restoration_keeps_equal",
            "need_no_operations",
            "any_ruleset_into_any_other",
        ],
    ),
    ChosenModule::all_of("nft::recreate"),
    ChosenModule::all_of("nft::interval_sets").rounds(&[("TREES", "40")]),
    ChosenModule::most_of(
        "events::mirror",
        &[
            "a_mirror_has_one_generation",
            "every_ruleset_is_shown",
            "removed_elements_take_no_memory",
            "lost_changes_are_reread",
        ],
    )
    .rounds(&[("MIRROR_COMMITS", "60")]),
    ChosenModule::most_of("events::mirror_elements", &["a_plan_takes_no_more"])
        .rounds(&[("MIRROR_PLANS", "45")]),
    ChosenModule::all_of("iptables::reconcile_chain")
        .rounds(&[("CHAIN_ROUNDS", "3")])
        .root_only(&[
            "reconcile_uses_the_fewest_changes",
            "desired_rules_are_first",
        ]),
    ChosenModule::most_of(
        "events::live",
        &[
            "a_new_monitor_starts",
            "a_large_transaction",
            "commits_of_four_writers",
            "events_of_every_ruleset",
        ],
    ),
    ChosenModule::most_of("nft::guard", &["lost_notifications", "concurrent_commits"]),
    ChosenModule::most_of(
        "nft::commit_echo",
        &["with_a_concurrent_writer", "ten_thousand"],
    ),
    ChosenModule::most_of("nft::groups", &["one_bad_service_of_a_thousand"]),
    ChosenModule::most_of(
        "nft::preflight",
        &["existing_rulesets", "single_expressions_are_checked"],
    ),
    ChosenModule::most_of("snapshot::restore", &["sets_of_any_intervals"]),
    ChosenModule::most_of(
        "snapshot::backup",
        &[
            "a_truncated_file",
            "are_refused",
            "every_flipped_bit",
            "is_refused",
            "anything_loaded_can_be_read",
            "survives",
        ],
    ),
    ChosenModule::most_of(
        "command::verbs",
        &[
            "a_listing_is_of_one_generation",
            "exits_successfully_when_the_reader_stops",
            "as_nft_writes",
            "bytecode",
            "cannot_be_written",
            "filtered_and_counted",
            "counters_differ",
            "rejects_invalid_files",
            "forge",
            "json",
            "kubelet_chains",
            "listed_with_their_types",
            "namespace",
            "listed_under_their_chains",
            "without_some_of_its_conditions",
            "unprivileged",
            "wrong_arguments",
        ],
    ),
    ChosenModule::most_of(
        "command::iptables",
        &[
            "a_table_that_is_not_in_the_text",
            "an_error_shows",
            "as_the_real_tool_reads_them",
            "chains_with_odd_names",
            "differences",
            "kubelet_chains",
            "private_words",
            "profiles",
            "tables_of_sets",
            "the_exit_code",
            "the_lock",
            "the_other_backend",
            "the_security_table",
            "cleanup_removes",
            "never_omitted_silently",
            "truncated_with_a_warning",
            "rejects_what",
        ],
    ),
    ChosenModule::most_of(
        "kube::kubelet",
        &[
            "ensure_completes_despite_concurrent_commits",
            "edits_of_other_rules_by_iptables",
            "iptables_finds_each_rule",
            "concurrent_ensures",
        ],
    )
    .root_only(&["kubelets_commands", "rules_of_iptables", "damaged_rules"]),
    ChosenModule::most_of("iptables::legacy_oracle", &["kube_proxys_tables"]),
    ChosenModule::all_of("iptables::legacy_replace")
        .root_only(&["a_new_ipv4_table", "the_tools_wait"]),
    ChosenModule::most_of("iptables::rulesets", &["kube_proxy_1_20"])
        .root_only(&["kube_proxy_1_36"]),
    ChosenModule::most_of(
        "iptables::atomic",
        &[
            "a_thousand_changes",
            "changes_read_whole_chains",
            "restored_texts_are_atomic",
            "parallel_changes",
            "a_hundred_writers",
        ],
    ),
    ChosenModule::all_of("iptables::ipset"),
    ChosenModule::most_of(
        "system::netns",
        &[
            "all_of_this_works_for_an_ordinary_user",
            "many_sandboxes",
            "from_many_threads",
        ],
    ),
];

/// The tests omitted without `--all`, one line for each program, for the table.
pub(crate) fn left_out() -> String {
    let mut lines = String::new();
    for chosen in &CHOSEN {
        for (variable, count) in chosen.rounds {
            let _ = writeln!(
                lines,
                "- `{}`: rounds beyond `{variable}={count}`",
                chosen.name
            );
        }
        for (names, who) in [
            (chosen.without, ""),
            (chosen.root_only, ", as an ordinary user"),
        ] {
            if !names.is_empty() {
                let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
                let _ = writeln!(lines, "- `{}`{who}: {}", chosen.name, names.join(", "));
            }
        }
    }
    lines
}

/// Builds only the programs of the requested integration tests, and returns their modules.
pub(crate) fn build(checkout: &Path, named: &[String], all: bool) -> Result<Vec<Program>> {
    let mut names: Vec<&str> = match named {
        [] if all => vec!["*"],
        [] => CHOSEN.iter().map(|chosen| chosen.name).collect(),
        some => some.iter().map(String::as_str).collect(),
    };
    for name in &mut names {
        *name = name.split_once("::").map_or(*name, |(program, _)| program);
    }
    names.sort_unstable();
    names.dedup();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(checkout)
        .args([
            "test",
            "--package=chainwright",
            "--package=chainwright-cli",
            "--all-features",
            "--no-run",
        ])
        .args(["--message-format", "json-render-diagnostics"])
        .args(names.iter().flat_map(|name| ["--test", name]))
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err("cannot compile the tests".to_owned());
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
            programs.extend(modules(name, Path::new(path))?);
        }
    }
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(programs)
}

/// Returns the modules of a program, with the tests that the program lists.
fn modules(name: &str, path: &Path) -> Result<Vec<Program>> {
    let failed = |error: String| format!("cannot list the tests of {}: {error}", path.display());
    let output = Command::new(path)
        .args(["--list", "--format", "terse"])
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    let text = String::from_utf8(output.stdout).map_err(|error| failed(error.to_string()))?;
    let mut modules: Vec<Program> = Vec::new();
    for test in text.lines().filter_map(|line| line.strip_suffix(": test")) {
        let module = test.split_once("::").map_or(test, |(module, _)| module);
        let module = format!("{name}::{module}");
        match modules.iter_mut().find(|program| program.name == module) {
            Some(program) => program.tests.push(test.to_owned()),
            None => modules.push(Program {
                name: module,
                path: path.into(),
                tests: vec![test.to_owned()],
                root_only: &[],
                rounds: &[],
            }),
        }
    }
    Ok(modules)
}

/// Selects the programs to run, in order.
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
        let before = plan.len();
        let of_name = built.iter().filter(|program| {
            program.name == *name
                || program
                    .name
                    .split_once("::")
                    .is_some_and(|(of, _)| of == *name)
        });
        plan.extend(of_name.cloned());
        if plan.len() == before {
            return Err(format!("unknown integration test `{name}`"));
        }
    }
    if let (false, None) = (all, filter) {
        for program in &mut plan {
            if let Some(chosen) = CHOSEN.iter().find(|chosen| chosen.name == program.name) {
                program
                    .tests
                    .retain(|test| !contains_any(test, chosen.without));
                program.root_only = chosen.root_only;
                program.rounds = chosen.rounds;
            }
        }
    }
    if all && named.is_empty() {
        let rest = built.into_iter();
        plan.extend(rest.filter(|program| !names.contains(&program.name.as_str())));
    }
    if let Some(filter) = filter {
        for program in &mut plan {
            program.tests.retain(|test| test.contains(filter));
        }
    }
    Ok(plan)
}
