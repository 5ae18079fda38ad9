//! Keepers of kubelet's chains: kubelet itself, or chainwright.

use std::panic::resume_unwind;
use std::thread;

use chainwright::iptables::Family;
use chainwright::nft::{CommitError, Connection, Outcome, Transaction};
use chainwright_kube::kubelet::{self, CANARY, Kubelet};

use super::{COMMAND, Error, GUARD, POLL, Stop, ruleset};

/// Restores the chains like kubelet: for each family it checks periodically for its canary in mangle, and if that is
/// missing, creates everything with one command after another. Returns the number of repairs.
pub(crate) fn poll(stop: &Stop) -> Result<u32, Error> {
    thread::scope(|scope| {
        let pollers = Family::ALL.map(|family| scope.spawn(move || poll_family(stop, family)));
        pollers.into_iter().try_fold(0, |sum, poller| {
            Ok(sum + poller.join().unwrap_or_else(|panic| resume_unwind(panic))?)
        })
    })
}

fn poll_family(stop: &Stop, family: Family) -> Result<u32, Error> {
    let mut nft = Connection::open()?;
    let mut repairs = 0;
    while stop.pause(POLL) {
        if nft.chain_exists(family.into(), "mangle", CANARY)? {
            continue;
        }
        repairs += 1;
        for item in Kubelet::new().only(family).check(&mut nft)? {
            thread::sleep(COMMAND);
            let mut tx = Transaction::new();
            ruleset::write_item(&mut tx, &item)?;
            match Connection::open()?.commit(&tx) {
                // Ignores a command that fails because of the rival.
                Ok(())
                | Err(CommitError {
                    outcome: Outcome::NothingApplied,
                    ..
                }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(repairs)
}

/// Restores the chains in one transaction whenever the ruleset's generation changed and something is missing. Returns
/// the number of repairs.
///
/// Most of the time of a repair is spent in the kernel: it accepts no commit while it cleans up after the process that
/// deleted something and exited, which waits for an RCU grace period.
pub(crate) fn guard(stop: &Stop, kubelet: &Kubelet) -> Result<u32, Error> {
    let mut nft = Connection::open()?;
    let mut known = None;
    let mut repairs = 0;
    while stop.pause(GUARD) {
        let generation = nft.generation()?;
        if known == Some(generation) {
            continue;
        }
        match kubelet.ensure(&mut nft) {
            Ok(made) => {
                repairs += u32::from(!made.is_empty());
                known = Some(generation);
            }
            // Another process keeps committing: retry in the next round.
            Err(kubelet::Error::Contended { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(repairs)
}
