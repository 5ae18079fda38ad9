//! Translates matches.

mod connection;
mod ipv6;
mod stateful;
mod transport;

use std::net::IpAddr;
use std::ops::RangeInclusive;

use super::build::{
    Statement, address, any, compared, field, hex, is, meta, quoted, set, sets, span, test, under,
    unless, word,
};
use super::{Statements, Untranslatable, checked, masked, part};
use crate::protocols::{self, Protocol};
use crate::syntax::{Expr, Relation};
use chainwright::iptables::Rule;
use chainwright::nft::expr::{FibFlags, FibResult, MetaKey, SocketKey};
use chainwright::xt::matches::addrtype::{AddressTypes, Addrtype, AddrtypeInterface};
use chainwright::xt::matches::cgroup::Cgroup;
use chainwright::xt::matches::devgroup::Devgroup;
use chainwright::xt::matches::owner::Owner;
use chainwright::xt::matches::pkttype::PacketType;
use chainwright::xt::matches::policy::{Policy, PolicyDirection, PolicyElement, PolicyRequirement};
use chainwright::xt::matches::rpfilter::Rpfilter;
use chainwright::xt::matches::socket::Socket;
use chainwright::xt::matches::ttl::Hops;
use chainwright::xt::{Family, Match, Negatable};

/// Address types with nft's names, or the kernel's numbers of those that have none.
const ADDRESS_TYPES: [(AddressTypes, &str); 12] = [
    (AddressTypes::UNSPEC, "unspec"),
    (AddressTypes::UNICAST, "unicast"),
    (AddressTypes::LOCAL, "local"),
    (AddressTypes::BROADCAST, "broadcast"),
    (AddressTypes::ANYCAST, "anycast"),
    (AddressTypes::MULTICAST, "multicast"),
    (AddressTypes::BLACKHOLE, "blackhole"),
    (AddressTypes::UNREACHABLE, "unreachable"),
    (AddressTypes::PROHIBIT, "prohibit"),
    (AddressTypes::THROW, "9"),
    (AddressTypes::NAT, "10"),
    (AddressTypes::XRESOLVE, "11"),
];

/// Returns `true` if nft implies the rule's protocol for this match.
pub(super) const fn implies_protocol(one: &Match, family: Family) -> bool {
    match one {
        Match::Tcp(_) | Match::Udp(_) | Match::Icmp(_) | Match::Sctp(_) | Match::Dccp(_) => true,
        Match::Esp(_) | Match::Ipcomp(_) | Match::Mh(_) => true,
        Match::Ah(_) => matches!(family, Family::Ipv4),
        _ => false,
    }
}

/// Returns `true` if only some of the packets that reach this match may count.
pub(super) const fn counts(one: &Match) -> bool {
    matches!(
        one,
        Match::Limit(_)
            | Match::Hashlimit(_)
            | Match::Connlimit(_)
            | Match::Quota(_)
            | Match::Statistic(_)
    )
}

const fn network(family: Family) -> &'static Protocol {
    match family {
        Family::Ipv4 => &protocols::IP,
        Family::Ipv6 => &protocols::IP6,
    }
}

fn extension(one: &Match) -> Untranslatable {
    Untranslatable::Extension(part(one))
}

fn inexact(one: &Match, why: &'static str) -> Untranslatable {
    Untranslatable::Inexact {
        part: part(one),
        why,
    }
}

