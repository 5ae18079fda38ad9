//! Names of protocols, services, users and groups, as the system's files have them.
//!
//! `iptables-save` prints a protocol by the name that `/etc/protocols` has for it, and where that
//! has none, by one of a few of its own; `iptables-restore` takes services by the names of
//! `/etc/services`, users and groups by those of `/etc/passwd` and `/etc/group` (`protocols(5)`,
//! `services(5)`, `passwd(5)`, `group(5)`); groups of devices have their names in
//! `/etc/iproute2/group`, realms of routes in `/etc/iproute2/rt_realms`. A file is read once, when it
//! is first needed; a missing or strange one is as good as an empty one. Other sources of names
//! (`nsswitch.conf(5)`) are not asked.

use std::collections::HashMap;
use std::sync::LazyLock;

use bstr::{BStr, BString, ByteSlice};

use super::Text;
use super::value::{Parsed, masked, number};

/// A file longer than this is not one of these.
const LONGEST: u64 = 4 << 20;

/// Names that every iptables knows. Of several for one number the first is printed.
const PROTOCOLS: &[(&str, u8)] = &[
    ("tcp", 6),
    ("sctp", 132),
    ("udp", 17),
    ("udplite", 136),
    ("icmp", 1),
    ("ipv6-icmp", 58),
    ("icmpv6", 58),
    ("esp", 50),
    ("ah", 51),
    ("ipv6-mh", 135),
    ("mh", 135),
    ("all", 0),
];

struct Protocols {
    numbers: HashMap<BString, u8>,
    names: HashMap<u8, BString>,
}

static FILE_OF_PROTOCOLS: LazyLock<Protocols> =
    LazyLock::new(|| protocols(&read("/etc/protocols")));
static FILE_OF_SERVICES: LazyLock<Services> = LazyLock::new(|| services(&read("/etc/services")));
static FILE_OF_USERS: LazyLock<HashMap<BString, u32>> =
    LazyLock::new(|| accounts(&read("/etc/passwd")));
static FILE_OF_GROUPS: LazyLock<HashMap<BString, u32>> =
    LazyLock::new(|| accounts(&read("/etc/group")));

/// Port and protocol's name of each service's name.
type Services = HashMap<BString, Vec<(u16, BString)>>;

/// What a file of the system says; nothing if it cannot be read.
pub(super) fn read(path: &str) -> Vec<u8> {
    use std::io::Read;
    let mut text = Vec::new();
    if let Ok(file) = std::fs::File::open(path) {
        // What was read before an error is as good as anything.
        let _ = file.take(LONGEST).read_to_end(&mut text);
    }
    text
}

/// The words of each line, without comments.
fn lines(text: &[u8]) -> impl Iterator<Item = Vec<&[u8]>> {
    text.lines().filter_map(|line| {
        let line = line.split_str("#").next()?;
        let words: Vec<_> = line.fields_with(char::is_whitespace).collect();
        (words.len() >= 2).then_some(words)
    })
}

fn protocols(text: &[u8]) -> Protocols {
    let mut all = Protocols {
        numbers: HashMap::new(),
        names: HashMap::new(),
    };
    for words in lines(text) {
        let Some(number) = words[1].to_str().ok().and_then(|text| text.parse().ok()) else {
            continue;
        };
        all.names.entry(number).or_insert_with(|| words[0].into());
        for name in words[..1].iter().chain(&words[2..]) {
            all.numbers.entry((*name).into()).or_insert(number);
        }
    }
    all
}

fn services(text: &[u8]) -> Services {
    let mut all = Services::new();
    for words in lines(text) {
        let Some((port, protocol)) = words[1].split_once_str("/") else {
            continue;
        };
        let Some(port) = port.to_str().ok().and_then(|text| text.parse().ok()) else {
            continue;
        };
        for name in words[..1].iter().chain(&words[2..]) {
            all.entry((*name).into())
                .or_default()
                .push((port, protocol.into()));
        }
    }
    all
}

