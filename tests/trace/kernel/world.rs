//! A client, the node whose rules are traced, and a server, with cables between them; and the packets that arrive at
//! each.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};

use chainwright::conntrack::{self, Layer4};
use chainwright::iptables::text::RestoreOptions;
use chainwright::iptables::{Family, Iptables};
use chainwright::legacy;
use chainwright::nft::live::{Monitor, TracedItem, Tracer};
use chainwright::nft::{Connection, Scope, Snapshot, Transaction};
use chainwright_lang::Script;
use chainwright_testing::Sandbox;
use nix::libc;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::socket::{
    AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, recvfrom, socket,
};
use nix::unistd::Pid;

use crate::common::tools::Tools;
use crate::common::{connect, report, sandbox};
use crate::kernel::judge;
use crate::kernel::log::Logged;
use crate::kernel::packet::{Headers, Route, Sent};

/// The node's addresses.
pub(crate) const NODE4: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 2, 0, 1)];
pub(crate) const NODE6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, 1),
    Ipv6Addr::new(0xfd02, 0, 0, 0, 0, 0, 0, 1),
];
/// The tables of an iptables family in their initial state.
const EMPTY: &str = "*raw\n:PREROUTING ACCEPT\n:OUTPUT ACCEPT\nCOMMIT\n\
    *mangle\n:PREROUTING ACCEPT\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\n:POSTROUTING ACCEPT\nCOMMIT\n\
    *nat\n:PREROUTING ACCEPT\n:INPUT ACCEPT\n:OUTPUT ACCEPT\n:POSTROUTING ACCEPT\nCOMMIT\n\
    *filter\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\nCOMMIT\n\
    *security\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\nCOMMIT\n";
/// Largest number of devices that pass a packet on before it reaches its end.
const HOPS: usize = 6;

/// The destination at which a packet arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Destination {
    Client,
    Server,
    /// A socket of the node.
    Node,
}

/// A packet that arrived.
#[derive(Debug, Clone)]
pub(crate) struct Arrived {
    pub(crate) place: Destination,
    pub(crate) headers: Headers,
}

/// All observations for one packet.
#[derive(Debug)]
pub(crate) struct Seen {
    /// nf_tables' reports about its path, in order.
    pub(crate) traced: Vec<chainwright::nft::live::Traced>,
    /// The legacy tables' reports.
    pub(crate) logged: Vec<Logged>,
    pub(crate) arrived: Vec<Arrived>,
}

/// The texts to load on the node.
#[derive(Debug, Clone, Default)]
pub(crate) struct Texts {
    /// In nft's language, starting with `flush ruleset`.
    pub(crate) nft: String,
    /// In iptables' syntax, for iptables-nft, which adds to it.
    pub(crate) iptables_nft: Vec<(Family, String)>,
    /// The same for legacy tables.
    pub(crate) legacy: Vec<(Family, String)>,
}

pub(crate) struct World {
    node: Sandbox,
    _others: [Sandbox; 2],
    nft: Connection,
    conntrack: conntrack::Connection,
    tracer: Tracer,
    log: crate::kernel::log::Reader,
    /// Raw sockets that send complete packets.
    from_client: [UdpSocket; 2],
    from_node: [UdpSocket; 2],
    from_server: [UdpSocket; 2],
    /// Packets that arrive at the devices of the client and the server.
    at_client: OwnedFd,
    at_server: OwnedFd,
    /// Packets that the node's sockets receive, with the protocol of each.
    at_node: Vec<(u8, bool, UdpSocket)>,
    /// A socket that sends to itself.
    barrier: UdpSocket,
    /// Whether legacy tables of the family contain rules.
    has_legacy: Vec<Family>,
    iptables_nft: Iptables,
    iptables_legacy: Iptables,
}

/// A socket for packets with their headers.
fn raw(sandbox: &Sandbox, family: AddressFamily, protocol: SockProtocol) -> UdpSocket {
    let made = sandbox.run(|| socket(family, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol));
    UdpSocket::from(made.unwrap().unwrap())
}

fn senders(sandbox: &Sandbox) -> [UdpSocket; 2] {
    [
        raw(sandbox, AddressFamily::Inet, SockProtocol::Raw),
        raw(sandbox, AddressFamily::Inet6, SockProtocol::Raw),
    ]
}

