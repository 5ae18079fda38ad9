//! Evaluates x_tables matches and targets.
//!
//! | extensions | module |
//! |---|---|
//! | packet headers | `header.rs`; only IPv6 `header6.rs`; raw bytes `u32.rs` |
//! | addresses, interfaces, routes, link data | `place.rs` |
//! | connection tracking | `connection.rs` |
//! | sockets and senders | `socket.rs` |
//! | counters and random matches | `counted.rs` |
//! | sets and lists | `lists.rs` |
//! | marks and metadata | `marks.rs` |
//! | packet changes | `written.rs` |
//! | NAT | `nat.rs` |
//!
//! A match that only the kernel can evaluate (a time, a rate, the contents of a set) becomes a question in words.

mod connection;
mod counted;
mod header;
mod header6;
mod lists;
mod marks;
mod nat;
mod place;
mod socket;
#[cfg(test)]
mod tests;
mod u32;
mod written;

use std::hash::{DefaultHasher, Hash, Hasher};

use super::field::{Field, PacketOption};
use super::flow::{Effect, Flow, Undetermined};
use super::reject::RejectReply;
use super::steps::Action;
use super::value::{Test, Value};
use chainwright::xt::{Compared, Match, Target, Text};

/// Evaluates a match by name. If it cannot be evaluated, the branch splits into both answers, with the name of the
/// match.
///
/// # Errors
/// The branch splits.
pub(super) fn read_match(
    flow: &mut Flow,
    name: &[u8],
    revision: u8,
    data: &[u8],
) -> Result<bool, Undetermined> {
    let Ok(name) = str::from_utf8(name) else {
        return Err(Undetermined::unknown("the name of a match is not UTF-8"));
    };
    if name == "comment" {
        return Ok(true); // always matches
    }
    let read = Match::read(flow.family, name, revision, data);
    match matches(&read, flow) {
        Err(Undetermined::Unknown(why)) => flow.always(format!(
            "unknown: the match `{}` succeeds ({why})",
            named_apart(&read)
        )),
        answer => answer,
    }
}

/// Describes a match uniquely: by its options, and a hash if they are long.
fn named_apart(read: &Match) -> String {
    const SHOWN: usize = 40;
    let all = match read {
        Match::Opaque(opaque) => opaque.to_string(),
        known => words(known),
    };
    match all.char_indices().nth(SHOWN) {
        None => all,
        Some((end, _)) => {
            let mut hasher = DefaultHasher::new();
            all.hash(&mut hasher);
            format!("{}… #{:08x}", &all[..end], hasher.finish() as u32)
        }
    }
}

/// Evaluates a target by name.
///
/// # Errors
/// Same as [`target`].
pub(super) fn read_target(
    flow: &mut Flow,
    name: &[u8],
    revision: u8,
    data: &[u8],
) -> Result<Effect, Undetermined> {
    let Ok(name) = str::from_utf8(name) else {
        return Err(Undetermined::unknown("the name of a target is not UTF-8"));
    };
    target(&Target::read(flow.family, name, revision, data), flow)
}

