//! The parts of rtnetlink(7) that a sandbox needs: veth pairs, addresses, routes.

use std::fmt;
use std::io::{self, Cursor};
use std::net::IpAddr;
use std::os::fd::{AsFd as _, AsRawFd};
use std::thread;
use std::time::{Duration, Instant};

use neli::consts::nl::{NlmF, NlmsgerrAttr};
use neli::consts::rtnl::{
    Ifa, IfaF, Iff, Ifla, IflaInfo, RtAddrFamily, RtScope, RtTable, Rta, RtaType, Rtm, Rtn, Rtprot,
};
use neli::consts::socket::{Msg, NlFamily};
use neli::nl::{NlPayload, Nlmsghdr, NlmsghdrBuilder};
use neli::rtnl::{
    IfaddrmsgBuilder, Ifinfomsg, IfinfomsgBuilder, Rtattr, RtattrBuilder, RtmsgBuilder,
};
use neli::socket::NlSocket;
use neli::types::{Buffer, RtBuffer};
use neli::utils::Groups;
use neli::{FromBytes, FromBytesWithInput, Size, ToBytes};

use chainwright::netns::Netns;

use crate::Error;

/// Inside IFLA_INFO_DATA of a veth interface: the description of its peer (linux/veth.h).
const VETH_INFO_PEER: u16 = 1;

/// The longest name of an interface, without its NUL (linux/if.h, IFNAMSIZ).
const NAME_LENGTH: usize = libc::IFNAMSIZ - 1;

/// Maximum time to wait for an interface to run after it is up.
const RUNNING: Duration = Duration::from_secs(10);

/// Maximum number of times to send a request whose answers are lost.
const MAX_SENDS: usize = 4;

/// Size of the buffer for one answer. The longest, an interface's description, takes about 2 KiB.
const ANSWER: usize = 32 * 1024;

