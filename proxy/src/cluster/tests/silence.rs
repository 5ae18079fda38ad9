//! Connections that go silent: no data arrives, and neither side closes them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::server::conn::http2;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto};

use super::*;

/// A self-signed certificate and its key, for this test only.
const PEM: &[u8] = include_bytes!("server.pem");

/// The protocol that a server uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerProtocol {
    Http1,
    TlsHttp1,
    TlsHttp2,
}

impl ServerProtocol {
    fn acceptor(self) -> Option<TlsAcceptor> {
        let words: &[&str] = match self {
            Self::Http1 => return None,
            Self::TlsHttp1 => &["http/1.1"],
            Self::TlsHttp2 => &["h2", "http/1.1"],
        };
        let certificate = CertificateDer::from_pem_slice(PEM).unwrap();
        let key = PrivateKeyDer::from_pem_slice(PEM).unwrap();
        let provider = Arc::new(crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key);
        let mut config = config.unwrap();
        config.alpn_protocols = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        Some(TlsAcceptor::from(Arc::new(config)))
    }
}

/// Serves, and counts HTTP/2 connections.
async fn serve(
    listener: TcpListener,
    speaks: ServerProtocol,
    server: Shared,
    changed: watch::Receiver<usize>,
    seconds: Arc<AtomicUsize>,
) {
    let acceptor = speaks.acceptor();
    while let Ok((stream, _)) = listener.accept().await {
        let (server, changed) = (Arc::clone(&server), changed.clone());
        let answer = service_fn(move |request| {
            let answer = Response::new(answer(&request, &server, &changed));
            async { Ok::<_, Infallible>(answer) }
        });
        let (acceptor, seconds) = (acceptor.clone(), Arc::clone(&seconds));
        tokio::spawn(async move {
            let Some(acceptor) = acceptor else {
                let served = http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
                return drop(served.await);
            };
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                seconds.fetch_add(1, Ordering::Relaxed);
                let server = http2::Builder::new(TokioExecutor::new());
                drop(server.serve_connection(TokioIo::new(stream), answer).await);
            } else {
                let served = http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
                drop(served.await);
            }
        });
    }
}

/// Forwards bytes between clients and a server. The first `mute` connections forward nothing, and neither do the
/// connections that exist when `silent` changes, from then on. No connection is closed.
async fn relay(listener: TcpListener, to: SocketAddr, silent: watch::Receiver<()>, mute: usize) {
    let mut connections = 0;
    while let Ok((mut client, _)) = listener.accept().await {
        let mut server = TcpStream::connect(to).await.unwrap();
        let mut silent = silent.clone();
        silent.borrow_and_update();
        connections += 1;
        let is_mute = connections <= mute;
        tokio::spawn(async move {
            if !is_mute {
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut client, &mut server) => return,
                    _ = silent.changed() => {}
                }
            }
            std::future::pending().await
        });
    }
}

/// Waits until the source delivers a service, or reports that it delivered all.
async fn until(from: &mpsc::Receiver<Change>, name: Option<&str>) {
    let end = Instant::now() + Duration::from_secs(90);
    loop {
        match (from.try_recv(), name) {
            (Ok(Change::Complete), None) => return,
            (Ok(Change::Object((_, this), Some(_))), Some(name)) if *this.name == *name => return,
            (Ok(_), _) => {}
            (Err(_), _) => {
                assert!(Instant::now() < end, "{name:?} did not arrive");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

fn service(server: &Shared, name: &str) {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "namespace": "ns", "name": name },
        "spec": { "clusterIP": "10.96.0.1", "ports": [{ "port": 80 }] },
    });
    lock(server).change(Kind::Service, name, Some(service));
}

fn run(speaks: ServerProtocol, mute: usize) {
    let server = Arc::new(Mutex::new(Server::default()));
    service(&server, "one");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let behind = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let before = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (to, address) = (behind.local_addr().unwrap(), before.local_addr().unwrap());
        let (change_sender, changed) = watch::channel(0);
        let (go_silent, silent) = watch::channel(());
        let seconds = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&seconds);
        tokio::spawn(serve(behind, speaks, Arc::clone(&server), changed, counted));
        tokio::spawn(relay(before, to, silent, mute));
        let scheme = if speaks == ServerProtocol::Http1 {
            "http"
        } else {
            "https"
        };
        let mut config = kube::Config::new(format!("{scheme}://{address}").parse().unwrap());
        config.accept_invalid_certs = true;
        config.connect_timeout = Some(Duration::from_secs(3));
        let silence = Silence {
            ping: Duration::from_secs(1),
            pong: Duration::from_secs(1),
            watch: 2,
            read: Duration::from_secs(3),
        };
        let (sender, from) = mpsc::channel();
        let connected = super::super::server(config, silence).unwrap();
        let watching = tokio::spawn(follow(connected, "node1", sender));
        until(&from, Some("one")).await;
        until(&from, None).await;
        for name in ["two", "three"] {
            go_silent.send_replace(());
            service(&server, name);
            change_sender.send_modify(|n| *n += 1);
            until(&from, Some(name)).await;
        }
        let is_second = seconds.load(Ordering::Relaxed) > 0;
        assert_eq!(is_second, speaks == ServerProtocol::TlsHttp2);
        watching.abort();
    });
}

#[test]
fn without_tls() {
    run(ServerProtocol::Http1, 0);
}

#[test]
fn http1_over_tls() {
    run(ServerProtocol::TlsHttp1, 0);
}

#[test]
fn http2() {
    run(ServerProtocol::TlsHttp2, 0);
}

/// Not even the lists arrive.
#[test]
fn from_the_beginning() {
    for speaks in [
        ServerProtocol::Http1,
        ServerProtocol::TlsHttp1,
        ServerProtocol::TlsHttp2,
    ] {
        run(speaks, 2);
    }
}

/// Silence must be noticed within a minute, as in kube-proxy.
#[test]
fn default_timeouts_are_below_a_minute() {
    let Silence {
        ping,
        pong,
        watch,
        read,
    } = Silence::DEFAULT;
    let minute = Duration::from_secs(60);
    // A live server ends a watch, or answers a ping, before its connection counts as dead.
    let watch = Duration::from_secs(watch.into());
    assert!(ping + pong < read && watch < read && read < minute);
}
