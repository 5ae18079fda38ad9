// Shared with the library's tests.
#[path = "../../../tests/kube/services/listed.rs"]
mod listed;
mod silence;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use chainwright::iptables::Family;
use chainwright_kube::service::{Config, Service, Services};
use chainwright_testing::Sandbox;
use futures_util::stream;
use futures_util::stream::BoxStream;
use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use self::listed::{Listed, assert_same, canonical, of_flat};
use super::*;
use crate::agent::Agent;
use crate::kernel;
use crate::metrics::Metrics;
use crate::options::Mode;
use crate::proxy::{Outcome, Proxy, ProxyError};

fn slice(name: &str, address: &str) -> discovery::EndpointSlice {
    serde_json::from_value(json!({
        "metadata": { "namespace": "ns", "name": name, "labels": { "kubernetes.io/service-name": "web" } },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": [address] }],
    }))
    .unwrap()
}

/// A second list, as after a 410, shows which objects were deleted meanwhile.
#[test]
fn objects_missing_from_a_list_are_removed() {
    let (to, from) = mpsc::channel();
    let (done, mut listed) = unbounded_channel();
    let ip = "10.244.0.1";
    let events = stream::iter(
        [
            Event::Init,
            Event::InitApply(slice("a", ip)),
            Event::InitApply(slice("b", ip)),
            Event::InitDone,
            Event::Apply(slice("c", ip)),
            Event::Delete(slice("a", ip)),
            Event::Apply(slice("b", "broken")),
            Event::Init,
            // Interrupted, and started again.
            Event::InitApply(slice("b", ip)),
            Event::Init,
            Event::InitApply(slice("c", ip)),
            Event::InitDone,
        ]
        .map(Ok),
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(each(Kind::Slice, events, objects::slice, &to, done));
    drop(to);
    let received: Vec<_> = from
        .iter()
        .filter_map(|change| match change {
            Change::Object((_, name), object) => Some((name.name.to_string(), object.is_some())),
            Change::Complete | Change::Stop => None,
        })
        .collect();
    let expected = [
        ("a", true),
        ("b", true),
        ("c", true),
        ("a", false),
        ("b", true),
        ("c", true),
        ("b", false),
    ];
    assert_eq!(
        received,
        expected.map(|(name, there)| (name.to_owned(), there))
    );
    assert_eq!(listed.blocking_recv(), Some(Kind::Slice));
}

/// An API server: its objects, and the events since its start.
#[derive(Default)]
struct Server {
    objects: BTreeMap<(Kind, String), Value>,
    log: Vec<(Kind, &'static str, Value)>,
    lists: usize,
    expired: usize,
    broken: usize,
    ended: usize,
    sent: usize,
}

type Shared = Arc<Mutex<Server>>;
type Body = StreamBody<BoxStream<'static, io::Result<Frame<Bytes>>>>;

fn lock(server: &Shared) -> MutexGuard<'_, Server> {
    server.lock().unwrap()
}

impl Server {
    fn change(&mut self, kind: Kind, name: &str, to: Option<Value>) {
        let version = (self.log.len() + 1).to_string();
        let key = (kind, name.to_owned());
        let (event, mut object) = match to {
            Some(object) if self.objects.contains_key(&key) => ("MODIFIED", object),
            Some(object) => ("ADDED", object),
            None => match self.objects.get(&key) {
                Some(object) => ("DELETED", object.clone()),
                None => return,
            },
        };
        object["metadata"]["resourceVersion"] = json!(version);
        match event {
            "DELETED" => self.objects.remove(&key),
            _ => self.objects.insert(key, object.clone()),
        };
        self.log.push((kind, event, object));
    }

    fn list(&mut self, kind: Kind) -> Value {
        self.lists += 1;
        let objects = self.objects.iter().filter(|((of, _), _)| *of == kind);
        let items: Vec<_> = objects.map(|(_, object)| object.clone()).collect();
        let version = self.log.len().to_string();
        json!({ "kind": "List", "apiVersion": "v1", "metadata": { "resourceVersion": version }, "items": items })
    }
}

/// The next output of a watch: lines, and its end.
enum Next {
    Lines(String),
    End,
    Break,
}

/// Returns the events after this position of the log, including faults.
fn next(server: &mut Server, kind: Kind, position: &mut usize) -> Option<Next> {
    let rest = server.log[*position..].iter();
    let (n, (_, event, object)) = rest.enumerate().find(|(_, (of, ..))| *of == kind)?;
    let line =
        |event: &str, object: &Value| format!("{}\n", json!({ "type": event, "object": object }));
    let mut lines = line(event, object);
    server.sent += 1;
    let sent = server.sent;
    if sent.is_multiple_of(2_900) {
        server.expired += 1;
        let gone = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "too old resource version", "reason": "Expired", "code": 410,
        });
        *position = usize::MAX;
        return Some(Next::Lines(line("ERROR", &gone)));
    }
    if sent.is_multiple_of(3_700) {
        server.broken += 1;
        return Some(Next::Break);
    }
    if sent.is_multiple_of(410) {
        server.ended += 1;
        return Some(Next::End);
    }
    if sent.is_multiple_of(7) {
        lines += &lines.clone();
    }
    *position += n + 1;
    if sent.is_multiple_of(50) {
        let (of, api) = match kind {
            Kind::Service => ("Service", "v1"),
            Kind::Slice => ("EndpointSlice", "discovery.k8s.io/v1"),
            Kind::Node => ("Node", "v1"),
        };
        let version = position.to_string();
        let mark =
            json!({ "kind": of, "apiVersion": api, "metadata": { "resourceVersion": version } });
        lines += &line("BOOKMARK", &mark);
    }
    Some(Next::Lines(lines))
}

