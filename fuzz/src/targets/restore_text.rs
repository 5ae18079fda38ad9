//! The text of `iptables-restore`, applied to legacy tables without a kernel: the resulting tables are read
//! back, and all their rules are printed.

use std::sync::LazyLock;

use chainwright::fuzzing::restore_in_memory;
use chainwright::iptables::text::RestoreOptions;
use chainwright::iptables::{Family, legacy::decode};
use chainwright::legacy::{self, Info, Table};

use super::assert_prints_and_parses;
use super::iptables_legacy::info_length;
use crate::Target;
use crate::mutate::InputFormat;
use crate::seeds::file;

/// The target.
pub const TARGET: Target = Target {
    name: "restore_text",
    input_format: InputFormat::Text,
    run,
};

fn table(family: legacy::Family, name: &str) -> Table {
    let bytes = file(&format!("tests/data/legacy/{name}"));
    let (info, entries) = bytes.split_at(info_length(family));
    let info = Info::from_bytes(family, info).expect("invalid captured table");
    Table::from_bytes(info, entries).expect("invalid captured table")
}

/// The captured tables to which the text is applied.
static TABLES: LazyLock<[Vec<(Family, Table)>; 2]> = LazyLock::new(|| {
    let (v4, v6) = (legacy::Family::Ipv4, legacy::Family::Ipv6);
    [
        vec![
            (Family::Ipv4, table(v4, "ipv4-filter.bin")),
            (Family::Ipv4, table(v4, "ipv4-nat-initial.bin")),
        ],
        vec![
            (Family::Ipv6, table(v6, "ipv6-filter-initial.bin")),
            (Family::Ipv6, table(v6, "ipv6-mangle.bin")),
        ],
    ]
});

fn run(input: &[u8]) {
    for tables in &*TABLES {
        let family = tables[0].0;
        for noflush in [false, true] {
            let options = RestoreOptions {
                noflush,
                counters: true,
                ..RestoreOptions::default()
            };
            let (restored, replacements) = match restore_in_memory(tables, input, &options) {
                Ok(done) => done,
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    continue;
                }
            };
            let lines = input.split(|byte| *byte == b'\n').count();
            assert!(restored.tables <= lines && restored.chains <= lines);
            for table in replacements.into_iter().flatten() {
                let table = table.to_table().expect("cannot read the written table");
                for rule in table.chains().flat_map(|chain| chain.rules()) {
                    if let Ok(entry) = decode(&rule) {
                        assert_prints_and_parses(family, &entry.rule);
                    }
                }
            }
        }
    }
}
