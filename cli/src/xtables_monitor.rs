//! `xtables-monitor`: prints changes of nf_tables, and the rules that packets meet, in iptables' syntax.

use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;

use bstr::ByteSlice;
use chainwright::iptables::nft::decode;
use chainwright::iptables::program::VERSION;
use chainwright::nft::expr::Verdict;
use chainwright::nft::live::{
    Change, Event, EventObject, Item, MonitorOptions, TraceKind, TraceRef, TracedItem, Tracer,
    TracerOptions,
};
use chainwright::nft::{
    ChainRef, Connection, Family, Part, RuleRef, Scope, SnapshotError, SnapshotOptions, hook_name,
};
use chainwright::{Errno, netlink};
use chainwright_lang::{EventFormatter, Formatted};
use chainwright_libnftables::{Changes, wait};
use chainwright_sys::nf_tables::NFT_RETURN;

use crate::get::rules::{Sets, format_rule, sets};
use crate::output::{Error, Output, Printable, causes, eprint_line, note};
use crate::watch::packets::device;

/// The name of the program.
pub(crate) const NAME: &str = "xtables-monitor";

/// The output of `-h` after the version line.
const USAGE: &str = "Usage: xtables-monitor [ -t | -e ]
        --trace    -t    trace ruleset traversal of packets tagged via -j TRACE rule
        --event    -e    show events that modify the ruleset
Optional arguments:
        --ipv4     -4    only monitor IPv4
        --ipv6     -6    only monitor IPv6
\t--counters -c    show counters in rules
";

/// Exit codes.
const DONE: u8 = 0;
const FAILED: u8 = 1;
const USAGE_ERROR: u8 = 2;

/// The options: long and short names.
const OPTIONS: [(&str, u8); 7] = [
    ("counters", b'c'),
    ("event", b'e'),
    ("help", b'h'),
    ("ipv4", b'4'),
    ("ipv6", b'6'),
    ("trace", b't'),
    ("version", b'V'),
];

/// The parsed arguments.
#[derive(Debug, Default, PartialEq, Eq)]
struct Arguments {
    events: bool,
    traces: bool,
    counters: bool,
    family: Family,
}

/// Runs `xtables-monitor`; returns the exit code.
pub(crate) fn run(words: &[OsString]) -> u8 {
    let mut out = Output::new();
    let parsed = match parse(words) {
        Ok(parsed) => parsed,
        Err((code, text)) => {
            match code {
                USAGE_ERROR => eprint_line(text.trim_end()),
                _ => drop(write!(out, "{text}").and_then(|()| out.flush())),
            }
            return code;
        }
    };
    match parsed.watch(&mut out) {
        Ok(()) => DONE,
        Err(error) => {
            if let Some(errno) = error.errno().filter(|_| error.is_permission()) {
                let errno = Errno::new(errno).strerror();
                eprint_line(&format!("cannot bind to nfnetlink socket: {errno}"));
            }
            error.report();
            FAILED
        }
    }
}

/// Parses the arguments. Returns the exit code and the text to print if they do not request a monitor.
fn parse(words: &[OsString]) -> Result<Arguments, (u8, String)> {
    let mut parsed = Arguments::default();
    let usage = || (FAILED, format!("{NAME} {VERSION} (nf_tables)\n{USAGE}"));
    for word in words {
        let letters = match word.as_bytes() {
            b"--" => break,
            [b'-', b'-', long @ ..] => {
                let mut like = OPTIONS
                    .iter()
                    .filter(|(name, _)| name.as_bytes().starts_with(long));
                match (like.next(), like.next()) {
                    (Some((_, letter)), None) => std::slice::from_ref(letter),
                    _ => b"?",
                }
            }
            [b'-', letters @ ..] if !letters.is_empty() => letters,
            _ => continue,
        };
        for letter in letters {
            match letter {
                b'c' => parsed.counters = true,
                b'e' => parsed.events = true,
                b't' => parsed.traces = true,
                b'4' => parsed.family = Family::IP,
                b'6' => parsed.family = Family::IP6,
                b'h' => return Err(usage()),
                b'V' => return Err((DONE, format!("{NAME} {VERSION}\n"))),
                _ => {
                    let text = format!(
                        "{NAME} {VERSION}: Bad argument.\nTry `{NAME} -h' for more information.\n"
                    );
                    return Err((USAGE_ERROR, text));
                }
            }
        }
    }
    match parsed.events || parsed.traces {
        true => Ok(parsed),
        false => Err(usage()),
    }
}

