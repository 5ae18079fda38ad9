//! The rival: restarts its firewall, as `systemctl restart iptables` does, or in one transaction.

use std::thread;

use chainwright::iptables::Family;
use chainwright::iptables::nft::chain;
use chainwright::nft::{
    self, Chain, CommitError, Connection, List, Outcome, Policy, Scope, Table, Transaction,
};
use chainwright_kube::kubelet::Item;

use super::{COMMAND, Error, ruleset};

/// One command of the scripts.
#[derive(Clone, Copy)]
enum Command {
    /// `-Z`: resets counters, which does not change the ruleset.
    Zero,
    /// `-t TABLE -F`
    Flush(&'static str),
    /// `-t TABLE -X`
    DeleteChains(&'static str),
    /// `-P CHAIN POLICY`
    Policy(&'static str, Policy),
    /// `iptables-restore < FILE`
    Restore,
}

/// The two scripts behind `systemctl restart iptables` of Azure Linux: 50 commands.
fn script() -> Vec<(Family, Command)> {
    use Command::{DeleteChains, Flush, Restore, Zero};

    const FLUSH: [Command; 9] = [
        Zero,
        Flush("filter"),
        Flush("raw"),
        DeleteChains("raw"),
        Flush("nat"),
        DeleteChains("nat"),
        Flush("mangle"),
        DeleteChains("mangle"),
        DeleteChains("filter"),
    ];
    let policies =
        |policy| ["INPUT", "FORWARD", "OUTPUT"].map(|chain| Command::Policy(chain, policy));
    let families = Family::ALL;
    let for_both = |commands: Vec<Command>| {
        families
            .into_iter()
            .flat_map(move |family| commands.clone().into_iter().map(move |c| (family, c)))
    };
    let stop = for_both([&FLUSH[..], &policies(Policy::ACCEPT)].concat());
    let start = for_both(policies(Policy::DROP).to_vec())
        .chain(for_both(FLUSH.to_vec()))
        .chain(for_both(vec![Restore]));
    stop.chain(start).collect()
}

/// Restarts with one command after another, each on its own connection, like a program. Returns the number of commands
/// that the kernel rejected. Like the scripts, it continues after a failure.
pub(crate) fn restart_by_commands() -> Result<u32, Error> {
    let mut refused = 0;
    for (family, command) in script() {
        thread::sleep(COMMAND);
        let mut nft = Connection::open()?;
        for tx in command.transactions(family, &mut nft)? {
            match nft.commit(&tx) {
                Ok(()) => {}
                Err(CommitError {
                    outcome: Outcome::NothingApplied,
                    ..
                }) => {
                    refused += 1;
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(refused)
}

impl Command {
    /// Returns the transactions of the command.
    fn transactions(self, family: Family, nft: &mut Connection) -> Result<Vec<Transaction>, Error> {
        let nft_family = nft::Family::from(family);
        let mut tx = Transaction::new();
        match self {
            Self::Zero => {}
            Self::Flush(table) => {
                if nft.table(nft_family, table)?.is_some() {
                    tx.flush_table(nft_family, table)?;
                }
            }
            Self::DeleteChains(table) => {
                let mut chains = List::<Chain<'_>>::new(Scope::table(nft_family, table));
                chains.refresh(nft)?;
                for user_defined in chains.iter().filter(|chain| !chain.is_base()) {
                    tx.delete(&Chain::new(nft_family, table, user_defined.name()))?;
                }
            }
            Self::Policy(name, policy) => {
                tx.add(&Table::new(nft_family, "filter"))?
                    .add(&chain(family, "filter", name).with_policy(policy))?;
            }
            Self::Restore => return restore(family),
        }
        Ok(vec![tx])
    }
}

/// Returns the transactions of a restore: one for each table.
fn restore(family: Family) -> Result<Vec<Transaction>, Error> {
    let mut transactions = Vec::new();
    for (_, name) in ruleset::TABLES.iter().filter(|table| table.0 == family) {
        let mut tx = Transaction::new();
        let table = Table::new(family.into(), *name);
        // Added first, so that there is a table to delete.
        tx.add(&table)?.delete(&table)?;
        ruleset::write(&mut tx, family, name)?;
        transactions.push(tx);
    }
    Ok(transactions)
}

/// Restarts in one transaction: deletes every rule of every table, and restores the contents of the saved files, with
/// kubelet's chains. Chains that exist before and after are never deleted.
pub(crate) fn restart_by_transaction(nft: &mut Connection, kubelets: &[Item]) -> Result<(), Error> {
    let mut tx = Transaction::new();
    for (family, table) in ruleset::TABLES {
        tx.add(&Table::new(family.into(), table))?
            .flush_table(family.into(), table)?;
        ruleset::write(&mut tx, family, table)?;
    }
    for item in kubelets {
        ruleset::write_item(&mut tx, item)?;
    }
    nft.commit(&tx)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_is_fifty_commands() {
        assert_eq!(script().len(), 50);
    }
}
