//! x_tables extensions: matches and targets, one a file, named as the kernel names them.
//!
//! An extension's data is a C struct in host byte order, particular to a revision, padded to 8
//! bytes; the same bytes stand in a legacy table and in an nf_tables `match` or `target`
//! expression. A file of this room turns the struct into a typed value and back, and writes it as
//! the options that `iptables-save` prints. An extension, or a revision of one, that has no file
//! here stays opaque: shown as such, kept and written back unchanged.

use std::borrow::Cow;
use std::fmt;

mod r#match {
    pub(super) mod comment;
    pub(super) mod conntrack;
    pub(super) mod mark;
}
mod target {
    pub(super) mod mark;
    pub(super) mod masquerade;
}

pub use r#match::comment::Comment;
pub use r#match::conntrack::{Conntrack, ConntrackState};
pub use r#match::mark::Mark as MarkMatch;
pub use target::mark::Mark as MarkTarget;
pub use target::masquerade::Masquerade;

/// The address families that extensions tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// The typed value of an extension.
trait Extension: Sized {
    /// The extension's name in the kernel.
    const NAME: &'static str;
    /// The revision that this form writes.
    const REVISION: u8;

    /// Reads the extension's data; `None` if it says something that the value cannot say.
    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self>;
    /// Writes the extension's data, without padding.
    fn write(&self, family: Family) -> Vec<u8>;
}

/// An extension that has no typed value here: kept as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opaque {
    /// The extension's name.
    pub name: String,
    /// Its revision.
    pub revision: u8,
    /// Its data, padding included.
    pub info: Vec<u8>,
}

impl fmt::Display for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "[{} revision {}, {} bytes]",
            self.name,
            self.revision,
            self.info.len()
        )
    }
}

/// An extension's name, revision and data, as they go into the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded<'a> {
    /// The extension's name.
    pub name: &'a str,
    /// Its revision.
    pub revision: u8,
    /// Its data, padded to 8 bytes.
    pub info: Cow<'a, [u8]>,
}

/// The registry: one line an extension.
macro_rules! registry {
    ($(#[$meta:meta])* $Name:ident { $( $Variant:ident($Type:ty), )* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $Name {
            $(
                #[doc = concat!("`", stringify!($Variant), "`")]
                $Variant($Type),
            )*
            /// An extension or revision without a typed value here.
            Opaque(Opaque),
        }

        impl $Name {
            /// Reads an extension's data; what has no typed value becomes [`Opaque`].
            #[must_use]
            pub fn read(family: Family, name: &str, revision: u8, info: &[u8]) -> Self {
                $(
                    if name == <$Type as Extension>::NAME {
                        if let Some(value) = <$Type as Extension>::read(family, revision, info) {
                            return Self::$Variant(value);
                        }
                    }
                )*
                Self::Opaque(Opaque {
                    name: name.to_owned(),
                    revision,
                    info: info.to_owned(),
                })
            }

            /// The extension as it goes into the kernel.
            #[must_use]
            pub fn encode(&self, family: Family) -> Encoded<'_> {
                match self {
                    $(Self::$Variant(value) => {
                        let mut info = value.write(family);
                        info.resize(info.len().next_multiple_of(8), 0);
                        Encoded {
                            name: <$Type as Extension>::NAME,
                            revision: <$Type as Extension>::REVISION,
                            info: Cow::Owned(info),
                        }
                    })*
                    Self::Opaque(opaque) => Encoded {
                        name: &opaque.name,
                        revision: opaque.revision,
                        info: Cow::Borrowed(&opaque.info),
                    },
                }
            }
        }

        impl fmt::Display for $Name {
            /// The options, as `iptables-save` prints them.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$Variant(value) => value.fmt(f),)*
                    Self::Opaque(opaque) => opaque.fmt(f),
                }
            }
        }
    };
}

registry! {
    /// A match: the rule goes on if it says so.
    Match {
        Comment(Comment),
        Conntrack(Conntrack),
        Mark(MarkMatch),
    }
}

registry! {
    /// A target that is an extension: it works on the packet.
    Target {
        Mark(MarkTarget),
        Masquerade(Masquerade),
    }
}

/// Reads a struct from the start of an extension's data.
fn read_struct<T: zerocopy::FromBytes + zerocopy::Immutable + zerocopy::KnownLayout>(
    info: &[u8],
) -> Option<T> {
    T::read_from_prefix(info).ok().map(|(value, _)| value)
}
