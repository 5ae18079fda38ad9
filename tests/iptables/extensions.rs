//! All registered extensions: a value that is read from any bytes is written and read again as
//! itself, and its text is equivalent.

use std::collections::BTreeMap;

use crate::common::rules::{files, parse};
use bstr::ByteSlice;
use chainwright::iptables::{Family, Rule, Target};
use chainwright::xt::{self, SetName, SetNames, Text};
use proptest::prelude::*;

/// Bytes that resemble extensions' data: mostly zeros, small numbers, and letters.
fn data() -> impl Strategy<Value = Vec<u8>> {
    let letter = prop::sample::select(b"a!-\"\\'\n \x0b".as_slice());
    let byte = prop_oneof![4 => 0..=8_u8, 1 => letter, 1 => any::<u8>(), 1 => Just(0xff)];
    let length = prop_oneof![3 => Just(600_usize), 1 => 0..600_usize];
    let changes = prop::collection::vec((0..120_usize, byte), 0..10);
    (length, changes).prop_map(|(length, changes)| {
        let mut data = vec![0; length];
        for (at, byte) in changes {
            if let Some(place) = data.get_mut(at) {
                *place = byte;
            }
        }
        data
    })
}

/// Names for the indexes of sets.
struct Names;

impl SetNames for Names {
    type Error = ();

    fn index(&mut self, _: Family, name: &SetName) -> Result<u16, ()> {
        let digits = name.as_bytes().strip_prefix(b"set").ok_or(())?;
        digits.to_str().map_err(drop)?.parse().map_err(drop)
    }

    fn name(&mut self, index: u16) -> Result<SetName, ()> {
        SetName::new(format!("set{index}")).ok_or(())
    }
}

/// A rule with only this match, and the protocol that it requires.
fn with_match(family: Family, extension: xt::Match) -> Rule {
    let protocol = match extension.name() {
        "tcp" | "tcpmss" | "multiport" | "ecn" => "-p tcp",
        "udp" => "-p udp",
        "sctp" => "-p sctp",
        "dccp" => "-p dccp",
        "icmp" => "-p icmp",
        "icmp6" => "-p ipv6-icmp",
        "ah" => "-p ah",
        "esp" => "-p esp",
        "ipcomp" => "-p 108",
        "mh" => "-p 135",
        _ => "",
    };
    Rule::parse(family, protocol).unwrap().with(extension)
}

/// Checks one value. Returns what is wrong; counts those whose text can be parsed.
fn check(family: Family, rule: &Rule, parsed: &mut usize) -> Option<String> {
    let mut text = Text::new();
    let mut named = rule.clone();
    if named.name_sets(&mut Names).is_err() {
        return None;
    }
    named.print(&mut text);
    // The real tool or the kernel refuses what the parser refuses.
    let mut again = Rule::parse(family, text.as_bytes()).ok()?;
    *parsed += 1;
    again.resolve_sets(family, &mut Names).unwrap();
    (again != *rule).then(|| {
        let text = text.as_bytes().as_bstr();
        format!("{rule:?}\n  prints as {text}\n  which says {again:?}")
    })
}

/// Checks these bytes as the data of an extension of this kind.
macro_rules! check_bytes {
    ($Kind:ident, $rule:expr, $family:expr, $name:expr, $revision:expr, $info:expr, $parsed:expr) => {{
        let (family, name, info) = ($family, $name, $info);
        let read = xt::$Kind::read(family, name, $revision, info);
        if matches!(read, xt::$Kind::Opaque(_)) {
            None
        } else {
            let written = read.encode(family).unwrap();
            let again = xt::$Kind::read(family, name, written.revision, &written.info);
            if written.info.len() % 8 != 0 || again != read {
                Some(format!("{read:?}\n  is written and read as {again:?}"))
            } else {
                drop(written);
                check(family, &$rule(read), $parsed)
            }
        }
    }};
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_extension_round_trips_as_bytes_and_text(data in data(), revision in 0..=4_u8) {
        let mut parsed = 0;
        for family in Family::ALL {
            for spec in xt::Match::ALL {
                let rule = |read| with_match(family, read);
                let name = spec.names()[0];
                let wrong = check_bytes!(Match, rule, family, name, revision, &data, &mut parsed);
                prop_assert!(wrong.is_none(), "{}", wrong.unwrap());
            }
            for spec in xt::Target::ALL {
                let tcp = Rule::parse(family, "-p tcp").unwrap();
                let rule = |read| Rule { target: Target::Extension(read), ..tcp.clone() };
                let name = spec.names()[0];
                let wrong = check_bytes!(Target, rule, family, name, revision, &data, &mut parsed);
                prop_assert!(wrong.is_none(), "{}", wrong.unwrap());
            }
        }
    }
}

