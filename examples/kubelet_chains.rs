//! Keeps a kubelet's chains: lists and creates the missing ones, and leaves everything
//! else alone.
//!
//! `cargo run --example kubelet_chains`, in a private network namespace.

use chainwright::nft::{Connection, Family, Scope, Transaction};
use chainwright_kube::kubelet::Kubelet;
use chainwright_testing::Sandbox;

type Error = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Error> {
    Sandbox::new()?.run(|| {
        let mut nft = Connection::open()?;
        let kubelet = Kubelet::new();

        // Everything that is missing, in one transaction.
        for made in kubelet.ensure(&mut nft)? {
            println!("made {made}");
        }
        assert!(kubelet.check(&mut nft)?.is_empty());
        assert!(nft.chain_exists(Family::IP, "mangle", "KUBE-IPTABLES-HINT")?);

        // A restarted firewall flushes the ruleset.
        let mut flush = Transaction::new();
        flush.flush_ruleset(Family::UNSPEC)?;
        nft.commit(&flush)?;
        for missing in kubelet.check(&mut nft)? {
            println!("missing {missing}");
        }
        assert!(nft.tables(Scope::all())?.try_next()?.is_none());

        assert!(!kubelet.ensure(&mut nft)?.is_empty());
        assert!(kubelet.check(&mut nft)?.is_empty());
        Ok(())
    })?
}
