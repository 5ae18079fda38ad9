//! Translates targets.

use std::net::IpAddr;

use bstr::ByteSlice;

use super::build::{
    Nat, Statement, address, binary, ct, field, hex, meta, quoted, sets, span, test, word,
};
use super::{Statements, Untranslatable, checked, protocol_word};
use crate::protocols::{self, Protocol};
use crate::syntax::{Expr, Operator, Verdict};
use chainwright::iptables::{Rule, Target as Of};
use chainwright::nft::expr::{CtKey, ExthdrOp, MetaKey, RtKey};
use chainwright::xt::targets::connmark::{Connmark, ConnmarkOperation, ConnmarkShift};
use chainwright::xt::targets::log::{Log, LogFlags};
use chainwright::xt::targets::nflog::Nflog;
use chainwright::xt::targets::reject::Reject;
use chainwright::xt::targets::tcpmss::Tcpmss;
use chainwright::xt::targets::tos::Tos;
use chainwright::xt::targets::tproxy::Tproxy;
use chainwright::xt::targets::{AddressRange, NatPorts};
use chainwright::xt::{Family, Target};

/// nft's log level for messages of the audit subsystem.
const AUDIT: u32 = 8;
/// The kernel's default log level, which nft does not print.
const WARNING: u8 = 4;

const fn network(family: Family) -> &'static Protocol {
    match family {
        Family::Ipv4 => &protocols::IP,
        Family::Ipv6 => &protocols::IP6,
    }
}

pub(super) fn translated(target: &Target, rule: &Rule, family: Family) -> Statements {
    let part = || Rule::new(Of::Extension(target.clone())).to_string();
    let untranslatable = || Untranslatable::Extension(part());
    let inexact = |why| Untranslatable::Inexact { part: part(), why };
    let one = |statement: Statement| Ok(vec![statement]);
    match target {
        Target::Log(log) => one(self::log(log)?.ok_or_else(untranslatable)?),
        Target::Nflog(nflog) => one(self::nflog(nflog)?),
        Target::Audit(_) => one(Statement::Log {
            prefix: None,
            group: None,
            snaplen: None,
            queue_threshold: None,
            level: Some(AUDIT),
            flags: 0,
        }),
        Target::Reject(reject) => {
            let words = self::reject(*reject, family).ok_or_else(untranslatable)?;
            one(Statement::Reject(words))
        }
        Target::Dnat(dnat) if dnat.base_port.is_none() => translation(
            Nat::Destination,
            dnat.addresses,
            dnat.ports,
            &[(dnat.random, "random"), (dnat.persistent, "persistent")],
        ),
        Target::Snat(snat) => translation(
            Nat::Source,
            snat.addresses,
            snat.ports,
            &[
                (snat.random, "random"),
                (snat.random_fully, "fully-random"),
                (snat.persistent, "persistent"),
            ],
        ),
        Target::Masquerade(masquerade) => translation(
            Nat::Masquerade,
            None,
            masquerade.ports,
            &[
                (masquerade.random, "random"),
                (masquerade.random_fully, "fully-random"),
            ],
        ),
        Target::Redirect(redirect) => translation(
            Nat::Redirect,
            None,
            redirect.ports,
            &[(redirect.random, "random")],
        ),
        Target::Mark(mark) => one(changed(meta(MetaKey::MARK), mark.value, mark.mask)),
        Target::Connmark(connmark) => one(self::connmark(*connmark).ok_or_else(|| {
            inexact("it keeps bits of one mark and copies those of another, which needs nft 1.1 and Linux 6.14")
        })?),
        Target::Nfqueue(queue) => {
            let flags = [(queue.bypass, "bypass"), (queue.cpu_fanout, "fanout")];
            let flags = flags.iter().filter(|(is, _)| *is);
            one(Statement::Queue {
                numbers: span(queue.first, queue.last),
                flags: flags.map(|(_, name)| *name).collect(),
            })
        }
        Target::Classify(class) => {
            let value = match (class.major, class.minor) {
                (0, 0) => word("none"),
                (u16::MAX, u16::MAX) => word("root"),
                (major, minor) => word(format_args!("{major:x}:{minor:x}")),
            };
            one(sets(meta(MetaKey::PRIORITY), value))
        }
        Target::Trace(_) => one(sets(meta(MetaKey::NFTRACE), word(1))),
        // Packets without a connection have no other properties.
        Target::Ct(ct) if ct.notrack => one(Statement::Notrack),
        Target::Dscp(dscp) => one(sets(
            field(network(family), "dscp"),
            word(format_args!("{:#04x}", dscp.code_point)),
        )),
        Target::Tos(tos) => Ok(self::tos(*tos, family)),
        Target::Tcpmss(tcpmss) => {
            let size = super::build::option(ExthdrOp::TCPOPT, "maxseg", "size");
            one(match tcpmss {
                Tcpmss::Set(size_) => sets(size, word(size_)),
                Tcpmss::ClampToPmtu => sets(size, Expr::Rt(RtKey::TCPMSS)),
            })
        }
        Target::Tee(tee) => one(Statement::Duplicate {
            address: address(tee.gateway),
            device: match tee.out_interface.is_empty() {
                true => None,
                false => Some(device(tee.out_interface.as_bstr())?),
            },
        }),
        Target::Tproxy(tproxy) => {
            one(self::tproxy(tproxy, rule, family).ok_or_else(untranslatable)?)
        }
        Target::Synproxy(synproxy) => {
            if synproxy.ecn || synproxy.wscale.is_some_and(|scale| scale > 14) {
                return Err(inexact("nft does not have this option, or this value"));
            }
            one(Statement::Synproxy {
                mss: synproxy.mss,
                window_scale: synproxy.wscale,
                timestamp: synproxy.timestamp,
                sack_permitted: synproxy.sack_perm,
            })
        }
        _ => Err(untranslatable()),
    }
}

