//! Rules as nft text, and their builders.

use std::time::Duration;

use chainwright::nft::build::{
    EtherType, IcmpCode, Icmpv6Code, PacketType, RejectWith, and_xor, at_least, copy, equals,
    greater_than, less_than,
};
use chainwright::nft::expr::{
    Counter, CtDirection, FibFlags, FibResult, Limit, Log, LogFlags, LogLevel, ObjectType, Quota,
    RejectIcmpxCode,
};

use super::*;

/// Pairs of nft text and a builder.
macro_rules! pairs {
    ($($text:literal => $($calls:ident($($arguments:expr),*)).+,)*) => {
        &[$(($text, |make| make.rule().$($calls($($arguments),*)).+),)*]
    };
}

/// In every family.
pub(crate) const EVERYWHERE: &[Pair] = pairs! {
    r#"iifname "eth0""# => iifname("eth0").finish(),
    r#"iifname != "eth0""# => iifname(not("eth0")).finish(),
    r#"iifname "eth*""# => iifname("eth*").finish(),
    r#"oifname != "eth*""# => oifname(not("eth*")).finish(),
    r#"oifname "a12345678901234""# => oifname("a12345678901234").finish(),
    r#"iifname "eth\\*""# => iifname("eth\\*").finish(),
    "iif \"lo\" accept" => iif(1).accept(),
    "oif != \"lo\" drop" => oif(not(1)).drop(),
    "iifname @ifs" => iifname(in_set("ifs")).finish(),
    "iifname vmap @vif" => vmap(meta::IIFNAME, "vif").finish(),
    "meta mark 0x1" => meta_mark(1).finish(),
    "meta mark != 0x1" => meta_mark(not(1)).finish(),
    "meta mark 1-5" => meta_mark(1..=5).finish(),
    "meta mark != 1-5" => meta_mark(not(1..=5)).finish(),
    "meta mark < 5" => meta_mark(less_than(5)).finish(),
    "meta mark >= 5" => meta_mark(at_least(5)).finish(),
    "meta mark >= 6" => meta_mark(not(less_than(6))).finish(),
    "meta mark & 0x4000 == 0x4000" => meta_mark(masked(0x4000, 0x4000)).finish(),
    "meta mark & 0xff != 0x1" => meta_mark(not(masked(1, 0xff))).finish(),
    "meta mark set 0x1" => meta_mark_set(1).finish(),
    "meta mark set meta mark | 0x4000" => meta_mark_set(or(0x4000)).finish(),
    "meta mark set meta mark & 0x4000" => meta_mark_set(and(0x4000)).finish(),
    "meta mark set meta mark ^ 0x4000" => meta_mark_set(xor(0x4000)).finish(),
    "meta mark set meta mark & 0xff00 ^ 0x12" => meta_mark_set(and_xor(0xff00, 0x12)).finish(),
    "meta mark & 0x4000 != 0 meta mark set meta mark ^ 0x4000" =>
        meta_mark(not(masked(0, 0x4000))).meta_mark_set(xor(0x4000)).finish(),
    "meta mark set numgen inc mod 4" => meta_mark_set(numgen_inc(4)).finish(),
    "meta mark set numgen random mod 4 offset 7" =>
        meta_mark_set(numgen_random(4).offset(7)).finish(),
    "meta priority set 0x10005" => meta_priority_set(0x1_0005).finish(),
    "meta nftrace set 1" => meta_nftrace_set(true).finish(),
    "meta pkttype broadcast" => meta_pkttype(PacketType::BROADCAST).finish(),
    "meta pkttype != host" => meta_pkttype(not(PacketType::HOST)).finish(),
    "meta length > 1400" => matches(meta::LENGTH, greater_than(1400u32)).finish(),
    "meta length 100-200" => matches(meta::LENGTH, 100u32..=200).finish(),
    "meta cpu 1" => matches(meta::CPU, 1u32).finish(),
    "numgen random mod 10 < 3 drop" => matches(numgen_random(10), less_than(3u32)).drop(),
    "numgen inc mod 3 1" => matches(numgen_inc(3), 1u32).finish(),
    "numgen inc mod 2 vmap @vn" => vmap(numgen_inc(2), "vn").finish(),
    "counter" => counter().finish(),
    "counter packets 5 bytes 10" => counter_from(5, 10).finish(),
    "counter name \"hits\"" => object(ObjectType::COUNTER, "hits").finish(),
    "limit rate 10/second" => limit(Rate::per_second(10)).finish(),
    "limit rate 10/minute burst 20 packets" => limit(Rate::per_minute(10).burst(20)).finish(),
    "limit rate over 10/hour" => limit(Rate::per_hour(10).over()).finish(),
    "limit rate 10/day" => limit(Rate::per_day(10)).finish(),
    "limit rate 10/week" => limit(Rate::per_week(10)).finish(),
    "limit rate 1024 bytes/second" => limit(Rate::per_second(1024).bytes()).finish(),
    "limit rate over 1 mbytes/minute burst 5 mbytes" =>
        limit(Rate::per_minute(1 << 20).bytes().over().burst(5 << 20)).finish(),
    "quota 25 mbytes" => quota(&Quota::until(25 << 20)).finish(),
    "quota over 25 mbytes used 5 bytes" => quota(&Quota::over(25 << 20).with_consumed(5)).finish(),
    "log" => log(&Log::default()).finish(),
    r#"log prefix "hello: ""# => log_prefix("hello: ").finish(),
    r#"log prefix "hello: " level debug"# =>
        log(&Log { level: Some(LogLevel::DEBUG), ..Log::prefix("hello: ") }).finish(),
    "log flags tcp sequence,options" =>
        log(&Log { flags: Some(LogFlags::TCPSEQ | LogFlags::TCPOPT), ..Log::default() }).finish(),
    "log group 5" => log(&Log { group: Some(5), ..Log::default() }).finish(),
    r#"log prefix "x" group 5 snaplen 128 queue-threshold 10"# => log(&Log {
        group: Some(5), snaplen: Some(128), queue_threshold: Some(10), ..Log::prefix("x")
    }).finish(),
    "jump o" => jump("o"),
    "goto o" => goto("o"),
    "return" => return_(),
    "continue" => continue_(),
    "drop" => drop(),
    "accept comment \"with user data\"" => comment("with user data").accept(),
    "ip saddr 10.0.0.1 ether saddr 00:11:22:33:44:55" => ip_saddr(v4(1)).ether_saddr(MAC).finish(),
    "ether daddr 00:11:22:33:44:55" => ether_daddr(MAC).finish(),
    "ether type ip" => ether_type(EtherType::IP).finish(),
    "ether type ip ip daddr 10.0.0.1" => ether_type(EtherType::IP).ip_daddr(v4(1)).finish(),
};

