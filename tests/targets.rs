//! Targets: whatever bytes are read as a value, the value is written, read again, printed and
//! parsed as itself.

use bstr::ByteSlice;
use chainwright::iptables::{self, Family, Rule};
use chainwright::xt::{Target, Text};
use proptest::prelude::*;

/// Mostly zeros, as in real data.
fn data() -> impl Strategy<Value = Vec<u8>> {
    let letter = prop::sample::select(b"a!-\"\\'\n \x0b".as_slice());
    let byte = prop_oneof![4 => 0..=8_u8, 1 => letter, 1 => any::<u8>()];
    let changes = prop::collection::vec((0..48_usize, byte), 0..6);
    (0..=2_u8, changes, 0..=80_usize).prop_map(|(first, changes, length)| {
        let mut data = vec![0; 80];
        // The number of ranges, in the layouts that have one.
        data[0] = first;
        for (at, byte) in changes {
            data[at] = byte;
        }
        // Longer or shorter than it ought to be, now and then.
        data.truncate(if length < 60 { 80 } else { length - 59 });
        data
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_is_written_and_printed_as_itself(data in data(), revision in 0..=4_u8) {
        for spec in Target::ALL {
            for family in [Family::Ipv4, Family::Ipv6] {
                let value = Target::read(family, spec.names()[0], revision, &data);
                if matches!(value, Target::Opaque(_)) {
                    continue;
                }
                let encoded = value.encode(family);
                prop_assert_eq!(encoded.info.len() % 8, 0);
                let again = Target::read(family, encoded.name, encoded.revision, &encoded.info);
                prop_assert_eq!(&again, &value);
                let mut text = Text::new();
                value.print(&mut text);
                let line = [b"-p tcp", text.as_bytes()].concat();
                match Rule::parse(family, &line) {
                    Ok(rule) => {
                        prop_assert_eq!(rule.target, iptables::Target::Extension(value));
                    }
                    Err(fault) => {
                        let line = line.as_bstr();
                        prop_assert!(false, "{}: {}", line, fault);
                    }
                }
            }
        }
    }
}
