//! The extensions that have a typed value: one line each.

use super::extension::registry;
use super::*;

registry! {
    /// A match: the rule goes on if it says so.
    Match, printed as " -m ", always has effects: false {
        Addrtype(Addrtype),
        Ah(Ah),
        Bpf(Bpf),
        Cgroup(Cgroup),
        Cluster(Cluster),
        Comment(Comment),
        Connbytes(Connbytes),
        Connlabel(Connlabel),
        Connlimit(Connlimit),
        Connmark(ConnmarkMatch),
        Conntrack(Conntrack),
        Cpu(Cpu),
        Dccp(Dccp),
        Devgroup(Devgroup),
        Dscp(DscpMatch),
        Dst(Dst),
        Ecn(EcnMatch),
        Esp(Esp),
        Eui64(Eui64),
        Frag(Frag),
        Hashlimit(Hashlimit),
        Hbh(Hbh),
        Helper(Helper),
        Hl(HlMatch),
        Icmp(Icmp),
        Icmp6(Icmp6),
        Ipcomp(Ipcomp),
        Iprange(Iprange),
        Ipv6header(Ipv6header),
        Ipvs(Ipvs),
        Length(Length),
        Limit(Limit),
        Mac(Mac),
        Mark(MarkMatch),
        Mh(Mh),
        Multiport(Multiport),
        Nfacct(Nfacct),
        Osf(Osf),
        Owner(Owner),
        Physdev(Physdev),
        Pkttype(Pkttype),
        Policy(Policy),
        Quota(Quota),
        Rateest(RateestMatch),
        Realm(Realm),
        Recent(Recent),
        Rpfilter(Rpfilter),
        Rt(Rt),
        Sctp(Sctp),
        Set(SetMatch),
        Socket(SocketMatch),
        Srh(Srh),
        Statistic(Statistic),
        String(StringMatch),
        Tcp(Tcp),
        Tcpmss(TcpmssMatch),
        Time(Time),
        Tos(TosMatch),
        Ttl(TtlMatch),
        U32(U32),
        Udp(Udp),
    }
}

registry! {
    /// A target that is an extension: it works on the packet.
    Target, printed as " -j ", always has effects: true {
        Audit(Audit),
        Checksum(Checksum),
        Classify(Classify),
        Clusterip(Clusterip),
        Connmark(ConnmarkTarget),
        Connsecmark(Connsecmark),
        Ct(Ct),
        Dnat(Dnat),
        Dnpt(Dnpt),
        Dscp(DscpTarget),
        Ecn(EcnTarget),
        Hl(HlTarget),
        Hmark(Hmark),
        Idletimer(Idletimer),
        Led(Led),
        Log(Log),
        Mark(MarkTarget),
        Masquerade(Masquerade),
        Netmap(Netmap),
        Nflog(Nflog),
        Nfqueue(Nfqueue),
        Rateest(RateestTarget),
        Redirect(Redirect),
        Reject(Reject),
        Secmark(Secmark),
        Set(SetTarget),
        Snat(Snat),
        Snpt(Snpt),
        Synproxy(Synproxy),
        Tcpmss(TcpmssTarget),
        Tcpoptstrip(Tcpoptstrip),
        Tee(Tee),
        Tos(TosTarget),
        Tproxy(Tproxy),
        Trace(Trace),
        Ttl(TtlTarget),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_go_by_their_names_in_their_families() {
        for family in [Family::Ipv4, Family::Ipv6] {
            for spec in Match::ALL {
                for name in spec.names() {
                    let found = Match::named(family, name.as_bytes());
                    let found = found.is_some_and(|found| found.names() == spec.names());
                    assert_eq!(found, spec.families().include(family), "{name}");
                }
            }
        }
        assert!(Match::named(Family::Ipv4, b"no-such-match").is_none());
        assert!(Match::named(Family::Ipv4, &[b'x'; 300]).is_none());
    }

    /// What options need, exclude and stand for is among the options, by its own name; and an option that
    /// may stand any number of times is looked for among them once at most.
    #[test]
    fn options_name_each_other() {
        fn check<T>(all: &[Spec<T>]) {
            for spec in all {
                for name in spec.names() {
                    let options = spec.options(name);
                    let is_one = |other: &&str| {
                        let mut own = options.iter().filter(|one| one.name == one.canonical);
                        own.any(|one| one.name == *other)
                    };
                    for one in options {
                        assert!(is_one(&one.canonical), "{name}: {}", one.name);
                        assert!(one.needs.iter().all(&is_one), "{name}: {one:?}");
                        assert!(one.excludes.iter().all(&is_one), "{name}: {one:?}");
                        let alone = one.needs.is_empty() && one.excludes.is_empty();
                        assert!(!one.repeats || alone, "{name}: {one:?}");
                    }
                    for group in spec.groups(name) {
                        assert!(group.names.iter().all(&is_one), "{name}: {group:?}");
                        assert!(group.names.len() > 1 && (group.required || group.exclusive));
                    }
                }
            }
        }
        check(Match::ALL);
        check(Target::ALL);
    }

    #[test]
    fn an_alias_is_another_extension_to_the_kernel() {
        // The kernel's own `state` has another struct than `conntrack`.
        assert!(Match::named(Family::Ipv4, b"state").is_some());
        for revision in 0..4 {
            let read = Match::read(Family::Ipv4, "state", revision, &[0; 200]);
            assert!(matches!(read, Match::Opaque(_)), "{revision}");
        }
        let icmp6 = |name| Match::read(Family::Ipv6, name, 0, &[0; 8]);
        assert!(matches!(icmp6("icmp6"), Match::Icmp6(_)));
        assert!(matches!(icmp6("icmpv6"), Match::Opaque(_)));
    }

    #[test]
    fn data_that_is_not_written_back_stays_opaque() {
        // A negation that is neither 0 nor 1, which the kernel takes for true and false alike; a bit
        // that no option sets.
        let mut mark = [0; 16];
        mark[8] = 2;
        let read = |name, revision, info: &[u8]| Match::read(Family::Ipv4, name, revision, info);
        assert!(matches!(read("mark", 1, &mark), Match::Opaque(_)));
        mark[8] = 1;
        assert!(matches!(read("mark", 1, &mark), Match::Mark(_)));
        assert!(matches!(
            read("pkttype", 0, &[0, 0, 0, 0, 2, 0, 0, 0]),
            Match::Opaque(_)
        ));
        // What pads a struct to 8 bytes is none of it.
        assert!(matches!(
            read("ttl", 0, &[0, 5, 9, 9, 9, 9, 9, 9]),
            Match::Ttl(_)
        ));
    }

    #[test]
    fn targets_have_effects_and_some_matches_have() {
        let read = |name, info: &[u8]| Match::read(Family::Ipv4, name, 0, info);
        assert!(!read("comment", &[0; 256]).has_effects());
        assert!(read("limit", &[1; 40]).has_effects());
        assert!(read("no-such-match", &[]).has_effects());
        let log = Target::read(Family::Ipv4, "LOG", 0, &[0; 32]);
        assert!(log.has_effects() && !matches!(log, Target::Opaque(_)));
    }
}