/// Transport protocols, in families with IP.
pub(crate) const IP: &[Pair] = pairs! {
    "meta l4proto tcp" => meta_l4proto(Protocol::TCP).finish(),
    "meta l4proto != tcp" => meta_l4proto(not(Protocol::TCP)).finish(),
    "meta l4proto != udp tcp dport 22" => meta_l4proto(not(Protocol::UDP)).tcp_dport(22).finish(),
    "meta l4proto tcp tcp dport 22" => meta_l4proto(Protocol::TCP).tcp_dport(22).finish(),
    "meta l4proto udp th dport 53" => meta_l4proto(Protocol::UDP).th_dport(53).finish(),
    "meta l4proto @protos th dport 53" => meta_l4proto(in_set("protos")).th_dport(53).finish(),
    "tcp dport 22" => tcp_dport(22).finish(),
    "tcp dport != 22" => tcp_dport(not(22)).finish(),
    "tcp dport 22-80" => tcp_dport(22..=80).finish(),
    "tcp dport 22-22" => tcp_dport(22..=22).finish(),
    "tcp dport != 22-80" => tcp_dport(not(22..=80)).finish(),
    "tcp dport >= 1024" => tcp_dport(at_least(1024)).finish(),
    "tcp dport < 1024" => tcp_dport(less_than(1024)).finish(),
    "tcp dport @p" => tcp_dport(in_set("p")).finish(),
    "tcp dport != @p" => tcp_dport(not(in_set("p"))).finish(),
    "tcp sport 1 tcp dport 2" => tcp_sport(1).tcp_dport(2).finish(),
    "tcp dport 2 tcp sport 1 accept" => tcp_dport(2).tcp_sport(1).accept(),
    "tcp sport != 1 tcp dport 2" => tcp_sport(not(1)).tcp_dport(2).finish(),
    "tcp sport 1-2 tcp dport 2" => tcp_sport(1..=2).tcp_dport(2).finish(),
    "tcp dport 22 counter tcp dport 22" => tcp_dport(22).counter().tcp_dport(22).finish(),
    "udp sport 53 udp dport 54" => udp_sport(53).udp_dport(54).finish(),
    "udp sport 1 udp dport 2 udp length 8" =>
        udp_sport(1).udp_dport(2).matches(udp::LENGTH, 8u16).finish(),
    "sctp dport 5" => sctp_dport(5).finish(),
    "sctp sport != 5" => sctp_sport(not(5)).finish(),
    "meta l4proto udp th sport 53 th dport 54" =>
        meta_l4proto(Protocol::UDP).th_sport(53).th_dport(54).finish(),
    "tcp flags syn" => tcp_flags(SYN).finish(),
    "tcp flags ! syn" => tcp_flags(not(SYN)).finish(),
    "tcp flags == syn" => tcp_flags(equals(SYN)).finish(),
    "tcp flags != syn" => tcp_flags(not(equals(SYN))).finish(),
    "tcp flags syn,ack" => tcp_flags(SYN | TcpFlags::ACK).finish(),
    "tcp flags & (fin|syn|rst|ack) == syn" => tcp_flags(masked(SYN, FOUR)).finish(),
    "tcp flags & (fin|syn|rst|ack) != syn" => tcp_flags(not(masked(SYN, FOUR))).finish(),
    "tcp dport 22 tcp flags syn" => tcp_dport(22).tcp_flags(SYN).finish(),
    "meta l4proto . th dport vmap @v2" => vmap(&[meta::L4PROTO, th::DPORT], "v2").finish(),
    "meta l4proto . tcp dport vmap @v2" => vmap(&[meta::L4PROTO, tcp::DPORT], "v2").finish(),
    "tcp dport vmap @vp" => vmap(tcp::DPORT, "vp").finish(),
    "iifname . tcp dport @ifp" => lookup(&[meta::IIFNAME, tcp::DPORT], "ifp").finish(),
    "meta mark set tcp dport map @pm" => meta_mark_set(map(tcp::DPORT, "pm")).finish(),
    "jhash tcp sport mod 4 == 1" => matches(jhash(&[tcp::SPORT], 4), 1u32).finish(),
    "symhash mod 2 offset 100 == 101" => matches(symhash(2).offset(100), 101u32).finish(),
    "meta mark set symhash mod 4" => meta_mark_set(symhash(4)).finish(),
};

