//! Evaluates x_tables matches and targets.
//!
//! | extensions | module |
//! |---|---|
//! | packet headers | `header.rs`; only IPv6 `header6.rs`; raw bytes `u32.rs` |
//! | addresses, interfaces, routes, link data | `addressing.rs` |
//! | connection tracking | `connection.rs` |
//! | sockets and senders | `socket.rs` |
//! | counters and random matches | `stateful.rs` |
//! | sets and lists | `lists.rs` |
//! | marks and metadata | `marks.rs` |
//! | packet changes | `targets.rs` |
//! | NAT | `nat.rs` |
//!
//! A match that only the kernel can evaluate (a time, a rate, the contents of a set) becomes an unknown condition,
//! which is identified by the match's text.

mod addressing;
mod connection;
mod header;
mod header6;
mod lists;
mod marks;
mod nat;
mod socket;
mod stateful;
mod targets;
#[cfg(test)]
mod tests;
mod u32;

use std::hash::{DefaultHasher, Hash, Hasher};

use super::field::{Field, PacketOption};
use super::path_state::{Effect, PathState, Undetermined};
use super::reject::RejectReply;
use super::steps::Action;
use super::value::{Test, Value};
use chainwright::xt::{Match, Negatable, Target, Text};

/// Evaluates a match by name. If it cannot be evaluated, the branch splits into both answers, with the name of the
/// match.
///
/// # Errors
/// The branch splits.
pub(super) fn read_match(
    path_state: &mut PathState,
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
    let read = Match::read(path_state.family, name, revision, data);
    match matches(&read, path_state) {
        Err(Undetermined::Unknown(why)) => path_state.always(format!(
            "unknown: the match `{}` succeeds ({why})",
            named_apart(&read)
        )),
        answer => answer,
    }
}

