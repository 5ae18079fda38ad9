//! The kernel as judge of walks: random rulesets, packets that are really sent through a node that has them, and what the
//! kernel tells of their way, beside the walk through the same rules.
//!
//! `WALKS=2000` takes that many rulesets, each with ten packets; `SEED` begins with other ones.

mod common;
#[path = "walk_kernel/iptables.rs"]
mod iptables;
#[path = "walk_kernel/log.rs"]
mod log;
#[path = "walk_kernel/packet.rs"]
mod packet;
#[path = "walk_kernel/rulesets.rs"]
mod rulesets;
#[path = "walk_kernel/world.rs"]
mod world;

use common::random::Random;
use packet::Sent;
use world::{Texts, World};

#[test]
fn generator() {
    let mut world = World::new();
    let mut random = Random::new();
    let walks = common::from_env("WALKS", 40);
    let (mut refused, mut steps, mut logged, mut arrived) = (0, 0, 0, 0);
    for number in 0..walks {
        let (nft, _) = rulesets::ruleset(&mut random);
        let mut texts = Texts {
            nft,
            ..Texts::default()
        };
        let is_ipv4 = random.below(3) > 0;
        let family = if is_ipv4 {
            chainwright::iptables::Family::Ipv4
        } else {
            chainwright::iptables::Family::Ipv6
        };
        match random.below(4) {
            0 => texts
                .legacy
                .push((family, iptables::tables(&mut random, is_ipv4).0)),
            1 => {
                texts.nft = format!("flush ruleset\n{}", rulesets::WATCH);
                texts
                    .iptables_nft
                    .push((family, iptables::tables(&mut random, is_ipv4).0));
            }
            _ => {}
        }
        if let Err(error) = world.load(&texts) {
            refused += 1;
            println!("{error}");
            continue;
        }
        for packet in 0..10 {
            let sent = Sent::random(&mut random, is_ipv4, number as u16 % 100 * 100 + packet);
            let seen = world.send(&sent);
            steps += seen.traced.len();
            logged += seen.logged.len();
            arrived += seen.arrived.len();
        }
    }
    println!("refused {refused} of {walks}; steps {steps} logged {logged} arrived {arrived}");
}
