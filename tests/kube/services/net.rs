//! A client, a node and three pods.

use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{FromRawFd, OwnedFd};
use std::thread;
use std::time::Duration;

use chainwright::iptables::Family;
use chainwright_kube::service::Protocol;
use chainwright_testing::Sandbox;

use crate::common::sandbox;
use crate::common::tools::Tools;

/// The port at which pods serve.
pub(crate) const PORT: u16 = 8080;
/// The port at which pods answer repeatedly on one connection.
pub(crate) const ECHO: u16 = 8081;
/// Time limit for an answer. A refusal over IPv6 that arrives while the socket is still connecting does not count,
/// and the next one arrives after the kernel's retry, a second later.
pub(crate) const PATIENCE: Duration = Duration::from_millis(1_500);

/// The origin of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// Outside the cluster.
    Client,
    /// The node itself.
    Node,
    /// A pod by number.
    Pod(usize),
}

/// The result of a connection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Answer {
    /// This pod answered, and saw this sender.
    Pod(usize, IpAddr),
    /// A program on the node answered.
    Node,
    Refused,
    Unreachable,
    Silence,
}

pub(crate) struct Net {
    pub(crate) family: Family,
    pub(crate) client: Sandbox,
    pub(crate) node: Sandbox,
    pub(crate) pods: Vec<Sandbox>,
    _beyond: Sandbox,
    raw: Vec<UdpSocket>,
}