/// Describes a match uniquely: by its options, and a hash if they are long.
fn named_apart(read: &Match) -> String {
    const MAX_LENGTH: usize = 40;
    let all = match read {
        Match::Opaque(opaque) => opaque.to_string(),
        known => description(known),
    };
    match all.char_indices().nth(MAX_LENGTH) {
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
    path_state: &mut PathState,
    name: &[u8],
    revision: u8,
    data: &[u8],
) -> Result<Effect, Undetermined> {
    let Ok(name) = str::from_utf8(name) else {
        return Err(Undetermined::unknown("the name of a target is not UTF-8"));
    };
    target(
        &Target::read(path_state.family, name, revision, data),
        path_state,
    )
}

/// Evaluates a match. It makes all its queries before it changes the flow.
///
/// # Errors
/// [`Undetermined::Split`] if the result depends on something unknown, [`Undetermined::Unknown`] if the match cannot be evaluated.
fn matches(extension: &Match, path_state: &mut PathState) -> Result<bool, Undetermined> {
    match extension {
        Match::Addrtype(addrtype) => addressing::addrtype(path_state, addrtype),
        Match::Ah(ah) => header::ah(path_state, ah),
        Match::Bpf(_) => Err(Undetermined::unknown("a BPF program decides")),
        Match::Cgroup(cgroup) => socket::cgroup(path_state, cgroup),
        Match::Cluster(cluster) => connection::cluster(path_state, cluster),
        Match::Comment(_) => Ok(true),
        Match::Connbytes(connbytes) => connection::connbytes(path_state, connbytes),
        Match::Connlabel(connlabel) => connection::connlabel(path_state, connlabel),
        Match::Connlimit(connlimit) => stateful::connlimit(path_state, connlimit),
        Match::Connmark(connmark) => connection::connmark(path_state, connmark),
        Match::Conntrack(conntrack) => connection::conntrack(path_state, conntrack),
        Match::Cpu(cpu) => stateful::cpu(path_state, cpu),
        Match::Dccp(dccp) => header::dccp(path_state, dccp),
        Match::Devgroup(devgroup) => addressing::devgroup(path_state, devgroup),
        Match::Dscp(dscp) => header::dscp(path_state, *dscp),
        Match::Dst(dst) => header6::options(path_state, header6::DESTINATION, &dst.0),
        Match::Ecn(ecn) => header::ecn(path_state, ecn),
        Match::Esp(esp) => header::esp(path_state, esp),
        Match::Eui64(_) => header6::eui64(path_state),
        Match::Frag(frag) => header6::frag(path_state, frag),
        Match::Hashlimit(hashlimit) => stateful::hashlimit(path_state, hashlimit),
        Match::Hbh(hbh) => header6::options(path_state, header6::HOP_BY_HOP, &hbh.0),
        Match::Helper(helper) => connection::helper(path_state, helper),
        Match::Hl(hl) => header::hops(path_state, hl.0),
        Match::Icmp(icmp) => header::icmp(path_state, icmp),
        Match::Icmp6(icmp6) => header::icmp6(path_state, icmp6),
        Match::Ipcomp(ipcomp) => header::ipcomp(path_state, ipcomp),
        Match::Iprange(iprange) => addressing::iprange(path_state, iprange),
        Match::Ipv6header(headers) => header6::ipv6header(path_state, *headers),
        Match::Ipvs(ipvs) => connection::ipvs(path_state, ipvs),
        Match::Length(length) => header::length(path_state, *length),
        Match::Limit(limit) => stateful::limit(path_state, limit),
        Match::Mac(mac) => addressing::mac(path_state, mac),
        Match::Mark(mark) => masked(path_state, Field::Mark, mark.mask, mark.value, mark.invert),
        Match::Mh(mh) => header6::mh(path_state, *mh),
        Match::Multiport(multiport) => header::multiport(path_state, multiport),
        Match::Nfacct(nfacct) => stateful::nfacct(path_state, nfacct),
        Match::Osf(osf) => header::osf(path_state, osf),
        Match::Owner(owner) => socket::owner(path_state, owner),
        Match::Physdev(physdev) => addressing::physdev(path_state, physdev),
        Match::Pkttype(pkttype) => addressing::pkttype(path_state, *pkttype),
        Match::Policy(policy) => addressing::policy(path_state, policy),
        Match::Quota(quota) => stateful::quota(path_state, *quota),
        Match::Rateest(rateest) => stateful::rateest(path_state, rateest),
        Match::Realm(realm) => addressing::realm(path_state, *realm),
        Match::Recent(recent) => lists::recent(path_state, recent),
        Match::Rpfilter(rpfilter) => addressing::rpfilter(path_state, *rpfilter),
        Match::Rt(rt) => header6::rt(path_state, rt),
        Match::Sctp(sctp) => header::sctp(path_state, sctp),
        Match::Set(set) => lists::set(path_state, set),
        Match::Socket(socket) => socket::socket(path_state, *socket),
        Match::Srh(srh) => header6::srh(path_state, srh),
        Match::Statistic(statistic) => stateful::statistic(path_state, *statistic),
        Match::String(string) => header::string(path_state, string),
        Match::Tcp(tcp) => header::tcp(path_state, tcp),
        Match::Tcpmss(tcpmss) => header::tcpmss(path_state, *tcpmss),
        Match::Time(time) => stateful::time(path_state, time),
        Match::Tos(tos) => header::tos(path_state, *tos),
        Match::Ttl(ttl) => header::hops(path_state, ttl.0),
        Match::U32(tests) => u32::u32(path_state, tests),
        Match::Udp(udp) => header::udp(path_state, udp),
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
fn target(extension: &Target, path_state: &mut PathState) -> Result<Effect, Undetermined> {
    match extension {
        Target::Audit(_) => Ok(other(path_state, "reported to the audit system")),
        Target::Checksum(_) => Ok(other(path_state, "its checksum is computed")),
        Target::Classify(classify) => Ok(marks::classify(path_state, *classify)),
        Target::Clusterip(_) => Err(Undetermined::unknown(
            "CLUSTERIP assigns packets to one of several nodes; newer kernels do not have this target",
        )),
        Target::Connmark(connmark) => marks::connmark(path_state, connmark),
        Target::Connsecmark(_) => Ok(other(
            path_state,
            "its security mark is that of the connection, or the reverse",
        )),
        Target::Ct(ct) => marks::ct(path_state, ct),
        Target::Dnat(dnat) => nat::dnat(path_state, dnat),
        Target::Dnpt(dnpt) => Ok(targets::prefix(path_state, Field::Destination, &dnpt.0)),
        Target::Dscp(dscp) => Ok(targets::dscp(path_state, *dscp)),
        Target::Ecn(ecn) => Ok(targets::ecn(path_state, *ecn)),
        Target::Hl(hl) => Ok(targets::hops(path_state, hl.0)),
        Target::Hmark(hmark) => Ok(marks::hmark(path_state, hmark)),
        Target::Idletimer(timer) => Ok(other(
            path_state,
            format!("the timer {} restarts", timer.label),
        )),
        Target::Led(led) => Ok(other(
            path_state,
            format!("the LED trigger {} fires", led.trigger),
        )),
        Target::Log(log) => {
            path_state.record_action(Action::Log(log.prefix.clone()));
            Ok(Effect::Continue)
        }
        Target::Mark(mark) => Ok(marks::mark(path_state, *mark)),
        Target::Masquerade(masquerade) => nat::masquerade(path_state, masquerade),
        Target::Netmap(netmap) => nat::netmap(path_state, netmap),
        Target::Nflog(nflog) => {
            path_state.record_action(Action::Log(nflog.prefix.clone()));
            Ok(Effect::Continue)
        }
        Target::Nfqueue(queue) => Ok(Effect::Queue {
            first: queue.first,
            queues: queue.last.saturating_sub(queue.first).saturating_add(1),
            bypass: queue.bypass,
        }),
        Target::Rateest(rateest) => Ok(other(
            path_state,
            format!("counted for the rate {}", rateest.name),
        )),
        Target::Redirect(redirect) => nat::redirect(path_state, redirect),
        Target::Reject(reject) => Ok(Effect::Reject(
            RejectReply::of(*reject).description(path_state.family),
        )),
        Target::Secmark(secmark) => Ok(other(
            path_state,
            format!("its security mark is {}", secmark.context),
        )),
        Target::Set(set) => Ok(lists::target(path_state, set)),
        Target::Snat(snat) => nat::snat(path_state, snat),
        Target::Snpt(snpt) => Ok(targets::prefix(path_state, Field::Source, &snpt.0)),
        Target::Synproxy(_) => socket::synproxy(path_state),
        Target::Tcpmss(mss) => Ok(targets::tcpmss(path_state, mss)),
        Target::Tcpoptstrip(strip) => Ok(targets::strip(path_state, *strip)),
        Target::Tee(tee) => Ok(other(
            path_state,
            format!("a copy is sent to {}", tee.gateway),
        )),
        Target::Tos(tos) => Ok(targets::tos(path_state, *tos)),
        Target::Tproxy(tproxy) => socket::tproxy(path_state, tproxy),
        Target::Trace(_) => Ok(marks::trace(path_state)),
        Target::Ttl(ttl) => Ok(targets::hops(path_state, ttl.0)),
        Target::Opaque(opaque) => Err(Undetermined::unknown(format!(
            "unsupported target `{}`, revision {}",
            opaque.name, opaque.revision
        ))),
        _ => Err(Undetermined::unknown("unsupported target")),
    }
}

/// Evaluates a target that changes nothing that rules can read.
fn other(path_state: &mut PathState, description: impl Into<String>) -> Effect {
    path_state.record_action(Action::Other(description.into()));
    Effect::Continue
}

/// Tests a number; false if there is none.
fn is(
    path_state: &mut PathState,
    value: Option<Value>,
    test: Test<'_>,
) -> Result<bool, Undetermined> {
    match value {
        Some(value) => path_state.test_value(&value, test),
        None => Ok(false),
    }
}

/// Returns bytes of an option or extension header that the packet has.
fn option_bytes(path_state: &mut PathState, option: PacketOption, first: u16, last: u16) -> Value {
    let mut bits = Vec::new();
    for at in first..=last {
        bits.extend(path_state.get(Field::OptionByte(option, at)).to_bits());
    }
    Value::of_bits(&bits)
}

/// Tests masked bits like a mark match: value bits outside of the mask never match.
fn masked(
    path_state: &mut PathState,
    field: Field,
    mask: u32,
    value: u32,
    invert: bool,
) -> Result<bool, Undetermined> {
    let is = value & !mask == 0
        && path_state.is(
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
    path_state: &mut PathState,
    field: Field,
    first: T,
    last: T,
    invert: bool,
) -> Result<bool, Undetermined> {
    Ok(path_state.is(field, Test::Within(first.into(), last.into()))? != invert)
}

/// Evaluates a comparison, if there is one.
fn holds<T>(
    compared: Option<&Negatable<T>>,
    test: impl FnOnce(&T) -> Result<bool, Undetermined>,
) -> Result<bool, Undetermined> {
    match compared {
        Some(compared) => Ok(test(&compared.value)? != compared.invert),
        None => Ok(true),
    }
}

/// Sets a field and records the action.
fn set(path_state: &mut PathState, field: Field, value: Value) -> Effect {
    path_state.give(field, &value);
    Effect::Continue
}

/// Describes a field's value, for queries about it.
fn named(path_state: &mut PathState, field: Field) -> String {
    let value = path_state.get(field);
    match path_state.known(&value) {
        Some(_) => format!("{field} {}", path_state.description(field, &value)),
        None => format!("the packet's {field}"),
    }
}

/// Formats a match as its options.
fn description(extension: &Match) -> String {
    let mut text = Text::new();
    extension.print(&mut text);
    let description = String::from_utf8_lossy(text.as_bytes()).into_owned();
    description.trim().trim_start_matches("-m ").to_owned()
}