fn body(stream: impl stream::Stream<Item = io::Result<String>> + Send + 'static) -> Body {
    StreamBody::new(
        stream
            .map(|text| text.map(|t| Frame::data(Bytes::from(t))))
            .boxed(),
    )
}

fn answer(request: &Request<Incoming>, server: &Shared, changed: &watch::Receiver<usize>) -> Body {
    let kind = match request.uri().path() {
        "/api/v1/services" => Kind::Service,
        "/apis/discovery.k8s.io/v1/endpointslices" => Kind::Slice,
        "/api/v1/nodes" => Kind::Node,
        other => panic!("{other} is not watched"),
    };
    let query = request.uri().query().unwrap_or_default();
    let of_query = |name: &str| {
        let mut fields = query.split('&').filter_map(|field| field.split_once('='));
        fields
            .find(|(n, _)| *n == name)
            .map(|(_, value)| value.to_owned())
    };
    match kind {
        Kind::Node => assert!(query.contains("fieldSelector=metadata.name"), "{query}"),
        _ => assert!(query.contains("labelSelector="), "{query}"),
    }
    if of_query("watch").is_none() {
        let list = lock(server).list(kind);
        return body(stream::once(async move { Ok(list.to_string()) }));
    }
    let position: usize = of_query("resourceVersion").unwrap().parse().unwrap();
    let state = (Arc::clone(server), changed.clone(), position);
    body(stream::unfold(
        state,
        move |(server, mut changed, mut position)| async move {
            loop {
                if position == usize::MAX {
                    return None;
                }
                changed.borrow_and_update();
                let next = next(&mut lock(&server), kind, &mut position);
                match next {
                    Some(Next::Lines(lines)) => {
                        return Some((Ok(lines), (server, changed, position)));
                    }
                    Some(Next::End) => return None,
                    Some(Next::Break) => {
                        let error = io::Error::other("broken");
                        return Some((Err(error), (server, changed, usize::MAX)));
                    }
                    // The sender is dropped at the end of the test.
                    None => changed.changed().await.ok()?,
                }
            }
        },
    ))
}

/// Wraps the kernel's proxy and records its last state.
struct RecordingProxy {
    kernel: Box<dyn Proxy>,
    kept: Arc<Mutex<Store>>,
}

#[derive(Default)]
struct Store {
    services: Services,
    syncs: usize,
    /// Number of complete syncs.
    whole: usize,
    /// The rules that do not depend on services, with their handles, as of the first sync: a complete sync replaces
    /// them.
    rules: String,
}