/// An address of the family, given by network and host number.
pub(crate) fn address(family: Family, network: Network, host: u8) -> IpAddr {
    let [a, b, c] = match network {
        Network::Outside => [192, 168, 50],
        Network::Pods(pod) => [10, 244, pod as u8],
        Network::Services => [10, 96, 0],
        Network::External => [203, 0, 113],
        Network::Beyond => [192, 168, 70],
    };
    match family {
        Family::Ipv4 => [a, b, c, host].into(),
        Family::Ipv6 => {
            let text = format!("fd00:{a}:{b}:{c}::{host:x}");
            text.parse().unwrap()
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Network {
    Outside,
    Pods(usize),
    Services,
    External,
    Beyond,
}

impl Net {
    /// Pods 0 and 1 run on the node, pod 2 on another one.
    pub(crate) fn new(family: Family) -> Self {
        let (client, node) = (sandbox(), sandbox());
        node.enable_forwarding().unwrap();
        // Removes the rate limit on ICMP errors, so that every refusal is reported.
        let written = node.run(|| {
            fs::write("/proc/sys/net/ipv4/icmp_ratelimit", "0")?;
            fs::write("/proc/sys/net/ipv6/icmp/ratelimit", "0")
        });
        written.unwrap().unwrap();
        let (length, all) = match family {
            Family::Ipv4 => (24, "0.0.0.0/0"),
            Family::Ipv6 => (64, "::/0"),
        };
        let at = |network, host| format!("{}/{length}", address(family, network, host));
        let cable = |other: &Sandbox, name: &str, network| {
            Sandbox::connect(&node, name, &at(network, 1), other, "eth0", &at(network, 2)).unwrap();
            let gateway = address(family, network, 1).to_string();
            other.add_route(all, &gateway).unwrap();
        };
        cable(&client, "outside", Network::Outside);
        let pods: Vec<_> = (0..3).map(|_| sandbox()).collect();
        for (number, pod) in pods.iter().enumerate() {
            cable(pod, &format!("pod{number}"), Network::Pods(number));
        }
        // The node has a route to cluster IPs, as nodes have a default route. It differs from the route to the
        // client: the kernel rate-limits redirects and errors to a sender together, and would send no errors.
        let beyond = sandbox();
        cable(&beyond, "beyond", Network::Beyond);
        let gateway = address(family, Network::Beyond, 2).to_string();
        node.add_route(all, &gateway).unwrap();
        let raw = (0..3).map(|pod| raw_socket(&pods[pod], family)).collect();
        let net = Self {
            family,
            client,
            node,
            pods,
            _beyond: beyond,
            raw,
        };
        net.serve();
        net
    }

    pub(crate) fn pod(&self, number: usize) -> IpAddr {
        address(self.family, Network::Pods(number), 2)
    }

    /// Each pod answers with its number and the sender. The threads end with the process.
    fn serve(&self) {
        for number in 0..self.pods.len() {
            let at = SocketAddr::new(self.pod(number), PORT);
            let bind = || {
                let echo = SocketAddr::new(at.ip(), ECHO);
                let listen = |at| TcpListener::bind(at).unwrap();
                (listen(at), listen(echo), UdpSocket::bind(at).unwrap())
            };
            let (tcp, echo, udp) = self.pods[number].run(bind).unwrap();
            let words = move |peer: SocketAddr| format!("{number} {}", peer.ip());
            thread::spawn(move || {
                for stream in tcp.incoming() {
                    let mut stream = stream.unwrap();
                    let peer = stream.peer_addr().unwrap();
                    let _ = stream.write_all(words(peer).as_bytes());
                }
            });
            thread::spawn(move || {
                for stream in echo.incoming() {
                    let mut stream = stream.unwrap();
                    let peer = stream.peer_addr().unwrap();
                    thread::spawn(move || {
                        while stream.read_exact(&mut [0]).is_ok() {
                            let _ = stream.write_all(words(peer).as_bytes());
                        }
                    });
                }
            });
            thread::spawn(move || {
                let mut buffer = [0; 64];
                while let Ok((_, peer)) = udp.recv_from(&mut buffer) {
                    let _ = udp.send_to(words(peer).as_bytes(), peer);
                }
            });
        }
    }

    fn sandbox(&self, from: From) -> &Sandbox {
        match from {
            From::Client => &self.client,
            From::Node => &self.node,
            From::Pod(number) => &self.pods[number],
        }
    }

    /// One connection, from a new port.
    pub(crate) fn request(&self, from: From, protocol: Protocol, to: SocketAddr) -> Answer {
        match protocol {
            Protocol::Tcp => self.sandbox(from).run(|| request_tcp(to)).unwrap(),
            Protocol::Udp => {
                let socket = self.sandbox(from).run(|| udp(to)).unwrap();
                request_udp(&socket)
            }
            Protocol::Sctp => self.request_sctp(from, to),
        }
    }

    /// This many connections. Returns the distinct answers.
    pub(crate) fn request_repeatedly(
        &self,
        from: From,
        protocol: Protocol,
        to: SocketAddr,
        times: usize,
    ) -> BTreeSet<Answer> {
        (0..times)
            .map(|_| self.request(from, protocol, to))
            .collect()
    }

    /// The receiver of a packet that begins an association. The kernel need not support SCTP.
    fn request_sctp(&self, from: From, to: SocketAddr) -> Answer {
        let mut buffer = [0; 256];
        for raw in &self.raw {
            raw.set_nonblocking(true).unwrap();
            while raw.recv_from(&mut buffer).is_ok() {}
            raw.set_nonblocking(false).unwrap();
            raw.set_read_timeout(Some(PATIENCE / 10)).unwrap();
        }
        let socket = raw_socket(self.sandbox(from), self.family);
        let packet = init(40_000, to.port());
        socket
            .send_to(&packet, SocketAddr::new(to.ip(), 0))
            .unwrap();
        for (number, raw) in self.raw.iter().enumerate() {
            if let Ok((_, peer)) = raw.recv_from(&mut buffer) {
                return Answer::Pod(number, peer.ip());
            }
        }
        Answer::Silence
    }

    /// A program on the node that listens at a port, too.
    pub(crate) fn listen_on_node(&self, port: u16) -> TcpListener {
        let any: IpAddr = match self.family {
            Family::Ipv4 => [0; 4].into(),
            Family::Ipv6 => [0_u16; 8].into(),
        };
        let listener = self.node.run(|| TcpListener::bind((any, port)));
        let listener = listener.unwrap().unwrap();
        let other = listener.try_clone().unwrap();
        thread::spawn(move || {
            for stream in other.incoming() {
                let _ = stream.map(|mut stream| stream.write_all(b"node"));
            }
        });
        listener
    }

    /// Adds an address to the node.
    pub(crate) fn give_node(&self, address: IpAddr) {
        let length = if address.is_ipv4() { 32 } else { 128 };
        self.node
            .add_address("outside", &format!("{address}/{length}"))
            .unwrap();
    }

    pub(crate) fn tools(&self) -> Tools<'_> {
        Tools::new(&self.node)
    }
}

pub(crate) fn parse_answer(words: &[u8]) -> Answer {
    let words = std::str::from_utf8(words).unwrap();
    match words.split_once(' ') {
        Some((number, peer)) => Answer::Pod(number.parse().unwrap(), peer.parse().unwrap()),
        None => Answer::Node,
    }
}

fn failed(error: &std::io::Error) -> Answer {
    match error.kind() {
        ErrorKind::ConnectionRefused => Answer::Refused,
        ErrorKind::TimedOut | ErrorKind::WouldBlock => Answer::Silence,
        ErrorKind::HostUnreachable => Answer::Unreachable,
        _ => panic!("{error}"),
    }
}

fn request_tcp(to: SocketAddr) -> Answer {
    let response = || -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut words = Vec::new();
        stream.read_to_end(&mut words)?;
        Ok(words)
    };
    match response() {
        Ok(words) => parse_answer(&words),
        Err(error) => failed(&error),
    }
}

/// A connected socket, so that it receives refusals.
pub(crate) fn udp(to: SocketAddr) -> UdpSocket {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => [0; 4].into(),
        SocketAddr::V6(_) => [0_u16; 8].into(),
    };
    let socket = UdpSocket::bind((any, 0)).unwrap();
    socket.connect(to).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

pub(crate) fn request_udp(socket: &UdpSocket) -> Answer {
    let mut words = [0; 64];
    let mut response = socket.send(b"?").and_then(|_| socket.recv(&mut words));
    // With a timeout, Linux does not restart an interrupted `recv`.
    while response
        .as_ref()
        .is_err_and(|error| error.kind() == ErrorKind::Interrupted)
    {
        response = socket.recv(&mut words);
    }
    match response {
        Ok(length) => parse_answer(&words[..length]),
        Err(error) => failed(&error),
    }
}

/// A socket that sends and receives raw SCTP packets.
fn raw_socket(sandbox: &Sandbox, family: Family) -> UdpSocket {
    raw_socket_of(sandbox, family, 132)
}

/// A socket that sends and receives a protocol's raw packets.
pub(crate) fn raw_socket_of(sandbox: &Sandbox, family: Family, protocol: i32) -> UdpSocket {
    let domain = match family {
        Family::Ipv4 => libc::AF_INET,
        Family::Ipv6 => libc::AF_INET6,
    };
    let socket = sandbox.run(|| {
        // SAFETY: no pointers are passed.
        unsafe { libc::socket(domain, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) }
    });
    let socket = socket.unwrap();
    assert!(socket >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the descriptor was opened above, and has no other owner.
    unsafe { OwnedFd::from_raw_fd(socket) }.into()
}

/// The first packet of an association (RFC 9260, 3.3.2), with its checksum.
fn init(from: u16, to: u16) -> Vec<u8> {
    let mut packet = Vec::new();
    packet.extend(from.to_be_bytes());
    packet.extend(to.to_be_bytes());
    packet.extend([0; 8]); // verification tag, checksum
    packet.extend([1, 0, 0, 20]); // INIT, its length
    packet.extend([0, 0, 0, 9]); // tag
    packet.extend([0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 7]); // window, streams, first number
    let sum = crc32c(&packet);
    packet[8..12].copy_from_slice(&sum.to_le_bytes());
    packet
}

fn crc32c(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            let low = sum & 1;
            sum = (sum >> 1) ^ (low * 0x82f6_3b78);
        }
    }
    !sum
}