/// A socket that receives all packets of all devices, from their network header on.
fn taps(sandbox: &Sandbox) -> OwnedFd {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let protocol = SockProtocol::EthAll;
    let made = sandbox.run(|| socket(AddressFamily::Packet, SockType::Datagram, flags, protocol));
    made.unwrap().unwrap()
}

impl World {
    pub(crate) fn new() -> Self {
        // The processor that sends a packet does all of the work for it.
        let mut one = CpuSet::new();
        one.set(0).unwrap();
        sched_setaffinity(Pid::from_raw(0), &one).unwrap();
        let (client, node, server) = (sandbox(), sandbox(), sandbox());
        node.enable_forwarding().unwrap();
        Sandbox::connect(&node, "c0", "10.1.0.1/24", &client, "eth0", "10.1.0.2/24").unwrap();
        Sandbox::connect(&node, "s0", "10.2.0.1/24", &server, "eth0", "10.2.0.2/24").unwrap();
        for (sandbox, device, address) in [
            (&node, "c0", "fd01::1/64"),
            (&client, "eth0", "fd01::2/64"),
            (&node, "s0", "fd02::1/64"),
            (&server, "eth0", "fd02::2/64"),
        ] {
            sandbox.add_address(device, address).unwrap();
        }
        settings(&node);
        let lines = |sandbox: &Sandbox, lines: &[&str]| {
            let tools = Tools::new(sandbox);
            for line in lines {
                tools.run(line);
            }
        };
        lines(
            &node,
            &[
                "ip link set c0 address 02:00:00:00:01:01",
                "ip link set s0 address 02:00:00:00:02:01",
                "ip route add default via 10.2.0.2",
                "ip -6 route add default via fd02::2",
            ],
        );
        lines(
            &client,
            &[
                "ip link set eth0 address 02:00:00:00:01:02",
                "ip route add default via 10.1.0.1",
                "ip -6 route add default via fd01::1",
            ],
        );
        lines(
            &server,
            &[
                "ip link set eth0 address 02:00:00:00:02:02",
                "ip route add default via 10.2.0.1",
                "ip -6 route add default via fd02::1",
            ],
        );
        // Static neighbor entries, so that no neighbor discovery is needed.
        let neighbor = |sandbox: &Sandbox, device: &str, addresses: &[&str], link: &str| {
            let tools = Tools::new(sandbox);
            for address in addresses {
                tools.run(&format!(
                    "ip neigh replace {address} lladdr {link} nud permanent dev {device}"
                ));
            }
        };
        let clients: Vec<_> = (2..=5)
            .flat_map(|host| [format!("10.1.0.{host}"), format!("fd01::{host}")])
            .collect();
        let clients: Vec<_> = clients.iter().map(String::as_str).collect();
        neighbor(&node, "c0", &clients, "02:00:00:00:01:02");
        neighbor(&node, "s0", &["10.2.0.2", "fd02::2"], "02:00:00:00:02:02");
        neighbor(
            &client,
            "eth0",
            &["10.1.0.1", "fd01::1"],
            "02:00:00:00:01:01",
        );
        neighbor(
            &server,
            "eth0",
            &["10.2.0.1", "fd02::1"],
            "02:00:00:00:02:01",
        );
        // Neither client nor server answers.
        for silent in [&client, &server] {
            let rules = "table inet silent {\n chain all {\n type filter hook prerouting priority -500; policy drop;\n }\n}\n";
            run(&mut connect(silent), rules).unwrap();
        }
        let at_node = [
            (AddressFamily::Inet, SockProtocol::Udp, 17, true),
            (AddressFamily::Inet, SockProtocol::Tcp, 6, true),
            (AddressFamily::Inet, SockProtocol::Icmp, 1, true),
            (AddressFamily::Inet6, SockProtocol::Udp, 17, false),
            (AddressFamily::Inet6, SockProtocol::Tcp, 6, false),
            (AddressFamily::Inet6, SockProtocol::IcmpV6, 58, false),
        ];
        let at_node = at_node.map(|(family, protocol, number, has_header)| {
            let socket = raw(&node, family, protocol);
            socket.set_nonblocking(true).unwrap();
            (number, has_header, socket)
        });
        let open = |backend: fn() -> Result<Iptables, chainwright::iptables::Error>| {
            node.run(backend).unwrap().unwrap()
        };
        let barrier = client.run(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect(socket.local_addr().unwrap()).unwrap();
            socket
        });
        // The client's rules drop packets from devices except these.
        run(
            &mut connect(&client),
            "insert rule inet silent all iif lo accept\n",
        )
        .unwrap();
        Self {
            nft: connect(&node),
            conntrack: node.run(conntrack::Connection::open).unwrap().unwrap(),
            tracer: node.run(Tracer::open).unwrap().unwrap(),
            log: node.run(crate::kernel::log::Reader::open).unwrap(),
            from_client: senders(&client),
            from_node: senders(&node),
            from_server: senders(&server),
            at_client: taps(&client),
            at_server: taps(&server),
            at_node: at_node.into(),
            barrier: barrier.unwrap(),
            has_legacy: Family::ALL.into(),
            iptables_nft: open(Iptables::nft),
            iptables_legacy: open(Iptables::legacy),
            node,
            _others: [client, server],
        }
    }

    /// Replaces all rules of the node, and deletes its conntrack entries. The legacy tables exist from the first time
    /// on, and so before all chains of nf_tables. Returns an error if the kernel refuses the texts.
    pub(crate) fn load(&mut self, texts: &Texts) -> Result<(), String> {
        let options = RestoreOptions::default();
        let kept = RestoreOptions {
            noflush: true,
            ..RestoreOptions::default()
        };
        for family in std::mem::take(&mut self.has_legacy) {
            let emptied = self.iptables_legacy.restore(family, EMPTY, &options);
            emptied.map_err(|error| report(&error))?;
        }
        for (family, text) in &texts.legacy {
            self.has_legacy.push(*family);
            let done = self.iptables_legacy.restore(*family, text, &options);
            done.map_err(|error| report(&error))?;
        }
        run(&mut self.nft, &texts.nft)?;
        for (family, text) in &texts.iptables_nft {
            let done = self.iptables_nft.restore(*family, text, &kept);
            done.map_err(|error| report(&error))?;
        }
        let all = conntrack::Filter::all();
        let _ = self.conntrack.delete_matching(&all).unwrap();
        Ok(())
    }

    /// The node's current ruleset.
    pub(crate) fn snapshot(&mut self) -> Snapshot {
        self.nft.snapshot(Scope::all()).unwrap()
    }

    /// Commits a transaction on the node.
    pub(crate) fn commit(&mut self, tx: &Transaction) {
        crate::common::commit(&mut self.nft, tx);
    }

    /// A monitor of the node's nf_tables.
    pub(crate) fn watch(&self) -> Monitor {
        crate::common::watch(&self.node)
    }

    /// The legacy tables that are in use.
    pub(crate) fn legacy(&self) -> Vec<legacy::Table> {
        let read = self.node.run(|| {
            let mut tables = Vec::new();
            for family in [legacy::Family::Ipv4, legacy::Family::Ipv6] {
                let connection = legacy::Connection::open(family).unwrap();
                for name in connection.tables().unwrap() {
                    tables.extend(connection.read(name).unwrap().in_use());
                }
            }
            tables
        });
        read.unwrap()
    }

    /// The connection that a packet began, if it exists.
    pub(crate) fn connection(
        &mut self,
        sent: &Sent,
    ) -> Option<chainwright_trace::TrackedConnection> {
        let mut found = None;
        let listing = self.conntrack.entries(&conntrack::Filter::all()).unwrap();
        let each = listing.for_each(|entry| {
            let original = entry.original();
            let is_it = original.source == sent.source
                && original.destination == sent.destination
                && match original.layer4 {
                    Layer4::Ports {
                        protocol,
                        source,
                        destination,
                    } => protocol == sent.protocol && (source, destination) == sent.ports,
                    Layer4::Icmp { id, .. } => id == sent.ports.0,
                    _ => false,
                };
            if let (true, Some(reply)) = (is_it, entry.reply()) {
                let status = entry.status().bits();
                found = Some(judge::connection(original, reply, entry.mark(), status));
            }
        });
        each.unwrap();
        found
    }

    /// Sends a packet, and returns the observations.
    pub(crate) fn send(&mut self, sent: &Sent) -> Seen {
        self.take();
        let index = usize::from(sent.source.is_ipv6());
        let socket = match sent.route {
            Route::Forward | Route::In => &self.from_client[index],
            Route::Back => &self.from_server[index],
            Route::Out | Route::Local => &self.from_node[index],
        };
        let to = SocketAddr::new(sent.destination, 0);
        // A packet that the sender's own rules drop is refused.
        let _ = socket.send_to(&sent.bytes(), to);
        self.wait_until_delivered();
        self.take()
    }

    /// Waits until packets that were sent before have reached their ends: each device passes packets on in order.
    fn wait_until_delivered(&self) {
        for _ in 0..HOPS {
            self.barrier.send(b"x").unwrap();
            self.barrier.recv(&mut [0; 4]).unwrap();
        }
    }

    /// All observations since the last call.
    fn take(&mut self) -> Seen {
        let mut traced = Vec::new();
        while let Some(item) = self.tracer.try_receive().unwrap() {
            match item {
                TracedItem::Step(step) => traced.push(step),
                other => panic!("{other:?}"),
            }
        }
        let logged = self.log.take();
        let mut arrived = Vec::new();
        for (place, socket) in [
            (Destination::Client, &self.at_client),
            (Destination::Server, &self.at_server),
        ] {
            let mut buffer = [0; 2048];
            loop {
                let got = recvfrom::<LinkAddr>(socket.as_raw_fd(), &mut buffer);
                let (length, from) = match got {
                    Ok((length, Some(from))) => (length, from),
                    Ok((_, None)) => continue,
                    Err(nix::errno::Errno::EAGAIN) => break,
                    Err(error) => panic!("{error}"),
                };
                let is_out = from.pkttype() == libc::PACKET_OUTGOING;
                let is_own = from.hatype() == libc::ARPHRD_LOOPBACK;
                if is_out || is_own {
                    continue;
                }
                if let Some(headers) = Headers::parse(&buffer[..length]) {
                    arrived.push(Arrived { place, headers });
                }
            }
        }
        for (protocol, has_header, socket) in &self.at_node {
            let mut buffer = [0; 2048];
            loop {
                let (length, from) = match socket.recv_from(&mut buffer) {
                    Ok(got) => got,
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                    Err(error) => panic!("{error}"),
                };
                let bytes = &buffer[..length];
                let headers = match has_header {
                    true => Headers::parse(bytes),
                    false => Some(Headers::of_transport(*protocol, from.ip(), bytes)),
                };
                arrived.extend(headers.map(|headers| Arrived {
                    place: Destination::Node,
                    headers,
                }));
            }
        }
        Seen {
            traced,
            logged,
            arrived,
        }
    }
}

