//! Names of protocols, services, users and groups from the system's files.
//!
//! `iptables-save` prints a protocol by its name in `/etc/protocols`, or else by one of a few built-in
//! names; `iptables-restore` accepts services by their names in `/etc/services`, and users and groups by
//! their names in `/etc/passwd` and `/etc/group` (`protocols(5)`, `services(5)`, `passwd(5)`,
//! `group(5)`). The names of device groups are in `/etc/iproute2/group`, of routing realms in
//! `/etc/iproute2/rt_realms`, and of connection labels in `/etc/xtables/connlabel.conf`.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use bstr::{BStr, BString, ByteSlice};
use chainwright_sys::xt_connlabel::XT_CONNLABEL_MAXBIT;

use super::Text;
use super::value::{Parsed, digits, masked, number, number_within};

/// Maximum number of bytes to read from a file.
const MAX_LENGTH: u64 = 4 << 20;
/// Built-in names of iptables. If a number has several, the first is printed.
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

/// Names for numbers in the text of rules.
///
/// Parsing and printing use the names of the system, [`Names::system`], unless the caller passes others:
/// the names in a container's files ([`Names::below`]), or only names that the program adds
/// ([`Names::none`]), so that a text has the same meaning everywhere.
///
/// Each file is read once, on first use; a missing or invalid file counts as empty. Other sources of
/// names (`nsswitch.conf(5)`) are not used. A name is not printed if it would be parsed as another
/// number.
///
/// ```
/// use chainwright::iptables::{Family, Rule};
/// use chainwright::xt::{Names, Text};
/// use std::sync::Arc;
///
/// let names = Arc::new(Names::none().with_service("web", "tcp", 8080).with_user("agent", 990));
/// let text = "-p tcp -m tcp --dport web -m owner --uid-owner agent";
/// let rule = Rule::parse_with(Family::Ipv4, text, &names)?;
/// assert_eq!(rule.to_string(), "-p tcp -m tcp --dport 8080 -m owner --uid-owner 990");
///
/// let names = Arc::new(Names::none().with_protocol("mine", 253));
/// let rule = Rule::parse_with(Family::Ipv4, "-p mine -j DROP", &names)?;
/// let mut text = Text::with_names(names);
/// rule.print(&mut text);
/// assert_eq!(text.as_bytes(), b" -p mine -j DROP");
/// # Ok::<(), chainwright::iptables::text::ParseError>(())
/// ```
#[derive(Debug, Default)]
pub struct Names {
    /// The root directory of the files; `None` for no files.
    root: Option<PathBuf>,
    protocols: OnceLock<Protocols>,
    services: OnceLock<Services>,
    service_names: OnceLock<ServiceNames>,
    users: OnceLock<Accounts>,
    groups: OnceLock<Accounts>,
    device_groups: OnceLock<Numbered>,
    realms: OnceLock<Numbered>,
    labels: OnceLock<Vec<(u16, BString)>>,
}

#[derive(Debug, Default)]
struct Protocols {
    numbers: HashMap<BString, u8>,
    names: HashMap<u8, BString>,
}

/// Maps each service name to its ports and protocol names.
type Services = HashMap<BString, Vec<(u16, BString)>>;

/// Maps each port and protocol name to the first service name.
type ServiceNames = HashMap<(u16, BString), BString>;

/// Maps names of users or groups to numbers.
type Accounts = HashMap<BString, u32>;

/// The names of the system, after the first use.
static SYSTEM: RwLock<Option<Arc<Names>>> = RwLock::new(None);

impl Names {
    /// Returns the names from this system's files, the same for all callers until
    /// [`reload`](Self::reload).
    #[must_use]
    pub fn system() -> Arc<Self> {
        let known = SYSTEM.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(names) = &*known {
            return names.clone();
        }
        drop(known);
        let mut known = SYSTEM.write().unwrap_or_else(PoisonError::into_inner);
        known
            .get_or_insert_with(|| Arc::new(Self::below("/")))
            .clone()
    }

