//! Random packets, and slightly different ones.

use chainwright::xt::Family;

use crate::common::random::Random;
use crate::decoder_equivalence::machine::Packet;
use crate::decoder_equivalence::random::NAMES;

pub(crate) fn packet(random: &mut Random, family: Family) -> Packet {
    let mut packet = Packet {
        family,
        network: [0; 40],
        transport: [0; 24],
        protocol: random.pick(&[1, 6, 17, 58, 132, 0, 255]),
        in_name: [0; 16],
        out_name: [0; 16],
        mark: random.pick(&[0, 1, 0x4000, 7, 0xffff_ffff]),
        kind: random.pick(&[0, 1, 2, 3]),
        length: random.pick(&[20, 60, 1500]),
        seed: random.next(),
    };
    packet.network.copy_from_slice(&random.bytes(40));
    packet.network[6..8].fill(0);
    packet.transport.copy_from_slice(&random.bytes(24));
    for name in [&mut packet.in_name, &mut packet.out_name] {
        let picked = random.pick(&NAMES);
        name[..picked.len()].copy_from_slice(picked);
    }
    packet.make_consistent();
    packet
}

/// The same packet with one change.
pub(crate) fn near(random: &mut Random, packet: &Packet) -> Packet {
    let mut near = packet.clone();
    match random.below(9) {
        0 => near.network[random.below(40)] ^= 1 << random.below(8),
        1 | 2 => near.transport[random.below(4)] ^= 1 << random.below(8),
        3 => near.transport[13] ^= 1 << random.below(8),
        4 => near.protocol = random.pick(&[1, 6, 17, 58, 0]),
        5 => near.mark ^= 1 << random.below(32),
        6 => {
            let name = if random.once_in(2) {
                &mut near.in_name
            } else {
                &mut near.out_name
            };
            let end = name.iter().position(|byte| *byte == 0).unwrap_or(15);
            if end < 15 && random.once_in(2) {
                name[end] = b'z';
            } else {
                name[random.below(end.max(1))] ^= 1;
            }
        }
        7 => {
            near.network[6] = random.pick(&[0, 0, 0x20, 0x01]);
            near.network[7] = random.pick(&[0, 0, 1]);
        }
        _ => near.kind = random.pick(&[0, 1, 2, 3]),
    }
    near.make_consistent();
    near
}
