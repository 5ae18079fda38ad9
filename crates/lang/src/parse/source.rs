//! Source texts, and includes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::{Diagnostic, Error, shown};
use crate::syntax::Span;
use chainwright::internal as input;

/// Maximum number of source texts.
const MAX_SOURCES: usize = 4096;
/// Maximum length of an included file.
const MAX_FILE_LENGTH: u64 = 256 << 20;

/// Reads a text for [`Script::parse`](crate::Script::parse) from a file or pipe. Reads at most 1 GiB, and stops at the
/// first NUL, so that a device like `/dev/zero` causes an error.
///
/// # Errors
/// Read errors; [`InvalidData`](io::ErrorKind::InvalidData) if the text is too long or contains NUL.
pub fn read_text(from: impl Read) -> io::Result<Vec<u8>> {
    input::read_text(from, input::MAX_TEXT_LENGTH)
}

/// A source text with its name.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) content: Arc<str>,
    /// Offset of the first byte that is not text, and what it is.
    bad: Option<(usize, &'static str)>,
}

impl Source {
    pub(crate) fn new(name: impl Into<String>, content: impl AsRef<[u8]>) -> Self {
        let content = content.as_ref();
        let (content, bad) = match std::str::from_utf8(content) {
            // nft ends a string there.
            Ok(content) => (
                Arc::from(content),
                content.find('\0').map(|at| (at, "NUL byte")),
            ),
            Err(error) => {
                let content = String::from_utf8_lossy(content);
                (
                    Arc::from(&*content),
                    Some((error.valid_up_to(), "invalid UTF-8")),
                )
            }
        };
        Self {
            name: name.into(),
            content,
            bad,
        }
    }
}

/// Source of included texts.
pub(crate) trait Includes {
    /// Returns the texts for a path in order: several or none if the path has wildcards.
    ///
    /// # Errors
    /// The reason why the path does not name a text that may be read.
    fn read(&self, path: &str) -> Result<Vec<Source>, String>;

    /// Returns the hint for an error about an include.
    fn hint(&self) -> &'static str {
        "files can only be included from directories that the caller allows"
    }
}

/// Forbids includes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoIncludes;

impl Includes for NoIncludes {
    fn read(&self, _: &str) -> Result<Vec<Source>, String> {
        Err("includes are not allowed here".to_owned())
    }
}

/// Allows includes from some directories.
#[derive(Debug, Clone)]
pub(crate) struct Directories {
    searched: Vec<PathBuf>,
    /// Whether absolute and explicitly relative paths may name any file.
    allows_other_paths: bool,
}

impl Directories {
    /// Allows files in these directories. Relative paths are searched in them in order.
    pub(crate) fn new(directories: impl IntoIterator<Item = PathBuf>) -> Self {
        Self {
            searched: directories.into_iter().collect(),
            allows_other_paths: false,
        }
    }

    /// Like [`new`](Self::new), but absolute and explicitly relative paths may name any file.
    pub(crate) fn anywhere(directories: impl IntoIterator<Item = PathBuf>) -> Self {
        Self {
            allows_other_paths: true,
            ..Self::new(directories)
        }
    }

    /// Reads a file, if its real path is in one of the directories.
    ///
    /// The check uses the file that was opened, so no process can replace it between the check and the read.
    fn file(&self, path: &Path) -> Result<Option<Source>, String> {
        let shown_path = || shown(&path.to_string_lossy());
        let failed = |error: io::Error| format!("cannot read {}: {error}", shown_path());
        // `O_PATH` opens a device or FIFO without side effects.
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH)
            .open(path);
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let handle = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
        let real = handle.read_link().map_err(failed)?;
        let is_inside = |directory: &PathBuf| {
            let directory = directory.canonicalize();
            directory.is_ok_and(|directory| real.starts_with(directory))
        };
        if !self.allows_other_paths && !self.searched.iter().any(is_inside) {
            return Err(format!(
                "{} is outside of the allowed include directories",
                shown_path()
            ));
        }
        if !opened.metadata().map_err(failed)?.is_file() {
            return Err(format!("{} is not a file", shown_path()));
        }
        let mut content = Vec::new();
        File::open(handle)
            .and_then(|file| file.take(MAX_FILE_LENGTH + 1).read_to_end(&mut content))
            .map_err(failed)?;
        if content.len() as u64 > MAX_FILE_LENGTH {
            return Err(format!("{} is longer than 256 MiB", shown_path()));
        }
        Ok(Some(Source::new(real.to_string_lossy(), content)))
    }

    /// Returns the files below a directory whose paths match, sorted by path.
    fn matching(&self, directory: &Path, pattern: &str) -> Result<Vec<Source>, String> {
        let mut found = vec![directory.to_owned()];
        for part in pattern.split_inclusive('/') {
            let name = part.trim_end_matches('/');
            let mut next = Vec::new();
            for path in found {
                match name {
                    "" if path.as_os_str().is_empty() => next.push(PathBuf::from("/")),
                    "" => next.push(path),
                    name if has_wildcards(name) => entries(&path, name, &mut next)?,
                    name => next.push(path.join(name)),
                }
            }
            next.truncate(MAX_SOURCES + 1);
            found = next;
        }
        if pattern.ends_with('/') {
            return Ok(Vec::new());
        }
        found.retain(|path| path.is_file());
        found.sort_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
        let mut sources = Vec::new();
        for path in found {
            sources.extend(self.file(&path)?);
        }
        Ok(sources)
    }
}

