//! Where verbs write to, how they end, and how errors are put to people.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::process::ExitCode;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use bstr::ByteSlice;
use chainwright::nft::SnapshotError;
use chainwright::{iptables, netlink, netns};
use chainwright_kube as kube;
use serde::Serialize;

/// How a verb ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done: exit code 0.
    Done,
    /// What was asked for is absent, or different: exit code 1.
    Absent,
    /// It could not be done, or only in part, and standard error says why: exit code 2.
    Failed,
    /// What another program ends with, where the verb stands in for that.
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

/// Why a verb could not do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Of the library.
    #[error(transparent)]
    Work(chainwright::Error),
    /// Of Kubernetes' chains.
    #[error(transparent)]
    Kube(kube::Error),
    /// Standard output does not take any more.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
    /// Anything else, in words.
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
    /// The netlink error behind it, if there is one.
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

    /// The number of the error behind it, if there is one.
    pub(crate) fn errno(&self) -> Option<i32> {
        match self {
            Self::Work(chainwright::Error::Netns(
                netns::Error::Open { source, .. } | netns::Error::Enter { source, .. },
            )) => source.raw_os_error(),
            _ => self.netlink()?.errno().map(chainwright::Errno::number),
        }
    }

    /// Whether the caller may not do it.
    pub(crate) fn is_permission(&self) -> bool {
        matches!(self.errno(), Some(libc::EPERM | libc::EACCES))
    }

    /// Whether the kernel has no nf_tables at all.
    pub(crate) fn is_nft_not_built(&self) -> bool {
        match self.netlink() {
            Some(netlink::Error::Open { source, .. }) => matches!(
                source.raw_os_error(),
                Some(libc::EPROTONOSUPPORT | libc::EAFNOSUPPORT)
            ),
            // nfnetlink's answer for a subsystem that nobody registered.
            Some(netlink::Error::Refused { errno, .. }) => errno.number() == libc::EINVAL,
            Some(netlink::Error::NotLoaded) => true,
            _ => false,
        }
    }

    /// What to do about it.
    fn hint(&self) -> Option<&'static str> {
        if self.netlink().is_none() {
            return (self.is_permission()).then_some(
                "another user's network namespace takes root (CAP_SYS_ADMIN and CAP_NET_ADMIN)",
            );
        }
        if self.is_permission() {
            Some(
                "nf_tables takes CAP_NET_ADMIN over this network namespace: run this as root, or \
                 in a namespace of your own (unshare --user --map-root-user unshare --net)",
            )
        } else if matches!(self.netlink(), Some(netlink::Error::NotLoaded)) {
            None // it says so itself
        } else if self.is_nft_not_built() {
            Some(
                "this kernel seems to have no nf_tables: not built in, or the module nf_tables is \
                 not loaded",
            )
        } else {
            None
        }
    }

    /// Says on standard error what went wrong, why, and what to do about it.
    pub(crate) fn report(&self) {
        note(&causes(self));
        if let Some(hint) = self.hint() {
            note(hint);
        }
    }
}

/// An error and its causes, in one text. Causes whose text is part of their effect's are left out.
pub(crate) fn causes(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// `1 rule`, `2 rules`.
pub(crate) fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Says something on standard error, for people.
pub(crate) fn note(text: &str) {
    // Where standard error is closed there is nobody left to be told.
    let _ = writeln!(
        Harmless::new(io::stderr(), io::stderr().is_terminal()),
        "chainwright: {text}"
    );
}

/// Whether colors are wanted there: on a terminal that has them, and not if the environment says `NO_COLOR`.
fn is_colored(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

fn style(colored: bool, color: AnsiColor) -> Style {
    match colored {
        true => Style::new().fg_color(Some(color.into())),
        false => Style::new(),
    }
}

/// This color on standard error, where colors are wanted there.
pub(crate) fn color_of_errors(color: AnsiColor) -> Style {
    style(is_colored(&io::stderr()), color)
}

/// Writes text to standard error as it is.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// The version of what is written with `--json` (`docs/json.md`). It goes up when a key goes, or comes to mean
/// something else; not when one comes.
const VERSION: u32 = 1;

/// A document whose parts are written as they come, one a line.
pub(crate) struct Rows {
    verb: &'static str,
    key: &'static str,
    begun: bool,
}

impl Rows {
    /// The document of this verb, in which the parts stand under this key.
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

    /// Ends the document, with what else it has. Of a verb that failed before there was anything to say there is none.
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

/// Standard output, buffered. `write!` and `writeln!` work on it.
pub(crate) struct Output {
    colored: bool,
    inner: BufWriter<WhileRead<StdoutLock<'static>>>,
}

/// A pipe that takes everything, also when its reader had enough of it and has gone, as `head` does:
/// that is no failure, and changes nothing in how a verb ends.
struct WhileRead<W> {
    pipe: W,
    gone: bool,
}

impl<W: Write> WhileRead<W> {
    fn unless_gone<T>(
        &mut self,
        instead: T,
        write: impl FnOnce(&mut W) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.gone {
            return Ok(instead);
        }
        match write(&mut self.pipe) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.gone = true;
                Ok(instead)
            }
            result => result,
        }
    }
}

impl<W: Write> Write for WhileRead<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unless_gone(bytes.len(), |pipe| pipe.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_gone((), Write::flush)
    }
}