impl Proxy for RecordingProxy {
    fn sync(&mut self, services: &mut Services) -> Result<Outcome, ProxyError> {
        let outcome = self.kernel.sync(services)?;
        let mut kept = self.kept.lock().unwrap();
        kept.services = services.clone();
        kept.syncs += 1;
        kept.whole += usize::from(outcome.whole);
        if kept.syncs == 1 {
            kept.rules = nft(LIST_RULES);
        }
        Ok(outcome)
    }

    fn require_full_sync(&mut self) {
        self.kernel.require_full_sync();
    }
}

const LIST_RULES: &str = "-a list chain ip kube-services services";

/// Runs `nft` in this network namespace and returns its output.
fn nft(arguments: &str) -> String {
    let run = Command::new("nft").args(arguments.split(' ')).output();
    let output = run.expect("cannot run `nft`: apt-get install nftables");
    let stderr_text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "nft {arguments}: {stderr_text}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the kernel's ruleset, of both families.
fn ruleset(node: &Sandbox) -> Listed {
    let tables = ["ip", "ip6"].map(|family| {
        let list = format!("-s list table {family} kube-services");
        canonical(of_flat(&node.run(|| nft(&list)).unwrap()))
    });
    tables.into_iter().flatten().collect()
}

/// Pseudo-random numbers, the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

fn service(name: &str, kind: &str, address: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "namespace": "ns", "name": name },
        "spec": { "type": kind, "clusterIP": address, "ports": [{ "port": 80 }] },
    })
}

/// Waits until the agent has synced the server's state.
async fn reaches(server: &Shared, kept: &Mutex<Store>, end: Instant) {
    let expected = resolved(&server_state(&lock(server)));
    while resolved(&kept.lock().unwrap().services) != expected {
        assert!(
            Instant::now() < end,
            "the agent did not reach the server's state"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn random_change(server: &mut Server, random: &mut Random) {
    let name = |prefix: &str, n| format!("{prefix}{n}");
    let exists = random.below(5) > 0;
    if random.below(3) == 0 {
        let name = name("svc", random.below(30));
        let kind = if random.below(10) == 0 {
            "ExternalName"
        } else {
            "ClusterIP"
        };
        let service = service(&name, kind, &format!("10.96.0.{}", random.below(250) + 1));
        server.change(Kind::Service, &name, exists.then_some(service));
    } else {
        let name = name("slice", random.below(60));
        let endpoints: Vec<_> = (0..random.below(5))
            .map(|_| json!({ "addresses": [format!("10.244.0.{}", random.below(250) + 1)] }))
            .collect();
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "namespace": "ns", "name": name,
                "labels": { "kubernetes.io/service-name": format!("svc{}", random.below(30)) },
            },
            "addressType": "IPv4", "endpoints": endpoints, "ports": [{ "port": 8080 }],
        });
        server.change(Kind::Slice, &name, exists.then_some(slice));
    }
}

fn resolved(services: &Services) -> BTreeMap<String, String> {
    let config = Config::new("node1");
    let names = services.names();
    let port = |name| format!("{:?}", services.resolve(name, Family::Ipv4, &config));
    names.map(|name| (name.to_string(), port(name))).collect()
}

/// Reads everything that the server holds.
fn server_state(server: &Server) -> Services {
    let mut services = Services::new();
    for ((kind, _), object) in &server.objects {
        match kind {
            Kind::Service => {
                let api: core::Service = serde_json::from_value(object.clone()).unwrap();
                if let Some(service) = Service::from_api(&api).unwrap() {
                    services.set_service(service);
                }
            }
            Kind::Slice => {
                let api: discovery::EndpointSlice = serde_json::from_value(object.clone()).unwrap();
                let slice = chainwright_kube::service::EndpointSlice::from_api(&api).unwrap();
                services.set_slice(slice.unwrap());
            }
            Kind::Node => {}
        }
    }
    services
}

