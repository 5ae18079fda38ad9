//! `chainwright completions`: what shells complete the command's arguments with.

use clap::ValueEnum;

use crate::output::{Error, Exit, Output};

/// Print completions for a shell
///
/// bash: `chainwright completions bash > ~/.local/share/bash-completion/completions/chainwright`.
/// zsh: into a file `_chainwright` in a directory of $fpath.
/// fish: `chainwright completions fish > ~/.config/fish/completions/chainwright.fish`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

/// A shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    /// Made by the test below, so that the program does without the maker.
    const fn text(self) -> &'static str {
        match self {
            Self::Bash => include_str!("../completions/chainwright.bash"),
            Self::Zsh => include_str!("../completions/_chainwright"),
            Self::Fish => include_str!("../completions/chainwright.fish"),
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<Exit, Error> {
    let mut out = Output::new();
    write!(out, "{}", args.shell.text())?;
    out.flush()?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap_complete::{Generator, Shell, generate};

    use crate::Command;
    use crate::tests::check_file;

    #[test]
    fn completions_are_those_of_the_arguments() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut made = Vec::new();
            generate(shell, &mut Command::command(), "chainwright", &mut made);
            check_file(
                &format!("completions/{}", shell.file_name("chainwright")),
                &made,
            );
        }
    }
}
