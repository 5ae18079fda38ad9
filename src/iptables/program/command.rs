//! `iptables`: a single change of a table, or a listing.

use std::io::Write;

use bstr::{BString, ByteSlice};

use super::chains::Read;
use super::error::{NO_CHAIN, ProgramError};
use super::list::{Columns, as_rules};
use super::{Program, as_line};
use crate::iptables::edit::check_not_target;
use crate::iptables::text::{Command, CommandLineOptions, Listing, Verb, execute};
use crate::iptables::{
    Backend, ChainKind, Error, Iptables, Policy, Rule, Target, builtins, tables_in_use,
};
use crate::xt::{Names, Text};

/// Returns the comment about base chains of a table that are not iptables'.
pub(super) fn base_chains(table: impl std::fmt::Display) -> String {
    format!("# Table `{table}' contains incompatible base-chains, use 'nft' tool to list them.")
}

/// The result of a command.
pub(super) enum Outcome {
    /// Output; a write error makes the command fail.
    Printed,
    /// A change, which succeeds even if its output cannot be written.
    Changed,
}

impl Program {
    pub(super) fn command(
        &self,
        words: &[BString],
        output: &mut dyn Write,
        notes: &mut BString,
    ) -> Result<Outcome, ProgramError> {
        let line = as_line(words);
        let (command, cmdline) = Command::cmdline(self.family, false, &Names::system(), &line)
            .map_err(|error| ProgramError::of_parse_error(&error))?;
        if cmdline.wait_interval {
            notes.extend_from_slice(b"Ignoring deprecated --wait-interval option.\n");
        }
        if command.for_other_family {
            return Err(ProgramError::parameter("this is for the other family"));
        }
        if cmdline.help || cmdline.version {
            let reply = match cmdline.help {
                true => self.help() + &cmdline.extensions,
                false => format!("{}\n", self.version()),
            };
            let written = output.write_all(reply.as_bytes());
            return written
                .map(|()| Outcome::Printed)
                .map_err(ProgramError::of_output);
        }
        let table = cmdline.table.as_deref().unwrap_or("filter");
        if builtins(table).is_none() {
            return Err(ProgramError::no_table(self, table));
        }
        if let Some(listing) = cmdline.listing {
            return self.list(&command, &cmdline, listing, table, output);
        }
        self.change(&command, &cmdline, table, output)?;
        Ok(Outcome::Changed)
    }

    fn list(
        &self,
        command: &Command,
        cmdline: &CommandLineOptions,
        listing: Listing,
        table: &str,
        output: &mut dyn Write,
    ) -> Result<Outcome, ProgramError> {
        let failed = |error: Error| ProgramError::of_command(self, &error, command);
        let (mut iptables, lock) = self.open(&[table], Some(cmdline.wait.retry_policy()))?;
        let only = command.chain.as_ref().map(|chain| chain.as_bstr());
        let read = Read::new(&mut iptables, self, table, only).map_err(failed)?;
        let mut chains = read.chains(table, only);
        let all = chains.len();
        chains.retain(|chain| chain.kind != ChainKind::Foreign);
        if only.is_some() && chains.is_empty() {
            return Err(ProgramError::plain(NO_CHAIN));
        }
        let mut text = Text::new();
        if chains.len() < all {
            text.display(format_args!("{}\n", base_chains(table)));
        }
        let listed = if listing.as_rules {
            as_rules(&mut text, &chains, listing.number, cmdline.verbose)
        } else {
            let columns = Columns::new(self.family, cmdline);
            chains.iter().enumerate().try_for_each(|(place, chain)| {
                if place > 0 {
                    text.push("\n");
                }
                columns.chain(&mut text, chain, listing.number)
            })
        };
        if listed.is_err() || chains.iter().any(|chain| !chain.expressible) {
            let what = match only {
                Some(chain) => format!("chain `{chain}' in table `{table}'"),
                None => format!("table `{table}'"),
            };
            return Err(ProgramError::other(format!(
                "{what} is incompatible, use 'nft' tool."
            )));
        }
        output
            .write_all(text.as_bytes())
            .map_err(ProgramError::of_output)?;
        if cmdline.zero {
            // Reset the counters only after they are printed.
            output.flush().map_err(ProgramError::of_output)?;
            let zero = Command {
                verb: Verb::Zero(None),
                ..command.clone()
            };
            drop(lock);
            self.change(&zero, cmdline, table, output)?;
        }
        Ok(Outcome::Printed)
    }