/// Adds the entries of a directory whose names match.
fn entries(directory: &Path, pattern: &str, found: &mut Vec<PathBuf>) -> Result<(), String> {
    use std::io::ErrorKind;
    let failed = |error| {
        format!(
            "cannot list {}: {error}",
            shown(&directory.to_string_lossy())
        )
    };
    // Without a directory, the pattern applies to the current one.
    let listed = match directory.as_os_str().is_empty() {
        true => Path::new("."),
        false => directory,
    };
    let all = match std::fs::read_dir(listed) {
        Ok(all) => all,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(());
        }
        Err(error) => return Err(failed(error)),
    };
    for entry in all {
        let entry = entry.map_err(failed)?;
        if matches(pattern, &entry.file_name().to_string_lossy()) {
            found.push(directory.join(entry.file_name()));
        }
    }
    Ok(())
}

impl Includes for Directories {
    fn hint(&self) -> &'static str {
        match self.allows_other_paths {
            true => {
                "paths that do not begin with / or ./ are searched for in the include directories"
            }
            false => NoIncludes.hint(),
        }
    }

    fn read(&self, text: &str) -> Result<Vec<Source>, String> {
        if text.contains('\0') {
            return Err("path contains a NUL byte".to_owned());
        }
        let path = Path::new(text);
        let is_explicit_path = path.is_absolute()
            || (self.allows_other_paths && (path.starts_with(".") || path.starts_with("..")));
        let directories = match is_explicit_path {
            true => vec![PathBuf::new()],
            false => self.searched.clone(),
        };
        let is_pattern = has_wildcards(text);
        for directory in directories {
            if is_pattern {
                let found = self.matching(&directory, text)?;
                if !found.is_empty() {
                    return Ok(found);
                }
            } else if let Some(source) = self.file(&directory.join(path))? {
                return Ok(vec![source]);
            }
        }
        match is_pattern {
            true => Ok(Vec::new()),
            false => Err(format!("no such file: {}", shown(text))),
        }
    }
}

fn has_wildcards(path: &str) -> bool {
    path.contains(['*', '?', '['])
}

/// Element of a glob(7) pattern. A backslash is a literal character, as in nft.
enum Part {
    /// `*`
    Any,
    /// One character, in the list or not in the list.
    One { of: Vec<Characters>, is_other: bool },
}

enum Characters {
    Range(char, char),
    /// `[:digit:]`
    Class(fn(&char) -> bool),
}

impl Part {
    fn has(&self, c: char) -> bool {
        let Self::One { of, is_other } = self else {
            return false;
        };
        let is_in = of.iter().any(|each| match each {
            Characters::Range(first, last) => (*first..=*last).contains(&c),
            Characters::Class(is_in) => is_in(&c),
        });
        is_in != *is_other
    }
}

fn parse_pattern(pattern: &str) -> Vec<Part> {
    let text: Vec<char> = pattern.chars().collect();
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(c) = text.get(at) {
        at += 1;
        let (of, is_other) = match c {
            '*' => {
                parts.push(Part::Any);
                continue;
            }
            '?' => (Vec::new(), true),
            '[' => {
                let is_other = matches!(text.get(at), Some('!' | '^'));
                match bracket(&text[at + usize::from(is_other)..]) {
                    Some((of, length)) => {
                        at += usize::from(is_other) + length;
                        (of, is_other)
                    }
                    None => (vec![Characters::Range('[', '[')], false),
                }
            }
            c => (vec![Characters::Range(*c, *c)], false),
        };
        parts.push(Part::One { of, is_other });
    }
    parts
}

