//! Output, exit codes, and error messages of verbs.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use bstr::ByteSlice;
use chainwright::nft::SnapshotError;
use chainwright::{iptables, netlink, netns};
use chainwright_kube as kube;
pub(crate) use chainwright_lang::Printable;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::Serialize;

/// The result of a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success: exit code 0.
    Done,
    /// The requested object is absent, or different: exit code 1.
    Absent,
    /// The verb failed, completely or partly, and standard error has the reason: exit code 2.
    Failed,
    /// The exit code of another program that the verb replaces.
    Code(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Absent => 1,
            Exit::Failed => 2,
            Exit::Code(code) => code,
        })
    }
}

/// Errors of verbs.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// An error of the library.
    #[error(transparent)]
    Work(chainwright::Error),
    /// An error of `chainwright_kube`.
    #[error(transparent)]
    Kube(kube::Error),
    /// Writing to standard output failed.
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    /// Any other error, as text.
    #[error("{0}")]
    Other(String),
}

impl<E: Into<kube::Error>> From<E> for Error {
    fn from(error: E) -> Self {
        match error.into() {
            kube::Error::Chainwright(error) => Self::Work(error),
            error => Self::Kube(error),
        }
    }
}

impl Error {
    /// Returns the netlink error that caused this error, if there is one.
    pub(crate) fn netlink(&self) -> Option<&netlink::Error> {
        match self {
            Self::Work(
                chainwright::Error::Netlink(error)
                | chainwright::Error::Snapshot(SnapshotError::Netlink(error)),
            ) => Some(error),
            Self::Kube(
                kube::Error::Kubelet(kube::kubelet::Error::Read(error))
                | kube::Error::Guard(kube::guard::Error::Tables(kube::declared::Error::Read(error))),
            ) => Some(error),
            Self::Work(chainwright::Error::Commit(error)) => error.source.as_ref(),
            Self::Kube(kube::Error::Kubelet(kube::kubelet::Error::Commit(error))) => {
                error.source.as_ref()
            }
            Self::Work(chainwright::Error::Iptables(error)) => match &**error {
                iptables::Error::Nft(error)
                | iptables::Error::Snapshot(SnapshotError::Netlink(error)) => Some(error),
                iptables::Error::Commit(error) => error.source.as_ref(),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the error number that caused this error, if there is one.
    pub(crate) fn errno(&self) -> Option<i32> {
        match self {
            Self::Work(chainwright::Error::Netns(
                netns::Error::Open { source, .. } | netns::Error::Enter { source, .. },
            )) => source.raw_os_error(),
            _ => self.netlink()?.errno().map(chainwright::Errno::number),
        }
    }

    /// Returns `true` if the caller lacks a permission.
    pub(crate) fn is_permission(&self) -> bool {
        matches!(self.errno(), Some(libc::EPERM | libc::EACCES))
    }

    /// Returns `true` if the kernel has no nf_tables.
    pub(crate) fn is_nft_not_built(&self) -> bool {
        match self.netlink() {
            Some(netlink::Error::Open { source, .. }) => matches!(
                source.raw_os_error(),
                Some(libc::EPROTONOSUPPORT | libc::EAFNOSUPPORT)
            ),
            // nfnetlink returns this for an unregistered subsystem.
            Some(netlink::Error::Refused { errno, .. }) => errno.number() == libc::EINVAL,
            Some(netlink::Error::NotLoaded) => true,
            _ => false,
        }
    }

    /// Returns advice for the user.
    fn hint(&self) -> Option<&'static str> {
        if self.netlink().is_none() {
            return (self.is_permission()).then_some(
                "another user's network namespace requires root (CAP_SYS_ADMIN and CAP_NET_ADMIN)",
            );
        }
        if self.is_permission() {
            Some(
                "nf_tables requires CAP_NET_ADMIN in this network namespace: run this as root, or \
                 in a namespace of your own (unshare --user --map-root-user unshare --net)",
            )
        } else if matches!(self.netlink(), Some(netlink::Error::NotLoaded)) {
            None // the error contains the advice
        } else if self.is_nft_not_built() {
            Some(
                "this kernel does not seem to support nf_tables: not built in, or the nf_tables module is \
                 not loaded",
            )
        } else {
            None
        }
    }

    /// Prints the error, its causes, and advice on standard error.
    pub(crate) fn report(&self) {
        note(&causes(self));
        if let Some(hint) = self.hint() {
            note(hint);
        }
    }
}

pub(crate) use chainwright::internal::message_with_causes as causes;

/// Formats a number with a noun: `1 rule`, `2 rules`.
pub(crate) fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Prints a message for users on standard error.
pub(crate) fn note(text: &str) {
    // If standard error is closed, there is no reader of the message.
    let _ = writeln!(
        TerminalEscaper::new(io::stderr(), io::stderr().is_terminal()),
        "chainwright: {text}"
    );
}

/// Returns `true` if the stream is a terminal that supports colors, and the environment has no `NO_COLOR`.
fn is_colored(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

fn style(colored: bool, color: AnsiColor) -> Style {
    match colored {
        true => Style::new().fg_color(Some(color.into())),
        false => Style::new(),
    }
}

/// Returns the style of a color on standard error; no style if colors are disabled there.
pub(crate) fn color_of_errors(color: AnsiColor) -> Style {
    style(is_colored(&io::stderr()), color)
}

/// Writes text to standard error without escaping it.
pub(crate) fn eprint_line(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// The version of the `--json` format (`docs/json.md`). It increases when a key is removed or changes its meaning, not
/// when a key is added.
const VERSION: u32 = 1;

/// A document with a list that is streamed, one element per line.
pub(crate) struct Rows {
    verb: &'static str,
    key: &'static str,
    begun: bool,
}

impl Rows {
    /// Creates the document of a verb, with the list under this key.
    pub(crate) const fn new(verb: &'static str, key: &'static str) -> Self {
        Self {
            verb,
            key,
            begun: false,
        }
    }

    fn begin(&mut self, out: &mut Output) -> Result<(), Error> {
        self.begun = true;
        let (verb, key) = (self.verb, self.key);
        write!(out, r#"{{"version":{VERSION},"verb":"{verb}","{key}":["#)
    }

    pub(crate) fn add(&mut self, out: &mut Output, part: &impl Serialize) -> Result<(), Error> {
        if self.begun {
            write!(out, ",")?;
        } else {
            self.begin(out)?;
        }
        writeln!(out)?;
        out.value(part)
    }

    /// Ends the document, with further keys. If the verb failed before the first element, there is no document.
    pub(crate) fn end<T: Serialize>(
        mut self,
        out: &mut Output,
        done: bool,
        more: Option<(&str, T)>,
    ) -> Result<(), Error> {
        if !self.begun {
            if !done {
                return Ok(());
            }
            self.begin(out)?;
        }
        write!(out, "]")?;
        if let Some((key, more)) = more {
            write!(out, r#","{key}":"#)?;
            out.value(&more)?;
        }
        writeln!(out, "}}")
    }
}

/// Standard output, buffered; used with `write!` and `writeln!`.
pub(crate) struct Output {
    colored: bool,
    inner: BufWriter<IgnoreClosedPipe<StdoutLock<'static>>>,
}

/// A pipe that ignores a closed reader, such as `head`: this is no failure, and does not change the result of a verb.
struct IgnoreClosedPipe<W> {
    pipe: W,
    closed: bool,
}

impl<W: Write> IgnoreClosedPipe<W> {
    fn unless_closed<T>(
        &mut self,
        instead: T,
        write: impl FnOnce(&mut W) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.closed {
            return Ok(instead);
        }
        match write(&mut self.pipe) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(instead)
            }
            result => result,
        }
    }
}

impl<W: Write> Write for IgnoreClosedPipe<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unless_closed(bytes.len(), |pipe| pipe.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_closed((), Write::flush)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl chainwright_libnftables::Output for Output {
    fn has_reader(&self) -> bool {
        self.has_reader()
    }

    fn note(&mut self, text: &str) {
        note(text);
    }
}

impl Output {
    pub(crate) fn new() -> Self {
        Self {
            colored: is_colored(&io::stdout()),
            inner: BufWriter::with_capacity(
                64 * 1024,
                IgnoreClosedPipe {
                    pipe: io::stdout().lock(),
                    closed: false,
                },
            ),
        }
    }

    /// Returns the style of a color; no style if colors are disabled.
    pub(crate) fn color(&self, color: AnsiColor) -> Style {
        style(self.colored, color)
    }

    /// Implements `write!`.
    pub(crate) fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> Result<(), Error> {
        self.inner.write_fmt(text).map_err(Error::Output)
    }

    /// Writes the JSON document of a verb, on one line.
    pub(crate) fn json(&mut self, verb: &str, body: &impl Serialize) -> Result<(), Error> {
        #[derive(Serialize)]
        struct Document<'d, B> {
            version: u32,
            verb: &'d str,
            #[serde(flatten)]
            body: B,
        }
        self.value(&Document {
            version: VERSION,
            verb,
            body,
        })?;
        writeln!(self)
    }

    /// Writes a value as JSON.
    pub(crate) fn value(&mut self, value: &impl Serialize) -> Result<(), Error> {
        serde_json::to_writer(&mut self.inner, value).map_err(|error| Error::Output(error.into()))
    }

    /// Returns a writer for text with unescaped names, for files and other programs; if the output is a terminal,
    /// control characters are escaped. Callers wrap its errors in [`Error::Output`].
    pub(crate) fn text(&mut self) -> impl Write {
        TerminalEscaper::new(&mut self.inner, io::stdout().is_terminal())
    }

    /// Returns `true` if the reader still exists. It is known for a pipe at once, otherwise after a flush.
    pub(crate) fn has_reader(&self) -> bool {
        let stdout = io::stdout();
        let mut pipe = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
        let is_closed = poll(&mut pipe, PollTimeout::ZERO).is_ok()
            && pipe[0]
                .revents()
                .is_some_and(|state| state.contains(PollFlags::POLLERR));
        !is_closed && !self.inner.get_ref().closed
    }

    /// Flushes the buffer. Callers must do this at the end, because dropping does not report errors.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        self.inner.flush().map_err(Error::Output)
    }
}

/// A writer that passes text on. For a terminal it escapes control characters except newlines and tabs, because they
/// could control the terminal.
pub(crate) struct TerminalEscaper<W> {
    to: W,
    for_terminal: bool,
    /// Whether the last byte was 0xc2, the first byte of the control characters from U+0080 on.
    pending: bool,
}

impl<W: Write> TerminalEscaper<W> {
    pub(crate) const fn new(to: W, for_terminal: bool) -> Self {
        Self {
            to,
            for_terminal,
            pending: false,
        }
    }
}

impl<W: Write> Write for TerminalEscaper<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.for_terminal {
            return self.to.write(bytes);
        }
        let mut shown = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            match (std::mem::take(&mut self.pending), byte) {
                (true, 0x80..=0x9f) => write!(shown, "\\u{{{byte:x}}}")?,
                (was_pending, _) => {
                    shown.extend(was_pending.then_some(0xc2));
                    match byte {
                        0xc2 => self.pending = true,
                        b'\n' | b'\t' => shown.push(byte),
                        0..=0x1f | 0x7f => write!(shown, "\\u{{{byte:x}}}")?,
                        _ => shown.push(byte),
                    }
                }
            }
        }
        self.to.write_all(&shown)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.pending) {
            self.to.write_all(&[0xc2])?;
        }
        self.to.flush()
    }
}