/// Connections and routes: in families with connection tracking, without frames.
pub(crate) const TRACKED: &[Pair] = pairs! {
    "ct state new" => ct_state(CtState::NEW).finish(),
    "ct state ! new" => ct_state(not(CtState::NEW)).finish(),
    "ct state ! new,established" => ct_state(not(CtState::NEW | CtState::ESTABLISHED)).finish(),
    "ct state != new" => ct_state(not(equals(CtState::NEW))).finish(),
    "ct state == new" => ct_state(equals(CtState::NEW)).finish(),
    "ct state established,related accept" =>
        ct_state(CtState::ESTABLISHED | CtState::RELATED).accept(),
    "ct state new,established,related,untracked" => ct_state(
        CtState::NEW | CtState::ESTABLISHED | CtState::RELATED | CtState::UNTRACKED
    ).finish(),
    "ct state invalid drop" => ct_state(CtState::INVALID).drop(),
    "ct state vmap @vs" => vmap(ct::STATE, "vs").finish(),
    "ct status dnat" => ct_status(CtStatus::DNAT).finish(),
    "ct status dnat,snat" => ct_status(CtStatus::DNAT | CtStatus::SNAT).finish(),
    "ct status ! dnat" => ct_status(not(CtStatus::DNAT)).finish(),
    "ct mark 0x1" => ct_mark(1).finish(),
    "ct mark 1-5" => ct_mark(1..=5).finish(),
    "ct mark & 0xff == 0x1" => ct_mark(masked(1, 0xff)).finish(),
    "ct mark & 0xff != 0x0" => ct_mark(not(masked(0, 0xff))).finish(),
    "ct mark set 5" => ct_mark_set(5).finish(),
    "ct mark set meta mark" => ct_mark_set(copy(meta::MARK)).finish(),
    "meta mark set ct mark" => meta_mark_set(copy(ct::MARK)).finish(),
    "ct mark set meta mark & 0xff" => ct_mark_set(copy(meta::MARK).with(and(0xff))).finish(),
    "meta mark set ct mark | 0x1" => meta_mark_set(copy(ct::MARK).with(or(1))).finish(),
    "meta mark set ct mark & 0xff ^ 0x100" =>
        meta_mark_set(copy(ct::MARK).with(and_xor(0xff, 0x100))).finish(),
    "ct mark set ct mark | 0x10" => ct_mark_set(or(0x10)).finish(),
    "ct mark set ct mark & 0x10" => ct_mark_set(and(0x10)).finish(),
    "ct mark set ct mark ^ 0x10" => ct_mark_set(xor(0x10)).finish(),
    "ct mark set numgen inc mod 4" => ct_mark_set(numgen_inc(4)).finish(),
    "ct direction original" => ct_direction(CtDirection::ORIGINAL).finish(),
    "ct direction != original" => ct_direction(not(CtDirection::ORIGINAL)).finish(),
    "ct bytes > 5" => matches(ct::BYTES, greater_than(5u64)).finish(),
    "ct zone 5" => matches(ct::ZONE, 5u16).finish(),
    "ct count over 5 drop" => ct_count_over(5).drop(),
    "notrack" => notrack().finish(),
    "fib daddr type local" => fib_daddr_type(AddressType::LOCAL).finish(),
    "fib daddr type != local" => fib_daddr_type(not(AddressType::LOCAL)).finish(),
    "fib saddr type local" => fib_saddr_type(AddressType::LOCAL).finish(),
    "fib saddr . iif oif missing" => fib_missing(FibFlags::SADDR | FibFlags::IIF).finish(),
    "fib saddr . iif oif exists" => fib_exists(FibFlags::SADDR | FibFlags::IIF).finish(),
    "fib saddr . mark . iif oif missing" =>
        fib_missing(FibFlags::SADDR | FibFlags::MARK | FibFlags::IIF).finish(),
    "fib daddr . iif type local" => matches(
        Selector::fib(FibFlags::DADDR | FibFlags::IIF, FibResult::ADDRTYPE), AddressType::LOCAL
    ).finish(),
    "fib daddr oifname \"lo\"" =>
        matches(Selector::fib(FibFlags::DADDR, FibResult::OIFNAME), Interface("lo")).finish(),
    "meta skuid 1000" => meta_skuid(1000).finish(),
    "meta skuid 1000-2000" => meta_skuid(1000..=2000).finish(),
    "meta skuid != 0" => meta_skuid(not(0)).finish(),
    "meta skgid 1000" => meta_skgid(1000).finish(),
    "masquerade" => masquerade(NONE),
    "masquerade random" => masquerade(RANDOM),
    "masquerade fully-random" => masquerade(FULLY),
    "masquerade random,persistent" => masquerade(RANDOM | NatRangeFlags::PERSISTENT),
    "meta l4proto tcp masquerade to :1024-65535" =>
        meta_l4proto(Protocol::TCP).masquerade_to(1024..=65535, NONE),
    "meta l4proto tcp masquerade to :1024 random" =>
        meta_l4proto(Protocol::TCP).masquerade_to(1024, RANDOM),
    "redirect" => redirect(NONE),
    "udp dport 53 redirect" => udp_dport(53).redirect(NONE),
    "tcp dport 22 redirect to :2222" => tcp_dport(22).redirect_to(2222, NONE),
    "tcp dport 22 redirect to :2222-2230 random" => tcp_dport(22).redirect_to(2222..=2230, RANDOM),
    "tcp dport 80 dnat to :8080" => tcp_dport(80).dnat(NatTo::ports(8080)),
    "tcp dport 80 snat to :8080-8090" => tcp_dport(80).snat(NatTo::ports(8080..=8090)),
    "reject" => reject(),
    "tcp dport 22 reject" => tcp_dport(22).reject(),
    "reject with tcp reset" => reject_with(RejectWith::TcpReset),
    "counter reject with tcp reset" => counter().reject_with(RejectWith::TcpReset),
    "tcp dport 22 reject with tcp reset" => tcp_dport(22).reject_with(RejectWith::TcpReset),
    r#"ct state new limit rate 3/second log prefix "new: " accept"# =>
        ct_state(CtState::NEW).limit(Rate::per_second(3)).log_prefix("new: ").accept(),
};

