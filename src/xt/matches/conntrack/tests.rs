//! Data written by tools, and the corresponding options.

use super::*;
use crate::iptables::Rule;
use crate::xt::Match;

/// Returns the data from iptables-nft 1.8.9 for `! --ctstate RELATED,ESTABLISHED,DNAT` on x86-64
/// (from `strace -xx`): 136 bytes of addresses, expiry times and, from byte 146, the flags.
fn captured() -> Vec<u8> {
    let mut info = vec![0; 168];
    info[146..152].copy_from_slice(&[0x01, 0x00, 0x01, 0x00, 0x86, 0x00]);
    info
}

fn read(info: &[u8]) -> Option<Conntrack> {
    Conntrack::read(Family::Ipv4, 3, info)
}

#[test]
#[cfg(target_endian = "little")]
fn round_trips_data_of_iptables() {
    let martian = Conntrack::not_states(
        ConntrackState::RELATED | ConntrackState::ESTABLISHED | ConntrackState::DNAT,
    );
    assert_eq!(read(&captured()), Some(martian.clone()));
    let martian = Match::Conntrack(martian);
    assert_eq!(martian.encode(Family::Ipv4).unwrap().info[..], captured());
    assert_eq!(
        martian.to_string(),
        "-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT"
    );
}

#[test]
#[cfg(target_endian = "little")]
fn alias_is_preserved_if_expressible() {
    // `-m state --state NEW` by iptables-legacy 1.8.9.
    let mut info = vec![0; 168];
    info[146..152].copy_from_slice(&[0x01, 0x20, 0x00, 0x00, 0x08, 0x00]);
    let new = read(&info).unwrap();
    assert!(new.alias);
    assert_eq!(
        Match::Conntrack(new.clone()).to_string(),
        "-m state --state NEW"
    );
    assert_eq!(new.write(Family::Ipv4).unwrap()[..164], info[..164]);
    // With a translated source, or a protocol, `-m state` cannot express it.
    for (at, bits) in [(150, 0x40), (146, 0x02)] {
        let mut more = info.clone();
        more[at] |= bits;
        let read = read(&more).unwrap();
        assert!(!read.alias);
        let text = Match::Conntrack(read).to_string();
        assert!(text.starts_with("-m conntrack --ctstate NEW"), "{text}");
    }
}

#[test]
#[cfg(target_endian = "little")]
fn inexpressible_data_stays_opaque() {
    assert_eq!(Conntrack::read(Family::Ipv4, 4, &captured()), None);
    assert_eq!(Conntrack::read(Family::Ipv4, 0, &captured()), None);
    assert_eq!(read(&captured()[..163]), None);
    for (at, bytes) in [
        (146, [0, 0]),       // nothing is compared
        (146, [0, 0x20]),    // only the alias
        (146, [1, 0x40]),    // an unknown field is compared
        (150, [0, 0]),       // with no state
        (150, [0x10, 0]),    // with an unknown state
        (152, [0x10, 0]),    // with a status without a name
        (137, [0x01, 0x00]), // with a protocol beyond 255
    ] {
        let mut info = captured();
        (info[146], info[152]) = (0x43, 1);
        info[at..at + 2].copy_from_slice(&bytes);
        assert_eq!(read(&info), None, "byte {at}: {bytes:?}");
    }
}

/// Bytes built from the header: kernels since 2.6.39 have revision 3.
#[test]
#[cfg(target_endian = "little")]
fn reads_older_revisions() {
    let mut info = vec![0; 160];
    info[..20].copy_from_slice(&[
        10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 0,
    ]);
    info[138..140].copy_from_slice(&443_u16.to_be_bytes());
    info[146..150].copy_from_slice(&[0x45, 0x01, 0x00, 0x01]);
    // Revision 1 has one byte each for state and status, revision 2 has two.
    for (revision, masks) in [(1, [0x08, 0x04, 0, 0]), (2, [0x08, 0, 0x04, 0])] {
        info[150..154].copy_from_slice(&masks);
        let read = Conntrack::read(Family::Ipv4, revision, &info).unwrap();
        let text = Match::Conntrack(read).to_string();
        assert_eq!(
            text,
            "-m conntrack --ctstate NEW --ctorigsrc 10.0.0.1/24 ! --ctorigsrcport 443 \
                 --ctstatus ASSURED"
        );
    }
    assert_eq!(Conntrack::read(Family::Ipv4, 2, &info[..151]), None);
}

/// iptables 1.8.9 treats a mask with gaps as a full one, and prints a single port for a range
/// that ends with 0.
#[test]
fn differs_from_iptables_bugs() {
    for options in ["--ctorigdst 10.0.2.0/255.0.255.0", "--ctrepldstport 1:0"] {
        let rule = format!("-m conntrack {options}");
        let parsed = Rule::parse(Family::Ipv4, &rule).unwrap();
        assert_eq!(parsed.to_string(), rule);
        let encoded = parsed.matches[0].encode(Family::Ipv4).unwrap();
        let read = Match::read(Family::Ipv4, "conntrack", 3, &encoded.info);
        assert_eq!(read, parsed.matches[0]);
    }
}

#[test]
fn refusals() {
    for (options, fault) in [
        ("-m conntrack", "at least one option, such as --ctstate"),
        (
            "-m conntrack --ctstate NEW,",
            "`` is not one of INVALID, NEW",
        ),
        (
            "-m conntrack --ctstate NEWER",
            "`NEWER` is not one of INVALID",
        ),
        (
            "-m conntrack --ctstatus X",
            "`X` is not one of NONE, EXPECTED",
        ),
        ("-m conntrack --ctproto 256", "not a protocol number"),
        (
            "-m conntrack --ctorigsrc 10.1/8",
            "`10.1` is not an IPv4 address",
        ),
        (
            "-m conntrack --ctorigsrc 10.0.0.1/33",
            "neither a prefix length from 0 to 32 nor",
        ),
        ("-m conntrack --ctdir ORIG", "`ORIG` is not one of ORIGINAL"),
        ("-m conntrack --ctexpire x", "`x` is not a number"),
        ("-m conntrack ! --ctdir REPLY", "cannot be negated"),
        ("-m state", "--state is required"),
        ("-m state --state SNAT", "`SNAT` is not one of INVALID, NEW"),
    ] {
        let message = Rule::parse(Family::Ipv4, options).unwrap_err().to_string();
        assert!(message.contains(fault), "{options}: {message}");
    }
}
