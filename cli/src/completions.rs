//! `chainwright completions`: shell completions.

use clap::ValueEnum;

use crate::output::{Error, Exit, Output};

/// Print completions for a shell
///
/// bash: `chainwright completions bash > ~/.local/share/bash-completion/completions/chainwright`.
///
/// zsh: write the output to a file `_chainwright` in a directory of $fpath.
///
/// fish: `chainwright completions fish > ~/.config/fish/completions/chainwright.fish`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The shell
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
    /// Returns the script, which the test below generated, so that the program does not need the
    /// generator.
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
    fn completions_match_the_arguments() {
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