/// At least 10,000 random changes reach a kernel through a server whose watches repeat events, end, break, and lose
/// their position.
#[test]
fn final_state_matches_the_server() {
    const CHANGES: usize = 10_000;
    const SYNCS: usize = 100;
    let server = Arc::new(Mutex::new(Server::default()));
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..100 {
        random_change(&mut lock(&server), &mut random);
    }
    let node = Arc::new(Sandbox::new().unwrap());
    let kept = Arc::new(Mutex::new(Store::default()));
    let (to, from) = mpsc::channel();
    let of_proxy = Arc::clone(&kept);
    // This test ignores stale connections.
    let (wrong, _stale) = mpsc::channel();
    let mut open = kernel::open(Mode::Flat, wrong);
    let open = Box::new(move |config| -> Result<Box<dyn Proxy>, ProxyError> {
        let (kernel, kept) = (open(config)?, Arc::clone(&of_proxy));
        Ok(Box::new(RecordingProxy { kernel, kept }))
    });
    let configure = Box::new(|_: Option<&_>| Ok(Config::new("node1")));
    let hour = Duration::from_secs(3600);
    let mut agent = Agent::new(open, configure, hour, Arc::new(Metrics::new())).unwrap();
    let of_agent = Arc::clone(&node);
    let thread = thread::spawn(move || of_agent.run(move || agent.run(&from)).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (change_sender, changed) = watch::channel(0);
        let of_server = Arc::clone(&server);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (server, changed) = (Arc::clone(&of_server), changed.clone());
                let answer = service_fn(move |request| {
                    let answer = Response::new(answer(&request, &server, &changed));
                    async { Ok::<_, Infallible>(answer) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
            }
        });
        let config = kube::Config::new(format!("http://{address}").parse().unwrap());
        let connected = super::server(config, Silence::DEFAULT).unwrap();
        let watching = tokio::spawn(follow(connected, "node1", to.clone()));
        let end = Instant::now() + Duration::from_secs(90);
        let mut n = 0;
        // On a busy machine one sync handles many changes: continue until there were enough of both.
        while n < CHANGES || kept.lock().unwrap().syncs <= SYNCS {
            assert!(Instant::now() < end, "the agent synced too rarely");
            random_change(&mut lock(&server), &mut random);
            change_sender.send_replace(n);
            if n % 10 == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            n += 1;
        }
        reaches(&server, &kept, end).await;
        // The flat layout leaves elements that only packets in flight can look up. A change after more than a second
        // deletes them, and one that only adds leaves none.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        let last = service("last", "ClusterIP", "10.96.1.1");
        lock(&server).change(Kind::Service, "last", Some(last));
        change_sender.send_replace(n);
        reaches(&server, &kept, end).await;
        watching.abort();
    });
    drop(runtime);
    to.send(Change::Stop).unwrap();
    thread.join().unwrap();
    let server = lock(&server);
    let Server {
        lists,
        expired,
        broken,
        ended,
        ..
    } = *server;
    assert!(
        expired > 0 && broken > 0 && ended > 5,
        "{expired} {broken} {ended}"
    );
    // Listed once, and once more each time the server had lost a position.
    assert_eq!(lists, 3 + expired);
    // The kernel's tables were also read only once.
    let kept = kept.lock().unwrap();
    assert!(kept.syncs > SYNCS, "{}", kept.syncs);
    assert_eq!(kept.whole, 1);
    assert_eq!(node.run(|| nft(LIST_RULES)).unwrap(), kept.rules);

    // The kernel has the same tables as a new one after a single sync of the last state.
    let fresh = Sandbox::new().unwrap();
    let synced = fresh.run(|| {
        let (wrong, _stale) = mpsc::channel();
        let mut proxy = kernel::open(Mode::Flat, wrong)(Config::new("node1"))?;
        let synced = proxy.sync(&mut server_state(&server))?;
        // A complete sync without differences changes nothing.
        let before = nft(LIST_RULES);
        proxy.require_full_sync();
        assert_eq!(proxy.sync(&mut server_state(&server))?.transactions, 0);
        assert_eq!(nft(LIST_RULES), before);
        Ok::<_, ProxyError>(synced)
    });
    let synced = synced.unwrap().unwrap();
    assert!(synced.services > 10, "{synced:?}");
    let (mut there, expected) = (ruleset(&node), ruleset(&fresh));
    // Chains for numbers of endpoints that no service has any more are removed at the next start.
    there.retain(|line| expected.contains(line) || !line.0.contains("pick"));
    assert_same(&"after all changes", &there, &expected);
}
