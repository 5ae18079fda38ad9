//! Health and metrics over HTTP.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use k8s_openapi::jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tracing::{debug, warn};

use crate::metrics::Metrics;

/// What a server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Serves {
    /// `/healthz` and `/livez`.
    Health,
    /// `/metrics`, `/proxyMode` and `/healthz`.
    Metrics,
}

/// What is said to a method and a path.
pub(crate) type Answer = Arc<dyn Fn(&Method, &str) -> Response<Full<Bytes>> + Send + Sync>;

/// The answers about the agent itself.
pub(crate) fn answers(serves: Serves, mode: &'static str, metrics: Arc<Metrics>) -> Answer {
    Arc::new(move |method, path| answer(method, path, serves, mode, &metrics))
}

/// Serves until it is dropped.
pub(crate) async fn serve(listener: TcpListener, answer: Answer) {
    // Connections end with it.
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Too many open files, for instance.
                warn!(%error, "connection not accepted");
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
                debug!(%peer, %error, "connection broken");
            }
        });
    }
}

/// Binds what is to be served.
pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener, String> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| format!("cannot listen at {address}: {error}"))
}

fn answer(
    method: &Method,
    path: &str,
    serves: Serves,
    mode: &'static str,
    metrics: &Metrics,
) -> Response<Full<Bytes>> {
    const TEXT: &str = "text/plain; charset=utf-8";
    if !matches!(*method, Method::GET | Method::HEAD) {
        return response(
            StatusCode::METHOD_NOT_ALLOWED,
            TEXT,
            "GET alone\n".to_owned(),
        );
    }
    match (serves, path) {
        (Serves::Health, "/healthz" | "/livez") => {
            let (last, is_well) = metrics.is_well();
            let status = match is_well {
                true => StatusCode::OK,
                false => StatusCode::SERVICE_UNAVAILABLE,
            };
            let time = |at: SystemTime| Timestamp::try_from(at).map(|at| at.to_string()).ok();
            let body = serde_json::json!({
                "lastUpdated": last.and_then(time),
                "currentTime": time(SystemTime::now()),
            });
            response(status, "application/json", format!("{body}\n"))
        }
        (Serves::Metrics, "/healthz") => response(StatusCode::OK, TEXT, "ok".to_owned()),
        (Serves::Metrics, "/proxyMode") => response(StatusCode::OK, TEXT, mode.to_owned()),
        (Serves::Metrics, "/metrics") => match metrics.text() {
            Ok(text) => {
                let format = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                response(StatusCode::OK, format, text)
            }
            Err(error) => {
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                response(status, TEXT, format!("metrics not written: {error}\n"))
            }
        },
        _ => response(StatusCode::NOT_FOUND, TEXT, "nothing here\n".to_owned()),
    }
}

pub(crate) fn response(
    status: StatusCode,
    of: &'static str,
    body: String,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let of = hyper::header::HeaderValue::from_static(of);
    response.headers_mut().insert(CONTENT_TYPE, of);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::Outcome;

    #[test]
    fn health_follows_syncs() {
        let metrics = Metrics::new();
        let get = |serves, path| answer(&Method::GET, path, serves, "flat", &metrics).status();
        assert_eq!(
            get(Serves::Health, "/healthz"),
            StatusCode::SERVICE_UNAVAILABLE
        );
        assert_eq!(get(Serves::Metrics, "/healthz"), StatusCode::OK);
        metrics.synced(Duration::ZERO, &Outcome::default(), 0, []);
        for path in ["/healthz", "/livez"] {
            assert_eq!(get(Serves::Health, path), StatusCode::OK);
        }
        for path in ["/metrics", "/proxyMode"] {
            assert_eq!(get(Serves::Metrics, path), StatusCode::OK);
            assert_eq!(get(Serves::Health, path), StatusCode::NOT_FOUND);
        }
        let post = answer(&Method::POST, "/metrics", Serves::Metrics, "flat", &metrics);
        assert_eq!(post.status(), StatusCode::METHOD_NOT_ALLOWED);
    }
}
