//! Formats packet traces in nft's language.

use std::fmt::{self, Write as _};

use bstr::BStr;

use super::constant::{self, Named};
use super::list::Options;
use super::print::Printer;
use super::protocols::{self, GRE, Protocol};
use super::read::rule::rule;
use super::read::set::plain_verdict;
use super::syntax::{Expr, Payload, Target, Value, Verdict};
use super::types;
use chainwright::nft::expr::{self, PayloadBase};
use chainwright::nft::live::{TraceKind, TraceRef};
use chainwright::nft::{DataType, Family, Snapshot};

/// Formats one step of a packet trace: the zero to two lines that `nft monitor trace` prints for it.
///
/// The first step of a packet at a hook adds a line with the packet: its devices, and its header fields as far as the
/// kernel reports them. Rules are looked up in `rules`; for a rule that is not there, only the handle is printed. The
/// rules of an anonymous chain are part of the line of the rule that jumps to it.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let sandbox = chainwright_testing::Sandbox::new()?;
/// # sandbox.run(|| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// use chainwright::nft::live::{TracedItem, Tracer};
/// use chainwright::nft::{Connection, Scope};
/// use chainwright_lang::{Options, Script, format_trace};
///
/// let text = "table inet t {
///     chain out { type filter hook output priority 0; udp dport 53 meta nftrace set 1; }
/// }";
/// let mut nft = Connection::open()?;
/// nft.commit(Script::parse("rules.nft", text)?.transaction(None)?.transaction())?;
/// let (rules, options) = (nft.snapshot(Scope::all())?, Options::here());
/// let mut tracer = Tracer::open()?;
///
/// std::net::UdpSocket::bind("127.0.0.1:0")?.send_to(b"?", "127.0.0.1:53")?;
///
/// let mut lines = Vec::new();
/// while let Some(TracedItem::Step(step)) = tracer.try_receive()? {
///     lines.extend(format_trace(&rules, &step.view(), &options));
/// }
/// assert!(lines[0].contains(" inet t out packet: oif \"lo\" ip saddr 127.0.0.1 "));
/// assert!(lines[1].ends_with(" inet t out rule udp dport 53 meta nftrace set 1 (verdict continue)"));
/// assert!(lines[2].ends_with(" inet t out policy accept "));
/// # Ok(()) })?.map_err(|error| error as Box<dyn std::error::Error>)?;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn format_trace(rules: &Snapshot, step: &TraceRef<'_>, options: &Options) -> Vec<String> {
    let mut lines = Vec::new();
    match step.kind() {
        TraceKind::RULE => {
            if step.link_header().is_some() || step.network_header().is_some() {
                lines.push(packet(step, options));
            }
            if let Some(handle) = step.rule() {
                let (head, verdict) = (head(step), verdict(step, options));
                lines.push(match words(rules, step, handle, options) {
                    Some(words) => format!("{head}rule {words} ({verdict})"),
                    None => format!("{head}unknown rule handle {handle} ({verdict})"),
                });
            }
        }
        TraceKind::POLICY => {
            let policy = step.policy().map(|policy| format!("policy {policy} "));
            lines.push(end(step, policy, options));
        }
        TraceKind::RETURN => {
            let verdict = step.verdict().map(|_| verdict(step, options) + " ");
            lines.push(end(step, verdict, options));
        }
        _ => {}
    }
    lines
}

/// Returns the common prefix of all lines.
fn head(step: &TraceRef<'_>) -> String {
    let mut head = format!("trace id {:08x} {} ", step.id(), step.family());
    for name in [step.table(), step.chain()].into_iter().flatten() {
        let _ = write!(head, "{} ", Named(name)); // into memory
    }
    head
}

/// Formats the end of a chain.
fn end(step: &TraceRef<'_>, what: Option<String>, options: &Options) -> String {
    let mut line = head(step) + &what.unwrap_or_default();
    if let Some(mark) = step.mark() {
        line += &meta("meta mark", DataType::MARK, mark, options);
    }
    line
}