/// IPv4.
pub(crate) const V4: &[Pair] = pairs! {
    "ip saddr 10.0.0.1" => ip_saddr(v4(1)).finish(),
    "ip daddr != 10.0.0.1" => ip_daddr(not(v4(1))).finish(),
    "ip saddr 10.0.0.0/8" => ip_saddr((v4(0), 8)).finish(),
    "ip saddr 10.0.0.5/8 drop" => ip_saddr((v4(5), 8)).drop(),
    "ip saddr != 10.0.0.0/16" => ip_saddr(not((v4(0), 16))).finish(),
    "ip saddr 10.0.0.0/24 accept" => ip_saddr((v4(0), 24)).accept(),
    "ip saddr 10.0.0.0/12" => ip_saddr((v4(0), 12)).finish(),
    "ip saddr != 10.0.0.0/12" => ip_saddr(not((v4(0), 12))).finish(),
    "ip daddr 10.0.0.3/31" => ip_daddr((v4(3), 31)).finish(),
    "ip saddr 0.0.0.0/0" => ip_saddr((Ipv4Addr::UNSPECIFIED, 0)).finish(),
    "ip saddr 10.0.0.1/32" => ip_saddr((v4(1), 32)).finish(),
    "ip saddr 10.0.0.1-10.0.0.9" => ip_saddr(v4(1)..=v4(9)).finish(),
    "ip saddr != 10.0.0.1-10.0.0.9" => ip_saddr(not(v4(1)..=v4(9))).finish(),
    "ip saddr @a4" => ip_saddr(in_set("a4")).finish(),
    "ip saddr != @a4" => ip_saddr(not(in_set("a4"))).finish(),
    "ip saddr 10.0.0.1 ip daddr 10.0.0.2" => ip_saddr(v4(1)).ip_daddr(v4(2)).finish(),
    "ip saddr 10.0.0.0/16 ip daddr 10.0.0.2" => ip_saddr((v4(0), 16)).ip_daddr(v4(2)).finish(),
    "ip saddr 10.0.0.1 tcp dport 22" => ip_saddr(v4(1)).tcp_dport(22).finish(),
    "tcp dport 22 ip saddr 10.0.0.1" => tcp_dport(22).ip_saddr(v4(1)).finish(),
    "ip protocol tcp" => ip_protocol(Protocol::TCP).finish(),
    "ip protocol tcp tcp dport 22" => ip_protocol(Protocol::TCP).tcp_dport(22).finish(),
    "ip protocol tcp ip saddr 10.0.0.1 tcp dport 5" =>
        ip_protocol(Protocol::TCP).ip_saddr(v4(1)).tcp_dport(5).finish(),
    "ip protocol != tcp tcp dport 22" => ip_protocol(not(Protocol::TCP)).tcp_dport(22).finish(),
    "ip ttl 1" => ip_ttl(1).finish(),
    "ip ttl < 5" => ip_ttl(less_than(5)).finish(),
    "ip ttl 1 ip protocol udp" => ip_ttl(1).ip_protocol(Protocol::UDP).finish(),
    "ip protocol udp ip ttl 1 udp dport 5" =>
        ip_protocol(Protocol::UDP).ip_ttl(1).udp_dport(5).finish(),
    "ip length 1000-2000" => ip_length(1000..=2000).finish(),
    "icmp type echo-request" => icmp_type(IcmpType::ECHO_REQUEST).finish(),
    "icmp type != echo-request" => icmp_type(not(IcmpType::ECHO_REQUEST)).finish(),
    "icmp type destination-unreachable icmp code 4" =>
        icmp_type(IcmpType::DESTINATION_UNREACHABLE).icmp_code(4).finish(),
    "icmp code 0 icmp type echo-request" =>
        icmp_code(0).icmp_type(IcmpType::ECHO_REQUEST).finish(),
    "ip saddr 10.0.0.1 icmp type echo-request" =>
        ip_saddr(v4(1)).icmp_type(IcmpType::ECHO_REQUEST).finish(),
    "icmp type echo-request ip saddr 10.0.0.1" =>
        icmp_type(IcmpType::ECHO_REQUEST).ip_saddr(v4(1)).finish(),
    "meta l4proto icmp icmp type echo-request" =>
        meta_l4proto(Protocol::ICMP).icmp_type(IcmpType::ECHO_REQUEST).finish(),
    "ip daddr . meta l4proto . th dport @c3" =>
        lookup(&[ip::DADDR, meta::L4PROTO, th::DPORT], "c3").finish(),
    "ip daddr . meta l4proto . th dport != @c3" =>
        lookup_not(&[ip::DADDR, meta::L4PROTO, th::DPORT], "c3").finish(),
    "ip daddr . meta l4proto . tcp dport @c3" =>
        lookup(&[ip::DADDR, meta::L4PROTO, tcp::DPORT], "c3").finish(),
    "ip daddr . ip protocol . th dport @c3" =>
        lookup(&[ip::DADDR, ip::PROTOCOL, th::DPORT], "c3").finish(),
    "ip daddr . meta l4proto . th dport vmap @v3" =>
        vmap(&[ip::DADDR, meta::L4PROTO, th::DPORT], "v3").finish(),
    "ip daddr @a4 meta l4proto . th dport vmap @v2" =>
        ip_daddr(in_set("a4")).vmap(&[meta::L4PROTO, th::DPORT], "v2").finish(),
    "iifname . ip saddr @ifa" => lookup(&[meta::IIFNAME, ip::SADDR], "ifa").finish(),
    "jhash ip saddr mod 2 vmap @vn" => vmap(jhash(&[ip::SADDR], 2), "vn").finish(),
    "jhash ip saddr . ip daddr mod 2 seed 0xdeadbeef offset 3 vmap @vn" =>
        vmap(jhash(&[ip::SADDR, ip::DADDR], 2).seed(0xdead_beef).offset(3), "vn").finish(),
    "jhash ip saddr . tcp sport mod 2 == 1" =>
        matches(jhash(&[ip::SADDR, tcp::SPORT], 2), 1u32).finish(),
    "meta mark set jhash ip saddr mod 16" => meta_mark_set(jhash(&[ip::SADDR], 16)).finish(),
    "add @dyn { ip saddr }" => add_element("dyn", ip::SADDR).finish(),
    "update @dyn { ip saddr }" => update_element("dyn", ip::SADDR).finish(),
    "delete @dyn { ip saddr }" => delete_element("dyn", ip::SADDR).finish(),
    "update @dyn { ip saddr timeout 5m }" => update_element(
        "dyn", element(ip::SADDR).timeout(Duration::from_secs(300))
    ).finish(),
    "update @dyn { ip saddr limit rate 10/minute }" => update_element(
        "dyn", element(ip::SADDR).with(&Limit::from(Rate::per_minute(10)))
    ).finish(),
    "update @dyn { ip saddr timeout 10s limit rate over 10/minute burst 5 packets } drop" =>
        update_element("dyn", element(ip::SADDR)
            .timeout(Duration::from_secs(10))
            .with(&Limit::from(Rate::per_minute(10).over()))
        ).drop(),
    "add @dyn { ip saddr counter limit rate 1/second }" => add_element("dyn", element(ip::SADDR)
        .with(&Counter::new(0, 0)).with(&Limit::from(Rate::per_second(1)))
    ).finish(),
    "update @dync { ip saddr . tcp dport timeout 1m }" => update_element(
        "dync", element(&[ip::SADDR, tcp::DPORT]).timeout(Duration::from_secs(60))
    ).finish(),
    "meta l4proto udp update @dync { ip saddr . th dport }" =>
        meta_l4proto(Protocol::UDP).update_element("dync", &[ip::SADDR, th::DPORT]).finish(),
    "add @dm { ip saddr . tcp sport : ip daddr . tcp dport }" => add_element("dm",
        element(&[ip::SADDR, tcp::SPORT]).data(&[ip::DADDR, tcp::DPORT])
    ).finish(),
};