/// Returns the program for a family's tables.
fn program(family: Family) -> Option<&'static str> {
    Some(match family {
        Family::IP => "iptables",
        Family::IP6 => "ip6tables",
        Family::ARP => "arptables",
        Family::BRIDGE => "ebtables",
        _ => return None,
    })
}

impl Arguments {
    fn watch(&self, out: &mut Output) -> Result<(), Error> {
        let mut changes = match self.events {
            true => Some(Changes {
                monitor: MonitorOptions::default().open_if_loaded()?,
                formatter: formatter()?,
            }),
            false => None,
        };
        let mut traces = match self.traces {
            true => Some((
                TracerOptions::default().open_if_loaded()?,
                Connection::open_if_loaded()?,
            )),
            false => None,
        };
        let sets = sets();
        while out.has_reader() {
            let mut is_idle = true;
            if let Some(Changes { monitor, formatter }) = &mut changes
                && let Some(item) = monitor.try_receive()?
            {
                is_idle = false;
                match item {
                    Item::Change(change) => self.change(out, formatter, &change, &sets)?,
                    Item::Lost(lost) => {
                        note(&lost.to_string());
                        *formatter = self::formatter()?;
                    }
                    _ => {}
                }
            }
            if let Some((tracer, nft)) = &mut traces
                && let Some(item) = tracer.try_receive()?
            {
                is_idle = false;
                match item {
                    TracedItem::Step(step) => self.step(out, nft, &step.view(), &sets)?,
                    TracedItem::Lost(lost) => note(&format!("steps were lost: {lost}")),
                    TracedItem::Malformed(malformed) => note(&causes(&malformed)),
                    _ => {}
                }
            }
            out.flush()?;
            if is_idle {
                let changes = changes.as_ref().map(|changes| changes.monitor.as_fd());
                let traces = traces.as_ref().map(|(tracer, _)| Tracer::as_fd(tracer));
                wait(changes.into_iter().chain(traces))
                    .map_err(|error| Error::Other(format!("cannot wait: {error}")))?;
            }
        }
        Ok(())
    }

    fn admits(&self, family: Family) -> bool {
        self.family == Family::UNSPEC || self.family == family
    }

    fn change(
        &self,
        out: &mut Output,
        formatter: &mut EventFormatter,
        change: &Change,
        sets: &Sets,
    ) -> Result<(), Error> {
        let formatted = formatter.format(change);
        for (event, formatted) in change.events().zip(&formatted) {
            if self.admits(event.family())
                && let Some(line) = self.event(&event, formatted, sets)
            {
                writeln!(out, " EVENT: {}", Printable(&line))?;
            }
        }
        let name = change.thread_name().unwrap_or_default().to_str_lossy();
        writeln!(
            out,
            "NEWGEN: GENID={} PID={} NAME={}",
            change.generation(),
            change.thread_id().unwrap_or_default(),
            Printable(&name)
        )
    }

    /// Formats an event on one line; `None` if iptables' tables have no such object.
    fn event(&self, event: &Event<'_>, formatted: &Formatted, sets: &Sets) -> Option<String> {
        let family = event.family();
        let verb = if event.is_deletion() { "DEL" } else { "NEW" };
        match event.object() {
            Ok(EventObject::Table(table)) => Some(format!(
                "nft: {verb} table: table {} {family} flags {:x} use {} handle {}",
                table.name(),
                table.flags().unwrap_or_default().bits(),
                table.references().unwrap_or_default(),
                table.handle()
            )),
            Ok(EventObject::Chain(chain)) => Some(match program(family) {
                Some(program) if event.is_deletion() => {
                    format!("{program} -t {} -X {}", chain.table(), chain.name())
                }
                Some(program) if chain.hook().is_none() => {
                    format!("{program} -t {} -N {}", chain.table(), chain.name())
                }
                _ => format!("nft: {verb} chain: {}", ChainSpec(&chain)),
            }),
            Ok(EventObject::Rule(rule)) => {
                Some(match self.options(&rule, event.is_deletion(), sets) {
                    Some(words) => words,
                    None => {
                        let words = match formatted {
                            Formatted::Line(line) if !line.body.is_empty() => line.body.clone(),
                            _ => format_rule(&rule, sets),
                        };
                        let (table, chain) = (rule.table(), rule.chain());
                        format!("nft: {verb} rule: {family} {table} {chain} {words}")
                    }
                })
            }
            _ => None,
        }
    }