impl Output {
    pub(crate) fn new() -> Self {
        Self {
            colored: is_colored(&io::stdout()),
            inner: BufWriter::with_capacity(
                64 * 1024,
                WhileRead {
                    pipe: io::stdout().lock(),
                    gone: false,
                },
            ),
        }
    }

    /// This color, where colors are wanted; else what changes nothing.
    pub(crate) fn color(&self, color: AnsiColor) -> Style {
        style(self.colored, color)
    }

    /// What `write!` calls.
    pub(crate) fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> Result<(), Error> {
        self.inner.write_fmt(text).map_err(Error::Output)
    }

    /// Writes all that a verb has to say to programs: one document, in one line.
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

    /// Takes text that holds names as they are, for files and other programs; a terminal gets escapes in place of
    /// control characters. Its errors are for [`Error::Output`].
    pub(crate) fn text(&mut self) -> impl Write {
        Harmless::new(&mut self.inner, io::stdout().is_terminal())
    }

    /// Whether there is still somebody who reads: known after something was written out.
    pub(crate) fn is_read(&self) -> bool {
        !self.inner.get_ref().gone
    }

    /// Writes out what is buffered. To be called at the end: dropping does not report errors.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        self.inner.flush().map_err(Error::Output)
    }
}

/// Passes text on. Where a terminal shows it, control characters other than the end of a line and the tab become escapes,
/// as they could drive the terminal.
pub(crate) struct Harmless<W> {
    to: W,
    for_terminal: bool,
    /// Whether the last byte was 0xc2, which begins the control characters from U+0080 on.
    pending: bool,
}

impl<W: Write> Harmless<W> {
    pub(crate) const fn new(to: W, for_terminal: bool) -> Self {
        Self {
            to,
            for_terminal,
            pending: false,
        }
    }
}

impl<W: Write> Write for Harmless<W> {
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

/// A name as documents have it: bytes that are not UTF-8, and backslashes, are escaped (`\xFF`, `\\`), as in the library's
/// objects.
pub(crate) fn name_text(name: &[u8]) -> Cow<'_, str> {
    match name.to_str() {
        Ok(name) if !name.contains('\\') => name.into(),
        _ => name.escape_bytes().to_string().into(),
    }
}

/// A name for a line of text: control characters, which could forge lines or drive a terminal, are
/// shown as escapes.
pub(crate) struct Printable<'a>(pub(crate) &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.contains(char::is_control) {
            f.pad(&self.0.escape_debug().to_string())
        } else {
            f.pad(self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_on_their_line() {
        let pad = format!("[{:6}]", Printable("nat"));
        assert_eq!(pad, "[nat   ]");
        let forged = Printable("a\nb\x1b[2J").to_string();
        assert_eq!(forged, r"a\nb\u{1b}[2J");
        assert_eq!(Printable("größe/äöü").to_string(), "größe/äöü");
    }

    #[test]
    fn a_terminal_gets_escapes_in_place_of_control_characters() {
        let all: Vec<u8> = (0..=255).chain("\u{85}é\u{9b}2J\n\t".bytes()).collect();
        let through = |for_terminal, piece| {
            let mut out = Harmless::new(Vec::new(), for_terminal);
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

    #[test]
    fn a_cause_is_not_told_twice() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot dig: {0}")]
        struct Outer(#[source] io::Error);
        let error = Outer(io::Error::other("no spade"));
        assert_eq!(causes(&error), "cannot dig: no spade");
        let error = Error::Output(io::Error::other("full"));
        assert_eq!(causes(&error), "cannot write to standard output: full");
    }
}
