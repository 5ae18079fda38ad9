//! `iptables`: one change of a table, or a listing.

use std::io::Write;

use bstr::{BString, ByteSlice};

use super::chains::Read;
use super::complaint::{Complaint, NO_CHAIN};
use super::list::{Columns, as_rules};
use super::{Program, in_a_line};
use crate::iptables::edit::not_target;
use crate::iptables::text::{Called, Command, Listing, Verb, carry_out};
use crate::iptables::{
    Backend, ChainKind, Error, Iptables, Policy, Rule, Target, builtins, tables_in_use,
};
use crate::xt::{Names, Text};

/// The comment on base chains of a table that are none of iptables'.
pub(super) fn base_chains(table: impl std::fmt::Display) -> String {
    format!("# Table `{table}' contains incompatible base-chains, use 'nft' tool to list them.")
}

/// What a command was about.
pub(super) enum Outcome {
    /// Its output.
    Said,
    /// A change, which is made whether that can be said or not.
    Changed,
}

impl Program {
    pub(super) fn command(
        &self,
        words: &[BString],
        output: &mut dyn Write,
        notes: &mut BString,
    ) -> Result<Outcome, Complaint> {
        let line = in_a_line(words);
        let (command, called) = Command::called(self.family, false, &Names::system(), &line)
            .map_err(|error| Complaint::of_words(&error))?;
        if called.wait_interval {
            notes.extend_from_slice(b"Ignoring deprecated --wait-interval option.\n");
        }
        if command.for_other_family {
            return Err(Complaint::parameter("this is for the other family"));
        }
        if called.help || called.version {
            let said = match called.help {
                true => self.help() + &called.extensions,
                false => format!("{}\n", self.version()),
            };
            let written = output.write_all(said.as_bytes());
            return written
                .map(|()| Outcome::Said)
                .map_err(Complaint::of_output);
        }
        let table = called.table.as_deref().unwrap_or("filter");
        if builtins(table).is_none() {
            return Err(Complaint::no_table(self, table));
        }
        if let Some(listing) = called.listing {
            return self.list(&command, &called, listing, table, output);
        }
        self.change(&command, &called, table, output)?;
        Ok(Outcome::Changed)
    }

    fn list(
        &self,
        command: &Command,
        called: &Called,
        listing: Listing,
        table: &str,
        output: &mut dyn Write,
    ) -> Result<Outcome, Complaint> {
        let failed = |error: Error| Complaint::of_command(self, &error, command);
        let (mut iptables, lock) = self.open(&[table], Some(called.wait.patience()))?;
        let only = command.chain.as_ref().map(|chain| chain.as_bstr());
        let read = Read::new(&mut iptables, self, table, only).map_err(failed)?;
        let mut chains = read.chains(table, only);
        let all = chains.len();
        chains.retain(|chain| chain.kind != ChainKind::Foreign);
        if only.is_some() && chains.is_empty() {
            return Err(Complaint::plain(NO_CHAIN));
        }
        let mut text = Text::new();
        if chains.len() < all {
            text.display(format_args!("{}\n", base_chains(table)));
        }
        let listed = if listing.as_rules {
            as_rules(&mut text, &chains, listing.number, called.verbose)
        } else {
            let columns = Columns::new(self.family, called);
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
            return Err(Complaint::other(format!(
                "{what} is incompatible, use 'nft' tool."
            )));
        }
        output
            .write_all(text.as_bytes())
            .map_err(Complaint::of_output)?;
        if called.zero {
            // What was counted is lost only once it is said.
            output.flush().map_err(Complaint::of_output)?;
            let zero = Command {
                verb: Verb::Zero(None),
                ..command.clone()
            };
            drop(lock);
            self.change(&zero, called, table, output)?;
        }
        Ok(Outcome::Said)
    }

    /// Carries out a command, and shows it if that is wanted.
    fn change(
        &self,
        command: &Command,
        called: &Called,
        table: &str,
        output: &mut dyn Write,
    ) -> Result<(), Complaint> {
        let mut chains: Vec<_> = command.chain.iter().cloned().collect();
        let done = self.carry_out(command, called, table, &mut chains);
        // As the real tools: they say first which chains they go through.
        if called.verbose && (done.is_ok() || command.chain.is_none()) {
            // It is done, whether that can be said or not.
            let _ = self.show(command, &chains, output);
        }
        done
    }