    /// Discards the names that were read from this system's files, so that later calls of
    /// [`system`](Self::system) read the files again. Names that were returned earlier do not change.
    pub fn reload() {
        *SYSTEM.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the names from the files below a directory: `/`, or the root of a container such as
    /// `/proc/PID/root`.
    #[must_use]
    pub fn below(root: impl Into<PathBuf>) -> Self {
        Self {
            root: Some(root.into()),
            ..Self::default()
        }
    }

    /// Returns only the built-in protocol names of iptables.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds a protocol (`IPPROTO_*`), whose number is then printed by this name. The built-in names of
    /// iptables keep their own numbers.
    #[must_use]
    pub fn with_protocol(mut self, name: &str, number: u8) -> Self {
        self.protocols();
        if let Some(all) = self.protocols.get_mut() {
            all.numbers.insert(name.into(), number);
            all.names.insert(number, name.into());
        }
        self
    }

    /// Adds a service with its port and protocol (`tcp`).
    #[must_use]
    pub fn with_service(mut self, name: &str, protocol: &str, port: u16) -> Self {
        self.services();
        if let Some(all) = self.services.get_mut() {
            let ports = all.entry(name.into()).or_default();
            ports.insert(0, (port, protocol.into()));
        }
        self
    }

    /// Adds a user.
    #[must_use]
    pub fn with_user(mut self, name: &str, number: u32) -> Self {
        self.users();
        if let Some(all) = self.users.get_mut() {
            all.insert(name.into(), number);
        }
        self
    }

    /// Adds a group of users.
    #[must_use]
    pub fn with_group(mut self, name: &str, number: u32) -> Self {
        self.groups();
        if let Some(all) = self.groups.get_mut() {
            all.insert(name.into(), number);
        }
        self
    }

    /// Reads a file; empty on error.
    fn read(&self, path: &str) -> Vec<u8> {
        let mut text = Vec::new();
        let path = self.root.as_deref().map(|root| Path::join(root, path));
        if let Some(Ok(file)) = path.map(std::fs::File::open) {
            // Use whatever was read before an error.
            let _ = file.take(MAX_LENGTH).read_to_end(&mut text);
        }
        text
    }

    fn protocols(&self) -> &Protocols {
        let read = || protocols(&self.read("etc/protocols"));
        self.protocols.get_or_init(read)
    }

    fn services(&self) -> &Services {
        let read = || services(&self.read("etc/services"));
        self.services.get_or_init(read)
    }

    /// Returns the first name of a user or group.
    pub(crate) fn account(&self, is_user: bool, number: u32) -> Option<Vec<u8>> {
        let text = self.read(if is_user { "etc/passwd" } else { "etc/group" });
        let mut lines = text.lines().map(|line| line.split_str(":"));
        lines.find_map(|mut fields| {
            let (name, _, own) = (fields.next()?, fields.next()?, fields.next()?);
            let own = own.to_str().ok()?.parse::<u32>().ok()?;
            (own == number && is_word(name)).then(|| name.to_vec())
        })
    }

    /// Returns the first service name of a port.
    pub(crate) fn service_name(&self, port: u16, protocol: Option<u8>) -> Option<&[u8]> {
        let read = || service_names(&self.read("etc/services"));
        let names = self.service_names.get_or_init(read);
        let protocol = self.protocol_name(protocol?)?;
        names
            .get(&(port, protocol.into()))
            .map(|name| name.as_slice())
    }

    fn users(&self) -> &Accounts {
        let read = || accounts(&self.read("etc/passwd"));
        self.users.get_or_init(read)
    }

    fn groups(&self) -> &Accounts {
        let read = || accounts(&self.read("etc/group"));
        self.groups.get_or_init(read)
    }

    /// Returns the device groups.
    pub(super) fn device_groups(&self) -> &Numbered {
        let path = "/etc/iproute2/group";
        let read = || Numbered::of(path, &self.read(&path[1..]));
        self.device_groups.get_or_init(read)
    }

    /// Returns the routing realms.
    pub(super) fn realms(&self) -> &Numbered {
        let path = "/etc/iproute2/rt_realms";
        let read = || Numbered::of(path, &self.read(&path[1..]));
        self.realms.get_or_init(read)
    }

    /// Returns the connection labels.
    pub(super) fn labels(&self) -> &[(u16, BString)] {
        let read = || labels(&self.read("etc/xtables/connlabel.conf"));
        self.labels.get_or_init(read)
    }

    /// Returns the number of a device group.
    #[doc(hidden)]
    pub fn device_group(&self, name: &[u8]) -> Option<u32> {
        self.device_groups().number(name)
    }

    /// Returns the number of a routing realm.
    #[doc(hidden)]
    pub fn realm(&self, name: &[u8]) -> Option<u32> {
        self.realms().number(name)
    }

    /// Returns the bit of a connection label.
    #[doc(hidden)]
    pub fn label(&self, name: &[u8]) -> Option<u16> {
        let mut labels = self.labels().iter();
        let found = labels.find(|(_, label)| label == name);
        found.map(|(bit, _)| *bit)
    }

    /// Returns the number of a user.
    #[doc(hidden)]
    pub fn user(&self, name: &[u8]) -> Option<u32> {
        self.users().get(name.as_bstr()).copied()
    }

    /// Returns the number of a group of users.
    #[doc(hidden)]
    pub fn group(&self, name: &[u8]) -> Option<u32> {
        self.groups().get(name.as_bstr()).copied()
    }

    /// Returns the number of a protocol, from its decimal, hexadecimal or octal number or its name.
    #[doc(hidden)]
    pub fn protocol(&self, name: &[u8]) -> Option<u8> {
        if let Some(number) = digits(name).and_then(|number| u8::try_from(number).ok()) {
            return Some(number);
        }
        let is_own = |(own, _): &&(&str, u8)| name.eq_ignore_ascii_case(own.as_bytes());
        let own = PROTOCOLS.iter().find(is_own);
        own.map(|(_, number)| *number).or_else(|| {
            let name = name.to_ascii_lowercase();
            self.protocols().numbers.get(name.as_bstr()).copied()
        })
    }

    /// Returns the name of a protocol, if parsing that name yields the same number.
    pub(crate) fn protocol_name(&self, number: u8) -> Option<&[u8]> {
        // The three most common protocols, without a table lookup.
        match number {
            6 => return Some(b"tcp"),
            17 => return Some(b"udp"),
            1 => return Some(b"icmp"),
            _ => {}
        }
        let file = self.protocols().names.get(&number);
        let file = file.map(|name| name.as_slice());
        file.filter(|name| is_word(name) && self.protocol(name) == Some(number))
            .or_else(|| {
                let own = PROTOCOLS.iter().find(|(_, own)| *own == number);
                own.map(|(name, _)| name.as_bytes())
            })
    }

    /// Returns the port of a service of that protocol, or of any protocol if it is `None`.
    #[doc(hidden)]
    pub fn service(&self, name: &[u8], protocol: Option<u8>) -> Option<u16> {
        let ports = self.services().get(name.as_bstr())?;
        let wanted = protocol.and_then(|number| self.protocol_name(number));
        ports
            .iter()
            .find(|(_, protocol)| wanted.is_none_or(|wanted| protocol == wanted))
            .map(|(port, _)| *port)
    }
}

/// Returns `true` if a name can be a value in a rule's text without quotes.
fn is_word(name: &[u8]) -> bool {
    let is_forbidden =
        |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'\\' | 0);
    !matches!(name, [] | [b'-' | b'!', ..]) && !name.iter().any(is_forbidden)
}