/// Formats metadata of the packet.
fn meta(word: &str, data_type: DataType, number: u32, options: &Options) -> String {
    let value = Value {
        data_type,
        bits: 32,
        number: number.into(),
    };
    let mut text = format!("{word} ");
    let _ = constant::plain(&mut text, &value, options); // into memory
    text + " "
}

/// Formats the rule of a step in one line; `None` if `rules` does not contain it.
fn words(rules: &Snapshot, step: &TraceRef<'_>, handle: u64, options: &Options) -> Option<String> {
    let table = rules.table(step.family(), step.table()?)?;
    let chain = table.chain(step.chain()?)?;
    let view = chain.rules().find(|rule| rule.handle() == handle)?;
    let mut text = String::new();
    let mut printer = Printer::new(&mut text, options);
    printer.in_line = true;
    printer
        .rule(&rule(&table, &view, options.nft_version))
        .ok()?;
    if options.handles {
        let _ = write!(text, " # handle {handle}"); // into memory
    }
    Some(text)
}

/// Formats a verdict as `verdict jump other`.
fn verdict(step: &TraceRef<'_>, options: &Options) -> String {
    /// Mask of the bits of a verdict that hold its kind, and the kind `queue`.
    const KIND: i32 = 0xff;
    const QUEUE: i32 = 3;
    let Some(verdict) = step.verdict() else {
        return "verdict".to_owned();
    };
    let chain = |name: &BStr| Target::Chain(Named(name).to_string());
    let printable = match &verdict {
        expr::Verdict::Jump(name) => Some(Verdict::Jump(chain(name))),
        expr::Verdict::Goto(name) => Some(Verdict::Goto(chain(name))),
        other => plain_verdict(other),
    };
    let mut text = "verdict ".to_owned();
    match (printable, verdict) {
        (Some(printable), _) => {
            let _ = Printer::new(&mut text, options).expr(&Expr::Verdict(printable)); // into memory
        }
        (None, expr::Verdict::Other { code }) if code & KIND == QUEUE => text += "queue",
        (None, other) => text += &other.to_string(),
    }
    text
}

/// Formats the packet: `packet: iif "lo" ip saddr 127.0.0.1 …`.
fn packet(step: &TraceRef<'_>, options: &Options) -> String {
    let mut line = head(step) + "packet: ";
    for (word, index) in [("iif", step.iif()), ("oif", step.oif())] {
        if let Some(index) = index {
            line += &meta(word, DataType::IFACE_INDEX, index, options);
        }
    }
    let mut headers = Headers::of(step);
    for (base, bytes) in [
        (PayloadBase::LINK, step.link_header()),
        (PayloadBase::NETWORK, step.network_header()),
        (PayloadBase::TRANSPORT, step.transport_header()),
    ] {
        headers.take(base, bytes.unwrap_or_default());
    }
    let _ = headers.write(&mut line, options); // into memory
    line
}

/// Field or raw bytes of a packet's headers.
struct Part {
    /// The field; `None` for bytes of an unknown protocol.
    field: Option<(&'static Protocol, usize)>,
    base: PayloadBase,
    offset: usize,
    /// Its bits, right-aligned in the bytes.
    bits: Vec<u8>,
    length: usize,
}

/// Decoded headers of a packet.
struct Headers {
    family: Family,
    link: Option<&'static Protocol>,
    network: Option<&'static Protocol>,
    transport: Option<&'static Protocol>,
    /// `None` for a field that only named the protocol of the following fields.
    parts: Vec<Option<Part>>,
    /// Index of the field that names the next protocol, until a field of that protocol follows, and that protocol's
    /// base.
    protocol_field: Option<(usize, PayloadBase)>,
}

/// Device type of Ethernet (`ARPHRD_ETHER`).
const ETHERNET: u16 = 1;

impl Headers {
    fn of(step: &TraceRef<'_>) -> Self {
        let family = step.family();
        let network = match (family, step.nfproto()) {
            (Family::IP, _) | (Family::INET, Some(2)) => Some(&protocols::IP),
            (Family::IP6, _) | (Family::INET, Some(10)) => Some(&protocols::IP6),
            (Family::ARP, _) => Some(&protocols::ARP),
            _ => None,
        };
        let has_frames = family == Family::BRIDGE || step.iif_type() == Some(ETHERNET);
        Self {
            family,
            link: has_frames.then_some(&protocols::ETHER),
            network,
            transport: None,
            parts: Vec::new(),
            protocol_field: None,
        }
    }

