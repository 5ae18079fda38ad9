//! Carries out a command on a table.

use super::{Command, Verb};
use crate::iptables::edit::TableEdit;
use crate::iptables::{Backend, Counters, Error, Policy, Rule};

/// Carries out a command. Returns the number of added rules.
///
/// `counters` are those of its rule or policy, unless the command has its own.
pub(in crate::iptables) fn execute(
    command: &mut Command,
    counters: Option<Counters>,
    table: &mut TableEdit<'_>,
) -> Result<usize, Error> {
    let Command {
        verb,
        chain,
        spec,
        for_other_family,
    } = command;
    if *for_other_family {
        return Ok(0);
    }
    let counters = spec.counters.take().or(counters).unwrap_or_default();
    let Some(chain) = &*chain else {
        match verb {
            Verb::DeleteChain => table.remove_all_chains()?,
            Verb::Flush => table.flush_all()?,
            Verb::Zero(_) => {
                for chain in table.chains()? {
                    table.zero(&chain, None)?;
                }
            }
            // These always have a chain.
            Verb::Append
            | Verb::Check
            | Verb::Delete
            | Verb::DeleteNumber(_)
            | Verb::Insert(_)
            | Verb::NewChain
            | Verb::Policy(_)
            | Verb::RenameChain(_)
            | Verb::Replace(_) => {}
        }
        return Ok(0);
    };
    let mut put_in = 0;
    let mut with_each = |each: &mut dyn FnMut(&Rule) -> Result<(), Error>| {
        if spec.more_sources.is_empty() && spec.more_destinations.is_empty() {
            put_in += 1;
            return each(&spec.rule);
        }
        for rule in std::mem::take(spec).rules() {
            put_in += 1;
            each(&rule)?;
        }
        Ok(())
    };
    match verb {
        Verb::Append => {
            with_each(&mut |rule| table.append_with(chain, rule, counters))?;
        }
        Verb::Insert(number) => {
            with_each(&mut |rule| table.insert(chain, *number, rule, counters))?;
        }
        Verb::Replace(number) => {
            with_each(&mut |rule| table.replace(chain, *number, rule, counters))?;
        }
        Verb::Delete => {
            with_each(&mut |rule| table.delete(chain, rule))?;
            put_in = 0;
        }
        Verb::Check => {
            with_each(&mut |rule| match table.contains(chain, rule)? {
                true => Ok(()),
                false => Err(Error::NoSuchRule {
                    table: table.name().to_owned(),
                    chain: chain.clone(),
                    rule: rule.to_string(),
                }),
            })?;
            put_in = 0;
        }
        Verb::DeleteNumber(number) => table.delete_number(chain, *number)?,
        Verb::NewChain => table.new_chain(chain)?,
        Verb::DeleteChain => table.remove_chain(chain)?,
        Verb::Flush => table.flush(chain)?,
        Verb::Zero(number) => table.zero(chain, *number)?,
        Verb::RenameChain(name) => table.rename_chain(chain, name)?,
        Verb::Policy(policy) => {
            // Like iptables: a line `:CHAIN DROP` may set it, and `-P` may not.
            if table.name() == "nat" && policy == "DROP" {
                return Err(Error::NatDrop);
            }
            let policy = match policy.as_slice() {
                b"ACCEPT" => Policy::Accept,
                b"DROP" => Policy::Drop,
                _ => {
                    let policy = policy.clone();
                    return Err(Error::Policy { policy });
                }
            };
            // iptables-nft ignores given counters.
            let counters = match table.editor.backend() {
                Backend::Nft => Counters::default(),
                Backend::Legacy => counters,
            };
            table.set_policy(chain, Some(policy), Some(counters))?;
        }
    }
    Ok(put_in)
}