/// Parses a bracket expression; returns its characters and length, or `None` if it is not closed.
fn bracket(text: &[char]) -> Option<(Vec<Characters>, usize)> {
    let mut of = Vec::new();
    let mut at = 0;
    loop {
        match (text.get(at)?, text.get(at + 1)) {
            (']', _) if at > 0 => return Some((of, at + 1)),
            ('[', Some(sign @ (':' | '.' | '='))) => {
                let rest = &text[at + 2..];
                let length = rest.windows(2).position(|two| two == [*sign, ']'])?;
                let name: String = rest[..length].iter().collect();
                match (sign, &rest[..length]) {
                    (':', _) => of.extend(class(&name).map(Characters::Class)),
                    (_, [one]) => of.push(Characters::Range(*one, *one)),
                    _ => {}
                }
                at += length + 4;
            }
            (first, Some('-')) if text.get(at + 2).is_some_and(|last| *last != ']') => {
                of.push(Characters::Range(*first, text[at + 2]));
                at += 3;
            }
            (one, _) => {
                of.push(Characters::Range(*one, *one));
                at += 1;
            }
        }
    }
}

/// Returns the predicate of a character class.
fn class(name: &str) -> Option<fn(&char) -> bool> {
    Some(match name {
        "alnum" => char::is_ascii_alphanumeric,
        "alpha" => char::is_ascii_alphabetic,
        "blank" => |c| matches!(c, ' ' | '\t'),
        "cntrl" => char::is_ascii_control,
        "digit" => char::is_ascii_digit,
        "graph" => char::is_ascii_graphic,
        "lower" => char::is_ascii_lowercase,
        "print" => |c| c.is_ascii_graphic() || *c == ' ',
        "punct" => char::is_ascii_punctuation,
        "space" => |c| c.is_ascii_whitespace() || *c == '\u{b}',
        "upper" => char::is_ascii_uppercase,
        "xdigit" => char::is_ascii_hexdigit,
        _ => return None,
    })
}

