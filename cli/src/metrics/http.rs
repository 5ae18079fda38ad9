//! A server for one page, in one thread: any number of clients uses a bounded amount of memory and time.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use chainwright::metrics::CONTENT_TYPE;
use httparse::{EMPTY_HEADER, Request, Status};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::kube::guard::{notify, signals, watchdog};
use crate::output::{Error, causes, note};

/// Maximum number of connections.
const CONNECTIONS: usize = 32;
/// Maximum duration of a connection.
const DURATION: Duration = Duration::from_secs(10);
/// Maximum size of a request.
const REQUEST: usize = 8 << 10;
/// Maximum number of headers of a request.
const HEADERS: usize = 64;
/// For this long, the page is served again without reading the ruleset.
const FRESH: Duration = Duration::from_secs(1);
/// Time until the next attempt to accept a connection, if the process has too many open files.
const RETRY: Duration = Duration::from_millis(100);

/// Returns the page, or the reason why there is none.
type Page<'p> = dyn FnMut() -> Result<String, Error> + 'p;

/// A connection: it reads a request, writes a response, and waits until the client closes it, because closing a socket
/// with unread input would discard the response.
struct Connection {
    stream: TcpStream,
    deadline: Instant,
    request: Vec<u8>,
    /// The rest of the response; `None` while the request is read.
    response: Option<Vec<u8>>,
    written: usize,
}

/// The answer to a request.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// The page; without its contents for `HEAD`.
    Page { is_head: bool },
    /// A status; without its text for `HEAD`.
    Error { status: &'static str, is_head: bool },
}

const fn error(status: &'static str, is_head: bool) -> Answer {
    Answer::Error { status, is_head }
}

/// Parses a request; `None` if it is incomplete.
fn answer(request: &[u8]) -> Option<Answer> {
    let mut headers = [EMPTY_HEADER; HEADERS];
    let mut parsed = Request::new(&mut headers);
    match parsed.parse(request) {
        Ok(Status::Complete(_)) => {}
        Ok(Status::Partial) if request.len() < REQUEST => return None,
        Ok(Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Some(error("431 Request Header Fields Too Large", false));
        }
        Err(_) => return Some(error("400 Bad Request", false)),
    }
    let path = parsed.path.unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    let is_head = parsed.method == Some("HEAD");
    Some(match (parsed.method, path) {
        (Some("GET" | "HEAD"), "/metrics") => Answer::Page { is_head },
        (Some("GET" | "HEAD"), _) => error("404 Not Found", is_head),
        _ => error("405 Method Not Allowed", false),
    })
}

fn response(status: &str, content_type: &str, body: &str, is_head: bool) -> Vec<u8> {
    let length = body.len();
    let body = if is_head { "" } else { body };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nAllow: GET, HEAD\r\n\
         Connection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

/// The page and when it was made.
struct Cache<'p, 'c> {
    page: &'c mut Page<'p>,
    made: Option<(Instant, Result<String, String>)>,
}

impl Cache<'_, '_> {
    fn response(&mut self, answer: &Answer) -> Vec<u8> {
        const TEXT: &str = "text/plain; charset=utf-8";
        let is_head = match answer {
            Answer::Error { status, is_head } => {
                return response(status, TEXT, &format!("{status}\n"), *is_head);
            }
            Answer::Page { is_head } => *is_head,
        };
        let is_fresh = |(at, _): &(Instant, _)| at.elapsed() < FRESH;
        if !self.made.as_ref().is_some_and(is_fresh) {
            let page = (self.page)().map_err(|error| causes(&error));
            if let Err(reason) = &page {
                note(reason);
            }
            self.made = Some((Instant::now(), page));
        }
        match &self.made {
            Some((_, Ok(page))) => response("200 OK", CONTENT_TYPE, page, is_head),
            Some((_, Err(reason))) => response(
                "503 Service Unavailable",
                TEXT,
                &format!("{reason}\n"),
                is_head,
            ),
            None => Vec::new(),
        }
    }
}

impl Connection {
    fn new(stream: TcpStream) -> std::io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            deadline: Instant::now() + DURATION,
            request: Vec::new(),
            response: None,
            written: 0,
        })
    }

    fn awaits(&self) -> PollFlags {
        match &self.response {
            Some(response) if self.written < response.len() => PollFlags::POLLOUT,
            _ => PollFlags::POLLIN,
        }
    }

    /// Continues as far as possible without waiting; returns `false` at the end.
    fn advance(&mut self, cache: &mut Cache<'_, '_>) -> std::io::Result<bool> {
        let mut buffer = [0; 4096];
        loop {
            let Some(response) = &self.response else {
                let room = buffer.len().min(REQUEST - self.request.len());
                match self.stream.read(&mut buffer[..room])? {
                    0 => return Ok(false),
                    length => self.request.extend_from_slice(&buffer[..length]),
                }
                self.response = answer(&self.request).map(|answer| cache.response(&answer));
                continue;
            };
            if self.written < response.len() {
                self.written += self.stream.write(&response[self.written..])?;
                if self.written == response.len() {
                    self.stream.shutdown(Shutdown::Write)?;
                }
            } else if self.stream.read(&mut buffer)? == 0 {
                return Ok(false);
            }
        }
    }

    /// Continues; returns `true` if the connection stays open.
    fn stays(&mut self, cache: &mut Cache<'_, '_>) -> bool {
        match self.advance(cache) {
            Ok(is_open) => is_open,
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }
}

