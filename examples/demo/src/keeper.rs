//! Who keeps kubelet's chains: kubelet as it is, or chainwright.

use std::panic::resume_unwind;
use std::thread;

use chainwright::iptables::Family;
use chainwright::nft::{CommitError, Connection, Outcome, Transaction};
use chainwright_kube::kubelet::{self, CANARY, Kubelet};

use super::{COMMAND, Error, GUARD, POLL, Stop, ruleset};

/// Keeps the chains as kubelet does: for each family it looks now and then for its canary in
/// mangle, and when that is missing, it makes everything by one command after another. The answer
/// is how often it did.
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
                // A command that fails, because the rival was there in between, is left at that.
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

/// Keeps the chains by one transaction as soon as the ruleset's generation moved and something is
/// missing. The answer is how often something was.
///
/// Most of a repair's time goes by inside the kernel: it takes no commit while it cleans up after
/// the program that deleted something and ended, which waits for an RCU grace period.
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
            // Somebody commits without a pause: on the next round, then.
            Err(kubelet::Error::Contended { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(repairs)
}
