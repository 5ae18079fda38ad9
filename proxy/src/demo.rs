//! `--demo`: runs the agent on a folder of manifests, with packets, in private network namespaces and without root.
//!
//! A client, the node and the pods are separate namespaces, joined by cables. The pods' namespace has every endpoint
//! address in the manifests, and serves HTTP there: each answer names the address at which the request arrived.

use std::collections::{BTreeMap, HashSet};
use std::error::Error;
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use chainwright_kube::service::{Config, EndpointSlice, Protocol, ServicePort, Services};
use chainwright_testing::Sandbox;

use crate::agent::{Agent, Change, with_sources};
use crate::metrics::Metrics;
use crate::objects::{Kind, Object};
use crate::options::Settings;
use crate::{kernel, manifests, stale};

/// The initial manifest if no folder is given.
const WEB: &str = include_str!("../services/web.yaml");
/// The change to it: one pod is replaced.
const OLD_POD: &str = "10.244.1.6";
const NEW_POD: &str = "10.244.1.7";

/// Number of requests to each displayed port of a service.
const REQUESTS: usize = 20;
/// Time limit for an answer. A refusal over IPv6 may take a second.
const REPLY_TIMEOUT: Duration = Duration::from_millis(1500);
/// Maximum time for which the answers may differ from the manifests.
const SYNC_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for which the folder must be unchanged before the client sends requests again.
const QUIET: Duration = Duration::from_millis(100);

/// The client's addresses; the node has the first address of each network of the client and the pods.
const CLIENT: [&str; 2] = ["192.168.50.2/24", "fd00:192:168:50::2/64"];
const CLIENTS_NODE: [&str; 2] = ["192.168.50.1/24", "fd00:192:168:50::1/64"];
const PODS: [&str; 2] = ["192.168.60.2/24", "fd00:192:168:60::2/64"];
const PODS_NODE: [&str; 2] = ["192.168.60.1/24", "fd00:192:168:60::1/64"];
const EVERYWHERE: [&str; 2] = ["0.0.0.0/0", "::/0"];

/// Number of answers from each endpoint's address, or of each failure.
pub(crate) type Answers = BTreeMap<String, usize>;

/// Follows a folder until it is interrupted, and shows after each change which endpoints answer. Without a folder it
/// creates one, changes it once, and ends.
pub(crate) fn run(
    settings: &Settings,
    folder: Option<&Path>,
    out: &mut dyn Write,
) -> Result<(), String> {
    let net = Net::new().map_err(|error| with_sources(&*error))?;
    let output_error = |error: std::io::Error| format!("output: {error}");
    let mode = settings.mode.as_str();
    writeln!(
        out,
        "A client, a node and pods, each in a network namespace of its own."
    )
    .map_err(output_error)?;
    if let Some(folder) = folder {
        let path = folder.display();
        writeln!(
            out,
            "On the node, the agent watches {path}, mode {mode}. Press Ctrl-C to stop."
        )
        .map_err(output_error)?;
        let demo = Demo::start(net, settings, folder)?;
        loop {
            while demo.change_signal.recv_timeout(QUIET).is_ok() {}
            demo.show(out)?;
            if demo.change_signal.recv().is_err() {
                return Err("the watch of the folder ended".to_owned());
            }
            writeln!(out, "The folder changed.").map_err(output_error)?;
        }
    }
    let folder = tempfile::tempdir().map_err(|error| format!("a folder: {error}"))?;
    let path = folder.path().join("web.yaml");
    write(&path, WEB)?;
    writeln!(
        out,
        "On the node, the agent watches a folder, mode {mode}. It contains web.yaml."
    )
    .map_err(output_error)?;
    let demo = Demo::start(net, settings, folder.path())?;
    let before = demo.show(out)?;
    writeln!(
        out,
        "web.yaml is replaced: pod {OLD_POD} is removed, pod {NEW_POD} is added."
    )
    .map_err(output_error)?;
    write(&path, &WEB.replace(OLD_POD, NEW_POD))?;
    let start = Instant::now();
    let new = format!("{NEW_POD}:8080");
    while !demo
        .request_all(1)
        .iter()
        .any(|(_, answers)| answers.contains_key(&new))
    {
        if start.elapsed() > SYNC_TIMEOUT {
            return Err(format!("no request reached {NEW_POD}"));
        }
    }
    let took = start.elapsed().as_millis();
    writeln!(out, "The first request reached {NEW_POD} after {took} ms.").map_err(output_error)?;
    let after = demo.show(out)?;
    match (before.len(), after.len(), after.contains_key(&new)) {
        (2, 2, true) => Ok(()),
        _ => Err("not every pod answered".to_owned()),
    }
}

