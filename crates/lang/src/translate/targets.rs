//! Translates targets.

use std::net::IpAddr;

use bstr::ByteSlice;

use super::{Untranslatable, Words, quoted};
use chainwright::iptables::{Rule, Target as Of};
use chainwright::xt::targets::connmark::ConnmarkOperation;
use chainwright::xt::targets::ct::{Ct, CtZone};
use chainwright::xt::targets::log::LogFlags;
use chainwright::xt::targets::reject::Reject;
use chainwright::xt::targets::{AddressRange, NatPorts};
use chainwright::xt::{Family, Target};

/// Syslog levels.
const LEVELS: [&str; 8] = [
    "emerg", "alert", "crit", "err", "warn", "notice", "info", "debug",
];

pub(super) fn translated(target: &Target, family: Family) -> Words {
    let untranslatable =
        || Untranslatable::Extension(Rule::new(Of::Extension(target.clone())).to_string());
    let one = |text: String| Ok(vec![text]);
    match target {
        Target::Log(log) => {
            let mut words = vec!["log".to_owned()];
            if !log.prefix.is_empty() {
                words.push(format!("prefix {}", quoted(log.prefix.as_bstr(), 127)?));
            }
            match LEVELS.get(usize::from(log.level)) {
                Some(&"warn") => {}
                Some(level) => words.push(format!("level {level}")),
                None => return Err(untranslatable()),
            }
            let has = |flag| log.flags.contains(flag);
            let tcp = [
                (LogFlags::TCP_SEQUENCE, "sequence"),
                (LogFlags::TCP_OPTIONS, "options"),
            ];
            let tcp: Vec<_> = tcp.iter().filter(|(flag, _)| has(*flag)).collect();
            if !tcp.is_empty() {
                let names: Vec<_> = tcp.iter().map(|(_, name)| *name).collect();
                words.push(format!("flags tcp {}", names.join(",")));
            }
            for (flag, name) in [
                (LogFlags::IP_OPTIONS, "ip options"),
                (LogFlags::UID, "skuid"),
                (LogFlags::MACDECODE, "ether"),
            ] {
                if has(flag) {
                    words.push(format!("flags {name}"));
                }
            }
            if !LogFlags::all().contains(log.flags) {
                return Err(untranslatable());
            }
            Ok(words)
        }
        Target::Nflog(nflog) => {
            if nflog.length != 0 && !nflog.cut {
                return Err(untranslatable()); // the kernel ignores the length
            }
            let mut text = "log".to_owned();
            if !nflog.prefix.is_empty() {
                text += &format!(" prefix {}", quoted(nflog.prefix.as_bstr(), 127)?);
            }
            text += &format!(" group {}", nflog.group);
            if nflog.cut {
                text += &format!(" snaplen {}", nflog.length);
            }
            if nflog.threshold > 0 {
                text += &format!(" queue-threshold {}", nflog.threshold);
            }
            one(text)
        }
        Target::Reject(reject) => one(self::reject(*reject, family)
            .ok_or_else(untranslatable)?
            .into()),
        Target::Dnat(dnat) if dnat.base_port.is_none() => one(translation(
            "dnat",
            dnat.addresses,
            dnat.ports,
            &[(dnat.random, "random"), (dnat.persistent, "persistent")],
        )),
        Target::Snat(snat) => one(translation(
            "snat",
            snat.addresses,
            snat.ports,
            &[
                (snat.random, "random"),
                (snat.random_fully, "fully-random"),
                (snat.persistent, "persistent"),
            ],
        )),
        Target::Masquerade(masquerade) => one(translation(
            "masquerade",
            None,
            masquerade.ports,
            &[
                (masquerade.random, "random"),
                (masquerade.random_fully, "fully-random"),
            ],
        )),
        Target::Redirect(redirect) => one(translation(
            "redirect",
            None,
            redirect.ports,
            &[(redirect.random, "random")],
        )),
        Target::Mark(mark) => one(changed("meta mark", mark.value, mark.mask)),
        Target::Connmark(connmark) if connmark.shift.is_none() => match connmark.operation {
            ConnmarkOperation::Set { value, mask } => one(changed("ct mark", value, mask)),
            ConnmarkOperation::Save {
                nfmask,
                ctmask: u32::MAX,
            } => one(copied("ct mark", "meta mark", nfmask)),
            ConnmarkOperation::Restore {
                nfmask: u32::MAX,
                ctmask,
            } => one(copied("meta mark", "ct mark", ctmask)),
            // nft 1.0.6 has no syntax for a combination of both.
            _ => Err(untranslatable()),
        },
        Target::Nfqueue(queue) => {
            let flags = [(queue.bypass, "bypass"), (queue.cpu_fanout, "fanout")];
            let flags: Vec<_> = flags
                .iter()
                .filter(|(is, _)| *is)
                .map(|(_, name)| *name)
                .collect();
            let numbers = match queue.first == queue.last {
                true => queue.first.to_string(),
                false => format!("{}-{}", queue.first, queue.last),
            };
            match flags.is_empty() {
                true => one(format!("queue to {numbers}")),
                false => one(format!("queue flags {} to {numbers}", flags.join(","))),
            }
        }
        Target::Classify(class) => one(format!(
            "meta priority set {:x}:{:x}",
            class.major, class.minor
        )),
        Target::Trace(_) => one("meta nftrace set 1".to_owned()),
        Target::Ct(ct) if is_notrack(ct) => one("notrack".to_owned()),
        Target::Dscp(dscp) => {
            let ip = super::word(family);
            one(format!("{ip} dscp set {:#04x}", dscp.code_point))
        }
        _ => Err(untranslatable()),
    }
}