    /// Formats a rule as the arguments of a command; `None` if iptables cannot express it.
    fn options(&self, rule: &RuleRef<'_>, is_deletion: bool, sets: &Sets) -> Option<String> {
        let program = program(rule.family()).filter(|program| program.starts_with("ip"))?;
        let mut entry = decode(rule).ok()?;
        if entry.rule.has_set_indexes() {
            entry.rule.name_sets(&mut sets.as_ref()?).ok()?;
        }
        let counters = match self.counters {
            true => format!(" [{}:{}]", entry.counters.packets, entry.counters.bytes),
            false => String::new(),
        };
        let (table, chain) = (rule.table(), rule.chain());
        let option = if is_deletion { "-D" } else { "-A" };
        let line = format!(
            "{program} -t {table}{counters} {option} {chain} {}",
            entry.rule
        );
        Some(line.trim_end().to_owned())
    }

    fn step(
        &self,
        out: &mut Output,
        nft: &mut Connection,
        step: &TraceRef<'_>,
        sets: &Sets,
    ) -> Result<(), Error> {
        let family = step.family();
        if !self.admits(family) {
            return Ok(());
        }
        let head = format!("{} {:08x} ", family.0, step.id());
        if let Some(words) = packet(step) {
            writeln!(out, "PACKET: {head}{}", Printable(&words))?;
        }
        let table = step.table().unwrap_or_default();
        let chain = step.chain().unwrap_or_default();
        let end = match (step.kind(), step.rule()) {
            (TraceKind::RULE, Some(handle)) => {
                let verdict = step.verdict().map(verdict).unwrap_or_default();
                let rule = self.rule(nft, step, handle, sets)?.unwrap_or_default();
                format!("rule:{handle:#x}:{verdict}  {rule}")
            }
            (TraceKind::POLICY, _) => {
                let policy = step.policy().map(|policy| policy.to_string());
                format!("policy:{} ", policy.unwrap_or_default().to_uppercase())
            }
            (TraceKind::RETURN, _) => "return:".to_owned(),
            _ => return Ok(()),
        };
        let line = format!("{head}{table}:{chain}:{end}");
        writeln!(out, " TRACE: {}", Printable(&line))
    }