    /// Carries out a command, and prints it if requested.
    fn change(
        &self,
        command: &Command,
        cmdline: &CommandLineOptions,
        table: &str,
        output: &mut dyn Write,
    ) -> Result<(), ProgramError> {
        let mut chains: Vec<_> = command.chain.iter().cloned().collect();
        let done = self.execute(command, cmdline, table, &mut chains);
        // Like the real tools: print first which chains are processed.
        if cmdline.verbose && (done.is_ok() || command.chain.is_none()) {
            // The change succeeds even if the output cannot be written.
            let _ = self.show(command, &chains, output);
        }
        done
    }

    /// Carries out a command. Commands for all chains store them in `chains` if their names are needed.
    fn execute(
        &self,
        command: &Command,
        cmdline: &CommandLineOptions,
        table: &str,
        chains: &mut Vec<BString>,
    ) -> Result<(), ProgramError> {
        let failed = |error: &Error| ProgramError::of_command(self, error, command);
        let builtin = builtins(table).unwrap_or_default();
        // Reject an invalid name before opening a table, which would create a legacy one.
        if let (Verb::NewChain, Some(name)) | (Verb::RenameChain(name), _) =
            (&command.verb, &command.chain)
        {
            check_not_target(self.family, table, name.as_bstr()).map_err(|error| failed(&error))?;
        }
        let gone_through = || {
            let builtin = builtin.iter().map(|builtin| BString::from(builtin.chain));
            builtin.filter(|_| command.verb != Verb::DeleteChain)
        };
        // Do not create a table to empty it.
        if command.chain.is_none() && self.backend == Backend::Nft {
            let existing =
                tables_in_use(self.backend, self.family).map_err(|error| failed(&error))?;
            if !existing.iter().any(|name| name == table) {
                chains.extend(gone_through());
                return Ok(());
            }
        }
        let (mut iptables, _lock) = self.open(&[table], Some(cmdline.wait.retry_policy()))?;
        let changed = iptables.update(self.family, table, |edit| {
            // Agents often try to create existing chains, and a transaction that the kernel aborts costs
            // some 15 ms (an RCU grace period).
            if let (Verb::NewChain, Some(chain)) = (&command.verb, &command.chain)
                && !edit.is_builtin(chain.as_bstr())
                && edit.has_chain(chain)?
            {
                return Err(Error::ChainExists {
                    table: table.to_owned(),
                    chain: chain.clone(),
                });
            }
            // A missing built-in chain has no counters; do not create it.
            if let (Verb::Zero(None), Some(chain), Backend::Nft) =
                (&command.verb, &command.chain, self.backend)
                && edit.is_builtin(chain.as_bstr())
                && edit.policy(chain.as_bstr())?.is_none()
            {
                return Ok(());
            }
            if cmdline.verbose && command.chain.is_none() {
                let mut others = edit.chains()?;
                others.retain(|chain| !edit.is_builtin(chain.as_bstr()));
                *chains = gone_through().chain(others).collect();
            }
            // The same for a chain to empty: a lookup is cheaper than an aborted transaction.
            if let (Verb::Flush, Some(chain), Backend::Nft) =
                (&command.verb, &command.chain, self.backend)
                && !edit.has_chain(chain)?
            {
                return Err(Error::no_such_chain(table, chain.as_bstr(), []));
            }
            execute(&mut command.clone(), None, edit)?;
            // Like the real tool: empty built-in chains are deleted with the others.
            if let (Verb::DeleteChain, None, Backend::Nft) =
                (&command.verb, &command.chain, self.backend)
            {
                for builtin in builtin {
                    if edit.policy(builtin.chain.into())? == Some(Policy::Accept) {
                        match edit.remove_chain(builtin.chain) {
                            Err(Error::NotEmpty { .. }) => {}
                            removed => removed?,
                        }
                    }
                }
            }
            Ok(())
        });
        let Err(error) = changed else {
            return Ok(());
        };
        // Do not wait for the lock again.
        if matches!(error, Error::Legacy(_) | Error::Contended { .. }) {
            return Err(failed(&error));
        }
        if let Some(error) = self.missing_target(&mut iptables, &command.spec.rule, table) {
            return Err(error);
        }
        // If the kernel refused a rule, the chain may be missing.
        if let (Error::Commit(_), Verb::Append | Verb::Insert(_), Some(chain)) =
            (&error, &command.verb, &command.chain)
            && let Ok(false) = iptables.update(self.family, table, |edit| edit.has_chain(chain))
        {
            return Err(ProgramError::plain(NO_CHAIN));
        }
        Err(failed(&error))
    }

