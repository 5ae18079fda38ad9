//! Data that no tool wrote: whatever extensions make of it, they print it and write it.

use chainwright::xt::{Family, Match, Target, Text};

/// Numbers without a pattern, the same in each run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Bytes, most of them 0, small or 0xff, as in data.
    fn bytes(&mut self) -> Vec<u8> {
        let length = self.next() % 360;
        let one = |number: u64| match number % 8 {
            0 => (number >> 8) as u8,
            1 | 2 => ((number >> 8) % 4) as u8,
            3 => 0xff,
            _ => 0,
        };
        (0..length).map(|_| one(self.next())).collect()
    }
}

#[test]
fn garbage_is_read_printed_and_written() {
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    let mut text = Text::new();
    for round in 0..4000 {
        let info = numbers.bytes();
        let revision = (numbers.next() % 6) as u8;
        let family = if round % 2 == 0 {
            Family::Ipv4
        } else {
            Family::Ipv6
        };
        text.clear();
        for spec in Match::ALL {
            let read = Match::read(family, spec.names()[0], revision, &info);
            read.print(&mut text);
            // What was written is read as the same.
            let encoded = read.encode(family).unwrap();
            let again = Match::read(family, encoded.name, encoded.revision, &encoded.info);
            assert_eq!(again, read, "revision {revision} of {info:02x?}");
        }
        for spec in Target::ALL {
            let read = Target::read(family, spec.names()[0], revision, &info);
            read.print(&mut text);
            let encoded = read.encode(family).unwrap();
            let again = Target::read(family, encoded.name, encoded.revision, &encoded.info);
            assert_eq!(again, read, "revision {revision} of {info:02x?}");
        }
    }
}