/// Lines `name:password:number:…`.
fn accounts(text: &[u8]) -> HashMap<BString, u32> {
    let mut all = HashMap::new();
    for line in text.lines() {
        let mut fields = line.split_str(":");
        let (Some(name), _, Some(number)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        if let Some(number) = number.to_str().ok().and_then(|text| text.parse().ok()) {
            all.entry(name.into()).or_insert(number);
        }
    }
    all
}

/// The number of a user.
pub(crate) fn user(name: &[u8]) -> Option<u32> {
    FILE_OF_USERS.get(name.as_bstr()).copied()
}

/// The number of a group of users.
pub(crate) fn group(name: &[u8]) -> Option<u32> {
    FILE_OF_GROUPS.get(name.as_bstr()).copied()
}

/// Numbers with names, as a file of iproute2 lists them.
#[derive(Debug)]
pub(super) struct Numbered {
    path: &'static str,
    names: Vec<(u32, BString)>,
}

/// Groups of devices.
pub(super) static DEVICE_GROUPS: LazyLock<Numbered> =
    LazyLock::new(|| Numbered::read("/etc/iproute2/group"));
/// Realms of routes.
pub(super) static REALMS: LazyLock<Numbered> =
    LazyLock::new(|| Numbered::read("/etc/iproute2/rt_realms"));

impl Numbered {
    fn read(path: &'static str) -> Self {
        Self::of(path, &read(path))
    }

    /// Lines `number name`: numbers up to 255, in decimal or as `0x…`.
    fn of(path: &'static str, text: &[u8]) -> Self {
        let parse = |word: &[u8]| {
            let text = word.to_str().ok()?;
            let number = match text.strip_prefix("0x") {
                Some(hex) => u8::from_str_radix(hex, 16),
                None => text.parse::<u8>(),
            };
            number.ok().map(u32::from)
        };
        let pairs = lines(text).filter_map(|words| Some((parse(words[0])?, words[1].into())));
        Self {
            path,
            names: pairs.collect(),
        }
    }

    /// A number, a number and a mask, or a name, for which all bits count: number and mask.
    pub(super) fn masked(&self, value: &BStr) -> Parsed<(u32, u32)> {
        masked(value).or_else(|_| {
            let named = self.names.iter().find(|(_, name)| name == value);
            named.map(|(number, _)| (*number, u32::MAX)).ok_or_else(|| {
                let path = self.path;
                format!(
                    "`{value}` is neither a number, nor a number and a mask (`1/0xff`), nor a \
                         name of {path}"
                )
            })
        })
    }

    /// Adds the name, if all bits count and it has one, or the number in hexadecimal and the mask.
    pub(super) fn print(&self, (value, mask): (u32, u32), text: &mut Text) {
        if mask != u32::MAX {
            text.push(" ").hex(value).push("/").hex(mask);
            return;
        }
        match self.names.iter().find(|(number, _)| *number == value) {
            Some((_, name)) => text.word(name),
            None => text.push(" ").hex(value),
        };
    }
}

/// The number of a protocol: decimal, hexadecimal or octal as all numbers, or the one that goes by
/// that name.
pub(crate) fn protocol(name: &[u8]) -> Option<u8> {
    if let Ok(number) = number(name.as_bstr()) {
        return Some(number);
    }
    let name = name.to_ascii_lowercase();
    let own = PROTOCOLS.iter().find(|(own, _)| own.as_bytes() == name);
    own.map(|(_, number)| *number)
        .or_else(|| FILE_OF_PROTOCOLS.numbers.get(name.as_bstr()).copied())
}

/// The name of a protocol, if it has one.
pub(crate) fn protocol_name(number: u8) -> Option<&'static [u8]> {
    // The three that nearly all rules have, without a look into the table.
    match number {
        6 => return Some(b"tcp"),
        17 => return Some(b"udp"),
        1 => return Some(b"icmp"),
        _ => {}
    }
    let file = FILE_OF_PROTOCOLS.names.get(&number);
    file.map(|name| name.as_slice()).or_else(|| {
        let own = PROTOCOLS.iter().find(|(_, own)| *own == number);
        own.map(|(name, _)| name.as_bytes())
    })
}

/// The port of a service of that protocol, or of any if none is given.
pub(crate) fn service(name: &[u8], protocol: Option<u8>) -> Option<u16> {
    let ports = FILE_OF_SERVICES.get(name.as_bstr())?;
    let wanted = protocol.and_then(protocol_name);
    ports
        .iter()
        .find(|(_, protocol)| wanted.is_none_or(|wanted| protocol == wanted))
        .map(|(port, _)| *port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_files_lines() {
        let text = b"# comment\nip 0 IP # internet\ngre\t47\tGRE\nbad\nworse x\nmany 300\nesp 50";
        let all = protocols(text);
        assert_eq!(all.numbers.get(b"GRE".as_bstr()), Some(&47));
        assert_eq!(all.names.get(&50).unwrap(), "esp");
        assert_eq!(all.names.len(), 3);
        let all = services(b"domain 53/tcp dns\ndomain 53/udp\nx y\nbig 70000/tcp\n\xff\xfe 1/tcp");
        assert_eq!(all[b"dns".as_bstr()], [(53, "tcp".into())]);
        assert_eq!(all[b"domain".as_bstr()].len(), 2);
        assert!(!all.contains_key(b"big".as_bstr()));
    }

    #[test]
    fn reads_accounts_and_groups_of_devices() {
        let all =
            accounts(b"root:x:0:0::/root:/bin/sh\nbad\nworse:x:y\nroot:x:7:\nbig:x:5000000000:");
        assert_eq!(all.get(b"root".as_bstr()), Some(&0));
        assert_eq!(all.len(), 1);
        assert_eq!(user(b"root"), Some(0));
        assert_eq!(group(b"no-such-group"), None);
    }

    #[test]
    fn reads_and_prints_numbers_with_names() {
        let all = Numbered::of(
            "x",
            b"# groups\n0\tdefault\n\n0x10 wan # x\n256 big\n+ x\n7\n8 #none",
        );
        assert_eq!(all.names, [(0, "default".into()), (16, "wan".into())]);
        assert_eq!(all.masked("wan".into()), Ok((16, u32::MAX)));
        assert_eq!(all.masked("010/0xf".into()), Ok((8, 15)));
        assert!(all.masked("wan/1".into()).is_err());
        let mut text = Text::new();
        for value in [(0, u32::MAX), (9, u32::MAX), (0, 1)] {
            all.print(value, &mut text);
        }
        assert_eq!(text.as_bytes().as_bstr(), " default 0x9 0x0/0x1");
    }

    #[test]
    fn knows_the_common_ones_without_files() {
        for (name, number) in PROTOCOLS {
            assert_eq!(protocol(name.as_bytes()), Some(*number));
        }
        assert_eq!(protocol(b"TCP"), Some(6));
        assert_eq!(protocol(b"253"), Some(253));
        // As iptables 1.8.9 reads `-p 010` and `-p 0x10`.
        assert_eq!(protocol(b"010"), Some(8));
        assert_eq!(protocol(b"0x10"), Some(16));
        assert_eq!(protocol(b"256"), None);
        assert_eq!(protocol(b"no-such-protocol"), None);
        assert_eq!(protocol_name(6), Some(&b"tcp"[..]));
    }
}