/// Replaces a file atomically, as programs do.
fn write(path: &Path, text: &str) -> Result<(), String> {
    let temporary = path.with_extension("new");
    let written = fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// The network namespaces.
struct Net {
    client: Sandbox,
    node: Sandbox,
    pods: Sandbox,
}

impl Net {
    fn new() -> Result<Self, Box<dyn Error>> {
        let net = Self {
            client: Sandbox::new()?,
            node: Sandbox::new()?,
            pods: Sandbox::new()?,
        };
        net.node.enable_forwarding()?;
        for (name, other, at, of_node) in [
            ("client", &net.client, CLIENT, CLIENTS_NODE),
            ("pods", &net.pods, PODS, PODS_NODE),
        ] {
            Sandbox::connect(&net.node, name, of_node[0], other, "eth0", at[0])?;
            net.node.add_address(name, of_node[1])?;
            other.add_address("eth0", at[1])?;
            for (all, gateway) in EVERYWHERE.iter().zip(of_node) {
                other.add_route(all, without_length(gateway))?;
            }
        }
        // A default route, as nodes have: packets without a route do not reach the rules that refuse them.
        for (all, gateway) in EVERYWHERE.iter().zip(PODS) {
            net.node.add_route(all, without_length(gateway))?;
        }
        // Removes the rate limit on ICMP errors, so that every refusal is reported.
        let change_signal = net.node.run(|| {
            fs::write("/proc/sys/net/ipv4/icmp_ratelimit", "0")?;
            fs::write("/proc/sys/net/ipv6/icmp/ratelimit", "0")
        })?;
        change_signal.map_err(|error| format!("refusals: {error}"))?;
        Ok(net)
    }

    /// Adds an address to the pods' namespace, and a route to the node.
    fn add_pod(&self, address: IpAddr) -> Result<(), chainwright_testing::Error> {
        let (length, gateway) = match address {
            IpAddr::V4(_) => (32, PODS[0]),
            IpAddr::V6(_) => (128, PODS[1]),
        };
        let network = format!("{address}/{length}");
        self.pods.add_address("eth0", &network)?;
        self.node.add_route(&network, without_length(gateway))
    }
}

fn without_length(network: &str) -> &str {
    network
        .split_once('/')
        .map_or(network, |(address, _)| address)
}

/// The servers in the pods' namespace.
#[derive(Default)]
struct Pods {
    addresses: HashSet<IpAddr>,
    ports: HashSet<u16>,
}

impl Pods {
    /// Serves the endpoints of a slice. They must exist before the agent sends traffic to them.
    fn serve(&mut self, net: &Net, slice: &EndpointSlice) -> Result<(), String> {
        for endpoint in &slice.endpoints {
            if self.addresses.insert(endpoint.address) {
                let added = net.add_pod(endpoint.address);
                added.map_err(|e| format!("{}: {}", endpoint.address, with_sources(&e)))?;
            }
        }
        for port in &slice.ports {
            let port = port.port.filter(|_| port.protocol == Protocol::Tcp);
            let Some(port) = port.filter(|port| self.ports.insert(*port)) else {
                continue;
            };
            let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
            let listener = net.pods.run(|| TcpListener::bind(any));
            let listener = listener.map_err(|e| with_sources(&e))?;
            let listener = listener.map_err(|error| format!("port {port} of the pods: {error}"))?;
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    // The client reports a failure.
                    let _ = answer(stream);
                }
            });
        }
        Ok(())
    }
}