/// Checks an extension of a rule after each change of one byte of its data: collects errors by the
/// extension's name, and counts the changes.
macro_rules! check_changes {
    ($Kind:ident, $rule:expr, $family:expr, $encoded:expr, $wrong:expr, $typed:expr, $parsed:expr) => {{
        let encoded: xt::Encoded<'_> = $encoded;
        let (name, revision) = (encoded.name.to_owned(), encoded.revision);
        let mut info = encoded.info.to_vec();
        for byte in (0..info.len()).step_by(if info.len() > 96 { 3 } else { 1 }) {
            let before = info[byte];
            for value in VALUES {
                info[byte] = value;
                *$typed += 1;
                let fault = check_bytes!($Kind, $rule, $family, &name, revision, &info, $parsed);
                if let Some(fault) = fault {
                    $wrong.entry(name.clone()).or_insert(fault);
                }
            }
            info[byte] = before;
        }
    }};
}

/// The values that replace a byte.
const VALUES: [u8; 5] = [0, 4, b'\n', b'"', 0xff];

/// An index for every set: the length of its name.
struct Lengths;

impl SetNames for Lengths {
    type Error = ();

    fn index(&mut self, _: Family, name: &SetName) -> Result<u16, ()> {
        u16::try_from(name.as_bytes().len()).map_err(drop)
    }

    fn name(&mut self, _: u16) -> Result<SetName, ()> {
        Err(())
    }
}

/// Changes every byte of every extension in the test rules.
#[test]
fn changed_bytes_decode_to_their_meaning() {
    let mut wrong = BTreeMap::new();
    let (mut typed, mut parsed) = (0, 0);
    for file in files() {
        for family in Family::ALL {
            let sections = file.sections(family, "legacy");
            for (_, line) in sections.iter().flat_map(|section| &section.rules) {
                let mut rule = parse(family, line).unwrap();
                rule.resolve_sets(family, &mut Lengths).unwrap();
                for (at, one) in rule.matches.iter().enumerate() {
                    let changed = |read| {
                        let mut rule = rule.clone();
                        rule.matches[at] = read;
                        rule
                    };
                    let encoded = one.encode(family).unwrap();
                    check_changes!(
                        Match,
                        changed,
                        family,
                        encoded,
                        wrong,
                        &mut typed,
                        &mut parsed
                    );
                }
                if let Target::Extension(target) = &rule.target {
                    let changed = |read| Rule {
                        target: Target::Extension(read),
                        ..rule.clone()
                    };
                    let encoded = target.encode(family).unwrap();
                    check_changes!(
                        Target,
                        changed,
                        family,
                        encoded,
                        wrong,
                        &mut typed,
                        &mut parsed
                    );
                }
            }
        }
    }
    let faults: Vec<_> = wrong
        .into_iter()
        .map(|(name, fault)| format!("{name}: {fault}"))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(parsed > typed / 4, "only {parsed} of {typed} can be parsed");
}

/// Changes the first match of a rule, or its target.
macro_rules! changed {
    ($family:ident, $line:literal, $Kind:ident::$Variant:ident, $value:ident => $change:expr) => {{
        let rule = parse(Family::$family, $line).unwrap();
        let target = match rule.target {
            Target::Extension(target) => Some(target),
            _ => None,
        };
        let all = (rule.matches.into_iter().next(), target);
        let mut value = changed!(@of $Kind all);
        let xt::$Kind::$Variant($value) = &mut value else {
            panic!("{}: {value:?}", $line);
        };
        $change;
        let family = Family::$family;
        let encoded = value.encode(family).map(|encoded| encoded.info.to_vec());
        ($line, encoded.map_err(|error| error.to_string()))
    }};
    (@of Match $all:ident) => { $all.0.unwrap() };
    (@of Target $all:ident) => { $all.1.unwrap() };
}