/// Applies a text in nft's language.
fn run(nft: &mut Connection, text: &str) -> Result<(), String> {
    let script = Script::parse("rules.nft", text).map_err(|error| format!("{error}\n{text}"))?;
    let now = match script.needs_listing() {
        true => Some(nft.snapshot(Scope::all()).unwrap()),
        false => None,
    };
    let change = script.transaction(now.as_ref());
    let change = change.map_err(|error| format!("{error}\n{text}"))?;
    nft.commit(change.transaction()).map_err(|error| {
        let places: Vec<_> = change
            .explain(&error)
            .iter()
            .map(|e| e.to_string())
            .collect();
        format!("{}\n{}\n{text}", report(&error), places.join("\n"))
    })?;
    Ok(())
}

/// The node forwards all packets, sends ICMP errors without a rate limit, and logs to any listener.
fn settings(node: &Sandbox) {
    let written = node.run(|| {
        for (path, value) in [
            ("ipv4/conf/all/rp_filter", "0"),
            ("ipv4/conf/default/rp_filter", "0"),
            ("ipv4/conf/c0/rp_filter", "0"),
            ("ipv4/conf/s0/rp_filter", "0"),
            ("ipv4/conf/all/send_redirects", "0"),
            ("ipv4/conf/c0/send_redirects", "0"),
            ("ipv4/conf/s0/send_redirects", "0"),
            ("ipv4/icmp_ratelimit", "0"),
            ("ipv6/icmp/ratelimit", "0"),
            ("netfilter/nf_log/2", "nfnetlink_log"),
            ("netfilter/nf_log/10", "nfnetlink_log"),
        ] {
            let path = format!("/proc/sys/net/{path}");
            fs::write(&path, value).unwrap_or_else(|error| panic!("{path}: {error}"));
        }
    });
    written.unwrap();
}

/// The node's address in the network of a device.
pub(crate) fn node_address(is_ipv4: bool, device: usize) -> IpAddr {
    match is_ipv4 {
        true => NODE4[device].into(),
        false => NODE6[device].into(),
    }
}
