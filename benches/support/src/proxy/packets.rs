//! The first packet of a connection through a node.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use super::name_of;
use crate::BoxError;
use crate::rounds::{Recorded, Samples, turn_of};
use crate::{Cluster, Error as MeasureError, Measured};
use chainwright_kube::service::{Layout, Protocol, ServiceProxy};
use chainwright_testing::Sandbox;

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 250, 1, 2);
const TO_CLIENT: &str = "10.250.1.1";
const TO_POD: &str = "10.250.2.1";
const POD: &str = "10.250.2.2";
/// The first source port of the client.
const FIRST_PORT: u16 = 1024;
/// Time limit for a packet.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(2);

/// A layout, and the number of services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// The layout.
    pub layout: Layout,
    /// Number of UDP services, with one endpoint each.
    pub services: usize,
}

/// Sends the first packet of a connection from a client through a node to a pod, each in its own namespace, and
/// receives it there. The sending thread does all the work, because the cables deliver a packet at once. Each packet
/// goes to another one of the services. Ratios are of wall-clock time, which is the latency; the first path is the
/// baseline.
///
/// # Errors
/// Those of syncing and of namespaces; [`MeasureError::Packet`] if one does not arrive.
pub fn first_packets(paths: &[Path], rounds: usize) -> Result<Vec<Measured>, BoxError> {
    let mut testbeds = paths
        .iter()
        .map(|path| Testbed::new(*path))
        .collect::<Result<Vec<_>, _>>()?;
    let mut samples = vec![Samples::default(); testbeds.len()];
    for round in 0..=rounds {
        for turn in 0..testbeds.len() {
            let index = turn_of(testbeds.len(), round, turn);
            let testbed = &mut testbeds[index];
            testbed.prepare(round)?;
            let recorded = Recorded::after_first_round(round);
            samples[index].take(recorded, || testbed.send(round))?;
        }
    }
    let all = testbeds.iter().zip(&samples);
    Ok(all
        .map(|(testbed, own)| own.relative_to_by_clock(&testbed.name(), &samples[0]))
        .collect())
}

/// A client, a node with services, and a pod that has all endpoints' addresses.
#[derive(Debug)]
struct Testbed {
    path: Path,
    cluster: Cluster,
    client: Sandbox,
    from: UdpSocket,
    at_pod: UdpSocket,
    /// Keeps these alive.
    _kept: (Sandbox, Sandbox, ServiceProxy),
}

impl Testbed {
    fn new(path: Path) -> Result<Self, BoxError> {
        let cluster = Cluster {
            protocol: Protocol::Udp,
            ..Cluster::new(path.services, 1)
        };
        let (client, node, pod) = (Sandbox::new()?, Sandbox::new()?, Sandbox::new()?);
        node.enable_forwarding()?;
        let at = |address: &dyn std::fmt::Display| format!("{address}/24");
        Sandbox::connect(
            &node,
            "client",
            &at(&TO_CLIENT),
            &client,
            "eth0",
            &at(&CLIENT),
        )?;
        Sandbox::connect(&node, "pod", &at(&TO_POD), &pod, "eth0", &at(&POD))?;
        client.add_route("0.0.0.0/0", TO_CLIENT)?;
        pod.add_route("0.0.0.0/0", TO_POD)?;
        let (network, port) = Cluster::ENDPOINTS;
        // An address of the loopback interface covers its network: the pod has all of its addresses.
        pod.add_address("lo", network)?;
        node.add_route("10.128.0.0/9", POD)?;
        let mut services = cluster.services();
        let proxy = node.run(|| Cluster::load(&mut services, path.layout, true))??;
        let at_pod = pod.run(|| -> io::Result<UdpSocket> {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?;
            socket.set_read_timeout(Some(RECEIVE_TIMEOUT))?;
            Ok(socket)
        })?;
        Ok(Self {
            path,
            cluster,
            from: sender(&client, FIRST_PORT)?,
            client,
            at_pod: at_pod.map_err(MeasureError::Packet)?,
            _kept: (node, pod, proxy),
        })
    }

    fn name(&self) -> String {
        let Path { layout, services } = self.path;
        format!("{}, {services} services", name_of(layout))
    }

    /// Prepares a round: after all services have received a packet, later packets come from another port, so that they
    /// are first packets, too.
    fn prepare(&mut self, round: usize) -> Result<(), BoxError> {
        if round > 0 && round.is_multiple_of(self.path.services) {
            let port = usize::from(FIRST_PORT) + round / self.path.services;
            let port = u16::try_from(port).map_err(|_| {
                let words = "all source ports are used";
                MeasureError::Packet(io::Error::other(words))
            })?;
            self.from = sender(&self.client, port)?;
        }
        Ok(())
    }

    fn send(&self, round: usize) -> Result<(), BoxError> {
        // In an order that defeats the caches.
        let number = round * 7919 % self.path.services.max(1);
        let sent = self.from.send_to(b"?", self.cluster.address(number));
        let mut buffer = [0; 4];
        let received = sent.and_then(|_| self.at_pod.recv(&mut buffer));
        match received {
            Ok(_) => Ok(()),
            Err(error) => Err(MeasureError::Packet(error).into()),
        }
    }
}

/// Returns the client's socket.
fn sender(client: &Sandbox, port: u16) -> Result<UdpSocket, BoxError> {
    let socket = client.run(|| UdpSocket::bind((CLIENT, port)))?;
    Ok(socket.map_err(MeasureError::Packet)?)
}