/// An address with its prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// Reads `10.0.0.1/24` or `fd00::1/64`.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let parts = text.split_once('/').and_then(|(address, length)| {
            Some((address.parse::<IpAddr>().ok()?, length.parse::<u8>().ok()?))
        });
        match parts {
            Some((address, length)) if length <= if address.is_ipv4() { 32 } else { 128 } => {
                Ok(Self { address, length })
            }
            _ => Err(Error::InvalidAddress {
                text: text.into(),
                expected: "an address with its prefix length, like 10.0.0.1/24 or fd00::1/64",
            }),
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// An rtnetlink socket. It works on the network namespace in which it was opened.
pub(super) struct Socket {
    socket: NlSocket,
    sequence: u32,
}

impl Socket {
    /// Opens a socket in the calling thread's network namespace.
    pub(super) fn open_here() -> Result<Self, Error> {
        NlSocket::connect(NlFamily::Route, None, Groups::empty())
            .and_then(|socket| {
                socket.enable_ext_ack(true)?;
                Ok(Self {
                    socket,
                    sequence: 0,
                })
            })
            .map_err(|source| Error::Network {
                action: "open a route socket".into(),
                message: None,
                source,
            })
    }

    /// Creates a veth pair: `name` in this namespace, `peer` in the other.
    pub(super) fn add_veth(
        &mut self,
        name: &str,
        peer: &str,
        peer_netns: &Netns,
    ) -> Result<(), Error> {
        check_name(name)?;
        check_name(peer)?;
        let body = || {
            let other_end = interface([
                attribute(Ifla::Ifname, peer)?,
                attribute(Ifla::NetNsFd, peer_netns.as_fd().as_raw_fd())?,
            ])
            .build()
            .map_err(io::Error::other)?;
            let data = nested(IflaInfo::Data, [attribute(VETH_INFO_PEER, other_end)?])?;
            let info = nested(Ifla::Linkinfo, [attribute(IflaInfo::Kind, "veth")?, data])?;
            interface([attribute(Ifla::Ifname, name)?, info])
                .build()
                .map_err(io::Error::other)
        };
        self.change(
            format!("create the interfaces {name} and {peer}"),
            Rtm::Newlink,
            NlmF::CREATE | NlmF::EXCL,
            body(),
        )
    }

    /// Removes an interface; removing one end of a veth pair also removes the other.
    pub(super) fn delete(&mut self, name: &str) -> Result<(), Error> {
        let body = attribute(Ifla::Ifname, name)
            .and_then(|name| interface([name]).build().map_err(io::Error::other));
        self.change(
            format!("remove the interface {name}"),
            Rtm::Dellink,
            NlmF::empty(),
            body,
        )
    }

    /// Brings an interface up.
    pub(super) fn bring_up(&mut self, name: &str) -> Result<(), Error> {
        let body = attribute(Ifla::Ifname, name)
            .and_then(|name| interface([name]).up().build().map_err(io::Error::other));
        self.change(
            format!("bring the interface {name} up"),
            Rtm::Newlink,
            NlmF::empty(),
            body,
        )
    }

    /// Waits until an interface that is up has its carrier and forwards packets. The kernel does
    /// this in the background, a moment after both ends of a veth pair are up.
    pub(super) fn wait_until_running(&mut self, name: &str) -> Result<(), Error> {
        let start = Instant::now();
        while !self.interface(name)?.ifi_flags().contains(Iff::RUNNING) {
            if start.elapsed() > RUNNING {
                return Err(Error::NotRunning {
                    name: name.into(),
                    seconds: RUNNING.as_secs(),
                });
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Gives an interface an address.
    pub(super) fn add_address(&mut self, name: &str, prefix: Prefix) -> Result<(), Error> {
        check_name(name)?;
        let index = *self.interface(name)?.ifi_index();
        let body = || {
            let address = octets(prefix.address);
            IfaddrmsgBuilder::default()
                .ifa_family(family(prefix.address))
                .ifa_prefixlen(prefix.length)
                // Matters only for IPv6: without it the address could not be used for a second.
                .ifa_flags(IfaF::NODAD)
                .ifa_scope(RtScope::Universe)
                .ifa_index(index.unsigned_abs())
                .rtattrs(RtBuffer::from_iter([
                    attribute(Ifa::Local, address.clone())?,
                    attribute(Ifa::Address, address)?,
                ]))
                .build()
                .map_err(io::Error::other)
        };
        self.change(
            format!("add the address {prefix} to {name}"),
            Rtm::Newaddr,
            NlmF::CREATE | NlmF::EXCL,
            body(),
        )
    }

    /// Adds a route to `destination` via `gateway`.
    pub(super) fn add_route(&mut self, destination: Prefix, gateway: IpAddr) -> Result<(), Error> {
        let body = || {
            RtmsgBuilder::default()
                .rtm_family(family(destination.address))
                .rtm_dst_len(destination.length)
                .rtm_src_len(0)
                .rtm_tos(0)
                .rtm_table(RtTable::Main)
                .rtm_protocol(Rtprot::Static)
                .rtm_scope(RtScope::Universe)
                .rtm_type(Rtn::Unicast)
                .rtattrs(RtBuffer::from_iter([
                    attribute(Rta::Dst, octets(destination.address))?,
                    attribute(Rta::Gateway, octets(gateway))?,
                ]))
                .build()
                .map_err(io::Error::other)
        };
        self.change(
            format!("add a route to {destination} via {gateway}"),
            Rtm::Newroute,
            NlmF::CREATE | NlmF::EXCL,
            body(),
        )
    }

    /// Queries the kernel's description of an interface.
    fn interface(&mut self, name: &str) -> Result<Ifinfomsg, Error> {
        let body = attribute(Ifla::Ifname, name)
            .and_then(|name| interface([name]).build().map_err(io::Error::other));
        let action = format!("query the interface {name}");
        let answer = self.request(&action, Rtm::Getlink, NlmF::empty(), body)?;
        answer
            .ok_or_else(|| io::Error::other("the kernel did not describe the interface"))
            .and_then(|bytes| {
                let length = bytes.len();
                Ifinfomsg::from_bytes_with_input(&mut Cursor::new(bytes), length)
                    .map_err(io::Error::other)
            })
            .map_err(|source| Error::Network {
                action,
                message: None,
                source,
            })
    }

    /// Makes one change and waits for the kernel's confirmation.
    fn change<P: Size + ToBytes>(
        &mut self,
        action: String,
        kind: Rtm,
        flags: NlmF,
        body: io::Result<P>,
    ) -> Result<(), Error> {
        self.request(&action, kind, flags | NlmF::ACK, body)
            .map(drop)
    }

    /// Sends one request and waits for its one answer: a confirmation (`None`), an error, or the
    /// requested object.
    fn request<P: Size + ToBytes>(
        &mut self,
        action: &str,
        kind: Rtm,
        flags: NlmF,
        body: io::Result<P>,
    ) -> Result<Option<Buffer>, Error> {
        // A change is not repeated.
        let sends = if flags.contains(NlmF::ACK) {
            1
        } else {
            MAX_SENDS
        };
        let answer = body
            .and_then(|body| self.encode(kind, flags, body))
            .and_then(|request| self.send_request(&request, sends))
            .map_err(|source| Error::Network {
                action: action.into(),
                message: None,
                source,
            })?;
        match answer {
            NlPayload::Payload(bytes) => Ok(Some(bytes)),
            NlPayload::Err(error) => Err(Error::Network {
                action: action.into(),
                message: error
                    .ext_ack()
                    .get_attr_handle()
                    .get_attr_payload_as_with_len::<String>(NlmsgerrAttr::Msg)
                    .ok(),
                source: io::Error::from_raw_os_error(error.error().saturating_neg()),
            }),
            _ => Ok(None),
        }
    }

    fn encode<P: Size + ToBytes>(
        &mut self,
        kind: Rtm,
        flags: NlmF,
        body: P,
    ) -> io::Result<Vec<u8>> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut bytes = Cursor::new(Vec::new());
        NlmsghdrBuilder::default()
            .nl_type(kind)
            .nl_flags(NlmF::REQUEST | flags)
            .nl_seq(self.sequence)
            .nl_payload(NlPayload::Payload(body))
            .build()
            .map_err(io::Error::other)?
            .to_bytes(&mut bytes)
            .map_err(io::Error::other)?;
        Ok(bytes.into_inner())
    }

    /// Sends a request, up to `sends` times while its answers are lost.
    fn send_request(&self, request: &[u8], sends: usize) -> io::Result<NlPayload<u16, Buffer>> {
        for _ in 0..sends {
            // Netlink sends a datagram whole or not at all.
            self.socket.send(request, Msg::empty())?;
            if let Some(answer) = self.receive()? {
                return Ok(answer);
            }
        }
        Err(io::Error::other(
            "lost the kernel's reply: unknown whether the change was made",
        ))
    }

    /// Receives the answer to the last request. The kernel has queued it when sending returns:
    /// if it is not there, it is lost (`None`).
    fn receive(&self) -> io::Result<Option<NlPayload<u16, Buffer>>> {
        let mut buffer = vec![0; ANSWER];
        loop {
            let length = match self.socket.recv(&mut buffer, Msg::DONTWAIT) {
                Ok((length, _)) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => return Ok(None),
                    _ => return Err(error),
                },
            };
            let answer = Nlmsghdr::<u16, Buffer>::from_bytes(&mut Cursor::new(&buffer[..length]))
                .map_err(io::Error::other)?;
            if *answer.nl_seq() == self.sequence {
                return Ok(Some(answer.nl_payload().clone()));
            }
        }
    }
}

/// Returns an interface message without index or flags; an attribute names the interface.
fn interface<const N: usize>(attributes: [Rtattr<Ifla, Buffer>; N]) -> IfinfomsgBuilder {
    IfinfomsgBuilder::default()
        .ifi_family(RtAddrFamily::Unspecified)
        .rtattrs(RtBuffer::from_iter(attributes))
}

fn attribute<T, P>(kind: T, value: P) -> io::Result<Rtattr<T, Buffer>>
where
    T: RtaType,
    P: Size + ToBytes,
{
    RtattrBuilder::default()
        .rta_type(kind)
        .rta_payload(value)
        .build()
        .map_err(io::Error::other)
}

fn nested<T, U, const N: usize>(
    kind: T,
    attributes: [Rtattr<U, Buffer>; N],
) -> io::Result<Rtattr<T, Buffer>>
where
    T: RtaType,
    U: RtaType,
{
    attributes
        .iter()
        .try_fold(attribute(kind, Buffer::new())?, |outer, inner| {
            outer.nest(inner)
        })
        .map_err(io::Error::other)
}

/// Checks an interface name. The kernel checks names too, but for an empty one or one with a `%` it
/// generates a name.
fn check_name(name: &str) -> Result<(), Error> {
    let forbidden = |byte: u8| matches!(byte, 0 | b'%' | b'/' | b':') || byte.is_ascii_whitespace();
    if name.is_empty() || name.len() > NAME_LENGTH || name.bytes().any(forbidden) {
        return Err(Error::InvalidInterfaceName { name: name.into() });
    }
    Ok(())
}

fn family(address: IpAddr) -> RtAddrFamily {
    match address {
        IpAddr::V4(_) => RtAddrFamily::Inet,
        IpAddr::V6(_) => RtAddrFamily::Inet6,
    }
}

fn octets(address: IpAddr) -> Buffer {
    match address {
        IpAddr::V4(address) => Buffer::from(address.octets().to_vec()),
        IpAddr::V6(address) => Buffer::from(address.octets().to_vec()),
    }
}