    /// Returns the error if the rule's target chain is missing, which takes precedence over others.
    fn missing_target(
        &self,
        iptables: &mut Iptables,
        rule: &Rule,
        table: &str,
    ) -> Option<ProgramError> {
        let (Target::Jump(to) | Target::Goto(to)) = &rule.target else {
            return None;
        };
        let is_goto = matches!(rule.target, Target::Goto(_));
        let existing = iptables.update(self.family, table, |edit| edit.has_chain(to));
        let missing = matches!(existing, Ok(false));
        missing.then(|| ProgramError::no_target(self.backend, to, is_goto))
    }

    /// Prints the command's rules.
    fn show(
        &self,
        command: &Command,
        chains: &[BString],
        output: &mut dyn Write,
    ) -> Result<(), ProgramError> {
        let takes_rule = matches!(
            command.verb,
            Verb::Append | Verb::Insert(_) | Verb::Replace(_) | Verb::Delete | Verb::Check
        );
        let mut text = Text::new();
        if takes_rule {
            for rule in command.spec.clone().rules() {
                Columns::as_line(self.family, &rule, &mut text);
            }
        }
        let done = match command.verb {
            Verb::DeleteChain => "Deleting",
            Verb::Flush => "Flushing",
            Verb::Zero(None) => "Zeroing",
            _ => "",
        };
        for chain in chains.iter().filter(|_| !done.is_empty()) {
            text.push(done).push(" chain `").push(chain).push("'\n");
        }
        output
            .write_all(text.as_bytes())
            .map_err(ProgramError::of_output)
    }

    /// Returns the output of `-h`.
    pub(super) fn help(&self) -> String {
        let (version, name) = (self.version(), &self.name);
        format!(
            "{version}\n\n\
             Usage: {name} -[ACD] chain rule-specification [options]\n       \
             {name} -I chain [rulenum] rule-specification [options]\n       \
             {name} -R chain rulenum rule-specification [options]\n       \
             {name} -D chain rulenum [options]\n       \
             {name} -[LS] [chain [rulenum]] [options]\n       \
             {name} -[FZ] [chain] [options]\n       \
             {name} -[NX] chain\n       \
             {name} -E old-chain-name new-chain-name\n       \
             {name} -P chain target [options]\n\n{OPTIONS}"
        )
    }
}

/// The help for options that belong to no extension.
pub(super) const OPTIONS: &str = "\
Commands (short or long form):
  -A, --append CHAIN             append a rule to the chain
  -C, --check CHAIN              check whether the chain has the rule
  -D, --delete CHAIN [NUMBER]    delete the rule, or the rule with this number
  -I, --insert CHAIN [NUMBER]    insert a rule at the head, or at this number
  -R, --replace CHAIN NUMBER     replace the rule with this number
  -L, --list [CHAIN [NUMBER]]    list rules in columns
  -S, --list-rules [CHAIN [NUMBER]]  list rules as options
  -F, --flush [CHAIN]            delete all rules
  -Z, --zero [CHAIN [NUMBER]]    set counters to 0
  -N, --new-chain CHAIN          create a chain
  -X, --delete-chain [CHAIN]     delete a chain, or all empty chains
  -P, --policy CHAIN TARGET      set the policy: ACCEPT or DROP
  -E, --rename-chain OLD NEW     rename a chain
Options:
  -t, --table TABLE              filter (default), nat, mangle, raw, security
  -4, --ipv4; -6, --ipv6         no effect; an error in the program of the other family
  -p, --protocol; -s, --source; -d, --destination; -i, --in-interface;
  -o, --out-interface; -f, --fragment; -m, --match; -j, --jump; -g, --goto;
  -c, --set-counters             parts of the rule, see iptables-extensions(8)
  -n, --numeric                  print numbers instead of names
  -v, --verbose                  also show counters and interfaces
  -x, --exact                    print exact counters
      --line-numbers             print rule numbers
  -w, --wait [SECONDS]           wait for the lock of the legacy tools
  -W, --wait-interval, -M, --modprobe  accepted, but have no effect
  -h, --help; -V, --version
";