/// IPv4 with connections.
pub(crate) const V4_TRACKED: &[Pair] = pairs! {
    "ct original ip saddr 10.0.0.1" => ct_original_ip_saddr(v4(1)).finish(),
    "ct original ip daddr 10.0.0.0/8" => ct_original_ip_daddr((v4(0), 8)).finish(),
    "ct reply ip saddr 10.0.0.0/12" => ct_reply_ip_saddr((v4(0), 12)).finish(),
    "ct reply ip daddr != 10.0.0.1" => ct_reply_ip_daddr(not(v4(1))).finish(),
    "ct original ip daddr @a4" => ct_original_ip_daddr(in_set("a4")).finish(),
    "ct original ip saddr 10.0.0.1 reject" => ct_original_ip_saddr(v4(1)).reject(),
    "update @dyn { ct original ip saddr }" =>
        update_element("dyn", ct::ORIGINAL_IP_SADDR).finish(),
    "dnat ip to 10.0.0.1" => dnat(v4(1)),
    "ip daddr 10.0.0.2 dnat to 10.0.0.1" => ip_daddr(v4(2)).dnat(v4(1)),
    "tcp dport 80 dnat ip to 10.0.0.1:8080" => tcp_dport(80).dnat(v4_port(1, 8080)),
    "meta l4proto tcp dnat ip to 10.0.0.1:8080" =>
        meta_l4proto(Protocol::TCP).dnat(v4_port(1, 8080)),
    "dnat ip to 10.0.0.1-10.0.0.9" => dnat(v4(1)..=v4(9)),
    "tcp dport 80 dnat ip to 10.0.0.1-10.0.0.9:80-90" =>
        tcp_dport(80).dnat(NatTo::from(v4(1)..=v4(9)).with_ports(80..=90)),
    "tcp dport 80 dnat ip to 10.0.0.1:80-90 random,persistent" => tcp_dport(80).dnat(
        NatTo::from(v4(1)).with_ports(80..=90).with_flags(RANDOM | NatRangeFlags::PERSISTENT)
    ),
    "snat ip to 10.0.0.1 fully-random" => snat(NatTo::from(v4(1)).with_flags(FULLY)),
    "meta l4proto tcp snat ip to 10.0.0.1:1024-2048 persistent" =>
        meta_l4proto(Protocol::TCP).snat(
            NatTo::from(v4(1)).with_ports(1024..=2048).with_flags(NatRangeFlags::PERSISTENT)
        ),
    "dnat ip to meta mark map @mm" => dnat(NatTo::map(Version::V4, meta::MARK, "mm")),
    "tcp dport 80 dnat ip to meta mark map @mm : 80" =>
        tcp_dport(80).dnat(NatTo::map(Version::V4, meta::MARK, "mm").with_ports(80)),
    "meta l4proto tcp dnat ip to ip daddr . th dport map @m4" => meta_l4proto(Protocol::TCP)
        .dnat(NatTo::map_with_port(Version::V4, &[ip::DADDR, th::DPORT], "m4")),
    "dnat ip addr . port to ip daddr . tcp dport map @m4" =>
        dnat(NatTo::map_with_port(Version::V4, &[ip::DADDR, tcp::DPORT], "m4")),
    "ip saddr 10.0.0.1 masquerade" => ip_saddr(v4(1)).masquerade(NONE),
    "ip saddr 10.0.0.1 reject" => ip_saddr(v4(1)).reject(),
    "ip saddr 10.0.0.1 reject with tcp reset" =>
        ip_saddr(v4(1)).reject_with(RejectWith::TcpReset),
    "ip protocol tcp reject with tcp reset" =>
        ip_protocol(Protocol::TCP).reject_with(RejectWith::TcpReset),
    "reject with icmp host-unreachable" =>
        reject_with(RejectWith::Icmp(IcmpCode::HOST_UNREACHABLE)),
    "tcp dport 22 reject with icmp host-prohibited" =>
        tcp_dport(22).reject_with(RejectWith::Icmp(IcmpCode::HOST_PROHIBITED)),
    "icmp type echo-request reject" => icmp_type(IcmpType::ECHO_REQUEST).reject(),
    "fib daddr type local ip daddr != 127.0.0.0/8 meta l4proto . th dport vmap @v2" =>
        fib_daddr_type(AddressType::LOCAL)
            .ip_daddr(not((Ipv4Addr::LOCALHOST, 8)))
            .vmap(&[meta::L4PROTO, th::DPORT], "v2").finish(),
};

