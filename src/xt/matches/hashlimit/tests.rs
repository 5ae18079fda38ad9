//! Data written by tools, and the corresponding options.

use super::*;
use crate::iptables::Rule;
use crate::xt::Match;

/// Returns the data of `--hashlimit-above 10/minute --hashlimit-burst 7 --hashlimit-mode
/// srcip,dstport --hashlimit-name web --hashlimit-srcmask 24` from iptables-legacy 1.8.9.
fn captured() -> Vec<u8> {
    let mut info = vec![0; 312];
    info[..3].copy_from_slice(b"web");
    info[256..264].copy_from_slice(&6_000_000_u64.to_ne_bytes());
    info[264] = 7;
    info[272] = 0x16; // above, by source address and destination port
    info[284..288].copy_from_slice(&1000_u32.to_ne_bytes());
    info[288..292].copy_from_slice(&60_000_u32.to_ne_bytes());
    (info[296], info[297]) = (24, 32);
    info
}

const TEXT: &str = "-m hashlimit --hashlimit-above 10/min --hashlimit-burst 7 \
        --hashlimit-mode srcip,dstport --hashlimit-name web --hashlimit-srcmask 24";

#[test]
#[cfg(all(target_endian = "little", target_pointer_width = "64"))]
fn round_trips_data_of_iptables() {
    let hashlimit = Hashlimit::read(Family::Ipv4, 3, &captured()).unwrap();
    assert_eq!(hashlimit.source_prefix, Some(24));
    assert_eq!(
        hashlimit.keys,
        HashlimitKeys::SOURCE_IP | HashlimitKeys::DESTINATION_PORT
    );
    assert_eq!(Match::Hashlimit(hashlimit.clone()).to_string(), TEXT);
    assert_eq!(hashlimit.write(Family::Ipv4).unwrap(), captured());
    let rule = Rule::parse(Family::Ipv4, TEXT).unwrap();
    assert_eq!(rule.matches, [Match::Hashlimit(hashlimit)]);
    assert!(size_of::<Hashlimit>() <= 128);
}

#[test]
#[cfg(all(target_endian = "little", target_pointer_width = "64"))]
fn older_revisions() {
    // From the struct definitions in the header.
    let new = captured();
    let mut two = new[..256].to_vec();
    two.extend_from_slice(&new[256..292]);
    two.extend_from_slice(&new[296..298]);
    two.resize(256 + 40 + 8, 0);
    let mut one = new[..16].to_vec();
    one.extend_from_slice(&new[272..276]);
    one.extend_from_slice(&60_000_u32.to_ne_bytes());
    one.extend_from_slice(&new[264..268]);
    one.extend_from_slice(&new[276..292]);
    one.extend_from_slice(&new[296..298]);
    one.resize(16 + 32 + 8, 0);
    let read = |revision, info: &[u8]| Hashlimit::read(Family::Ipv4, revision, info);
    let value = read(3, &new);
    assert!(value.is_some());
    assert_eq!(read(2, &two), value);
    assert_eq!(read(1, &one), value);
    assert_eq!(read(3, &new[..311]), None);
    assert_eq!(read(2, &two[..303]), None);
    assert_eq!(read(1, &one[..55]), None);
    assert_eq!(read(0, &new), None);
    assert_eq!(read(4, &new), None);
}

#[test]
#[cfg(all(target_endian = "little", target_pointer_width = "64"))]
fn invalid_data_is_not_decoded() {
    for (at, byte) in [(0, 0), (297, 33), (272, 0x96), (272, 0x56)] {
        let mut info = captured();
        info[at] = byte;
        assert_eq!(
            Hashlimit::read(Family::Ipv4, 3, &info),
            None,
            "{byte} at {at}"
        );
    }
    let mut info = captured();
    info[256..264].fill(0);
    assert_eq!(Hashlimit::read(Family::Ipv4, 3, &info), None);
}

#[test]
fn printed_byte_rates_round_trip() {
    // 1.8.9 prints `0b/s` and `--hashlimit-burst 1kb` for these, and refuses both.
    for (written, printed) in [
        ("15b/s", "1b/s"),
        (
            "1536b/s --hashlimit-burst 1536b",
            "1536b/s --hashlimit-burst 1536b",
        ),
        (
            "100b/s --hashlimit-burst 1000",
            "96b/s --hashlimit-burst 1kb",
        ),
        (
            "2mb/sec --hashlimit-burst 5mb",
            "2mb/s --hashlimit-burst 6mb",
        ),
        ("1500000b/s", "1500016b/s"),
    ] {
        let rule = |rate| format!("-m hashlimit --hashlimit-upto {rate} --hashlimit-name x");
        let read = Rule::parse(Family::Ipv4, rule(written)).unwrap();
        assert_eq!(read.to_string(), rule(printed));
        assert_eq!(Rule::parse(Family::Ipv4, rule(printed)), Ok(read));
    }
}

#[test]
fn refusals() {
    let rate = "is not a rate like 5/second, 10/minute, 3/hour or 100/day; \
            of bytes, like 512b/s, 20kb/s or 3mb/s";
    for (options, reason) in [
        (
            "--hashlimit-name x",
            "--hashlimit-upto or --hashlimit-above is required",
        ),
        ("--hashlimit-upto 5", "--hashlimit-name is required"),
        // 1.8.9 interprets these as 4 bytes and as 10 packets per second.
        (
            "--hashlimit 4gb/s --hashlimit-name x",
            "--hashlimit-upto: `4gb` is not a number like 20, 512b, 20kb or 3mb",
        ),
        (
            "--hashlimit 10MB/s --hashlimit-name x",
            &format!("--hashlimit-upto: `10MB/s` {rate}"),
        ),
        (
            "--hashlimit 65536mb/s --hashlimit-name x",
            "--hashlimit-upto: `65536mb/s` is more than the maximum of 65535mb/s",
        ),
        // 1.8.9 divides by zero.
        (
            "--hashlimit 8b/s --hashlimit-burst 9 --hashlimit-name x",
            "--hashlimit-burst: a rate below 16b/s cannot have a burst",
        ),
        (
            "--hashlimit 2kb/s --hashlimit-burst 1kb --hashlimit-name x",
            "--hashlimit-burst: it is less than the rate: at least 2048b",
        ),
        (
            "--hashlimit 5 --hashlimit-burst 1m --hashlimit-name x",
            "--hashlimit-burst: `1m` is not a number from 1 to 1000000",
        ),
        (
            "--hashlimit 5 --hashlimit-mode none --hashlimit-name x",
            "--hashlimit-mode: `none` is not one of srcip, srcport, dstip, dstport",
        ),
        (
            "--hashlimit 5 --hashlimit-srcmask 33 --hashlimit-name x",
            "--hashlimit-srcmask: `33` is neither a prefix length from 0 to 32 nor a mask of one",
        ),
        (
            "--hashlimit 5 --hashlimit-rate-interval 0 --hashlimit-name x",
            "--hashlimit-rate-interval: `0` is not a number from 1 to 2147483647",
        ),
        (
            "--hashlimit 5 --hashlimit-name a/b",
            "--hashlimit-name: a table name must be a valid name of a file in /proc",
        ),
    ] {
        let fault = Rule::parse(Family::Ipv4, format!("-m hashlimit {options}")).unwrap_err();
        assert_eq!(fault.message, format!("-m hashlimit: {reason}"));
    }
}