/// Splits each line into words, without comments. Skips lines of fewer than two words.
fn lines(text: &[u8]) -> impl Iterator<Item = Vec<&[u8]>> {
    text.lines().filter_map(|line| {
        let line = line.split_str("#").next()?;
        let words: Vec<_> = line.fields_with(char::is_whitespace).collect();
        (words.len() >= 2).then_some(words)
    })
}

fn protocols(text: &[u8]) -> Protocols {
    let mut all = Protocols::default();
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

/// Yields port, protocol name and names of each service.
fn each_service(text: &[u8]) -> impl Iterator<Item = (u16, &[u8], Vec<&[u8]>)> {
    lines(text).filter_map(|words| {
        let (port, protocol) = words[1].split_once_str("/")?;
        let port = port.to_str().ok()?.parse().ok()?;
        Some((port, protocol, words))
    })
}

fn service_names(text: &[u8]) -> ServiceNames {
    let mut all = ServiceNames::new();
    for (port, protocol, words) in each_service(text) {
        let name = || words[0].into();
        all.entry((port, protocol.into())).or_insert_with(name);
    }
    all
}

fn services(text: &[u8]) -> Services {
    let mut all = Services::new();
    for (port, protocol, words) in each_service(text) {
        for name in words[..1].iter().chain(&words[2..]) {
            all.entry((*name).into())
                .or_default()
                .push((port, protocol.into()));
        }
    }
    all
}

/// Parses lines of the form `name:password:number:…`.
fn accounts(text: &[u8]) -> Accounts {
    let mut all = Accounts::new();
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

/// Parses numbers and names. The first line of a number or a name takes precedence. A name consists of
/// letters, digits, `-` and spaces, and must not be a number.
pub(super) fn labels(text: &[u8]) -> Vec<(u16, BString)> {
    let mut all: Vec<(u16, BString)> = Vec::new();
    for line in text.lines() {
        let line = line.trim_ascii();
        let end = line.find_byteset(b" \t").unwrap_or(line.len());
        let (label, name) = (line[..end].as_bstr(), line[end..].trim_ascii());
        let Ok(label) = number_within(label, 0..=XT_CONNLABEL_MAXBIT) else {
            continue;
        };
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b' ');
        let valid = !name.is_empty() && name.iter().all(plain);
        let known = all
            .iter()
            .any(|(other, same)| *other == label || same == name);
        if valid && !known && number::<u64>(name.as_bstr()).is_err() {
            all.push((label, name.into()));
        }
    }
    all
}

/// Numbers with names, from a file of iproute2.
#[derive(Debug)]
pub(super) struct Numbered {
    path: &'static str,
    names: Vec<(u32, BString)>,
}

impl Numbered {
    /// Parses lines of the form `number name`, with numbers up to 255, in decimal or as `0x…`.
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

    /// Returns the number with this name.
    fn number(&self, name: &[u8]) -> Option<u32> {
        let found = self.names.iter().find(|(_, known)| known == name);
        found.map(|(number, _)| *number)
    }

    /// Parses a number, a number and a mask, or a name with a full mask; returns number and mask.
    pub(super) fn masked(&self, value: &BStr) -> Parsed<(u32, u32)> {
        masked(value).or_else(|_| {
            let named = self.names.iter().find(|(_, name)| name == value);
            named.map(|(number, _)| (*number, u32::MAX)).ok_or_else(|| {
                let path = self.path;
                format!(
                    "`{value}` is neither a number, nor a number and a mask (`1/0xff`), nor a \
                         name in {path}"
                )
            })
        })
    }

    /// Appends the name, if the mask is full and the number has a name, or the number in hexadecimal and
    /// the mask.
    pub(super) fn print(&self, (value, mask): (u32, u32), text: &mut Text) {
        if mask != u32::MAX {
            text.push(" ").hex(value).push("/").hex(mask);
            return;
        }
        let is_found =
            |name: &BString| is_word(name) && self.masked(name.as_bstr()) == Ok((value, u32::MAX));
        match self.names.iter().find(|(number, _)| *number == value) {
            Some((_, name)) if is_found(name) => text.word(name),
            _ => text.push(" ").hex(value),
        };
    }
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
        assert_eq!(Names::system().user(b"root"), Some(0));
        assert_eq!(Names::system().group(b"no-such-group"), None);
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
    fn common_names_need_no_files() {
        let names = Names::none();
        for (name, number) in PROTOCOLS {
            assert_eq!(names.protocol(name.as_bytes()), Some(*number));
        }
        assert_eq!(names.protocol(b"TCP"), Some(6));
        assert_eq!(names.protocol(b"253"), Some(253));
        // iptables 1.8.9 parses `-p 010` and `-p 0x10` like this.
        assert_eq!(names.protocol(b"010"), Some(8));
        assert_eq!(names.protocol(b"0x10"), Some(16));
        assert_eq!(names.protocol(b"256"), None);
        assert_eq!(names.protocol(b"no-such-protocol"), None);
        assert_eq!(names.protocol_name(6), Some(&b"tcp"[..]));
    }

    #[test]
    fn files_are_read_once_and_below_their_root() {
        let place = tempfile::tempdir().unwrap();
        let write = |text: &str| std::fs::write(place.path().join("etc/protocols"), text).unwrap();
        std::fs::create_dir(place.path().join("etc")).unwrap();
        write("one 201\n");
        let names = Names::below(place.path());
        assert_eq!(names.protocol(b"one"), Some(201));
        write("two 202\n");
        assert_eq!(names.protocol(b"two"), None);
        assert_eq!(Names::below(place.path()).protocol(b"two"), Some(202));
        // The other files do not exist.
        assert_eq!(
            (names.user(b"root"), names.service(b"http", None)),
            (None, None)
        );

        let before = Names::system();
        assert!(Arc::ptr_eq(&before, &Names::system()));
        Names::reload();
        assert!(!Arc::ptr_eq(&before, &Names::system()));
    }

    /// For any content of the files, printed text is parsed as the same number.
    #[test]
    fn ambiguous_names_are_not_printed() {
        let all =
            protocols(b"tcp 200\nfoo 201\nfoo 202\n17 203\n-x 204\nGRE 205\ngood 206\n0x11 207");
        let names = Names {
            protocols: all.into(),
            ..Names::default()
        };
        for number in 0..=255 {
            if let Some(name) = names.protocol_name(number) {
                assert_eq!(names.protocol(name), Some(number), "{}", name.as_bstr());
            }
        }
        assert_eq!(names.protocol_name(201), Some(&b"foo"[..]));
        assert_eq!(names.protocol_name(206), Some(&b"good"[..]));
        for number in [200, 202, 203, 204, 205, 207] {
            assert_eq!(names.protocol_name(number), None, "{number}");
        }
        let names = Names::none()
            .with_protocol("a b", 210)
            .with_protocol("x", 211);
        let names = names.with_protocol("x", 212);
        assert_eq!(names.protocol_name(210), None);
        assert_eq!(
            (names.protocol_name(211), names.protocol_name(212)),
            (None, Some(&b"x"[..]))
        );

        let all = Numbered::of("x", b"1 7\n2 two\n3 two\n4 -x\n5 7/8");
        let mut text = Text::new();
        for value in 1..=5 {
            all.print((value, u32::MAX), &mut text);
        }
        assert_eq!(text.as_bytes().as_bstr(), " 0x1 two 0x3 0x4 0x5");
    }
}