/// IPv6.
pub(crate) const V6: &[Pair] = pairs! {
    "ip6 saddr fd00::1" => ip6_saddr(v6(1)).finish(),
    "ip6 saddr != fd00::1" => ip6_saddr(not(v6(1))).finish(),
    "ip6 saddr fd00::/64" => ip6_saddr((v6(0), 64)).finish(),
    "ip6 saddr != fd00::/63" => ip6_saddr(not((v6(0), 63))).finish(),
    "ip6 daddr fe80::/10" => ip6_daddr((Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10)).finish(),
    "ip6 daddr ::/0" => ip6_daddr((Ipv6Addr::UNSPECIFIED, 0)).finish(),
    "ip6 daddr fd00::1/128" => ip6_daddr((v6(1), 128)).finish(),
    "ip6 saddr fd00::1-fd00::9" => ip6_saddr(v6(1)..=v6(9)).finish(),
    "ip6 saddr != fd00::1-fd00::9" => ip6_saddr(not(v6(1)..=v6(9))).finish(),
    "ip6 daddr @a6" => ip6_daddr(in_set("a6")).finish(),
    "ip6 daddr != @a6" => ip6_daddr(not(in_set("a6"))).finish(),
    "ip6 saddr fd00::1 ip6 daddr fd00::2" => ip6_saddr(v6(1)).ip6_daddr(v6(2)).finish(),
    "ip6 saddr fd00::1 tcp dport 22" => ip6_saddr(v6(1)).tcp_dport(22).finish(),
    "ip6 nexthdr tcp" => ip6_nexthdr(Protocol::TCP).finish(),
    "ip6 nexthdr tcp tcp dport 22" => ip6_nexthdr(Protocol::TCP).tcp_dport(22).finish(),
    "ip6 hoplimit 255" => ip6_hoplimit(255).finish(),
    "icmpv6 type echo-request" => icmpv6_type(Icmpv6Type::ECHO_REQUEST).finish(),
    "icmpv6 type != nd-router-advert" => icmpv6_type(not(Icmpv6Type::ND_ROUTER_ADVERT)).finish(),
    "icmpv6 type 1 icmpv6 code 1" =>
        icmpv6_type(Icmpv6Type::DESTINATION_UNREACHABLE).icmpv6_code(1).finish(),
    "meta l4proto ipv6-icmp icmpv6 type echo-request" =>
        meta_l4proto(Protocol::ICMPV6).icmpv6_type(Icmpv6Type::ECHO_REQUEST).finish(),
    "icmpv6 type echo-request ip6 saddr fd00::1" =>
        icmpv6_type(Icmpv6Type::ECHO_REQUEST).ip6_saddr(v6(1)).finish(),
    "ip6 daddr . meta l4proto . th dport vmap @v36" =>
        vmap(&[ip6::DADDR, meta::L4PROTO, th::DPORT], "v36").finish(),
    "jhash ip6 saddr . ip6 daddr mod 4 == 1" =>
        matches(jhash(&[ip6::SADDR, ip6::DADDR], 4), 1u32).finish(),
    "update @dyn6 { ip6 saddr }" => update_element("dyn6", ip6::SADDR).finish(),
};