/// Answers with the address at which a request arrived.
fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut part)? {
            0 => return Ok(()),
            length => head.extend_from_slice(&part[..length]),
        }
    }
    let at = stream.local_addr()?;
    // Converts the dual-stack socket's form of an IPv4 address.
    let at = SocketAddr::new(at.ip().to_canonical(), at.port());
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n{at}"
    )
}

/// Sends a request, and returns the server's address or the failure.
fn request(to: SocketAddr) -> String {
    let responses = || {
        let mut stream = TcpStream::connect_timeout(&to, REPLY_TIMEOUT)?;
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        write!(
            stream,
            "GET / HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    };
    match responses() {
        Ok(answer) => match answer.split_once("\r\n\r\n") {
            Some((_, body)) => body.to_owned(),
            None => "no answer".to_owned(),
        },
        Err(error) => error.to_string(),
    }
}

/// The running agent.
struct Demo {
    net: Arc<Net>,
    config: Config,
    /// The services in the manifests.
    services: Arc<Mutex<Services>>,
    /// Signals that they changed; closed when the watch of the folder ends.
    change_signal: Receiver<()>,
    _watch: manifests::Watch,
}

impl Demo {
    fn start(net: Net, settings: &Settings, folder: &Path) -> Result<Self, String> {
        let net = Arc::new(net);
        let (to_agent, changes) = mpsc::channel();
        let (of_agent, of_node) = (settings.clone(), Arc::clone(&net));
        let period = settings.period;
        let (wrong, gone) = mpsc::channel();
        let open = kernel::open(settings.mode, wrong);
        let agent = move || {
            let configure = Box::new(move |node: Option<&_>| of_agent.config(node));
            let metrics = Arc::new(Metrics::new());
            if let Err(error) = stale::start(gone, Arc::clone(&metrics)) {
                tracing::warn!("cannot start a thread: {error}");
            }
            match Agent::new(open, configure, period, metrics) {
                Ok(mut agent) => agent.run(&changes),
                Err(error) => tracing::error!("{error}"),
            }
        };
        thread::spawn(move || of_node.node.run(agent));

        let (change_sender, change_signal) = mpsc::channel();
        let (to, changed) = mpsc::channel();
        let services = Arc::new(Mutex::new(Services::new()));
        let (of_net, of_services) = (Arc::clone(&net), Arc::clone(&services));
        thread::spawn(move || {
            let mut pods = Pods::default();
            for change in changed {
                if let Change::Object(_, Some(Object::Slice(Some(slice), _))) = &change
                    && let Err(error) = pods.serve(&of_net, slice)
                {
                    tracing::warn!("{error}");
                }
                take(&mut lock(&of_services), &change);
                let both = (to_agent.send(change), change_sender.send(()));
                if both.0.is_err() || both.1.is_err() {
                    return;
                }
            }
        });
        let watch = manifests::watch(folder.to_owned(), to);
        let demo = Self {
            net,
            config: settings.config(None)?,
            services,
            change_signal,
            _watch: watch.map_err(|error| format!("{}: {error}", folder.display()))?,
        };
        Ok(demo)
    }

    /// Returns the displayed ports: those of TCP.
    fn ports(&self) -> Vec<ServicePort> {
        let services = lock(&self.services);
        let families = self.config.families.iter();
        let ports = families.flat_map(|family| {
            let names = services.names();
            names.flat_map(|name| services.resolve(name, *family, &self.config))
        });
        let mut ports: Vec<_> = ports.filter(|p| p.name.protocol == Protocol::Tcp).collect();
        ports.sort_by(|a, b| (&a.name, a.cluster_ip).cmp(&(&b.name, b.cluster_ip)));
        ports
    }

    /// Sends this many requests to each port.
    fn request_all(&self, times: usize) -> Vec<(ServicePort, Answers)> {
        let ports = self.ports().into_iter();
        let responses = ports.map(|port| {
            let to = SocketAddr::new(port.cluster_ip, port.port);
            let mut answers = Answers::new();
            // A refusal repeats for every request.
            let times = if port.internal().is_empty() { 1 } else { times };
            for _ in 0..times {
                let answer = match self.net.client.run(|| request(to)) {
                    Ok(answer) => answer,
                    Err(error) => with_sources(&error),
                };
                *answers.entry(answer).or_default() += 1;
            }
            (port, answers)
        });
        responses.collect()
    }

    /// Shows which endpoints answer, as soon as no unexpected one does, and returns the answers.
    fn show(&self, out: &mut dyn Write) -> Result<Answers, String> {
        let start = Instant::now();
        let is_expected = |(port, answers): &(ServicePort, Answers)| {
            let expected: HashSet<_> = port
                .internal()
                .iter()
                .map(|b| b.address.to_string())
                .collect();
            let is_one = |answer: &String| expected.contains(answer);
            match expected.is_empty() {
                true => answers
                    .keys()
                    .all(|answer| answer.parse::<SocketAddr>().is_err()),
                false => answers.keys().all(is_one),
            }
        };
        let responses = loop {
            let responses = self.request_all(REQUESTS);
            let has_some = !responses.is_empty() || start.elapsed() > REPLY_TIMEOUT;
            if has_some && responses.iter().all(is_expected) || start.elapsed() > SYNC_TIMEOUT {
                break responses;
            }
        };
        let mut all = Answers::new();
        let mut text = String::new();
        for (port, answers) in responses {
            let to = SocketAddr::new(port.cluster_ip, port.port);
            let requests: usize = answers.values().sum();
            let s = if requests == 1 { "" } else { "s" };
            text += &format!("  {}, {requests} request{s} to {to}:\n", port.name);
            for (answer, times) in answers {
                text += &format!("    {times:>4}  {answer}\n");
                *all.entry(answer).or_default() += times;
            }
        }
        out.write_all(text.as_bytes())
            .map_err(|error| format!("output: {error}"))?;
        Ok(all)
    }
}

/// Applies a change of the manifests.
fn take(services: &mut Services, change: &Change) {
    let Change::Object((kind, name), object) = change else {
        return;
    };
    match (kind, object) {
        (_, Some(Object::Service(Some(service)))) => services.set_service(Clone::clone(service)),
        (_, Some(Object::Slice(Some(slice), _))) => services.set_slice(slice.clone()),
        (Kind::Service, _) => services.remove_service(name),
        (Kind::Slice, _) => services.remove_slice(name),
        (Kind::Node, _) => {}
    }
}

fn lock(services: &Mutex<Services>) -> std::sync::MutexGuard<'_, Services> {
    services.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::options::Options;

    /// Without a folder: the result shows whether all pods answered.
    #[test]
    fn requests_arrive_in_each_mode() {
        for mode in ["flat", "nftables", "iptables"] {
            let options = Options::parse_from(["agent", "--demo", "--proxy-mode", mode]);
            let settings = Settings::new(&options).unwrap();
            let mut out = Vec::new();
            let done = run(&settings, None, &mut out);
            let text = String::from_utf8(out).unwrap();
            assert_eq!(done, Ok(()), "{text}");
            let lines = |what: &str| text.lines().filter(|line| line.ends_with(what)).count();
            assert_eq!(lines("20 requests to 10.96.0.1:80:"), 2, "{text}");
            let of_pods = ["10.244.1.5:8080", "10.244.1.6:8080", "10.244.1.7:8080"];
            assert_eq!(of_pods.map(lines), [2, 1, 1], "{text}");
        }
    }
}
