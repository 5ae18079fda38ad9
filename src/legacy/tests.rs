//! Reads tables that a kernel sent (`tests/data/legacy`, captured by `capture.sh` there), also
//! truncated, changed or malformed.
//!
//! This is one file because all tests use the same captures and helpers.

use std::fmt::Write;

use super::*;

/// A captured table: the reply to `GET_INFO`, then the entries.
pub(super) struct Captured {
    family: Family,
    bytes: &'static [u8],
}

macro_rules! captured {
    ($name:ident, $family:ident, $file:literal) => {
        pub(super) const $name: Captured = Captured {
            family: Family::$family,
            bytes: include_bytes!(concat!("../../tests/data/legacy/", $file)),
        };
    };
}

captured!(IPV4_NAT_INITIAL, Ipv4, "ipv4-nat-initial.bin");
captured!(IPV4_FILTER, Ipv4, "ipv4-filter.bin");
captured!(IPV6_FILTER_INITIAL, Ipv6, "ipv6-filter-initial.bin");
captured!(IPV6_MANGLE, Ipv6, "ipv6-mangle.bin");
captured!(ARP_FILTER_INITIAL, Arp, "arp-filter-initial.bin");
captured!(ARP_FILTER, Arp, "arp-filter.bin");

pub(super) const ALL: [&Captured; 6] = [
    &IPV4_NAT_INITIAL,
    &IPV4_FILTER,
    &IPV6_FILTER_INITIAL,
    &IPV6_MANGLE,
    &ARP_FILTER_INITIAL,
    &ARP_FILTER,
];

impl Captured {
    fn info_size(&self) -> usize {
        self.family.layout().getinfo
    }

    pub(super) fn read(&self) -> Table {
        self.read_changed(|_, _| ()).unwrap()
    }

    /// Reads the table after changes to the reply to `GET_INFO` and to the entries.
    pub(super) fn read_changed(
        &self,
        change: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>),
    ) -> Result<Table, Malformed> {
        let (info, entries) = self.bytes.split_at(self.info_size());
        let (mut info, mut entries) = (info.to_vec(), entries.to_vec());
        change(&mut info, &mut entries);
        Table::from_bytes(Info::from_bytes(self.family, &info)?, &entries)
    }
}

fn set_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_ne_bytes());
}

pub(super) fn set_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
}

/// Returns a rule of a chain.
fn rule<'t>(table: &'t Table, chain: &str, position: usize) -> RuleRef<'t> {
    table.chain(chain).unwrap().rules().nth(position).unwrap()
}

/// Formats the complete content of a table.
pub(super) fn describe(table: &Table) -> String {
    let mut text = String::new();
    for chain in table.chains() {
        write!(text, "{}", chain.name()).unwrap();
        if let Some(Builtin {
            hook,
            policy,
            counters,
        }) = chain.builtin()
        {
            write!(text, " ({hook:?}, {policy} {counters})").unwrap();
        }
        writeln!(text, ": {}", chain.rule_count()).unwrap();
        for rule in chain.rules() {
            write!(text, "  {}", rule.counters()).unwrap();
            describe_header(&mut text, rule.header());
            for extension in rule.matches() {
                match extension {
                    Ok(extension) => write!(
                        text,
                        " {}:{}/{}",
                        extension.name(),
                        extension.revision(),
                        extension.data().len()
                    ),
                    Err(malformed) => write!(text, " ({malformed})"),
                }
                .unwrap();
            }
            match rule.target() {
                Ok(Target::Extension(extension)) => writeln!(
                    text,
                    " {}:{}/{}",
                    extension.name(),
                    extension.revision(),
                    extension.data().len()
                ),
                Ok(target) => writeln!(text, " {target:?}"),
                Err(malformed) => writeln!(text, " ({malformed})"),
            }
            .unwrap();
        }
    }
    text
}

