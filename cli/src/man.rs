//! `chainwright man`: manual pages.

use crate::output::{Error, Exit, Output, note};

/// Print a manual page
///
/// `chainwright man rollback | man -l -` shows the one of a verb. Packages install the files of `man`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which verb's, `kubelet check` for instance; the command's own if there is none
    #[arg(value_name = "VERB")]
    verb: Vec<String>,
}

/// The pages by their names, made by the test below, so that the program does without the maker.
macro_rules! pages {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../man/", $name, ".8")))),*]
    };
}

const PAGES: &[(&str, &str)] = pages![
    "chainwright",
    "chainwright-chains",
    "chainwright-rules",
    "chainwright-sets",
    "chainwright-list",
    "chainwright-apply",
    "chainwright-backup",
    "chainwright-rollback",
    "chainwright-reconcile",
    "chainwright-diff",
    "chainwright-graph",
    "chainwright-save",
    "chainwright-restore",
    "chainwright-cleanup",
    "chainwright-migrate",
    "chainwright-doctor",
    "chainwright-translate",
    "chainwright-nft",
    "chainwright-detect",
    "chainwright-guard",
    "chainwright-kubelet",
    "chainwright-kubelet-ensure",
    "chainwright-kubelet-check",
    "chainwright-kubelet-remove",
    "chainwright-watch",
    "chainwright-trace",
    "chainwright-why",
    "chainwright-trace-packets",
    "chainwright-completions",
    "chainwright-man",
    "chainwright-iptables",
    "chainwright-iptables-save",
    "chainwright-iptables-restore",
    "chainwright-ip6tables",
    "chainwright-ip6tables-save",
    "chainwright-ip6tables-restore",
];

pub(crate) fn run(args: &Args) -> Result<Exit, Error> {
    let words = ["chainwright"]
        .into_iter()
        .chain(args.verb.iter().map(String::as_str));
    let wanted = words.collect::<Vec<_>>().join("-");
    let Some((_, text)) = PAGES.iter().find(|(name, _)| *name == wanted) else {
        note(&format!("there is no verb {:?}", args.verb.join(" ")));
        return Ok(Exit::Absent);
    };
    let mut out = Output::new();
    write!(out, "{text}")?;
    out.flush()?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::CommandFactory;
    use clap_mangen::Man;

    use super::PAGES;
    use crate::Command;
    use crate::tests::check_file;

    /// The command, and then its verbs.
    fn pages(command: &clap::Command, made: &mut Vec<(String, Vec<u8>)>) {
        let name = command
            .get_display_name()
            .unwrap_or_else(|| command.get_name());
        let mut page = Vec::new();
        Man::new(command.clone())
            .section("8")
            .source(concat!("chainwright ", env!("CARGO_PKG_VERSION")))
            .manual("")
            .render(&mut page)
            .unwrap();
        made.push((name.to_owned(), page));
        for verb in command.get_subcommands() {
            pages(verb, made);
        }
    }

    #[test]
    fn pages_are_those_of_the_arguments() {
        let mut command = Command::command().disable_help_subcommand(true);
        command.build();
        let mut made = Vec::new();
        pages(&command, &mut made);
        let names: Vec<_> = made.iter().map(|(name, _)| name.as_str()).collect();
        let listed: Vec<_> = PAGES.iter().map(|(name, _)| *name).collect();
        assert_eq!(listed, names);
        for (name, page) in made {
            check_file(&format!("man/{name}.8"), &page);
        }
        // Nothing is left of verbs that went.
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("man");
        assert_eq!(directory.read_dir().unwrap().count(), PAGES.len());
    }
}
