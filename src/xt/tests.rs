//! What holds for every extension.

use super::{Family, Match, Target};

/// Bytes that look a little like an extension's data: mostly zeros, small numbers and full ones. The
/// same for the same number.
fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 31)) >> 16
    };
    let zeros = next() % 9;
    let mut byte = || match next() % 10 {
        kind if kind < zeros => 0,
        8 => u8::MAX,
        9 => next() as u8,
        _ => next() as u8 & 3,
    };
    (0..length).map(|_| byte()).collect()
}

macro_rules! read_and_written {
    ($($Kind:ident),*) => { $({
        let (mut typed, mut print) = (0, super::Text::new());
        for spec in $Kind::ALL {
            for seed in 0..4000_u64 {
                let family = if seed % 2 == 0 { Family::Ipv4 } else { Family::Ipv6 };
                let length = [0, 1, 7, 8, 16, 48, 168, 296, 520][seed as usize % 9];
                let info = bytes(seed, length);
                let name = spec.names()[0];
                let read = $Kind::read(family, name, (seed / 2 % 4) as u8, &info);
                print.clear();
                read.print(&mut print);
                if matches!(read, $Kind::Opaque(_)) {
                    continue;
                }
                typed += 1;
                let written = read.encode(family);
                assert_eq!(written.info.len() % 8, 0, "{name}");
                let again = $Kind::read(family, name, written.revision, &written.info);
                assert_eq!(again, read, "{name}: {info:02x?}");
            }
        }
        assert!(typed > 100, "hardly any of the bytes mean anything: {typed}");
    })* };
}

#[test]
fn whatever_is_read_is_written_so_that_it_reads_the_same() {
    read_and_written!(Match, Target);
}