/// Evaluates a match. It makes all its queries before it changes the flow.
///
/// # Errors
/// [`Undetermined::Split`] if the result depends on something unknown, [`Undetermined::Unknown`] if the match cannot be evaluated.
fn matches(extension: &Match, flow: &mut Flow) -> Result<bool, Undetermined> {
    match extension {
        Match::Addrtype(addrtype) => place::addrtype(flow, addrtype),
        Match::Ah(ah) => header::ah(flow, ah),
        Match::Bpf(_) => Err(Undetermined::unknown("a BPF program decides")),
        Match::Cgroup(cgroup) => socket::cgroup(flow, cgroup),
        Match::Cluster(cluster) => connection::cluster(flow, cluster),
        Match::Comment(_) => Ok(true),
        Match::Connbytes(connbytes) => connection::connbytes(flow, connbytes),
        Match::Connlabel(connlabel) => connection::connlabel(flow, connlabel),
        Match::Connlimit(connlimit) => counted::connlimit(flow, connlimit),
        Match::Connmark(connmark) => connection::connmark(flow, connmark),
        Match::Conntrack(conntrack) => connection::conntrack(flow, conntrack),
        Match::Cpu(cpu) => counted::cpu(flow, cpu),
        Match::Dccp(dccp) => header::dccp(flow, dccp),
        Match::Devgroup(devgroup) => place::devgroup(flow, devgroup),
        Match::Dscp(dscp) => header::dscp(flow, *dscp),
        Match::Dst(dst) => header6::options(flow, header6::DESTINATION, &dst.0),
        Match::Ecn(ecn) => header::ecn(flow, ecn),
        Match::Esp(esp) => header::esp(flow, esp),
        Match::Eui64(_) => header6::eui64(flow),
        Match::Frag(frag) => header6::frag(flow, frag),
        Match::Hashlimit(hashlimit) => counted::hashlimit(flow, hashlimit),
        Match::Hbh(hbh) => header6::options(flow, header6::HOP_BY_HOP, &hbh.0),
        Match::Helper(helper) => connection::helper(flow, helper),
        Match::Hl(hl) => header::hops(flow, hl.0),
        Match::Icmp(icmp) => header::icmp(flow, icmp),
        Match::Icmp6(icmp6) => header::icmp6(flow, icmp6),
        Match::Ipcomp(ipcomp) => header::ipcomp(flow, ipcomp),
        Match::Iprange(iprange) => place::iprange(flow, iprange),
        Match::Ipv6header(headers) => header6::ipv6header(flow, *headers),
        Match::Ipvs(ipvs) => connection::ipvs(flow, ipvs),
        Match::Length(length) => header::length(flow, *length),
        Match::Limit(limit) => counted::limit(flow, limit),
        Match::Mac(mac) => place::mac(flow, mac),
        Match::Mark(mark) => masked(flow, Field::Mark, mark.mask, mark.value, mark.invert),
        Match::Mh(mh) => header6::mh(flow, *mh),
        Match::Multiport(multiport) => header::multiport(flow, multiport),
        Match::Nfacct(nfacct) => counted::nfacct(flow, nfacct),
        Match::Osf(osf) => header::osf(flow, osf),
        Match::Owner(owner) => socket::owner(flow, owner),
        Match::Physdev(physdev) => place::physdev(flow, physdev),
        Match::Pkttype(pkttype) => place::pkttype(flow, *pkttype),
        Match::Policy(policy) => place::policy(flow, policy),
        Match::Quota(quota) => counted::quota(flow, *quota),
        Match::Rateest(rateest) => counted::rateest(flow, rateest),
        Match::Realm(realm) => place::realm(flow, *realm),
        Match::Recent(recent) => lists::recent(flow, recent),
        Match::Rpfilter(rpfilter) => place::rpfilter(flow, *rpfilter),
        Match::Rt(rt) => header6::rt(flow, rt),
        Match::Sctp(sctp) => header::sctp(flow, sctp),
        Match::Set(set) => lists::set(flow, set),
        Match::Socket(socket) => socket::socket(flow, *socket),
        Match::Srh(srh) => header6::srh(flow, srh),
        Match::Statistic(statistic) => counted::statistic(flow, *statistic),
        Match::String(string) => header::string(flow, string),
        Match::Tcp(tcp) => header::tcp(flow, tcp),
        Match::Tcpmss(tcpmss) => header::tcpmss(flow, *tcpmss),
        Match::Time(time) => counted::time(flow, time),
        Match::Tos(tos) => header::tos(flow, *tos),
        Match::Ttl(ttl) => header::hops(flow, ttl.0),
        Match::U32(tests) => u32::u32(flow, tests),
        Match::Udp(udp) => header::udp(flow, udp),
        Match::Opaque(opaque) => Err(Undetermined::unknown(format!(
            "unsupported match `{}`, revision {}",
            opaque.name, opaque.revision
        ))),
        _ => Err(Undetermined::unknown("unsupported match")),
    }
}