/// IPv6 with connections.
pub(crate) const V6_TRACKED: &[Pair] = pairs! {
    "ct original ip6 saddr fd00::1" => ct_original_ip6_saddr(v6(1)).finish(),
    "ct original ip6 daddr fd00::/64" => ct_original_ip6_daddr((v6(0), 64)).finish(),
    "ct reply ip6 daddr fd00::/63" => ct_reply_ip6_daddr((v6(0), 63)).finish(),
    "ct reply ip6 saddr @a6" => ct_reply_ip6_saddr(in_set("a6")).finish(),
    "dnat ip6 to fd00::1" => dnat(v6(1)),
    "tcp dport 80 dnat ip6 to [fd00::1]:80" => tcp_dport(80).dnat(v6_port(1, 80)),
    "tcp dport 80 dnat ip6 to [fd00::1]-[fd00::9]:80-90" =>
        tcp_dport(80).dnat(NatTo::from(v6(1)..=v6(9)).with_ports(80..=90)),
    "meta l4proto tcp dnat ip6 to ip6 daddr . th dport map @m6" => meta_l4proto(Protocol::TCP)
        .dnat(NatTo::map_with_port(Version::V6, &[ip6::DADDR, th::DPORT], "m6")),
    "ip6 saddr fd00::1 reject" => ip6_saddr(v6(1)).reject(),
    "reject with icmpv6 no-route" => reject_with(RejectWith::Icmpv6(Icmpv6Code::NO_ROUTE)),
    "counter reject with icmpv6 admin-prohibited" =>
        counter().reject_with(RejectWith::Icmpv6(Icmpv6Code::ADMIN_PROHIBITED)),
};