    /// Returns the present rule of a step; `None` if it does not exist.
    fn rule(
        &self,
        nft: &mut Connection,
        step: &TraceRef<'_>,
        handle: u64,
        sets: &Sets,
    ) -> Result<Option<String>, Error> {
        let (Some(table), Some(chain)) = (step.table(), step.chain()) else {
            return Ok(None);
        };
        match nft.rule(step.family(), table, chain, handle) {
            Ok(None) => return Ok(None),
            Ok(Some(rule)) => {
                if let Some(words) = self.options(&rule, false, sets) {
                    return Ok(Some(words));
                }
            }
            // The table no longer exists, or the rule does not fit into a reply.
            Err(netlink::Error::Refused { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let scope = Scope::table(step.family(), table);
        let part = nft.snapshot_parts(scope, &[Part::Chain(chain)], SnapshotOptions::default());
        let part = match part {
            Err(SnapshotError::Interrupted { .. }) => return Ok(None),
            part => part?,
        };
        let words = part.tables().next().and_then(|table| {
            let chain = table.chain(chain)?;
            let rule = chain.rules().find(|rule| rule.handle() == handle)?;
            let words = chainwright_lang::rule(&table, &rule, &crate::dialect::options());
            Some(format!(
                "nft: {}",
                words.unwrap_or_else(|| format_rule(&rule, sets))
            ))
        });
        Ok(words)
    }
}

fn formatter() -> Result<EventFormatter, Error> {
    let options = crate::dialect::options();
    let formatter = EventFormatter::new(&mut Connection::open_if_loaded()?, options.clone());
    // If others keep changing the ruleset, the formatter knows only objects that are created from now on.
    Ok(formatter.unwrap_or_else(|_| EventFormatter::empty(options)))
}

/// A chain in libnftnl's format.
struct ChainSpec<'c>(&'c ChainRef<'c>);

impl fmt::Display for ChainSpec<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chain = self.0;
        let family = chain.family();
        let uses = chain.references().unwrap_or_default();
        write!(f, "{family} {} {} use {uses}", chain.table(), chain.name())?;
        let Some(hook) = chain.hook() else {
            return Ok(());
        };
        let kind = chain.chain_type().unwrap_or_default();
        let number = hook.number.and_then(|number| hook_name(family, number));
        let number = number.unwrap_or("unknown");
        let priority = hook.priority.unwrap_or_default();
        write!(f, " type {kind} hook {number} prio {priority}")?;
        if let Some(policy) = chain.policy() {
            let counters = chain.counters().unwrap_or_default();
            let packets = counters.packets.unwrap_or_default();
            let bytes = counters.bytes.unwrap_or_default();
            write!(f, " policy {policy} packets {packets} bytes {bytes}")?;
        }
        if let Some(device) = &hook.device {
            write!(f, " dev {device} ")?;
        }
        if let Some(devices) = &hook.devices {
            f.write_str(" dev { ")?;
            for device in devices {
                write!(f, " {device} ")?;
            }
            f.write_str(" } ")?;
        }
        match chain.flags() {
            Some(flags) => write!(f, " flags {:x}", flags.bits()),
            None => Ok(()),
        }
    }
}

/// Returns the name of a verdict in traces.
fn verdict(verdict: Verdict<'_>) -> String {
    match verdict {
        Verdict::Accept => "ACCEPT".to_owned(),
        Verdict::Drop => "DROP".to_owned(),
        Verdict::Continue => "CONTINUE".to_owned(),
        Verdict::Break => "BREAK".to_owned(),
        Verdict::Jump(chain) => format!("JUMP:{chain}"),
        Verdict::Goto(chain) => format!("GOTO:{chain}"),
        Verdict::Return => format!("{NFT_RETURN:#x}"),
        Verdict::Other { code } => format!("{code:#x}"),
        other => other.to_string(),
    }
}

/// Kinds of devices, `ARPHRD_*`.
const ETHERNET: u16 = 1;
const LOOPBACK: u16 = 772;

/// Protocols whose header begins with two ports.
const TCP: u8 = 6;
const WITH_PORTS: [u8; 5] = [TCP, 17, 33, 132, 136];

/// The bits of TCP's flags that have names, in the order of the names.
const TCP_FLAGS: [(u8, &str); 6] = [
    (0x02, "SYN"),
    (0x10, "ACK"),
    (0x01, "FIN"),
    (0x04, "RST"),
    (0x08, "PSH"),
    (0x20, "URG"),
];

/// Formats the packet of a step; the kernel reports it only with the first step at a hook.
fn packet(step: &TraceRef<'_>) -> Option<String> {
    let (link, network) = (step.link_header(), step.network_header());
    link.or(network)?;
    let mut out = String::new();
    let _ = write_packet(&mut out, step); // into memory
    Some(out)
}

fn write_packet(out: &mut String, step: &TraceRef<'_>) -> fmt::Result {
    for (word, index) in [("IN", step.iif()), ("OUT", step.oif())] {
        if let Some(index) = index {
            write!(out, "{word}={} ", device(index))?;
        }
    }
    let kind = step.iif_type().or_else(|| step.oif_type());
    match (kind, step.link_header()) {
        (Some(LOOPBACK), Some(_)) => out.write_str("LOOPBACK ")?,
        (Some(ETHERNET), Some(header)) if header.len() >= 14 => {
            let mac = |bytes: &[u8]| {
                let bytes: Vec<_> = bytes.iter().map(|byte| format!("{byte:x}")).collect();
                bytes.join(":")
            };
            let (to, rest) = header.split_at(6);
            let (from, rest) = rest.split_at(6);
            let protocol = hex(&rest[..2]);
            write!(
                out,
                "MACSRC={} MACDST={} MACPROTO={} ",
                mac(from),
                mac(to),
                protocol.to_lowercase()
            )?;
        }
        (kind, Some(header)) => {
            let kind = kind.unwrap_or_default();
            write!(out, "LL={kind:#x} {} ", hex(header).to_lowercase())?;
        }
        (_, None) => {}
    }
    let network = step.network_header().unwrap_or_default();
    let transport = step.transport_header().unwrap_or_default();
    let protocol = match (network_family(step), network) {
        (Family::IP, header) if header.len() >= 20 => ip(out, header)?,
        (Family::IP6, header) if header.len() >= 40 => ip6(out, header)?,
        (_, []) => None,
        (_, header) => {
            write!(out, "NH={} ", hex(header).to_lowercase())?;
            None
        }
    };
    if let Some(protocol) = protocol.filter(|protocol| WITH_PORTS.contains(protocol))
        && transport.len() >= if protocol == TCP { 20 } else { 8 }
    {
        let number = |at: usize| u16::from_be_bytes([transport[at], transport[at + 1]]);
        write!(out, "SPORT={} DPORT={} ", number(0), number(2))?;
        if protocol == TCP {
            for (bit, word) in TCP_FLAGS {
                if transport[13] & bit != 0 {
                    write!(out, "{word} ")?;
                }
            }
        }
    }
    match step.mark() {
        Some(mark) => write!(out, "MARK={mark:#x} "),
        None => Ok(()),
    }
}

/// Returns the family of the network header. In the families bridge and netdev, the first bits of the header determine
/// it.
fn network_family(step: &TraceRef<'_>) -> Family {
    let first = step.network_header().and_then(|header| header.first());
    let nfproto = step.nfproto().and_then(|number| u8::try_from(number).ok());
    match (nfproto.map(Family), step.family()) {
        (_, family @ (Family::IP | Family::IP6))
        | (Some(family @ (Family::IP | Family::IP6)), _) => family,
        (_, Family::ARP) => Family::ARP,
        _ => match first.map(|first| first >> 4) {
            Some(4) => Family::IP,
            Some(6) => Family::IP6,
            _ => Family::UNSPEC,
        },
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// Writes the fields of an IPv4 header, which has at least 20 bytes; returns the protocol after it, if its header is in
/// this packet.
fn ip(out: &mut String, header: &[u8]) -> Result<Option<u8>, fmt::Error> {
    let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let address = |at: usize| {
        let octets: [u8; 4] = std::array::from_fn(|byte| header[at + byte]);
        Ipv4Addr::from(octets)
    };
    write!(
        out,
        "SRC={} DST={} LEN={} TOS={:#x} TTL={} ID={} ",
        address(12),
        address(16),
        number(2),
        header[1],
        header[8],
        number(4)
    )?;
    let fragment = number(6);
    for (bit, word) in [(0x8000, "CE "), (0x4000, "DF "), (0x2000, "MF ")] {
        if fragment & bit != 0 {
            out.write_str(word)?;
        }
    }
    let offset = fragment & 0x1fff;
    if offset != 0 {
        write!(out, "FRAG:{offset} ")?;
    }
    let end = usize::from(header[0] & 0xf) * 4;
    if let Some(options) = header.get(20..end).filter(|options| !options.is_empty()) {
        write!(out, "OPT ({}) ", hex(options))?;
    }
    Ok((offset == 0).then_some(header[9]))
}

/// Writes the fields of an IPv6 header of 40 bytes; returns the next header.
fn ip6(out: &mut String, header: &[u8]) -> Result<Option<u8>, fmt::Error> {
    let address = |at: usize| {
        let octets: [u8; 16] = std::array::from_fn(|byte| header[at + byte]);
        Ipv6Addr::from(octets)
    };
    let first: [u8; 4] = std::array::from_fn(|byte| header[byte]);
    let first = u32::from_be_bytes(first);
    let payload = u16::from_be_bytes([header[4], header[5]]);
    write!(
        out,
        "SRC={} DST={} LEN={} TC={} HOPLIMIT={} FLOWLBL={} ",
        address(8),
        address(24),
        u32::from(payload) + 40,
        first >> 20 & 0xff,
        header[7],
        first & 0xf_ffff
    )?;
    Ok(Some(header[6]))
}