    const fn known(&self, base: PayloadBase) -> Option<&'static Protocol> {
        match base {
            PayloadBase::LINK => self.link,
            PayloadBase::NETWORK => self.network,
            _ => self.transport,
        }
    }

    /// Decodes the bytes of one base.
    fn take(&mut self, base: PayloadBase, mut bytes: &[u8]) {
        while let Some(protocol) = self.known(base) {
            let rest = self.take_protocol(protocol, bytes);
            match self.known(base) {
                // A header within the same base: VLAN tag.
                Some(next) if next != protocol && !rest.is_empty() => bytes = rest,
                _ => {
                    self.take_rest(base, bytes, rest);
                    return;
                }
            }
        }
        self.take_rest(base, bytes, bytes);
    }

    /// Adds the bytes after the known fields.
    fn take_rest(&mut self, base: PayloadBase, bytes: &[u8], rest: &[u8]) {
        if !rest.is_empty() {
            self.parts.push(Some(Part {
                field: None,
                base,
                offset: (bytes.len() - rest.len()) * 8,
                bits: rest.to_vec(),
                length: rest.len() * 8,
            }));
        }
    }

    /// Decodes the fields of a protocol; returns the remaining bytes.
    fn take_protocol<'b>(&mut self, protocol: &'static Protocol, bytes: &'b [u8]) -> &'b [u8] {
        let mut found = Vec::new();
        let mut end = 0;
        for (index, field) in protocol.fields.iter().enumerate() {
            let (offset, length) = (field.offset as usize, field.bits as usize);
            if offset != end {
                continue;
            }
            if end + length > bytes.len() * 8 {
                break;
            }
            end += length;
            if let Some(order) = shown_at(protocol, field.name) {
                found.push((order, index));
            }
        }
        found.sort_by_key(|(order, _)| *order);
        for (_, index) in found {
            let field = &protocol.fields[index];
            self.take_field(
                protocol,
                index,
                bits(bytes, field.offset as usize, field.bits as usize),
            );
        }
        bytes.get(end.div_ceil(8)..).unwrap_or_default()
    }

    fn take_field(&mut self, protocol: &'static Protocol, index: usize, bits: Vec<u8>) {
        let field = &protocol.fields[index];
        if let Some((protocol_field, above)) = self.protocol_field
            && above == protocol.base
            && self.is_redundant(protocol_field)
        {
            self.parts[protocol_field] = None;
            self.protocol_field = None;
        }
        if protocol.key == Some(field.name) {
            let number = bits
                .iter()
                .fold(0, |number, byte| number << 8 | u128::from(*byte));
            let above = match protocol.base {
                PayloadBase::LINK => protocols::above_ethernet(number),
                // nft 1.0.6 knows no GRE fields, and the known fields are not contiguous.
                PayloadBase::NETWORK => protocols::above_ip(number).filter(|above| **above != GRE),
                _ => None,
            };
            match above.map(|above| above.base) {
                Some(PayloadBase::LINK) => self.link = above,
                Some(PayloadBase::NETWORK) => self.network = above,
                Some(PayloadBase::TRANSPORT) => self.transport = above,
                _ => {}
            }
            let above = above.map_or_else(|| over(protocol.base), |above| above.base);
            self.protocol_field = Some((self.parts.len(), above));
        }
        self.parts.push(Some(Part {
            field: Some((protocol, index)),
            base: protocol.base,
            offset: field.offset as usize,
            bits,
            length: field.bits as usize,
        }));
    }