fn describe_header(text: &mut String, header: Header<'_>) {
    let not = |inverted: bool| if inverted { "!" } else { "" };
    let mut addresses = |source: &dyn std::fmt::Display, destination: &dyn std::fmt::Display| {
        write!(text, " {source} > {destination}").unwrap();
    };
    match header {
        Header::Ipv4(header) => {
            let inverted = header.inversions();
            let flags = header.flags();
            addresses(
                &format_args!(
                    "{}{}",
                    not(inverted.contains(Inversions::SOURCE)),
                    header.source()
                ),
                &header.destination(),
            );
            write!(
                text,
                " {}{}>{} {}{}{}",
                not(inverted.contains(Inversions::IN_INTERFACE)),
                header.in_interface(),
                header.out_interface(),
                not(inverted.contains(Inversions::PROTOCOL)),
                header.protocol(),
                if flags.contains(Ipv4Flags::FRAGMENT) {
                    " fragment"
                } else {
                    ""
                },
            )
            .unwrap();
        }
        Header::Ipv6(header) => {
            let inverted = header.inversions();
            addresses(
                &header.source(),
                &format_args!(
                    "{}{}",
                    not(inverted.contains(Inversions::DESTINATION)),
                    header.destination()
                ),
            );
            let (from, to) = (header.in_interface(), header.out_interface());
            write!(text, " {from}>{to} {}", header.protocol()).unwrap();
        }
        Header::Arp(header) => {
            let inverted = header.inversions();
            addresses(
                &header.source(),
                &format_args!(
                    "{}{}",
                    not(inverted.contains(ArpInversions::DESTINATION)),
                    header.destination()
                ),
            );
            write!(
                text,
                " {}>{} op {} hln {}",
                header.in_interface(),
                header.out_interface(),
                header.operation(),
                header.hardware_length(),
            )
            .unwrap();
            if !header.source_hardware().is_any() {
                write!(text, " {:02x?}", &header.source_hardware().address[..6]).unwrap();
            }
        }
    }
}

/// Calls every function of a table. The results do not matter: nothing may panic or loop forever.
pub(super) fn exercise(table: &Table) {
    let _ = (describe(table), format!("{table:?}"));
    let mut entries = 1; // the end
    let mut rules = 0;
    for chain in table.chains() {
        let _ = format!("{chain:?}");
        entries += chain.rule_count()
            + usize::from(chain.hook().is_none())
            + usize::from(chain.final_entry().is_some());
        assert_eq!(chain.rules().count(), chain.rule_count());
        assert_eq!(table.chain_at(chain.offset()), Some(chain));
        for rule in chain.rules().chain(chain.final_entry()) {
            let _ = format!("{rule:?}");
            assert_eq!(
                rule.bytes(),
                &table.entries()[rule.offset()..][..rule.bytes().len()]
            );
            if let Ok(target) = rule.target() {
                let _ = target.chain().map(|chain| chain.name());
            }
            rules += 1;
        }
    }
    assert!(rules < entries);
    assert_eq!(entries, table.info().num_entries() as usize);
}

#[test]
fn initial_tables() {
    assert_eq!(
        describe(&IPV4_NAT_INITIAL.read()),
        "PREROUTING (Prerouting, ACCEPT [0:0]): 0\n\
         INPUT (Input, ACCEPT [0:0]): 0\n\
         OUTPUT (Output, ACCEPT [0:0]): 0\n\
         POSTROUTING (Postrouting, ACCEPT [0:0]): 0\n"
    );
    assert_eq!(
        describe(&IPV6_FILTER_INITIAL.read()),
        "INPUT (Input, ACCEPT [0:0]): 0\n\
         FORWARD (Forward, ACCEPT [0:0]): 0\n\
         OUTPUT (Output, ACCEPT [0:0]): 0\n"
    );
    assert_eq!(
        describe(&ARP_FILTER_INITIAL.read()),
        "INPUT (Input, ACCEPT [0:0]): 0\n\
         OUTPUT (Output, ACCEPT [0:0]): 0\n\
         FORWARD (Forward, ACCEPT [0:0]): 0\n"
    );
}

