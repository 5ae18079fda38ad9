//! Serves health and metrics over HTTP.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use k8s_openapi::jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tracing::{debug, info, warn};

use crate::metrics::Metrics;

/// The paths that a server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServedPaths {
    /// `/healthz` and `/livez`.
    Health,
    /// `/metrics`, `/proxyMode` and `/healthz`.
    Metrics,
}

/// Answers a method and a path.
pub(crate) type Answer = Arc<dyn Fn(&Method, &str) -> Response<Full<Bytes>> + Send + Sync>;

/// Returns the answers about the agent itself.
pub(crate) fn answers(serves: ServedPaths, mode: &'static str, metrics: Arc<Metrics>) -> Answer {
    Arc::new(move |method, path| answer(method, path, serves, mode, &metrics))
}

/// Serves until the future is dropped.
pub(crate) async fn serve(listener: TcpListener, answer: Answer) {
    // Dropping it ends the connections.
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Too many open files, for instance.
                warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let answer = Arc::clone(&answer);
        connections.spawn(async move {
            let answer = service_fn(|request: Request<Incoming>| {
                let answer = answer(request.method(), request.uri().path());
                async { Ok::<_, Infallible>(answer) }
            });
            let mut server = http1::Builder::new();
            server
                .timer(TokioTimer::new())
                .header_read_timeout(Duration::from_secs(10));
            if let Err(error) = server.serve_connection(TokioIo::new(stream), answer).await {
                debug!(%peer, %error, "connection failed");
            }
        });
    }
}

/// Interval between attempts to bind an address: an earlier process may still use it.
pub(crate) const BIND_RETRY: Duration = Duration::from_secs(5);

/// Serves at an address until the future is dropped. If the address cannot be bound, retries at this interval.
pub(crate) async fn serve_at(address: SocketAddr, answer: Answer, again: Duration) {
    let mut is_reported = false;
    let listener = loop {
        match TcpListener::bind(address).await {
            Ok(listener) => break listener,
            Err(error) => {
                if !is_reported {
                    warn!(%address, %error, again_in = ?again, "cannot listen, retrying");
                }
                is_reported = true;
                tokio::time::sleep(again).await;
            }
        }
    };
    if is_reported {
        info!(%address, "listens");
    }
    serve(listener, answer).await;
}

fn answer(
    method: &Method,
    path: &str,
    serves: ServedPaths,
    mode: &'static str,
    metrics: &Metrics,
) -> Response<Full<Bytes>> {
    const TEXT: &str = "text/plain; charset=utf-8";
    if !matches!(*method, Method::GET | Method::HEAD) {
        return response(
            StatusCode::METHOD_NOT_ALLOWED,
            TEXT,
            "only GET is supported\n".to_owned(),
        );
    }
    match (serves, path) {
        (ServedPaths::Health, "/healthz" | "/livez") => {
            let health_state = metrics.health_state();
            let is_healthz = path == "/healthz";
            let is_healthy = match is_healthz {
                true => health_state.is_healthy() && health_state.is_eligible,
                false => health_state.is_live,
            };
            let status = match is_healthy {
                true => StatusCode::OK,
                false => StatusCode::SERVICE_UNAVAILABLE,
            };
            let time = |at: SystemTime| Timestamp::try_from(at).map(|at| at.to_string()).ok();
            let now = SystemTime::now();
            // As in kube-proxy: a healthy agent counts as up to date now.
            let last = match health_state.is_healthy() {
                true => Some(now),
                false => health_state.last_sync,
            };
            let mut body = serde_json::json!({
                "lastUpdated": last.and_then(time),
                "currentTime": time(now),
            });
            if is_healthz {
                body["nodeEligible"] = health_state.is_eligible.into();
            }
            let mut response = response(status, "application/json", format!("{body}\n"));
            let headers = response.headers_mut();
            headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            response
        }
        (ServedPaths::Metrics, "/healthz") => response(StatusCode::OK, TEXT, "ok".to_owned()),
        (ServedPaths::Metrics, "/proxyMode") => response(StatusCode::OK, TEXT, mode.to_owned()),
        (ServedPaths::Metrics, "/metrics") => match metrics.text() {
            Ok(text) => {
                let format = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                response(StatusCode::OK, format, text)
            }
            Err(error) => {
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                response(
                    status,
                    TEXT,
                    format!("cannot encode the metrics: {error}\n"),
                )
            }
        },
        _ => response(StatusCode::NOT_FOUND, TEXT, "not found\n".to_owned()),
    }
}