    /// Carries out a command. Those that are for all chains put them into `chains` if their names are wanted.
    fn carry_out(
        &self,
        command: &Command,
        called: &Called,
        table: &str,
        chains: &mut Vec<BString>,
    ) -> Result<(), Complaint> {
        let failed = |error: &Error| Complaint::of_command(self, error, command);
        let builtin = builtins(table).unwrap_or_default();
        // A name that no chain may have is refused before a table is opened, which makes a legacy one.
        if let (Verb::NewChain, Some(name)) | (Verb::RenameChain(name), _) =
            (&command.verb, &command.chain)
        {
            not_target(self.family, table, name.as_bstr()).map_err(|error| failed(&error))?;
        }
        let gone_through = || {
            let builtin = builtin.iter().map(|builtin| BString::from(builtin.chain));
            builtin.filter(|_| command.verb != Verb::DeleteChain)
        };
        // Nothing is made for it to be emptied.
        if command.chain.is_none() && self.backend == Backend::Nft {
            let there = tables_in_use(self.backend, self.family).map_err(|error| failed(&error))?;
            if !there.iter().any(|name| name == table) {
                chains.extend(gone_through());
                return Ok(());
            }
        }
        let (mut iptables, _lock) = self.open(&[table], Some(called.wait.patience()))?;
        let changed = iptables.update(self.family, table, |edit| {
            // Agents make chains that are there already all day, and a transaction that the kernel takes back costs it
            // some 15 ms (a grace period of RCU).
            if let (Verb::NewChain, Some(chain)) = (&command.verb, &command.chain)
                && !edit.is_builtin(chain.as_bstr())
                && edit.has_chain(chain)?
            {
                return Err(Error::ChainExists {
                    table: table.to_owned(),
                    chain: chain.clone(),
                });
            }
            // A built-in chain that is not there has counted nothing; it is not made for that.
            if let (Verb::Zero(None), Some(chain), Backend::Nft) =
                (&command.verb, &command.chain, self.backend)
                && edit.is_builtin(chain.as_bstr())
                && edit.policy(chain.as_bstr())?.is_none()
            {
                return Ok(());
            }
            if called.verbose && command.chain.is_none() {
                let mut others = edit.chains()?;
                others.retain(|chain| !edit.is_builtin(chain.as_bstr()));
                *chains = gone_through().chain(others).collect();
            }
            // So is a chain that is to be emptied: looking for it is cheaper than what the kernel takes back.
            if let (Verb::Flush, Some(chain), Backend::Nft) =
                (&command.verb, &command.chain, self.backend)
                && !edit.has_chain(chain)?
            {
                return Err(Error::no_such_chain(table, chain.as_bstr(), []));
            }
            carry_out(&mut command.clone(), None, edit)?;
            // As the real one: built-in chains in which nothing is go with the others.
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
        // Who cannot have the lock, or may not do it, is not made to wait again.
        if matches!(error, Error::Legacy(_) | Error::Contended { .. }) {
            return Err(failed(&error));
        }
        if let Some(complaint) = self.missing_target(&mut iptables, &command.spec.rule, table) {
            return Err(complaint);
        }
        // Of a rule that the kernel did not take, it may be the chain that is not there.
        if let (Error::Commit(_), Verb::Append | Verb::Insert(_), Some(chain)) =
            (&error, &command.verb, &command.chain)
            && let Ok(false) = iptables.update(self.family, table, |edit| edit.has_chain(chain))
        {
            return Err(Complaint::plain(NO_CHAIN));
        }
        Err(failed(&error))
    }

    /// What to say if the chain is not there that the rule leads to: that is what callers are told first.
    fn missing_target(
        &self,
        iptables: &mut Iptables,
        rule: &Rule,
        table: &str,
    ) -> Option<Complaint> {
        let (Target::Jump(to) | Target::Goto(to)) = &rule.target else {
            return None;
        };
        let is_goto = matches!(rule.target, Target::Goto(_));
        let there = iptables.update(self.family, table, |edit| edit.has_chain(to));
        let missing = matches!(there, Ok(false));
        missing.then(|| Complaint::no_target(self.backend, to, is_goto))
    }

    /// Shows the command's rules.
    fn show(
        &self,
        command: &Command,
        chains: &[BString],
        output: &mut dyn Write,
    ) -> Result<(), Complaint> {
        let takes_rule = matches!(
            command.verb,
            Verb::Append | Verb::Insert(_) | Verb::Replace(_) | Verb::Delete | Verb::Check
        );
        let mut text = Text::new();
        if takes_rule {
            for rule in command.spec.clone().rules() {
                Columns::in_a_line(self.family, &rule, &mut text);
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
            .map_err(Complaint::of_output)
    }

    /// What `-h` prints.
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

/// The options that are no extension's, for people.
pub(super) const OPTIONS: &str = "\
Commands (either way):
  -A, --append CHAIN             put a rule behind the chain's last one
  -C, --check CHAIN              whether the chain has such a rule
  -D, --delete CHAIN [NUMBER]    take such a rule away, or that of this number
  -I, --insert CHAIN [NUMBER]    put a rule at the head, or in this place
  -R, --replace CHAIN NUMBER     put a rule in the place of another
  -L, --list [CHAIN [NUMBER]]    list rules in columns
  -S, --list-rules [CHAIN [NUMBER]]  list rules as the options that make them
  -F, --flush [CHAIN]            take all rules away
  -Z, --zero [CHAIN [NUMBER]]    set counters to 0
  -N, --new-chain CHAIN          make a chain
  -X, --delete-chain [CHAIN]     take a chain away, or all that are empty
  -P, --policy CHAIN TARGET      ACCEPT or DROP where no rule decides
  -E, --rename-chain OLD NEW     give a chain another name
Options:
  -t, --table TABLE              filter (if none is given), nat, mangle, raw, security
  -4, --ipv4; -6, --ipv6         nothing, or an error in the other family's program
  -p, --protocol; -s, --source; -d, --destination; -i, --in-interface;
  -o, --out-interface; -f, --fragment; -m, --match; -j, --jump; -g, --goto;
  -c, --set-counters             the rule, as iptables-extensions(8) has it
  -n, --numeric                  numbers instead of names
  -v, --verbose                  counters and interfaces, too
  -x, --exact                    whole numbers
      --line-numbers             the rules' numbers
  -w, --wait [SECONDS]           wait for the lock of the legacy tools
  -W, --wait-interval, -M, --modprobe  are taken and do nothing
  -h, --help; -V, --version
";