pub(super) fn translated(one: &Match, rule: &Rule, number: u32, family: Family) -> Statements {
    let ip = network(family);
    Ok(match one {
        Match::Tcp(tcp) => transport::tcp(tcp, one)?,
        Match::Udp(udp) => transport::udp(udp.source, udp.destination)?,
        Match::Sctp(sctp) => transport::sctp(sctp, one)?,
        Match::Dccp(dccp) => transport::dccp(dccp, one)?,
        Match::Esp(esp) => transport::spis(field(&protocols::ESP, "spi"), esp.spis, u32::MAX)?,
        Match::Ah(_) if family == Family::Ipv6 => {
            return Err(inexact(
                one,
                "nft reads the last header, and this one is before it",
            ));
        }
        Match::Ah(ah) => transport::spis(field(&protocols::AH, "spi"), ah.spis, u32::MAX)?,
        Match::Ipcomp(comp) => {
            let left = field(&protocols::COMP, "cpi");
            let mut tests = transport::spis(left, comp.spis, u16::MAX.into())?;
            if comp.reserved {
                // The kernel tests the flags.
                tests.push(test(field(&protocols::COMP, "flags"), hex(0)));
            }
            tests
        }
        Match::Tcpmss(mss) => transport::tcpmss(*mss)?,
        Match::Ecn(ecn) => transport::ecn(ecn, family)?,
        Match::Multiport(multiport) => transport::multiport(multiport, rule, one)?,
        Match::Icmp(icmp) => match icmp.kind {
            None => transport::icmp_any(icmp.invert)?,
            Some(kind) => transport::icmp(kind, icmp.code, icmp.invert, family)?,
        },
        Match::Icmp6(icmp) => transport::icmp(icmp.kind, icmp.code, icmp.invert, family)?,
        Match::Hbh(hbh) => ipv6::options("hbh", &hbh.0, one)?,
        Match::Dst(dst) => ipv6::options("dst", &dst.0, one)?,
        Match::Frag(frag) => ipv6::frag(frag)?,
        Match::Rt(rt) => ipv6::rt(rt, one)?,
        Match::Mh(mh) => ipv6::mh(*mh)?,
        Match::Mark(mark) => masked(meta(MetaKey::MARK), mark.value, mark.mask, mark.invert)?,
        Match::Connmark(mark) => {
            let left = super::build::ct(chainwright::nft::expr::CtKey::MARK);
            // A match without conditions on the mark still requires a connection.
            match masked(left.clone(), mark.value, mark.mask, mark.invert)? {
                tests if tests.is_empty() => vec![under(left, hex(0), false, hex(0))],
                tests => tests,
            }
        }
        Match::Realm(realm) => masked(
            meta(MetaKey::RTCLASSID),
            realm.value,
            realm.mask,
            realm.invert,
        )?,
        Match::Devgroup(group) => devgroup(group)?,
        Match::Conntrack(conntrack) => connection::conntrack(conntrack, family, one)?,
        Match::Connbytes(connbytes) => connection::connbytes(connbytes)?,
        Match::Connlabel(connlabel) => connection::connlabel(connlabel, one)?,
        Match::Helper(helper) => connection::helper(helper, one)?,
        Match::Limit(limit) => stateful::limit(*limit, one)?,
        Match::Hashlimit(limit) => stateful::hashlimit(limit, rule, family, one)?,
        Match::Connlimit(limit) => stateful::connlimit(limit, rule, number, family)?,
        Match::Quota(quota) => stateful::quota(*quota, one)?,
        Match::Statistic(statistic) => stateful::statistic(*statistic)?,
        Match::Time(time) => stateful::time(time, one)?,
        Match::Iprange(range) => {
            let mut tests = Vec::new();
            for (range, name) in [(&range.source, "saddr"), (&range.destination, "daddr")] {
                if let Some(range) = range {
                    tests.extend(addresses(field(ip, name), range)?);
                }
            }
            tests
        }
        Match::Addrtype(addrtype) => self::addrtype(addrtype, family, one)?,
        Match::Rpfilter(rpfilter) => self::rpfilter(*rpfilter, one)?,
        Match::Policy(policy) => self::policy(policy, one)?,
        Match::Socket(socket) => self::socket(*socket),
        Match::Mac(mac) => {
            let bytes = mac.source.map(|byte| format!("{byte:02x}"));
            let address = word(bytes.join(":"));
            vec![is(field(&protocols::ETHER, "saddr"), mac.invert, address)]
        }
        Match::Pkttype(pkttype) => {
            let kind = match pkttype.kind {
                PacketType::Host => "unicast",
                PacketType::Broadcast => "broadcast",
                PacketType::Multicast => "multicast",
                PacketType::OtherHost => "3",
            };
            vec![is(meta(MetaKey::PKTTYPE), pkttype.invert, word(kind))]
        }
        Match::Dscp(dscp) => {
            let value = word(format_args!("{:#04x}", dscp.code_point));
            vec![is(field(ip, "dscp"), dscp.invert, value)]
        }
        Match::Cpu(cpu) => vec![is(meta(MetaKey::CPU), cpu.invert, word(cpu.cpu))],
        Match::Cgroup(Cgroup::Class(class)) => {
            vec![is(meta(MetaKey::CGROUP), class.invert, word(class.value))]
        }
        Match::Ttl(ttl) => vec![hops(field(ip, "ttl"), ttl.0)],
        Match::Hl(hl) => vec![hops(field(ip, "hoplimit"), hl.0)],
        Match::Length(length) => match (length.min > length.max, length.invert) {
            (true, true) => Vec::new(),
            (true, false) => return Err(Untranslatable::Never),
            (false, invert) => {
                let range = span(length.min, length.max);
                vec![is(meta(MetaKey::LEN), invert, range)]
            }
        },
        Match::Owner(owner) => self::owner(owner, one)?,
        Match::Cluster(_) => {
            return Err(inexact(
                one,
                "nft does not hash the connection that expects this one",
            ));
        }
        _ => return Err(extension(one)),
    })
}