/// Values that a program may construct but that do not fit into the kernel's data are not cut.
#[test]
fn rejects_values_that_do_not_fit_naming_the_option() {
    let v6: std::net::IpAddr = "fd00::1".parse().unwrap();
    let long = |length| bstr::BString::from(vec![b'x'; length]);
    let again =
        |list: &mut Vec<xt::matches::u32::U32Test>, number| *list = vec![list[0].clone(); number];
    for (given, message) in [
        (
            changed!(Ipv4, "-p tcp -m multiport --dports 1", Match::Multiport, m => m.ports = vec![1..=1; 16]),
            "multiport: --dports: 16 ports are too many (a range counts as two): at most 15 fit",
        ),
        (
            changed!(Ipv4, "-p tcp -m multiport --ports 1", Match::Multiport, m => m.ports = vec![1..=2; 8]),
            "multiport: --ports: 16 ports are too many",
        ),
        (
            changed!(Ipv4, "-m u32 --u32 0=1", Match::U32, m => again(&mut m.tests, 12)),
            "u32: --u32: 12 comparisons joined by && are too many: at most 11 fit",
        ),
        (
            changed!(Ipv4, "-m u32 --u32 0&1=1", Match::U32, m => m.tests[0].steps = vec![m.tests[0].steps[0]; 11]),
            "u32: --u32: 11 steps are too many: at most 10 fit",
        ),
        (
            changed!(Ipv4, "-m u32 --u32 0=1", Match::U32, m => m.tests[0].ranges = vec![1..=1; 12]),
            "u32: --u32: 12 ranges are too many: at most 11 fit",
        ),
        (
            changed!(Ipv4, "-m policy --dir in --pol ipsec --strict --reqid 1", Match::Policy, m => {
                let xt::matches::policy::PolicyRequirement::Strict(elements) = &mut m.wanted else { panic!() };
                *elements = vec![elements[0].clone(); 5];
            }),
            "policy: --next: 5 elements are too many: at most 4 fit",
        ),
        (
            changed!(Ipv4, "-m policy --dir in --pol ipsec --mode tunnel --tunnel-src 10.0.0.1", Match::Policy, m => {
                let xt::matches::policy::PolicyRequirement::Any(element) = &mut m.wanted else { panic!() };
                element.tunnel_source.as_mut().unwrap().value.address = v6;
            }),
            "policy: --tunnel-src: fd00::1 is not of the rule's family, IPv4",
        ),
        (
            changed!(Ipv4, "-m bpf --bytecode \"1,6 0 0 0\"", Match::Bpf, m => {
                let xt::matches::bpf::Bpf::Bytecode(program) = m else { panic!() };
                *program = vec![program[0]; 65];
            }),
            "bpf: --bytecode: 65 instructions are too many: at most 64 fit",
        ),
        (
            changed!(Ipv4, "-m bpf --object-pinned /x", Match::Bpf, m => *m = xt::matches::bpf::Bpf::Pinned(long(512))),
            "bpf: --object-pinned: 512 bytes are too many: at most 511 fit",
        ),
        (
            changed!(Ipv4, "-m bpf --object-pinned /x", Match::Bpf, m => *m = xt::matches::bpf::Bpf::Pinned("a\0b".into())),
            "bpf: --object-pinned: it contains a NUL",
        ),
        (
            changed!(Ipv4, "-m cgroup --path /x", Match::Cgroup, m => *m = xt::matches::cgroup::Cgroup::Path(xt::Negatable::is(long(512)))),
            "cgroup: --path: 512 bytes are too many",
        ),
        (
            changed!(Ipv4, "-m physdev --physdev-in x", Match::Physdev, m => m.port_in = Some(xt::Negatable::is(long(16)))),
            "physdev: --physdev-in: 16 bytes are too many: at most 15 fit",
        ),
        (
            changed!(Ipv4, "-m physdev --physdev-in x", Match::Physdev, m => m.port_in = Some(xt::Negatable::is("a\0".into()))),
            "physdev: --physdev-in: it contains a NUL",
        ),
        (
            changed!(Ipv4, "-m helper --helper x", Match::Helper, m => m.name = long(30)),
            "helper: --helper: 30 bytes are too many: at most 29 fit",
        ),
        (
            changed!(Ipv4, "-m nfacct --nfacct-name x", Match::Nfacct, m => m.name = long(32)),
            "nfacct: --nfacct-name: 32 bytes are too many: at most 31 fit",
        ),
        (
            changed!(Ipv4, "-p tcp -m osf --genre x", Match::Osf, m => m.genre = long(32)),
            "osf: --genre: 32 bytes are too many",
        ),
        (
            changed!(Ipv4, "-m string --algo bm --string x", Match::String, m => m.pattern = long(129)),
            "string: --string: 129 bytes are too many: at most 128 fit",
        ),
        (
            changed!(Ipv4, "-m string --algo bm --string x", Match::String, m => m.algorithm = long(16)),
            "string: --algo: 16 bytes are too many",
        ),
        (
            changed!(Ipv4, "-m iprange --src-range 10.0.0.1-10.0.0.2", Match::Iprange, m => m.source = Some(xt::Negatable::is(v6..=v6))),
            "iprange: --src-range: fd00::1 is not of the rule's family",
        ),
        (
            changed!(Ipv4, "-m conntrack --ctorigsrc 10.0.0.1", Match::Conntrack, m => {
                let tuples = m.tuples.as_mut().unwrap();
                tuples.original_source.as_mut().unwrap().value.mask = xt::Mask::full(Family::Ipv6);
            }),
            "conntrack: --ctorigsrc: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff is not of",
        ),
        (
            changed!(Ipv4, "-m conntrack --ctstate NEW", Match::Conntrack, m => {
                m.state.as_mut().unwrap().value = xt::matches::conntrack::ConntrackState::from_bits_retain(1 << 15);
            }),
            "conntrack: --ctstate: it has flags without a name",
        ),
        (
            changed!(Ipv4, "-m connlimit --connlimit-above 1", Match::Connlimit, m => m.mask = v6.into()),
            "connlimit: --connlimit-mask: fd00::1 is not of",
        ),
        (
            changed!(Ipv4, "-m recent --set", Match::Recent, m => m.mask = v6.into()),
            "recent: --mask: fd00::1 is not of",
        ),
        (
            changed!(Ipv4, "-m addrtype --src-type LOCAL", Match::Addrtype, m => {
                m.source.as_mut().unwrap().value = xt::matches::addrtype::AddressTypes::from_bits_retain(1 << 15);
            }),
            "addrtype: --src-type: it has flags",
        ),
        (
            changed!(Ipv4, "-p ah -m ah --ahspi 1", Match::Ah, m => m.reserved = true),
            "ah: --ahres: only the IPv6 header has it",
        ),
        (
            changed!(Ipv4, "-m owner --socket-exists", Match::Owner, m => m.suppl_groups = true),
            "owner: --suppl-groups: it requires --gid-owner",
        ),
        (
            changed!(Ipv4, "-p icmp -m icmp --icmp-type 3", Match::Icmp, m => m.kind = Some(255)),
            "icmp: --icmp-type: type 255 means every type",
        ),
        (
            changed!(Ipv6, "-m dst --dst-opts 1", Match::Dst, m => m.0.options = vec![m.0.options[0]; 17]),
            "dst: --dst-opts: 17 options are too many: at most 16 fit",
        ),
        (
            changed!(Ipv6, "-m rt --rt-type 0 --rt-0-addrs ::1", Match::Rt, m => m.addresses = vec![m.addresses[0]; 17]),
            "rt: --rt-0-addrs: 17 addresses are too many: at most 16 fit",
        ),
        (
            changed!(Ipv6, "-m srh --srh-psid ::1/64", Match::Srh, m => m.previous.1 = 129),
            "srh: --srh-psid: the prefix has 129 bits",
        ),
        (
            changed!(Ipv4, "-p sctp -m sctp --chunk-types any DATA:B", Match::Sctp, m => {
                let types = m.chunks.as_mut().unwrap().types.as_mut().unwrap();
                *types = vec![types[0]; 5];
            }),
            "sctp: --chunk-types: 5 types with flags are too many: at most 4 fit",
        ),
        (
            changed!(Ipv4, "-j LOG --log-prefix x", Target::Log, t => t.prefix = long(30)),
            "LOG: --log-prefix: 30 bytes are too many: at most 29 fit",
        ),
        (
            changed!(Ipv4, "-j NFLOG --nflog-prefix x", Target::Nflog, t => t.prefix = long(64)),
            "NFLOG: --nflog-prefix: 64 bytes are too many: at most 63 fit",
        ),
        (
            changed!(Ipv4, "-j LED --led-trigger-id x", Target::Led, t => t.trigger = long(26)),
            "LED: --led-trigger-id: ",
        ),
        (
            changed!(Ipv4, "-j IDLETIMER --timeout 1 --label x", Target::Idletimer, t => t.label = long(28)),
            "IDLETIMER: --label: 28 bytes are too many: at most 27 fit",
        ),
        (
            changed!(Ipv4, "-p tcp -j CT --helper ftp", Target::Ct, t => t.helper = long(16)),
            "CT: --helper: 16 bytes are too many: at most 15 fit",
        ),
        (
            changed!(Ipv4, "-p tcp -j CT --timeout x", Target::Ct, t => t.timeout = long(32)),
            "CT: --timeout: 32 bytes are too many: at most 31 fit",
        ),
        (
            changed!(Ipv4, "-j SECMARK --selctx x", Target::Secmark, t => t.context = long(256)),
            "SECMARK: --selctx: 256 bytes are too many: at most 255 fit",
        ),
        (
            changed!(Ipv4, "-j TEE --gateway 10.0.0.1", Target::Tee, t => t.gateway = v6),
            "TEE: --gateway: fd00::1 is not of",
        ),
        (
            changed!(Ipv4, "-j TEE --gateway 10.0.0.1", Target::Tee, t => t.out_interface = long(16)),
            "TEE: --oif: 16 bytes are too many",
        ),
        (
            changed!(Ipv4, "-p tcp -j TPROXY --on-port 1", Target::Tproxy, t => t.address = v6),
            "TPROXY: --on-ip: fd00::1 is not of",
        ),
        (
            changed!(Ipv4, "-j SNAT --to-source 10.0.0.1", Target::Snat, t => t.addresses = Some(v6.into())),
            "SNAT: --to-source: fd00::1 is not of",
        ),
        (
            changed!(Ipv4, "-j DNAT --to-destination 10.0.0.1", Target::Dnat, t => t.addresses = Some(v6.into())),
            "DNAT: --to-destination: fd00::1 is not of",
        ),
        (
            changed!(Ipv4, "-j NETMAP --to 10.0.0.0/8", Target::Netmap, t => t.address = v6),
            "NETMAP: --to: fd00",
        ),
        (
            changed!(Ipv4, "-j NETMAP --to 10.0.0.0/8", Target::Netmap, t => t.prefix = 33),
            "NETMAP: --to: ",
        ),
        (
            changed!(Ipv4, "-j REJECT", Target::Reject, t => *t = xt::targets::reject::Reject::Icmp6NoRoute),
            "REJECT: --reject-with: icmp6-no-route is not of the rule's family",
        ),
        (
            changed!(Ipv4, "-j NFQUEUE --queue-balance 1:2", Target::Nfqueue, t => t.last = 0),
            "NFQUEUE: --queue-balance: queues 1 to 0 cannot be expressed",
        ),
        (
            changed!(Ipv4, "-j HMARK --hmark-src-prefix 8 --hmark-rnd 1 --hmark-mod 1", Target::Hmark, t => t.source_prefix = Some(v6.into())),
            "HMARK: --hmark-src-prefix: ",
        ),
    ] {
        let (line, encoded) = given;
        let error = encoded.expect_err(line);
        assert!(error.starts_with(message), "{line}: {error}");
    }
}