#[test]
fn an_ipv4_table() {
    let table = IPV4_FILTER.read();
    assert_eq!(
        describe(&table),
        "\
INPUT (Input, DROP [5:300]): 5
  [1:60] 192.0.2.0/255.255.255.0 > 198.51.100.7/255.255.255.255 eth0>+ 6 tcp:0/16 comment:0/256 Accept
  [2:120] !203.0.113.0/255.255.255.128 > 0.0.0.0/0.0.0.0 !eth+>+ !17 Jump(\"JUMPED\")
  [3:180] 0.0.0.0/0.0.0.0 > 0.0.0.0/0.0.0.0 +>+ 0 fragment Goto(\"THE-LONGEST-CHAIN-NAME-HAS28\")
  [4:240] 0.0.0.0/0.0.0.0 > 0.0.0.0/0.0.0.0 +>+ 0 comment:0/256 FallThrough
  [5:300] 0.0.0.0/0.0.0.0 > 0.0.0.0/0.0.0.0 +>+ 0 Queue
FORWARD (Forward, ACCEPT [0:0]): 2
  [6:360] 0.0.0.0/0.0.0.0 > 0.0.0.0/0.0.0.0 +>wg0 0 LOG:0/32
  [7:420] 0.0.0.0/0.0.0.0 > 0.0.0.0/0.0.0.0 +>+ 0 Jump(\"EMPTY\")
OUTPUT (Output, ACCEPT [18446744073709551615:18446744073709551614]): 0
EMPTY: 0
JUMPED: 3
  [8:480] 0.0.0.0/0.0.0.0 > 0.0.0.0/0.0.0.0 +>+ 1 REJECT:0/8
  [9:540] 0.0.0.0/0.0.0.0 > 0.0.0.0/0.0.0.0 +>+ 0 Return
  [10:600] 0.0.0.0/0.0.0.0 > 0.0.0.0/0.0.0.0 +>+ 0 Drop
THE-LONGEST-CHAIN-NAME-HAS28: 1
  [11:660] 0.0.0.0/0.0.0.0 > 0.0.0.0/0.0.0.0 +>+ 0 MARK:2/8
final-return: 2
  [12:720] 0.0.0.0/0.0.0.0 > 192.0.2.1/255.255.255.255 +>+ 0 Drop
  [13:780] 0.0.0.0/0.0.0.0 > 0.0.0.0/0.0.0.0 +>+ 0 Return
"
    );
    exercise(&table);

    // The indices of the entries, by which the kernel orders counters, are consecutive.
    let numbers: Vec<_> = table
        .chains()
        .flat_map(|chain| chain.rules().chain(chain.final_entry()))
        .map(|rule| rule.number())
        .collect();
    assert_eq!(
        numbers,
        [
            0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 14, 15, 16, 18, 19, 21, 22, 23
        ]
    );
    // All bytes belong to a chain, or to the end of the table.
    let bytes: usize = table.chains().map(|chain| chain.bytes().len()).sum();
    assert_eq!(table.entries().len() - bytes, 112 + 64);

    let comment = rule(&table, "INPUT", 0).matches().nth(1).unwrap().unwrap();
    assert!(comment.data().starts_with(b"two matches\0"));
    assert!(comment.data().as_ptr().cast::<u64>().is_aligned());
    assert_eq!(table.builtin(Hook::Output).unwrap().name(), "OUTPUT");
    assert!(table.builtin(Hook::Prerouting).is_none());
    assert!(table.chain("NONE").is_none());
}

#[test]
fn an_ipv6_table() {
    let table = IPV6_MANGLE.read();
    assert_eq!(
        describe(&table),
        "\
PREROUTING (Prerouting, ACCEPT [1:2]): 1
  [11:12] 2001:db8::/ffff:ffff:: > !2001:db8::1/ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff eth0>+ 6 tcp:0/16 Jump(\"MARKS\")
INPUT (Input, ACCEPT [3:4]): 0
FORWARD (Forward, DROP [5:6]): 0
OUTPUT (Output, ACCEPT [7:8]): 0
POSTROUTING (Postrouting, ACCEPT [9:10]): 1
  [13:14] ::/:: > ::/:: +>eth+ 58 Goto(\"MARKS\")
MARKS: 2
  [15:16] ::/:: > ::/:: +>+ 0 mark:1/16 Drop
  [17:18] ::/:: > ::/:: +>+ 0 MARK:2/8
"
    );
    exercise(&table);
    let header = rule(&table, "PREROUTING", 0).header();
    let header = header.as_ipv6().unwrap();
    assert_eq!(header.flags(), Ipv6Flags::PROTOCOL);
    assert_eq!(header.inversions(), Inversions::DESTINATION);
}

#[test]
fn an_arp_table() {
    let table = ARP_FILTER.read();
    assert_eq!(
        describe(&table),
        "\
INPUT (Input, ACCEPT [0:0]): 1
  [0:0] 192.0.2.1/255.255.255.255 > 0.0.0.0/0.0.0.0 eth0>+ op 1/65535 hln 0/0 Jump(\"GATEWAY\")
OUTPUT (Output, ACCEPT [0:0]): 1
  [0:0] 0.0.0.0/0.0.0.0 > !198.51.100.0/255.255.255.0 +>eth+ op 0/0 hln 6/255 mangle:0/48
FORWARD (Forward, DROP [0:0]): 0
GATEWAY: 2
  [0:0] 0.0.0.0/0.0.0.0 > 0.0.0.0/0.0.0.0 +>+ op 0/0 hln 0/0 [02, 00, 00, 00, 00, 01] Accept
  [0:0] 0.0.0.0/0.0.0.0 > 0.0.0.0/0.0.0.0 +>+ op 0/0 hln 0/0 Drop
"
    );
    exercise(&table);
}

#[test]
fn every_truncation_is_an_error() {
    for captured in ALL {
        let size = captured.bytes.len() - captured.info_size();
        for length in 0..size {
            // With a consistent size in the information, so that the entries are checked.
            let error = captured
                .read_changed(|info, entries| {
                    let at = info.len() - 4;
                    set_u32(info, at, length as u32);
                    entries.truncate(length);
                })
                .unwrap_err();
            assert!(error.offset <= length, "{length}: {error}");
            // With an inconsistent size.
            let error = captured
                .read_changed(|_, entries| entries.truncate(length))
                .unwrap_err();
            assert_eq!(
                error.problem,
                Problem::Size {
                    expected: size as u32,
                    found: length
                }
            );
        }
        for length in 0..captured.info_size() {
            let error = captured
                .read_changed(|info, _| info.truncate(length))
                .unwrap_err();
            assert!(
                matches!(error.problem, Problem::InfoSize { .. }),
                "{length}: {error}"
            );
        }
    }
}

/// Pseudo-random numbers that are the same in each run (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }
}

#[test]
fn changed_bytes_never_panic() {
    let mut random = Random(0x6368_6169_6e77_7269);
    let (mut understood, mut refused) = (0, 0);
    for captured in ALL {
        for _ in 0..4000 {
            let result = captured.read_changed(|info, entries| {
                for _ in 0..=random.below(4) {
                    // Once in eight times the information is changed.
                    let bytes = if random.below(8) == 0 {
                        &mut *info
                    } else {
                        &mut *entries
                    };
                    let at = random.below(bytes.len());
                    bytes[at] = match random.below(4) {
                        0 => 0,
                        1 => 0xff,
                        2 => bytes[at] ^ 1 << random.below(8),
                        _ => random.below(256) as u8,
                    };
                }
            });
            match result {
                Ok(table) => {
                    understood += 1;
                    exercise(&table);
                }
                Err(malformed) => {
                    refused += 1;
                    assert!(!malformed.to_string().is_empty());
                }
            }
        }
    }
    assert!(
        understood > 1000 && refused > 1000,
        "{understood} understood, {refused} refused"
    );
}

/// Makes a change, and returns the resulting offset and problem.
#[track_caller]
fn refused(
    captured: &Captured,
    change: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>),
) -> (usize, Problem) {
    let malformed = captured.read_changed(change).unwrap_err();
    (malformed.offset, malformed.problem)
}

#[test]
fn errors_name_invalid_entries() {
    let table = IPV4_FILTER.read();
    let second = rule(&table, "INPUT", 1).offset();
    let left = table.entries().len() - second;
    let layout = Family::Ipv4.layout();
    let set_target = |value: u16| {
        refused(&IPV4_FILTER, |_, entries| {
            set_u16(entries, second + layout.target_offset, value)
        })
    };
    let set_next = |value: u16| {
        refused(&IPV4_FILTER, |_, entries| {
            set_u16(entries, second + layout.next_offset, value)
        })
    };

    // The target within the header, beyond the entry, or not aligned. The entry has 152 bytes.
    for value in [0, 104, 128, 0xfff8] {
        let problem = Problem::TargetOffset {
            target_offset: value,
            next_offset: 152,
        };
        assert_eq!(set_target(value), (second, problem));
    }
    assert_eq!(
        set_target(116),
        (second, Problem::Misaligned { value: 116 })
    );
    // The next entry at the entry itself, within it, not aligned, or beyond the table.
    for value in [0, 112, 136] {
        let problem = Problem::TargetOffset {
            target_offset: 112,
            next_offset: value,
        };
        assert_eq!(set_next(value), (second, problem));
    }
    assert_eq!(set_next(156), (second, Problem::Misaligned { value: 156 }));
    assert_eq!(
        set_next(0xfff8),
        (
            second,
            Problem::NextOffset {
                next_offset: 0xfff8,
                left
            }
        )
    );
}

#[test]
fn errors_name_invalid_chains() {
    let table = IPV4_FILTER.read();
    let input = Hook::Input;
    let input_policy = table.info().underflow(input).unwrap();
    let first = |chain: &str| rule(&table, chain, 0).offset() as u32;
    const HOOK_ENTRY: usize = 36;
    const UNDERFLOW: usize = 56;
    const NUM_ENTRIES: usize = 76;

    // INPUT starts within an entry, beyond the end, at a chain's head, at the table's end.
    let size = table.info().size();
    let head = table.chain("JUMPED").unwrap().offset() as u32 - 176;
    for (start, place) in [(8, 0), (0xffff_fff8, 0), (head, 0), (size - 176, 0)] {
        let (offset, problem) =
            refused(&IPV4_FILTER, |info, _| set_u32(info, HOOK_ENTRY + 4, start));
        // For each of these starts, the first entry belongs to no chain.
        assert_eq!((offset, problem), (place, Problem::OutsideChains));
    }
    // FORWARD: then INPUT ends elsewhere, or never.
    let (offset, problem) = refused(&IPV4_FILTER, |info, _| {
        set_u32(info, HOOK_ENTRY + 8, first("JUMPED"))
    });
    assert_eq!(
        offset as u32,
        table.info().underflow(Hook::Forward).unwrap()
    );
    assert_eq!(
        problem,
        Problem::Underflow {
            hook: input,
            underflow: input_policy
        }
    );
    // OUTPUT at a chain's head.
    let (offset, problem) = refused(&IPV4_FILTER, |info, _| {
        // FORWARD takes over the policy of OUTPUT.
        set_u32(
            info,
            UNDERFLOW + 8,
            table.info().underflow(Hook::Output).unwrap(),
        );
        set_u32(info, HOOK_ENTRY + 12, head);
    });
    assert_eq!(
        (offset as u32, problem),
        (head, Problem::HookEntry { hook: Hook::Output })
    );
    // A built-in chain without a start, which is treated as nonexistent.
    let (_, problem) = refused(&IPV4_FILTER, |info, _| {
        set_u32(info, HOOK_ENTRY - 4, 0b1111);
        set_u32(info, HOOK_ENTRY, u32::MAX);
        set_u32(info, UNDERFLOW, u32::MAX);
    });
    let hook = Hook::Prerouting;
    assert_eq!(problem, Problem::HookEntry { hook });
    // Two built-in chains with the same start.
    let (_, problem) = refused(&IPV4_FILTER, |info, _| set_u32(info, HOOK_ENTRY + 8, 0));
    assert!(
        matches!(
            problem,
            Problem::Underflow { .. } | Problem::HookEntry { .. }
        ),
        "{problem}"
    );

    // A policy at another offset, with a condition, or with a return.
    let (offset, problem) = refused(&IPV4_FILTER, |info, _| set_u32(info, UNDERFLOW + 4, 0));
    assert_eq!(offset as u32, input_policy);
    assert_eq!(
        problem,
        Problem::Underflow {
            hook: input,
            underflow: 0
        }
    );
    let policy = input_policy as usize;
    let (offset, problem) = refused(&IPV4_FILTER, |_, entries| entries[policy] = 1);
    assert_eq!((offset, problem), (policy, Problem::Policy { hook: input }));
    let verdict = policy + 112 + 32;
    let (offset, problem) = refused(&IPV4_FILTER, |_, entries| {
        set_u32(entries, verdict, -5i32 as u32)
    });
    assert_eq!((offset, problem), (policy, Problem::Policy { hook: input }));

    // No end; too many entries; an unknown hook.
    let end = size as usize - 176;
    let (_, problem) = refused(&IPV4_FILTER, |_, entries| entries[end + 112 + 2] = b'e');
    assert_eq!(problem, Problem::NoEnd);
    let (offset, problem) = refused(&IPV4_FILTER, |info, _| set_u32(info, NUM_ENTRIES, 26));
    assert_eq!(
        (offset, problem),
        (
            size as usize,
            Problem::EntryCount {
                expected: 26,
                found: 25
            }
        )
    );
    let (_, problem) = refused(&IPV4_FILTER, |info, _| set_u32(info, 32, 0x2e));
    assert_eq!(problem, Problem::UnknownHooks { valid_hooks: 0x2e });
    let (_, problem) = refused(&ARP_FILTER, |info, _| set_u32(info, 32, 0xf));
    assert_eq!(problem, Problem::UnknownHooks { valid_hooks: 0xf });
    let (_, problem) = refused(&IPV4_FILTER, |info, _| info[0] = 0);
    assert_eq!(problem, Problem::InfoName);
}

#[test]
fn errors_name_invalid_matches_and_targets() {
    let table = IPV4_FILTER.read();
    let offset = rule(&table, "INPUT", 0).offset();
    let (first, second) = (offset + 112, offset + 112 + 48);
    for (size, problem) in [
        (
            0,
            Problem::ExtensionSize {
                size: 0,
                available: 288,
            },
        ),
        (
            24,
            Problem::ExtensionSize {
                size: 24,
                available: 288,
            },
        ),
        (
            296,
            Problem::ExtensionSize {
                size: 296,
                available: 288,
            },
        ),
        (33, Problem::Misaligned { value: 33 }),
    ] {
        let changed = IPV4_FILTER
            .read_changed(|_, entries| set_u16(entries, second, size))
            .unwrap();
        let matches: Vec<_> = rule(&changed, "INPUT", 0).matches().collect();
        assert_eq!(matches.len(), 2);
        assert_eq!(matches[0].unwrap().name(), "tcp");
        assert_eq!(matches[1], Err(Malformed::new(second, problem)));
        exercise(&changed);
    }
    // The first one swallows the second.
    let changed = IPV4_FILTER
        .read_changed(|_, entries| set_u16(entries, first, 48 + 288))
        .unwrap();
    assert_eq!(rule(&changed, "INPUT", 0).matches().count(), 1);

    // The target of the rule that jumps.
    let jump = rule(&table, "INPUT", 1).offset();
    let target = jump + 112;
    let set = |at: usize, value: u32| {
        let changed = IPV4_FILTER
            .read_changed(|_, entries| set_u32(entries, at, value))
            .unwrap();
        exercise(&changed);
        let rule = rule(&changed, "INPUT", 1);
        rule.target().map(|target| format!("{target:?}"))
    };
    for (size, problem) in [
        (
            24,
            Problem::ExtensionSize {
                size: 24,
                available: 40,
            },
        ),
        (
            48,
            Problem::ExtensionSize {
                size: 48,
                available: 40,
            },
        ),
        (41, Problem::Misaligned { value: 41 }),
    ] {
        assert_eq!(set(target, size), Err(Malformed::new(target, problem)));
    }
    // Jumps outside the table, to a chain's head, into a chain, to a built-in chain.
    let jumped = table.chain("JUMPED").unwrap().offset() as u32;
    let verdict = target + 32;
    for to in [0x7fff_fff8, 1, jumped - 176, jumped + 144] {
        assert_eq!(
            set(verdict, to),
            Err(Malformed::new(jump, Problem::Jump { to }))
        );
    }
    assert_eq!(set(verdict, 0).unwrap(), "Jump(\"INPUT\")");
    // Other verdicts.
    for (word, text) in [
        (-1, "Drop"),
        (-2, "Accept"),
        (-3, "Verdict(-3)"),
        (-4, "Queue"),
        (-5, "Return"),
        (i32::MIN, "Verdict(-2147483648)"),
    ] {
        assert_eq!(set(verdict, word as u32).unwrap(), text);
    }
}

#[test]
fn a_chain_without_its_implicit_return_keeps_all_its_rules() {
    let table = IPV4_FILTER.read();
    let final_entry = table
        .chain("JUMPED")
        .unwrap()
        .final_entry()
        .unwrap()
        .offset();
    // With the verdict DROP, or with a condition.
    for (at, value) in [(final_entry + 112 + 32, -1i32 as u32), (final_entry, 1)] {
        let changed = IPV4_FILTER
            .read_changed(|_, entries| set_u32(entries, at, value))
            .unwrap();
        let chain = changed.chain("JUMPED").unwrap();
        assert_eq!(
            (chain.rule_count(), chain.final_entry().is_some()),
            (4, false)
        );
        assert_eq!(chain.rules().last().unwrap().offset(), final_entry);
        exercise(&changed);
    }
}

#[test]
fn chain_names_may_lack_the_nul_byte() {
    let table = IPV4_FILTER.read();
    let head = table.chain("EMPTY").unwrap().offset() - 176;
    let changed = IPV4_FILTER
        .read_changed(|_, entries| entries[head + 112 + 32..][..32].fill(b'x'))
        .unwrap();
    assert_eq!(
        changed.chains().nth(3).unwrap().name(),
        "x".repeat(30).as_str()
    );
}

#[test]
fn a_table_can_be_used_again() {
    let mut table = IPV4_FILTER.read();
    let small = IPV4_NAT_INITIAL.read();
    let receive = |table: &mut Table, from: &Table| {
        let filled: Result<(), ()> = table
            .receive(from.info(), |buffer| {
                assert_eq!(&buffer[..32], from.name().padded());
                buffer[40..].copy_from_slice(from.entries());
                Ok(())
            })
            .unwrap();
        filled.unwrap();
    };
    // A smaller one in the same memory, then a larger one of another family.
    let memory = table.entries().as_ptr();
    receive(&mut table, &small);
    assert_eq!(table.chains().count(), 0, "not yet indexed");
    table.index(*small.info()).unwrap();
    assert_eq!(table.entries().as_ptr(), memory);
    assert_eq!(describe(&table), describe(&small));
    let arp = ARP_FILTER.read();
    receive(&mut table, &arp);
    table.index(*arp.info()).unwrap();
    assert_eq!(describe(&table), describe(&arp));

    // A malformed table leaves nothing behind.
    let wrong = Info::from_bytes(Family::Arp, &{
        let mut info = ARP_FILTER.bytes[..ARP_FILTER.info_size()].to_vec();
        set_u32(&mut info, 60, 1);
        info
    })
    .unwrap();
    receive(&mut table, &arp);
    assert!(table.index(wrong).is_err());
    assert_eq!((table.chains().count(), table.entries().len()), (0, 0));
    assert_eq!(
        format!("{table:?}"),
        "Table { family: Arp, name: \"filter\", entries: 0, bytes: 0, chains: 0 }"
    );
}

#[test]
fn an_empty_table_has_nothing() {
    for family in Family::ALL {
        let table = Table::empty(family);
        assert_eq!((table.entries(), table.chains().len()), (&[][..], 0));
        assert!(table.chain("INPUT").is_none());
        let info = Info::empty(family, TableName::new("filter").unwrap());
        assert_eq!(
            Table::from_bytes(info, &[]).unwrap_err(),
            Malformed::new(0, Problem::NoEnd)
        );
    }
}

#[test]
fn errors_name_offset_and_problem() {
    let problem = Malformed::new(176, Problem::Jump { to: 8 });
    let table = TableName::new("nat").unwrap();
    let error = Error::Malformed {
        family: Family::Ipv6,
        table,
        problem,
    };
    assert_eq!(
        error.to_string(),
        "cannot parse the legacy IPv6 table nat: at offset 176: a jump to 8, which is not the start of a chain"
    );
    let error = Error::NotBuilt {
        family: Family::Arp,
    };
    assert_eq!(
        error.to_string(),
        "this kernel has no legacy ARP tables (not built in, or module arp_tables is not loaded)"
    );
}