/// Serves until a signal arrives.
pub(super) fn serve(listener: &TcpListener, page: &mut Page<'_>) -> Result<(), Error> {
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let signals = SignalFd::with_flags(&signals(), flags);
    let signals = signals.map_err(|errno| Error::Output(errno.into()))?;
    listener.set_nonblocking(true).map_err(Error::Output)?;
    let watchdog = watchdog();
    let mut alive = Instant::now();
    let mut cache = Cache { page, made: None };
    let mut connections: Vec<Connection> = Vec::new();
    let mut accepts_from = Instant::now();
    notify("READY=1");
    loop {
        let now = Instant::now();
        let accepts = match now >= accepts_from {
            true => PollFlags::POLLIN,
            false => PollFlags::empty(),
        };
        let mut all = vec![
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(listener.as_fd(), accepts),
        ];
        let streams = connections.iter();
        all.extend(streams.map(|one| PollFd::new(one.stream.as_fd(), one.awaits())));
        let times = connections.iter().map(|one| one.deadline);
        let times = times
            .chain(watchdog.map(|interval| alive + interval))
            .chain((now < accepts_from).then_some(accepts_from));
        let wait = times.min().map_or(PollTimeout::NONE, |time| {
            // Rounded up, so that the time has come afterwards.
            let milliseconds = time.saturating_duration_since(now).as_millis() + 1;
            PollTimeout::try_from(milliseconds).unwrap_or(PollTimeout::MAX)
        });
        match poll(&mut all, wait) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(Error::Output(errno.into())),
        }
        let ready: Vec<bool> = all.iter().map(|one| one.any().unwrap_or(true)).collect();
        if ready[0] {
            notify("STOPPING=1");
            return Ok(());
        }
        if let Some(interval) = watchdog
            && alive.elapsed() >= interval
        {
            alive = Instant::now();
            notify("WATCHDOG=1");
        }
        let now = Instant::now();
        let mut ready_streams = ready[2..].iter();
        connections.retain_mut(|one| {
            let is_ready = ready_streams.next().copied().unwrap_or(false);
            now < one.deadline && (!is_ready || one.stays(&mut cache))
        });
        if ready[1] {
            match listener.accept() {
                Ok((stream, _)) => {
                    if connections.len() == CONNECTIONS {
                        connections.remove(0); // the oldest
                    }
                    connections.extend(Connection::new(stream));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => accepts_from = now + RETRY,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use nix::sys::signal::{SigSet, Signal};

    use super::*;

    #[test]
    fn requests_are_parsed() {
        let page = |is_head| Some(Answer::Page { is_head });
        let error = |status| Some(super::error(status, false));
        for (request, expected) in [
            ("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", page(false)),
            ("GET /metrics?a=/b HTTP/1.0\r\n\r\n", page(false)),
            ("HEAD /metrics HTTP/1.1\r\n\r\n", page(true)),
            ("GET / HTTP/1.1\r\n\r\n", error("404 Not Found")),
            (
                "HEAD / HTTP/1.1\r\n\r\n",
                Some(super::error("404 Not Found", true)),
            ),
            ("GET /metrics/ HTTP/1.1\r\n\r\n", error("404 Not Found")),
            (
                "POST /metrics HTTP/1.1\r\n\r\n",
                error("405 Method Not Allowed"),
            ),
            ("GET /metrics HTTP/1.1\r\nHost: a\r\n", None),
            ("", None),
            ("GET\r\n\r\n", error("400 Bad Request")),
            ("\x16\x03\x01", error("400 Bad Request")),
        ] {
            assert_eq!(answer(request.as_bytes()), expected, "{request:?}");
        }
        let long = format!("GET /metrics HTTP/1.1\r\nA: {}", "b".repeat(REQUEST));
        for length in 0..REQUEST {
            assert_eq!(answer(&long.as_bytes()[..length]), None, "{length}");
        }
        let too_large = error("431 Request Header Fields Too Large");
        assert_eq!(answer(&long.as_bytes()[..REQUEST]), too_large);
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(HEADERS + 1));
        assert_eq!(answer(many.as_bytes()), too_large);
    }

    /// Serves on the calling thread while `client` runs on another, and then ends the server.
    fn serving(page: &mut Page<'_>, client: impl FnOnce(SocketAddr) + Send) {
        let signals: SigSet = signals();
        signals.thread_block().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = nix::sys::pthread::pthread_self();
        std::thread::scope(|scope| {
            let client = scope.spawn(move || {
                let result =
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| client(address)));
                nix::sys::pthread::pthread_kill(server, Signal::SIGTERM).unwrap();
                result.unwrap();
            });
            serve(&listener, page).unwrap();
            client.join().unwrap();
        });
    }

    /// Sends bytes, and returns the whole response.
    fn exchange(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    #[test]
    fn idle_clients_do_not_keep_others_waiting() {
        const GET: &[u8] = b"GET /metrics HTTP/1.1\r\n\r\n";
        let long = "a 1\n".repeat(1 << 20);
        serving(&mut || Ok(long.clone()), |address| {
            let idle: Vec<_> = (0..4 * CONNECTIONS)
                .map(|_| TcpStream::connect(address).unwrap())
                .collect();
            let response = exchange(address, GET);
            let (head, body) = response.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
            assert!(head.contains(&format!("Content-Length: {}\r\n", long.len())));
            assert!(head.contains(CONTENT_TYPE));
            assert!(body == long);
            // One byte after the other, and more than the request.
            let mut slow = TcpStream::connect(address).unwrap();
            for byte in GET {
                slow.write_all(&[*byte]).unwrap();
            }
            slow.write_all(&[b'x'; 3 * REQUEST]).unwrap();
            let mut response = String::new();
            slow.read_to_string(&mut response).unwrap();
            assert!(response.ends_with(&long));
            let head = exchange(address, b"HEAD /metrics HTTP/1.1\r\n\r\n");
            assert!(head.ends_with("\r\n\r\n") && head.contains(&long.len().to_string()));
            let head = exchange(address, b"HEAD /x HTTP/1.1\r\n\r\n");
            assert!(head.starts_with("HTTP/1.1 404 ") && head.ends_with("\r\n\r\n"));
            let large = exchange(address, &[b'x'; REQUEST]);
            assert!(large.starts_with("HTTP/1.1 431 "), "{large}");
            drop(idle);
        });
    }

    #[test]
    fn a_page_is_made_once_for_many_requests() {
        let mut made = 0;
        let mut page = || {
            made += 1;
            Err(Error::Other("the reason".to_owned()))
        };
        serving(&mut page, |address| {
            for _ in 0..10 {
                let response = exchange(address, b"GET /metrics HTTP/1.1\r\n\r\n");
                assert!(response.starts_with("HTTP/1.1 503 "), "{response}");
                assert!(response.ends_with("\r\n\r\nthe reason\n"), "{response}");
            }
        });
        // One for each second that the requests took.
        assert!((1..10).contains(&made), "{made}");
    }
}