fn addresses(left: Expr, range: &Negatable<RangeInclusive<IpAddr>>) -> Statements {
    let (first, last) = (*range.value.start(), *range.value.end());
    let is_all = match (first, last) {
        (IpAddr::V4(first), IpAddr::V4(last)) => (first.to_bits(), last.to_bits()) == (0, u32::MAX),
        (IpAddr::V6(first), IpAddr::V6(last)) => {
            (first.to_bits(), last.to_bits()) == (0, u128::MAX)
        }
        _ => return Err(Untranslatable::Never),
    };
    match (first > last || is_all, is_all == range.invert) {
        (true, true) => Err(Untranslatable::Never),
        (true, false) => Ok(Vec::new()),
        (false, _) if first == last => Ok(vec![is(left, range.invert, address(first))]),
        (false, _) => {
            let both = Expr::Range(Box::new(address(first)), Box::new(address(last)));
            Ok(vec![is(left, range.invert, both)])
        }
    }
}

fn devgroup(groups: &Devgroup) -> Statements {
    let mut tests = Vec::new();
    for (group, key) in [
        (groups.source, MetaKey::IIFGROUP),
        (groups.destination, MetaKey::OIFGROUP),
    ] {
        if let Some(Negatable { value, invert }) = group {
            match masked(meta(key), value.value, value.mask, invert)? {
                // The packet must have such an interface.
                none if none.is_empty() => tests.push(under(meta(key), hex(0), false, hex(0))),
                some => tests.extend(some),
            }
        }
    }
    Ok(tests)
}

/// For IPv6, the kernel's match determines these types from the address alone.
fn of_address(types: AddressTypes, left: impl Fn() -> Expr) -> Vec<Statement> {
    let mut tests = Vec::new();
    let prefix = |address: &str, bits| Expr::Prefix(Box::new(word(address)), bits);
    if types.contains(AddressTypes::MULTICAST) {
        tests.push(test(left(), prefix("ff00::", 8)));
    }
    if types.contains(AddressTypes::UNICAST) {
        let others = [word("::"), prefix("::ffff:0:0", 96), prefix("ff00::", 8)];
        tests.push(is(left(), true, set(others)));
    }
    if types.contains(AddressTypes::UNSPEC) {
        tests.push(test(left(), word("::")));
    }
    tests
}

fn addrtype(addrtype: &Addrtype, family: Family, one: &Match) -> Statements {
    let interface = match addrtype.interface {
        None => FibFlags::empty(),
        Some(AddrtypeInterface::In) => FibFlags::IIF,
        Some(AddrtypeInterface::Out) => FibFlags::OIF,
    };
    let mut tests = Vec::new();
    for (types, field, side) in [
        (addrtype.source, "saddr", FibFlags::SADDR),
        (addrtype.destination, "daddr", FibFlags::DADDR),
    ] {
        let Some(types) = types else {
            continue;
        };
        let mut routed = types.value;
        let mut conditions = Vec::new();
        if family == Family::Ipv6 {
            let of_address = AddressTypes::MULTICAST | AddressTypes::UNICAST | AddressTypes::UNSPEC;
            if types.value.intersects(of_address) && types.value != types.value & of_address {
                return Err(inexact(
                    one,
                    "for IPv6, the kernel combines these types in another way",
                ));
            }
            if !(of_address | AddressTypes::LOCAL).contains(types.value) {
                return Err(inexact(
                    one,
                    "for IPv6, the kernel's match and nft determine this type in different ways",
                ));
            }
            let left = || self::field(&protocols::IP6, field);
            conditions = self::of_address(types.value, left);
            routed &= !of_address;
        }
        let named = ADDRESS_TYPES
            .iter()
            .filter(|(kind, _)| routed.contains(*kind));
        let names: Vec<_> = named.map(|(_, name)| word(name)).collect();
        if !names.is_empty() {
            let left = Expr::Fib(side | interface, FibResult::ADDRTYPE);
            tests.push(is(left, types.invert, any(names)));
        }
        match types.invert {
            true if !conditions.is_empty() => tests.push(unless(conditions)),
            _ => tests.extend(conditions),
        }
    }
    Ok(tests)
}