/// Evaluates a target. It makes all its queries before it changes the flow.
///
/// # Errors
/// Same as [`matches`].
fn target(extension: &Target, flow: &mut Flow) -> Result<Effect, Undetermined> {
    match extension {
        Target::Audit(_) => Ok(other(flow, "reported to the audit system")),
        Target::Checksum(_) => Ok(other(flow, "its checksum is computed")),
        Target::Classify(classify) => Ok(marks::classify(flow, *classify)),
        Target::Clusterip(_) => Err(Undetermined::unknown(
            "CLUSTERIP assigns packets to one of several nodes; newer kernels do not have this target",
        )),
        Target::Connmark(connmark) => marks::connmark(flow, connmark),
        Target::Connsecmark(_) => Ok(other(
            flow,
            "its security mark is that of the connection, or the reverse",
        )),
        Target::Ct(ct) => marks::ct(flow, ct),
        Target::Dnat(dnat) => nat::dnat(flow, dnat),
        Target::Dnpt(dnpt) => Ok(written::prefix(flow, Field::Destination, &dnpt.0)),
        Target::Dscp(dscp) => Ok(written::dscp(flow, *dscp)),
        Target::Ecn(ecn) => Ok(written::ecn(flow, *ecn)),
        Target::Hl(hl) => Ok(written::hops(flow, hl.0)),
        Target::Hmark(hmark) => Ok(marks::hmark(flow, hmark)),
        Target::Idletimer(timer) => Ok(other(flow, format!("the timer {} restarts", timer.label))),
        Target::Led(led) => Ok(other(
            flow,
            format!("the LED trigger {} fires", led.trigger),
        )),
        Target::Log(log) => {
            flow.record_action(Action::Log(log.prefix.clone()));
            Ok(Effect::Continue)
        }
        Target::Mark(mark) => Ok(marks::mark(flow, *mark)),
        Target::Masquerade(masquerade) => nat::masquerade(flow, masquerade),
        Target::Netmap(netmap) => nat::netmap(flow, netmap),
        Target::Nflog(nflog) => {
            flow.record_action(Action::Log(nflog.prefix.clone()));
            Ok(Effect::Continue)
        }
        Target::Nfqueue(queue) => Ok(Effect::Queue {
            first: queue.first,
            queues: queue.last.saturating_sub(queue.first).saturating_add(1),
            bypass: queue.bypass,
        }),
        Target::Rateest(rateest) => Ok(other(
            flow,
            format!("counted for the rate {}", rateest.name),
        )),
        Target::Redirect(redirect) => nat::redirect(flow, redirect),
        Target::Reject(reject) => Ok(Effect::Reject(RejectReply::of(*reject).words(flow.family))),
        Target::Secmark(secmark) => Ok(other(
            flow,
            format!("its security mark is {}", secmark.context),
        )),
        Target::Set(set) => Ok(lists::target(flow, set)),
        Target::Snat(snat) => nat::snat(flow, snat),
        Target::Snpt(snpt) => Ok(written::prefix(flow, Field::Source, &snpt.0)),
        Target::Synproxy(_) => socket::synproxy(flow),
        Target::Tcpmss(mss) => Ok(written::tcpmss(flow, mss)),
        Target::Tcpoptstrip(strip) => Ok(written::strip(flow, *strip)),
        Target::Tee(tee) => Ok(other(flow, format!("a copy is sent to {}", tee.gateway))),
        Target::Tos(tos) => Ok(written::tos(flow, *tos)),
        Target::Tproxy(tproxy) => socket::tproxy(flow, tproxy),
        Target::Trace(_) => Ok(marks::trace(flow)),
        Target::Ttl(ttl) => Ok(written::hops(flow, ttl.0)),
        Target::Opaque(opaque) => Err(Undetermined::unknown(format!(
            "unsupported target `{}`, revision {}",
            opaque.name, opaque.revision
        ))),
        _ => Err(Undetermined::unknown("unsupported target")),
    }
}

/// Evaluates a target that changes nothing that rules can read.
fn other(flow: &mut Flow, words: impl Into<String>) -> Effect {
    flow.record_action(Action::Other(words.into()));
    Effect::Continue
}

/// Tests a number; false if there is none.
fn is(flow: &mut Flow, value: Option<Value>, test: Test<'_>) -> Result<bool, Undetermined> {
    match value {
        Some(value) => flow.ask(&value, test),
        None => Ok(false),
    }
}

/// Returns bytes of an option or extension header that the packet has.
fn option_bytes(flow: &mut Flow, option: PacketOption, first: u16, last: u16) -> Value {
    let mut bits = Vec::new();
    for at in first..=last {
        bits.extend(flow.get(Field::OptionByte(option, at)).to_bits());
    }
    Value::of_bits(&bits)
}

/// Tests masked bits like a mark match: value bits outside of the mask never match.
fn masked(
    flow: &mut Flow,
    field: Field,
    mask: u32,
    value: u32,
    invert: bool,
) -> Result<bool, Undetermined> {
    let is = value & !mask == 0
        && flow.is(
            field,
            Test::Masked {
                mask: mask.into(),
                value: value.into(),
            },
        )?;
    Ok(is != invert)
}

/// Tests whether a number is in a range.
fn within<T: Into<u128>>(
    flow: &mut Flow,
    field: Field,
    first: T,
    last: T,
    invert: bool,
) -> Result<bool, Undetermined> {
    Ok(flow.is(field, Test::Within(first.into(), last.into()))? != invert)
}

/// Evaluates a comparison, if there is one.
fn holds<T>(
    compared: Option<&Compared<T>>,
    test: impl FnOnce(&T) -> Result<bool, Undetermined>,
) -> Result<bool, Undetermined> {
    match compared {
        Some(compared) => Ok(test(&compared.value)? != compared.invert),
        None => Ok(true),
    }
}

/// Sets a field and records the action.
fn set(flow: &mut Flow, field: Field, value: Value) -> Effect {
    flow.give(field, &value);
    Effect::Continue
}

/// Describes a field's value, for questions about it.
fn named(flow: &mut Flow, field: Field) -> String {
    let value = flow.get(field);
    match flow.known(&value) {
        Some(_) => format!("{field} {}", flow.words(field, &value)),
        None => format!("the packet's {field}"),
    }
}

/// Formats a match as its options.
fn words(extension: &Match) -> String {
    let mut text = Text::new();
    extension.print(&mut text);
    let words = String::from_utf8_lossy(text.as_bytes()).into_owned();
    words.trim().trim_start_matches("-m ").to_owned()
}