pub(crate) const INET: &[Pair] = pairs! {
    "meta nfproto ipv4" => meta_nfproto(Family::IP).finish(),
    "meta nfproto ipv6" => meta_nfproto(Family::IP6).finish(),
    "meta nfproto != ipv4" => meta_nfproto(not(Family::IP)).finish(),
    "meta nfproto ipv4 ip saddr 10.0.0.1" => meta_nfproto(Family::IP).ip_saddr(v4(1)).finish(),
    "meta nfproto ipv4 icmp type echo-request" =>
        meta_nfproto(Family::IP).icmp_type(IcmpType::ECHO_REQUEST).finish(),
    "meta nfproto ipv6 dnat to fd00::1" => meta_nfproto(Family::IP6).dnat(v6(1)),
    "meta nfproto ipv4 reject" => meta_nfproto(Family::IP).reject(),
    "reject with icmpx admin-prohibited" =>
        reject_with(RejectWith::Icmpx(RejectIcmpxCode::ADMIN_PROHIBITED)),
};

/// In families whose packets are frames.
pub(crate) const FRAMES: &[Pair] = pairs! {
    "meta protocol ip" => meta_protocol(EtherType::IP).finish(),
    "meta protocol != arp" => meta_protocol(not(EtherType::ARP)).finish(),
    "meta protocol ip ip saddr 10.0.0.1" => meta_protocol(EtherType::IP).ip_saddr(v4(1)).finish(),
    "meta protocol ip6 tcp dport 22" => meta_protocol(EtherType::IP6).tcp_dport(22).finish(),
};

/// nft cannot load these in a bridge table without a hook.
pub(crate) const NETDEV: &[Pair] = pairs! {
    "reject" => reject(),
    "reject with icmp host-unreachable" =>
        reject_with(RejectWith::Icmp(IcmpCode::HOST_UNREACHABLE)),
    "reject with icmpv6 no-route" => reject_with(RejectWith::Icmpv6(Icmpv6Code::NO_ROUTE)),
    "reject with icmpx admin-prohibited" =>
        reject_with(RejectWith::Icmpx(RejectIcmpxCode::ADMIN_PROHIBITED)),
    "ip saddr 10.0.0.1 reject" => ip_saddr(v4(1)).reject(),
    "ip saddr 10.0.0.1 reject with tcp reset" =>
        ip_saddr(v4(1)).reject_with(RejectWith::TcpReset),
    "fib daddr type local" => fib_daddr_type(AddressType::LOCAL).finish(),
};