fn rpfilter(rpfilter: Rpfilter, one: &Match) -> Statements {
    let has = |flag| rpfilter.contains(flag);
    let mut flags = FibFlags::SADDR;
    if has(Rpfilter::VALIDMARK) {
        flags |= FibFlags::MARK;
    }
    if !has(Rpfilter::LOOSE) {
        flags |= FibFlags::IIF;
    }
    let route = Expr::Fib(flags, FibResult::OIF);
    let mut tests = Vec::new();
    if has(Rpfilter::ACCEPT_LOCAL) {
        if !has(Rpfilter::INVERT) {
            return Err(inexact(one, "nft cannot test for one or the other"));
        }
        let kind = Expr::Fib(FibFlags::SADDR, FibResult::ADDRTYPE);
        tests.push(is(kind, true, word("local")));
    }
    tests.push(is(route, !has(Rpfilter::INVERT), word(0)));
    Ok(tests)
}

fn policy(policy: &Policy, one: &Match) -> Statements {
    let nothing = PolicyElement::default();
    let exists = match (&policy.direction, &policy.wanted) {
        (PolicyDirection::In, PolicyRequirement::None) => false,
        (PolicyDirection::In, PolicyRequirement::Any(element)) if **element == nothing => true,
        _ => return Err(extension(one)),
    };
    let is = if exists { "exists" } else { "missing" };
    Ok(vec![test(meta(MetaKey::SECPATH), word(is))])
}

fn socket(socket: Socket) -> Vec<Statement> {
    let key = |key| Expr::Socket(key, 0);
    let has = |flag| socket.contains(flag);
    let mut tests = Vec::new();
    if !has(Socket::NOWILDCARD) {
        tests.push(test(key(SocketKey::WILDCARD), word(0)));
    }
    if has(Socket::TRANSPARENT) {
        tests.push(test(key(SocketKey::TRANSPARENT), word(1)));
    }
    if tests.is_empty() {
        // Any socket.
        tests.push(compared(
            key(SocketKey::WILDCARD),
            Relation::LessOrEqual,
            word(1),
        ));
    }
    if has(Socket::RESTORE_SKMARK) {
        tests.push(sets(meta(MetaKey::MARK), key(SocketKey::MARK)));
    }
    tests
}

fn owner(owner: &Owner, one: &Match) -> Statements {
    if owner.suppl_groups || owner.socket_exists.is_some() {
        return Err(extension(one));
    }
    let mut tests = Vec::new();
    // Packets without a socket match if all conditions are inverted.
    let mut given = owner.uid.iter().chain(&owner.gid);
    let all_inverted = given.all(|ids| ids.invert);
    for (ids, key) in [(&owner.uid, MetaKey::SKUID), (&owner.gid, MetaKey::SKGID)] {
        if let Some(ids) = ids {
            let (first, last) = (*ids.value.start(), *ids.value.end());
            if first > last {
                return Err(extension(one));
            }
            match all_inverted {
                true => tests.push(unless(vec![test(meta(key), span(first, last))])),
                false => tests.push(is(meta(key), ids.invert, span(first, last))),
            }
        }
    }
    Ok(tests)
}

fn hops(left: Expr, hops: Hops) -> Statement {
    let (relation, number) = match hops {
        Hops::Equal(number) => (Relation::Implicit, number),
        Hops::NotEqual(number) => (Relation::NotEqual, number),
        Hops::Less(number) => (Relation::Less, number),
        Hops::Greater(number) => (Relation::Greater, number),
    };
    compared(left, relation, word(number))
}

/// Returns a test for an interface.
pub(super) fn interface(interface: &chainwright::iptables::Interface, key: MetaKey) -> Statements {
    if interface.name.is_empty() && interface.prefix {
        return match interface.invert {
            true => Err(Untranslatable::Never),
            false => Ok(Vec::new()),
        };
    }
    if interface.name.contains(&b'*') {
        return Err(Untranslatable::Text(interface.name.to_string()));
    }
    let mut name = interface.name.clone();
    if interface.prefix {
        name.push(b'*');
    }
    let name = checked(name.as_ref(), 16)?;
    Ok(vec![is(meta(key), interface.invert, quoted(name))])
}