/// Returns an interface name, in quotation marks if it is not a word.
fn device(name: &bstr::BStr) -> Result<Expr, Untranslatable> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name = checked(name, 15)?;
    let is_word = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_plain);
    Ok(match is_word {
        true => word(name),
        false => quoted(name),
    })
}

fn log(log: &Log) -> Result<Option<Statement>, Untranslatable> {
    if log.level > 7 || !LogFlags::all().contains(log.flags) {
        return Ok(None);
    }
    Ok(Some(Statement::Log {
        prefix: prefix(log.prefix.as_bstr())?,
        group: None,
        snaplen: None,
        queue_threshold: None,
        level: (log.level != WARNING).then(|| log.level.into()),
        flags: log.flags.bits().into(),
    }))
}

fn prefix(prefix: &bstr::BStr) -> Result<Option<String>, Untranslatable> {
    Ok(match prefix.is_empty() {
        true => None,
        false => Some(checked(prefix, 127)?.to_owned()),
    })
}

fn nflog(nflog: &Nflog) -> Result<Statement, Untranslatable> {
    Ok(Statement::Log {
        // The kernel cuts longer ones.
        prefix: prefix(nflog.prefix[..nflog.prefix.len().min(63)].as_bstr())?,
        group: Some(nflog.group),
        // Without `cut`, the kernel ignores the length.
        snaplen: nflog.cut.then_some(nflog.length),
        queue_threshold: (nflog.threshold > 0).then_some(nflog.threshold),
        level: None,
        flags: 0,
    })
}

/// Returns an anonymous chain whose last rule drops the packets that no socket accepts.
fn tproxy(tproxy: &Tproxy, rule: &Rule, family: Family) -> Option<Statement> {
    let protocol = rule.protocol.filter(|protocol| !protocol.invert)?.number;
    matches!(protocol, 6 | 17).then_some(())?;
    let to = match (tproxy.address.is_unspecified(), family) {
        (true, _) => None,
        (false, Family::Ipv4) => Some(address(tproxy.address)),
        (false, Family::Ipv6) => Some(bracketed(tproxy.address)),
    };
    let mut takes = vec![
        test(meta(MetaKey::L4PROTO), word(protocol_word(protocol))),
        Statement::Tproxy {
            address: to,
            port: word(tproxy.port),
        },
    ];
    if (tproxy.mark, tproxy.mask) != (0, 0) {
        takes.push(changed(meta(MetaKey::MARK), tproxy.mark, tproxy.mask));
    }
    takes.push(Statement::Verdict(Verdict::Accept));
    Some(Statement::Block(vec![
        takes,
        vec![Statement::Verdict(Verdict::Drop)],
    ]))
}

/// Translates the change `(value & !mask) ^ value` of six bits of the header's byte, and of the two others if they
/// change.
fn tos(tos: Tos, family: Family) -> Vec<Statement> {
    let part = |name, value: u8, mask: u8, all: u8, shown: fn(u8) -> Expr| {
        let left = || field(network(family), name);
        let (kept, value) = (!mask & all, value & all);
        let with = |operator, value| binary(operator, left(), shown(value));
        let to = match (kept, value) {
            (0, value) => shown(value),
            (kept, 0) => with(Operator::And, kept),
            (kept, value) if kept == all => with(Operator::Xor, value),
            (kept, value) if kept == !value & all => with(Operator::Or, value),
            (kept, value) => binary(Operator::Xor, with(Operator::And, kept), shown(value)),
        };
        sets(left(), to)
    };
    let code_point: fn(u8) -> Expr = |value| word(format_args!("{value:#04x}"));
    let changes = |bits: u8| (tos.value | tos.mask) & bits != 0;
    let mut all = Vec::new();
    if changes(0xfc) || !changes(3) {
        all.push(part(
            "dscp",
            tos.value >> 2,
            tos.mask >> 2,
            0x3f,
            code_point,
        ));
    }
    if changes(3) {
        let names: fn(u8) -> Expr = |value| {
            let names = ["not-ect", "ect1", "ect0", "ce"];
            word(names[usize::from(value & 3)])
        };
        all.push(part("ecn", tos.value, tos.mask, 3, names));
    }
    all
}