/// Formats a name for documents: escapes bytes that are not UTF-8, and backslashes (`\xFF`, `\\`), as in the library's
/// objects.
pub(crate) fn name_text(name: &[u8]) -> Cow<'_, str> {
    match name.to_str() {
        Ok(name) if !name.contains('\\') => name.into(),
        _ => name.escape_bytes().to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_for_terminals() {
        let all: Vec<u8> = (0..=255).chain("\u{85}é\u{9b}2J\n\t".bytes()).collect();
        let through = |for_terminal, piece| {
            let mut out = TerminalEscaper::new(Vec::new(), for_terminal);
            for piece in all.chunks(piece) {
                out.write_all(piece).unwrap();
            }
            out.flush().unwrap();
            out.to
        };
        assert_eq!(through(false, 7), all);
        let shown = through(true, 300);
        for piece in 1..9 {
            assert_eq!(through(true, piece), shown, "{piece}");
        }
        assert!(shown.starts_with(br"\u{0}\u{1}\u{2}"));
        assert!(shown.ends_with("\\u{85}é\\u{9b}2J\n\t".as_bytes()));
        let is_harmful = |byte: &u8| byte.is_ascii_control() && !b"\n\t".contains(byte);
        assert!(!shown.iter().any(is_harmful));
    }
}
