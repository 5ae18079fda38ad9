//! Patterns of names.

use std::str::FromStr;

use bstr::{BStr, ByteSlice};
use clap_complete::engine::ArgValueCompleter;

use crate::completions;

/// A pattern for the names of chains and sets: `*` matches any bytes, `?` one, `[a-z]` and `[!a-z]` one inside or
/// outside of the range, `{a,b}` either, and `\` escapes the next character. It must match the whole name, in which no
/// byte is a separator.
#[derive(Debug, Clone)]
pub(crate) struct Glob(Vec<u8>);

/// `fast_glob` treats `/` as the separator of a path. In names it has no meaning, so it is replaced by a byte that no
/// name can contain.
const SLASH: u8 = 0;

impl FromStr for Glob {
    type Err = fast_glob::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        fast_glob::validate(text)?;
        let mut pattern = Vec::with_capacity(text.len() + 1);
        // At the beginning it would negate the pattern.
        if text.starts_with('!') {
            pattern.push(b'\\');
        }
        let mut escaped = false;
        for byte in text.bytes() {
            // Two of them would match several parts of a path.
            let again = byte == b'*' && !escaped && pattern.last() == Some(&b'*');
            // An escaped `*` does not count as the first one.
            let after_escaped = again && pattern.ends_with(br"\*");
            if !again || after_escaped {
                pattern.push(if byte == b'/' { SLASH } else { byte });
            }
            escaped = byte == b'\\' && !escaped;
        }
        Ok(Self(pattern))
    }
}

impl Glob {
    /// Returns the only name that the pattern matches, if it has no special characters.
    pub(crate) fn name(&self) -> Option<&[u8]> {
        let is_plain = |byte: &u8| !br"*?[]{}\!,".contains(byte) && *byte != SLASH;
        self.0.iter().all(is_plain).then_some(&self.0)
    }

    pub(crate) fn is_match(&self, name: &BStr) -> bool {
        match name.contains(&b'/') {
            true => fast_glob::glob_match(&self.0, name.replace("/", [SLASH])),
            false => fast_glob::glob_match(&self.0, name),
        }
    }
}

/// Selects chains or sets by their names.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Names {
    /// Only those with one of these names or patterns, for instance 'KUBE-S[VE][CP]-*' or '{INPUT,OUTPUT}'
    #[arg(value_name = "NAME|GLOB", add = ArgValueCompleter::new(completions::names))]
    globs: Vec<Glob>,

    /// Another pattern; the former form of the option
    #[arg(long = "match", value_name = "GLOB", hide = true)]
    pattern: Option<Glob>,
}

impl Names {
    fn all(&self) -> impl Iterator<Item = &Glob> {
        self.globs.iter().chain(&self.pattern)
    }

    /// Returns `true` if all names are selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// Returns `true` if this name is selected.
    pub(crate) fn admits(&self, name: &BStr) -> bool {
        self.is_empty() || self.all().any(|glob| glob.is_match(name))
    }

    /// Returns the different names, if there are some, and no pattern among them.
    pub(crate) fn exact(&self) -> Option<Vec<&[u8]>> {
        let mut names: Vec<_> = self.all().map(Glob::name).collect::<Option<_>>()?;
        names.sort_unstable();
        names.dedup();
        Some(names).filter(|names| !names.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_patterns_are_recognized() {
        for name in ["KUBE-SVC-X", "cali-fw_1", "a.b"] {
            let glob: Glob = name.parse().unwrap();
            assert_eq!(glob.name(), Some(name.as_bytes()));
        }
        for pattern in ["a*", "a?", "[ab]", "{a,b}", r"a\*", "!a", "a/b"] {
            assert_eq!(pattern.parse::<Glob>().unwrap().name(), None, "{pattern}");
        }
    }

    #[test]
    fn whole_names_match() {
        for (pattern, matching, others) in [
            (
                "KUBE-S[VE][CP]-*",
                &["KUBE-SVC-X", "KUBE-SEP-"][..],
                &["KUBE-SXC-X", "xKUBE-SVC-X"][..],
            ),
            (
                "{INPUT,OUTPUT}",
                &["INPUT", "OUTPUT"],
                &["PUT", "INPUTOUTPUT", ""],
            ),
            ("{a*,{b,c}?}z", &["az", "a/bz", "bxz", "c/z"], &["bz", "z"]),
            ("a*z", &["az", "a/b/z"], &["a/zb"]),
            ("a**z", &["az", "a/b/z", "abz"], &["b"]),
            ("**/z", &["/z", "a/b/z"], &["z"]),
            ("a/*", &["a/", "a/b/c"], &["a", "ab"]),
            ("a?c", &["abc", "a/c"], &["ac", "abbc"]),
            ("[!a-c]*", &["d", "/x"], &["a", ""]),
            ("[]x]", &["]", "x"], &["[", "a"]),
            ("!a", &["!a"], &["b", "a", ""]),
            ("!!a", &["!!a"], &["a"]),
            (r"\*\**", &["**", "**x"], &["*", "x"]),
            (r"\\**", &[r"\", r"\x"], &["x"]),
            (r"\{a,b}", &["{a,b}"], &["a"]),
            ("", &[""], &["a"]),
            ("*", &["", "a", "/"], &[]),
        ] {
            let glob: Glob = pattern.parse().unwrap();
            for name in matching {
                assert!(glob.is_match(name.as_bytes().as_bstr()), "{pattern} {name}");
            }
            for name in others {
                assert!(
                    !glob.is_match(name.as_bytes().as_bstr()),
                    "{pattern} {name}"
                );
            }
        }
    }

    #[test]
    fn names_are_bytes() {
        let glob = |text: &str| text.parse::<Glob>().unwrap();
        assert!(glob("a*").is_match(b"a\xff\xfe".as_bstr()));
        assert!(glob("a?").is_match(b"a\xff".as_bstr()));
        assert!(glob("größe").is_match("größe".as_bytes().as_bstr()));
        assert!(!glob("a").is_match(b"a\xff".as_bstr()));
    }

    #[test]
    fn invalid_patterns_are_rejected() {
        for pattern in ["[", "{a", "a[b", r"a\"] {
            assert!(pattern.parse::<Glob>().is_err(), "{pattern}");
        }
    }
}