    /// Returns `true` if nft omits a field that names the next protocol if fields of that protocol follow. It keeps
    /// fields that determine the IP version in inet, bridge and netdev, and the type of a service VLAN tag.
    fn is_redundant(&self, protocol_field: usize) -> bool {
        let Some(Some(part)) = self.parts.get(protocol_field) else {
            return false;
        };
        let is_of_one = matches!(self.family, Family::IP | Family::IP6 | Family::ARP);
        match part.base {
            PayloadBase::LINK => part.bits != [0x88, 0xa8],
            PayloadBase::NETWORK => is_of_one,
            _ => false,
        }
    }

    fn write(&self, out: &mut String, options: &Options) -> fmt::Result {
        for part in self.parts.iter().flatten() {
            part.write(out, options)?;
            out.push(' ');
        }
        Ok(())
    }
}

impl Part {
    fn write(&self, out: &mut String, options: &Options) -> fmt::Result {
        let place = Payload {
            base: self.base,
            offset: self.offset as u32, // the kernel reports at most 40 bytes of headers
            bits: self.length as u32,
            field: self.field,
            tunnel: None,
        };
        let left = Expr::Payload(place);
        Printer::new(&mut *out, options).expr(&left)?;
        if self.field.is_none() {
            let digits = self.bits.iter().map(|byte| format!("{byte:02x}"));
            let digits: String = digits.collect();
            let digits = digits.trim_start_matches('0');
            return match digits.is_empty() {
                true => out.write_str(" 0x0"),
                false => write!(out, " 0x{digits}"),
            };
        }
        let Some(value) = Value::from_be_bytes(left.data_type(), &self.bits) else {
            return Ok(());
        };
        let is_flags = types::is_bitmask(value.data_type);
        out.write_str(if is_flags { " == " } else { " " })?;
        match is_flags && value.number.count_ones() != 1 {
            true => constant::numeric(out, &value, options),
            false => constant::plain(out, &value, options),
        }
    }
}

/// Returns the base above this one.
const fn over(base: PayloadBase) -> PayloadBase {
    match base {
        PayloadBase::LINK => PayloadBase::NETWORK,
        _ => PayloadBase::TRANSPORT,
    }
}

/// Returns the position at which a field of a protocol is printed; `None` if it is hidden.
fn shown_at(protocol: &Protocol, field: &str) -> Option<usize> {
    let (first, hidden): (&[&str], &[&str]) = match protocol.name {
        "ether" => (&["saddr", "daddr", "type"], &[]),
        "ip" => (
            &[
                "saddr", "daddr", "dscp", "ecn", "ttl", "id", "protocol", "length",
            ],
            &["version", "hdrlength", "frag-off", "checksum"],
        ),
        "ip6" => (
            &[
                "saddr",
                "daddr",
                "dscp",
                "ecn",
                "hoplimit",
                "flowlabel",
                "nexthdr",
                "length",
            ],
            &["version"],
        ),
        "arp" => (
            &["operation"],
            &[
                "htype",
                "ptype",
                "hlen",
                "plen",
                "saddr ether",
                "saddr ip",
                "daddr ether",
                "daddr ip",
            ],
        ),
        "ah" => (&["spi", "hdrlength", "nexthdr"], &["reserved", "sequence"]),
        "tcp" => (
            &[],
            &[
                "sequence", "ackseq", "doff", "reserved", "checksum", "urgptr",
            ],
        ),
        "icmp" | "icmpv6" | "igmp" | "udp" | "sctp" => (&[], &["checksum"]),
        _ => (&[], &[]),
    };
    if hidden.contains(&field) {
        return None;
    }
    Some(
        first
            .iter()
            .position(|each| *each == field)
            .unwrap_or(first.len()),
    )
}

/// Extracts a bit range as right-aligned bytes.
fn bits(bytes: &[u8], offset: usize, length: usize) -> Vec<u8> {
    let mut number = vec![0; length.div_ceil(8)];
    for at in 0..length {
        let from = offset + at;
        let is_set = bytes
            .get(from / 8)
            .is_some_and(|byte| byte >> (7 - from % 8) & 1 == 1);
        if is_set {
            let to = length - 1 - at;
            let last = number.len() - 1;
            number[last - to / 8] |= 1 << (to % 8);
        }
    }
    number
}
