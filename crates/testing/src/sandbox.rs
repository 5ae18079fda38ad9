use std::fs;
use std::io;
use std::net::IpAddr;

use nix::sched::{CloneFlags, unshare};

use chainwright::netns::{self, Netns, on_helper_thread};

use crate::route::{self, Prefix};
use crate::{Error, become_namespace_root};

/// A private network namespace for tests, benches and demos.
///
/// In a new sandbox only the loopback interface is up, and there are no packet-filter tables.
/// Nothing in it affects the rest of the system. It goes away when the `Sandbox` is dropped
/// and everything else that holds it has ended: sockets, threads and processes started inside,
/// copies of the handle. (The kernel removes it a moment later.)
///
/// ```
/// use std::net::{TcpListener, TcpStream};
/// use chainwright_testing::Sandbox;
///
/// let client = Sandbox::new()?;
/// let server = Sandbox::new()?;
/// Sandbox::connect(&client, "eth0", "10.0.0.1/24", &server, "eth0", "10.0.0.2/24")?;
///
/// let listener = server.run(|| TcpListener::bind("10.0.0.2:80"))??;
/// let _stream = client.run(|| TcpStream::connect("10.0.0.2:80"))??;
/// let (_stream, peer) = listener.accept()?;
/// assert_eq!(peer.ip().to_string(), "10.0.0.1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Sandbox {
    netns: Netns,
}

impl Sandbox {
    /// Creates a new network namespace and brings its loopback interface up.
    ///
    /// A process that lacks the capabilities becomes root in a user namespace first, which the
    /// kernel allows while the process has a single thread. A program that may have started threads
    /// by then calls [`become_namespace_root`] at the start of `main`.
    ///
    /// # Errors
    /// The errors of [`become_namespace_root`]; [`Error::Create`]; [`netns::Error::Thread`];
    /// [`Error::Network`] if the loopback interface could not be brought up.
    pub fn new() -> Result<Self, Error> {
        become_namespace_root()?;
        let netns = on_helper_thread(|| -> Result<Netns, Error> {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| Error::Create {
                source: errno.into(),
            })?;
            skip_duplicate_address_detection();
            route::Socket::open_here()?.bring_up("lo")?;
            Ok(Netns::current()?)
        })??;
        Ok(Self { netns })
    }

    /// Returns the sandbox's network namespace.
    pub fn netns(&self) -> &Netns {
        &self.netns
    }

    /// Runs `work` inside the sandbox; see [`Netns::run`].
    ///
    /// # Errors
    /// The errors of [`Netns::run`].
    pub fn run<T, F>(&self, work: F) -> Result<T, netns::Error>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        self.netns.run(work)
    }

    /// Connects two sandboxes with a pair of virtual Ethernet interfaces
    /// ([veth(4)](https://man7.org/linux/man-pages/man4/veth.4.html)), one end in each, named and
    /// addressed as given, both up and ready to send when the call returns. The pair goes away with
    /// either sandbox. Both ends may be in the same one.
    ///
    /// An address is an IPv4 or IPv6 address with its prefix length, like `10.0.0.1/24` or
    /// `fd00::1/64`. For more addresses use [`Sandbox::add_address`]. IPv6 addresses are usable at
    /// once: sandboxes skip duplicate address detection.
    ///
    /// # Errors
    /// [`Error::InvalidInterfaceName`], [`Error::InvalidAddress`]; [`Error::Network`], for example
    /// when a name is taken; [`Error::NotRunning`]; and those of [`Netns::run`]. On failure the
    /// pair is removed.
    pub fn connect(
        a: &Sandbox,
        a_interface: &str,
        a_address: &str,
        b: &Sandbox,
        b_interface: &str,
        b_address: &str,
    ) -> Result<(), Error> {
        let a_prefix = Prefix::parse(a_address)?;
        let b_prefix = Prefix::parse(b_address)?;
        let mut a_socket = a.route_socket()?;
        let mut b_socket = b.route_socket()?;
        a_socket.add_veth(a_interface, b_interface, &b.netns)?;
        let mut configure = || {
            a_socket.bring_up(a_interface)?;
            b_socket.bring_up(b_interface)?;
            // Packets sent before this would be dropped.
            a_socket.wait_until_running(a_interface)?;
            b_socket.wait_until_running(b_interface)?;
            a_socket.add_address(a_interface, a_prefix)?;
            b_socket.add_address(b_interface, b_prefix)
        };
        configure().inspect_err(|_| {
            // Report the first error; the pair disappears with its sandboxes.
            let _ = a_socket.delete(a_interface);
        })
    }

    /// Adds an address like `fd00::1/64` to an interface; see [`Sandbox::connect`].
    ///
    /// # Errors
    /// [`Error::InvalidInterfaceName`], [`Error::InvalidAddress`], [`Error::Network`] and those of
    /// [`Netns::run`].
    pub fn add_address(&self, interface: &str, address: &str) -> Result<(), Error> {
        let prefix = Prefix::parse(address)?;
        self.route_socket()?.add_address(interface, prefix)
    }

    /// Routes packets for `destination`, like `10.1.0.0/16` or `0.0.0.0/0`, via the neighbor with
    /// the address `gateway`.
    ///
    /// # Errors
    /// [`Error::InvalidAddress`], [`Error::Network`], for example when no interface leads to the
    /// gateway, and the errors of [`Netns::run`].
    pub fn add_route(&self, destination: &str, gateway: &str) -> Result<(), Error> {
        let destination = Prefix::parse(destination)?;
        let gateway: IpAddr = gateway.parse().map_err(|_| Error::InvalidAddress {
            text: gateway.into(),
            expected: "an address, like 10.0.0.1 or fd00::1",
        })?;
        self.route_socket()?.add_route(destination, gateway)
    }

    /// Makes the sandbox a router: it forwards IPv4 and IPv6 packets between its interfaces.
    ///
    /// # Errors
    /// [`Error::Setting`], for example where a container has `/proc/sys` read-only, and those of
    /// [`Netns::run`].
    pub fn enable_forwarding(&self) -> Result<(), Error> {
        const IPV4: &str = "/proc/sys/net/ipv4/ip_forward";
        const IPV6: &str = "/proc/sys/net/ipv6/conf/all/forwarding";
        self.run(|| {
            for path in [IPV4, IPV6] {
                match fs::write(path, "1") {
                    Ok(()) => {}
                    // The kernel has no IPv6.
                    Err(error) if path == IPV6 && error.kind() == io::ErrorKind::NotFound => {}
                    Err(source) => return Err(Error::Setting { path, source }),
                }
            }
            Ok(())
        })?
    }

    fn route_socket(&self) -> Result<route::Socket, Error> {
        self.run(route::Socket::open_here)?
    }
}

/// Lets the calling thread's network namespace use its IPv6 addresses at once, including link-local
/// ones: a router does not resolve its neighbors' addresses before it has one itself, and
/// duplicate address detection takes a second or two.
fn skip_duplicate_address_detection() {
    const PATH: &str = "/proc/sys/net/ipv6/conf/default/accept_dad";
    match fs::write(PATH, "0") {
        Ok(()) => {}
        // The kernel has no IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // Some containers mount /proc/sys read-only. Everything else works there too.
        Err(error) => tracing::warn!(
            "cannot write {PATH}: {error}; a router sandbox may take seconds to pass IPv6 packets"
        ),
    }
}