/// Translates the change `(mark & !mask) ^ value`.
fn changed(what: Expr, value: u32, mask: u32) -> Statement {
    let with = |operator, value| binary(operator, what.clone(), hex(value));
    let to = match (!mask, value) {
        (0, value) => hex(value),
        (kept, 0) => with(Operator::And, kept),
        (u32::MAX, value) => with(Operator::Xor, value),
        (kept, value) if kept == !value => with(Operator::Or, value),
        (kept, value) => binary(Operator::Xor, with(Operator::And, kept), hex(value)),
    };
    sets(what, to)
}

fn connmark(connmark: Connmark) -> Option<Statement> {
    let shifted = |value: Expr| match connmark.shift {
        None => value,
        Some(ConnmarkShift::Left(bits)) => binary(Operator::LeftShift, value, word(bits)),
        Some(ConnmarkShift::Right(bits)) => binary(Operator::RightShift, value, word(bits)),
    };
    let under = |from: Expr, mask| match mask {
        u32::MAX => from,
        mask => binary(Operator::And, from, hex(mask)),
    };
    let (packet, connection) = (meta(MetaKey::MARK), ct(CtKey::MARK));
    Some(match connmark.operation {
        ConnmarkOperation::Set { value, mask } => match (connmark.shift, mask) {
            (None, mask) => changed(connection, value, mask),
            (Some(ConnmarkShift::Left(bits)), u32::MAX) => {
                sets(connection, hex(value.checked_shl(bits.into())?))
            }
            (Some(ConnmarkShift::Right(bits)), u32::MAX) => {
                sets(connection, hex(value.checked_shr(bits.into())?))
            }
            _ => return None,
        },
        ConnmarkOperation::Save {
            nfmask,
            ctmask: u32::MAX,
        } => sets(connection, shifted(under(packet, nfmask))),
        ConnmarkOperation::Restore {
            nfmask: u32::MAX,
            ctmask,
        } => sets(packet, shifted(under(connection, ctmask))),
        _ => return None,
    })
}

/// Returns an address in brackets, to which a port is appended.
fn bracketed(of: IpAddr) -> Expr {
    match address(of) {
        Expr::Symbol(symbol) => word(format_args!("[{}]", symbol.text)),
        other => other,
    }
}

fn translation(
    kind: Nat,
    addresses: Option<AddressRange>,
    ports: Option<NatPorts>,
    flags: &[(bool, &'static str)],
) -> Statements {
    let to = addresses.map(|range| {
        let shown = match range.first.is_ipv6() && ports.is_some() {
            true => bracketed,
            false => address,
        };
        match range.first == range.last {
            true => shown(range.first),
            false => Expr::Range(Box::new(shown(range.first)), Box::new(shown(range.last))),
        }
    });
    let flags = flags.iter().filter(|(is, _)| *is);
    Ok(vec![Statement::Nat {
        kind,
        address: to,
        port: ports.map(|ports| span(ports.first, ports.last)),
        flags: flags.map(|(_, name)| *name).collect(),
    }])
}

/// Returns the words after `reject with`, `Some(None)` for the default.
fn reject(reject: Reject, family: Family) -> Option<Option<&'static str>> {
    let name = match (family, reject) {
        (_, Reject::TcpReset) => "tcp reset",
        (Family::Ipv4, Reject::IcmpPortUnreachable) => return Some(None),
        (Family::Ipv6, Reject::Icmp6PortUnreachable) => return Some(None),
        (Family::Ipv4, Reject::IcmpNetUnreachable) => "icmp type net-unreachable",
        (Family::Ipv4, Reject::IcmpHostUnreachable) => "icmp type host-unreachable",
        (Family::Ipv4, Reject::IcmpProtoUnreachable) => "icmp type prot-unreachable",
        (Family::Ipv4, Reject::IcmpNetProhibited) => "icmp type net-prohibited",
        (Family::Ipv4, Reject::IcmpHostProhibited) => "icmp type host-prohibited",
        (Family::Ipv4, Reject::IcmpAdminProhibited) => "icmp type admin-prohibited",
        (Family::Ipv6, Reject::Icmp6NoRoute) => "icmpv6 type no-route",
        (Family::Ipv6, Reject::Icmp6AdmProhibited) => "icmpv6 type admin-prohibited",
        (Family::Ipv6, Reject::Icmp6AddrUnreachable) => "icmpv6 type addr-unreachable",
        (Family::Ipv6, Reject::Icmp6PolicyFail) => "icmpv6 type policy-fail",
        (Family::Ipv6, Reject::Icmp6RejectRoute) => "icmpv6 type reject-route",
        _ => return None,
    };
    Some(Some(name))
}