/// Returns `true` if a name matches a pattern. A leading dot only matches a literal dot.
fn matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let pattern = parse_pattern(pattern);
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    // Last asterisk, and the end of the text that it matches so far.
    let mut last: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(Part::Any) => {
                last = Some((p, n));
                p += 1;
            }
            Some(part) if part.has(name[n]) => (p, n) = (p + 1, n + 1),
            _ => match last {
                Some((star, end)) => {
                    (p, n) = (star + 1, end + 1);
                    last = Some((star, end + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|part| matches!(part, Part::Any))
}

/// All source texts, in the order of reading.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources(Vec<(String, Arc<str>)>);

impl Sources {
    /// Adds a text; `from` is the location of the include.
    pub(crate) fn add(&mut self, source: Source, from: Span) -> Result<u32, Diagnostic> {
        let Source { name, content, bad } = source;
        if self.0.len() >= MAX_SOURCES {
            let message = format!("more than {MAX_SOURCES} files are included");
            return Err(Diagnostic::new(from, message));
        }
        let index = self.0.len() as u32; // at most MOST
        // Locations have 32 bits.
        if u32::try_from(content.len()).map_or(true, |length| length > u32::MAX - 16) {
            let message = format!("{} is longer than 4 GiB", shown(&name));
            return Err(Diagnostic::new(from, message));
        }
        self.0.push((name, content));
        match bad {
            Some((start, what)) => {
                let start = start as u32; // shorter than that
                let location = Span {
                    source: index,
                    start,
                    end: start + 1,
                };
                Err(Diagnostic::new(location, what))
            }
            None => Ok(index),
        }
    }

    /// Returns a text by index.
    pub(crate) fn text(&self, source: u32) -> Arc<str> {
        match self.0.get(source as usize) {
            Some((_, text)) => Arc::clone(text),
            None => Arc::from(""),
        }
    }

    /// Returns the name of a text.
    pub(crate) fn name(&self, source: u32) -> &str {
        self.0.get(source as usize).map_or("", |(name, _)| name)
    }

    /// Returns the line of a location: text name, line number, and the parts before, in and after the location.
    pub(crate) fn line(&self, location: Span) -> (&str, usize, &str, &str, &str) {
        let Some((name, text)) = self.0.get(location.source as usize) else {
            return ("", 1, "", "", "");
        };
        let floor = |at: u32| {
            let at = (at as usize).min(text.len());
            (0..=at)
                .rev()
                .find(|at| text.is_char_boundary(*at))
                .unwrap_or(0)
        };
        let start = floor(location.start);
        let begin = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let stop = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let end = floor(location.end).clamp(start, stop);
        let number = text[..begin].matches('\n').count() + 1;
        (
            name,
            number,
            &text[begin..start],
            &text[start..end],
            &text[end..stop],
        )
    }

    /// Adds the source line to an error.
    pub(crate) fn explain(&self, diagnostic: Diagnostic) -> Error {
        diagnostic.explain(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a directory that allows includes, and a file outside of it.
    fn location() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let location = tempfile::tempdir().unwrap();
        let inside = location.path().join("inside");
        std::fs::create_dir(&inside).unwrap();
        let outside = location.path().join("outside.nft");
        std::fs::write(&outside, "outside").unwrap();
        std::fs::write(inside.join("a.nft"), "inside").unwrap();
        (location, inside, outside)
    }

    #[test]
    fn only_files_of_a_directory_are_included() {
        let (_place, inside, outside) = location();
        let link =
            |name: &str, to: &Path| std::os::unix::fs::symlink(to, inside.join(name)).unwrap();
        link("in.nft", Path::new("a.nft"));
        link("out.nft", &outside);
        link("up.nft", Path::new("../outside.nft"));
        link("zero.nft", Path::new("/dev/zero"));
        nix::unistd::mkfifo(&inside.join("fifo.nft"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::create_dir(inside.join("directory.nft")).unwrap();
        let below = Directories::new([inside.clone()]);
        let read = |path: &str| {
            let read = below.read(path);
            read.map(|read| {
                read.iter()
                    .map(|one| one.content.to_string())
                    .collect::<String>()
            })
        };
        assert_eq!(read("a.nft").unwrap(), "inside");
        assert_eq!(read("in.nft").unwrap(), "inside");
        let absolute = outside.to_string_lossy().into_owned();
        for path in ["out.nft", "up.nft", "zero.nft", "../outside.nft", &absolute] {
            let error = read(path).unwrap_err();
            assert!(
                error.contains("is outside of the allowed include directories"),
                "{path}: {error}"
            );
        }
        for path in ["fifo.nft", "directory.nft"] {
            let error = read(path).unwrap_err();
            assert!(error.contains("is not a file"), "{path}: {error}");
        }
        assert!(read("none.nft").unwrap_err().contains("no such file"));
        let anywhere = Directories::anywhere([inside.clone()]);
        assert_eq!(&*anywhere.read(&absolute).unwrap()[0].content, "outside");
        let error = anywhere.read("/dev/zero").unwrap_err();
        assert!(error.contains("is not a file"), "{error}");
    }

    /// Another thread keeps replacing the file by a link out of the directory. The file that is read is the checked
    /// one.
    #[test]
    fn include_check_resists_file_swap_race() {
        let (location, inside, outside) = location();
        let path = inside.join("b.nft");
        std::fs::write(&path, "inside").unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        let stopped = || stop.load(std::sync::atomic::Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let replacement = location.path().join("replacement");
                while !stopped() {
                    std::fs::write(&replacement, "inside").unwrap();
                    std::fs::rename(&replacement, &path).unwrap();
                    std::os::unix::fs::symlink(&outside, &replacement).unwrap();
                    std::fs::rename(&replacement, &path).unwrap();
                }
            });
            let below = Directories::new([inside.clone()]);
            let (mut read, mut refused) = (0, 0);
            let mut wrong = None;
            while wrong.is_none() && (read < 5_000 || refused < 5_000) {
                match below.read("b.nft") {
                    Ok(sources) if *sources[0].content == *"inside" => read += 1,
                    Ok(sources) => wrong = Some(sources[0].content.to_string()),
                    Err(_) => refused += 1,
                }
            }
            // Stop the thread before a panic, because the scope waits for it.
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(wrong, None);
        });
    }

    #[test]
    fn wildcards_match_as_in_a_shell() {
        for (pattern, name, is) in [
            ("*.nft", "a.nft", true),
            ("*.nft", ".nft", false),
            ("*.nft", "a.nft2", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
            ("", "", true),
            ("", "a", false),
            ("**", "", true),
            ("[0-9]*", "10-base", true),
            ("[0-9]*", "base", false),
            ("[!0-9]*", "base", true),
            ("[^0-9]*", "1", false),
            ("[a-c]?", "b1", true),
            ("[c-a]", "b", false),
            ("[a-]", "-", true),
            ("[-a]", "-", true),
            ("[]a]", "]", true),
            ("[!]a]", "]", false),
            ("[[]x]", "[x]", true),
            ("[[:digit:]]x", "7x", true),
            ("[![:alpha:]]", "a", false),
            ("[[:nothing:]]", "a", false),
            ("[[.a.]]", "a", true),
            ("[a", "[a", true),
            ("[a", "a", false),
            ("[\\a]", "\\", true),
            ("a\\*", "a\\b", true),
            ("*", ".hidden", false),
            ("?hidden", ".hidden", false),
            ("[.]hidden", ".hidden", false),
            (".h*", ".hidden", true),
        ] {
            assert_eq!(matches(pattern, name), is, "{pattern} {name}");
        }
    }
}
