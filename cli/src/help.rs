//! `--help`: the whole description, and the options in the compact form of `-h`.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Command};

/// Changes the page of the verb among the arguments.
pub(crate) fn compact(command: Command, arguments: &[OsString]) -> Command {
    let mut words = arguments.iter().filter_map(|word| word.to_str());
    let found = words.find_map(|word| {
        let verb = command.find_subcommand(word)?;
        Some(verb.get_name().to_owned())
    });
    if let Some(verb) = found {
        let rest: Vec<_> = words.map(OsString::from).collect();
        return command.mut_subcommand(verb, |verb| compact(verb, &rest));
    }
    let description = command.get_long_about().or(command.get_about()).cloned();
    let help = Arg::new("help").short('h').long("help");
    command
        .about(description.unwrap_or_default())
        .disable_help_flag(true)
        .arg(help.action(ArgAction::HelpShort).help("Print help"))
}