pub(crate) fn response(
    status: StatusCode,
    of: &'static str,
    body: String,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let of = HeaderValue::from_static(of);
    response.headers_mut().insert(CONTENT_TYPE, of);
    response
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;
    use crate::objects::Kind;
    use crate::proxy::Outcome;

    #[test]
    fn health_follows_syncs() {
        let metrics = Metrics::new();
        let get = |serves, path| answer(&Method::GET, path, serves, "flat", &metrics).status();
        let both = || {
            [
                get(ServedPaths::Health, "/healthz"),
                get(ServedPaths::Health, "/livez"),
            ]
        };
        const NO: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
        const YES: StatusCode = StatusCode::OK;
        // It starts and lists the existing objects, however long that takes.
        assert_eq!(both(), [NO, YES]);
        metrics.changed(Kind::Service);
        metrics.wait_since(Duration::from_secs(3600));
        assert_eq!(both(), [NO, YES]);
        assert_eq!(get(ServedPaths::Metrics, "/healthz"), YES);
        // The first sync is due, and overdue.
        metrics.listed();
        assert_eq!(both(), [NO, YES]);
        metrics.wait_since(Duration::from_secs(61));
        assert_eq!(both(), [NO, NO]);
        metrics.synced(Duration::ZERO, &Outcome::default(), 0, []);
        assert_eq!(both(), [YES, YES]);
        // A later one is overdue.
        metrics.changed(Kind::Slice);
        assert_eq!(both(), [YES, YES]);
        metrics.wait_since(Duration::from_secs(61));
        metrics.failed();
        assert_eq!(both(), [NO, NO]);
        metrics.synced(Duration::ZERO, &Outcome::default(), 0, []);
        assert_eq!(both(), [YES, YES]);
        // A node about to be deleted still counts as live.
        metrics.node_is_eligible(false);
        assert_eq!(both(), [NO, YES]);
        metrics.node_is_eligible(true);
        assert_eq!(both(), [YES, YES]);
        for path in ["/metrics", "/proxyMode"] {
            assert_eq!(get(ServedPaths::Metrics, path), StatusCode::OK);
            assert_eq!(get(ServedPaths::Health, path), StatusCode::NOT_FOUND);
        }
        let post = answer(
            &Method::POST,
            "/metrics",
            ServedPaths::Metrics,
            "flat",
            &metrics,
        );
        assert_eq!(post.status(), StatusCode::METHOD_NOT_ALLOWED);
    }

    #[test]
    fn bodies_match_kube_proxy() {
        let runtime = runtime();
        let metrics = Metrics::new();
        let body = |path| {
            let response = answer(&Method::GET, path, ServedPaths::Health, "flat", &metrics);
            assert_eq!(response.headers()[X_CONTENT_TYPE_OPTIONS], "nosniff");
            assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
            let body = runtime.block_on(response.into_body().collect()).unwrap();
            let body: serde_json::Value = serde_json::from_slice(&body.to_bytes()).unwrap();
            body.as_object().unwrap().clone()
        };
        let keys = |path| body(path).keys().cloned().collect::<Vec<_>>();
        assert_eq!(
            keys("/healthz"),
            ["currentTime", "lastUpdated", "nodeEligible"]
        );
        assert_eq!(keys("/livez"), ["currentTime", "lastUpdated"]);
        assert_eq!(body("/healthz")["lastUpdated"], serde_json::Value::Null);
        metrics.synced(Duration::ZERO, &Outcome::default(), 0, []);
        let healthz = body("/healthz");
        assert_eq!(healthz["lastUpdated"], healthz["currentTime"]);
        assert_eq!(healthz["nodeEligible"], true);
        metrics.node_is_eligible(false);
        assert_eq!(body("/healthz")["nodeEligible"], false);
    }

    fn runtime() -> tokio::runtime::Runtime {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap()
    }

    #[test]
    fn bind_is_retried_if_the_address_is_in_use() {
        runtime().block_on(async {
            let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = taken.local_addr().unwrap();
            let metrics = Arc::new(Metrics::new());
            let answers = answers(ServedPaths::Metrics, "flat", metrics);
            tokio::spawn(serve_at(address, answers, Duration::from_millis(10)));
            // The first attempt has been made.
            tokio::time::sleep(Duration::from_millis(50)).await;
            drop(taken);
            let served = async {
                loop {
                    if let Some(text) = crate::node_ports::tests::get(address.port()).await
                        && text.starts_with("HTTP/1.0 200")
                    {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(20), served)
                .await
                .unwrap();
        });
    }
}