/// Returns `true` if the target only disables tracking.
fn is_notrack(ct: &Ct) -> bool {
    let only = Ct {
        shown_as_notrack: ct.shown_as_notrack,
        ..Ct::notrack()
    };
    *ct == only && ct.zone == CtZone::Id(0)
}

/// Translates the change `(mark & !mask) ^ value`.
fn changed(what: &str, value: u32, mask: u32) -> String {
    let kept = !mask;
    match (kept, value) {
        (0, value) => format!("{what} set {value:#x}"),
        (kept, 0) => format!("{what} set {what} & {kept:#x}"),
        (u32::MAX, value) => format!("{what} set {what} ^ {value:#x}"),
        (kept, value) if kept == !value => format!("{what} set {what} | {value:#x}"),
        (kept, value) => format!("{what} set {what} & {kept:#x} ^ {value:#x}"),
    }
}

fn copied(to: &str, from: &str, mask: u32) -> String {
    match mask {
        u32::MAX => format!("{to} set {from}"),
        mask => format!("{to} set {from} & {mask:#x}"),
    }
}

fn translation(
    word: &str,
    addresses: Option<AddressRange>,
    ports: Option<NatPorts>,
    flags: &[(bool, &str)],
) -> String {
    let mut text = word.to_owned();
    if addresses.is_some() || ports.is_some() {
        text.push_str(" to ");
    }
    if let Some(range) = addresses {
        let translated = |address: IpAddr| match (address, ports.is_some()) {
            (IpAddr::V6(address), true) => format!("[{address}]"),
            (address, _) => address.to_string(),
        };
        text += &translated(range.first);
        if range.last != range.first {
            text += &format!("-{}", translated(range.last));
        }
    }
    if let Some(ports) = ports {
        text += &format!(":{}", ports.first);
        if ports.last != ports.first {
            text += &format!("-{}", ports.last);
        }
    }
    let flags: Vec<_> = flags
        .iter()
        .filter(|(is, _)| *is)
        .map(|(_, name)| *name)
        .collect();
    if !flags.is_empty() {
        text += &format!(" {}", flags.join(","));
    }
    text
}

fn reject(reject: Reject, family: Family) -> Option<&'static str> {
    let name = match (family, reject) {
        (_, Reject::TcpReset) => "reject with tcp reset",
        (Family::Ipv4, Reject::IcmpNetUnreachable) => "reject with icmp type net-unreachable",
        (Family::Ipv4, Reject::IcmpHostUnreachable) => "reject with icmp type host-unreachable",
        (Family::Ipv4, Reject::IcmpProtoUnreachable) => "reject with icmp type prot-unreachable",
        (Family::Ipv4, Reject::IcmpPortUnreachable) => "reject",
        (Family::Ipv4, Reject::IcmpNetProhibited) => "reject with icmp type net-prohibited",
        (Family::Ipv4, Reject::IcmpHostProhibited) => "reject with icmp type host-prohibited",
        (Family::Ipv4, Reject::IcmpAdminProhibited) => "reject with icmp type admin-prohibited",
        (Family::Ipv6, Reject::Icmp6NoRoute) => "reject with icmpv6 type no-route",
        (Family::Ipv6, Reject::Icmp6AdmProhibited) => "reject with icmpv6 type admin-prohibited",
        (Family::Ipv6, Reject::Icmp6AddrUnreachable) => "reject with icmpv6 type addr-unreachable",
        (Family::Ipv6, Reject::Icmp6PortUnreachable) => "reject",
        _ => return None,
    };
    Some(name)
}
