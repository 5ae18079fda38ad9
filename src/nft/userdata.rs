//! User data: data stored by user space with an object, in the format of `nft` and iptables-nft, mainly comments.
//!
//! The kernel stores at most 256 bytes (`NFT_USERDATA_MAXLEN`) and does not interpret them. The tools write a list of
//! entries, without padding between them:
//!
//! ```text
//!  0        1        2
//! +--------+--------+----------------+
//! | type   | length | value          |
//! +--------+--------+----------------+
//! ```
//!
//! The meaning of a type depends on the kind of object: [`TABLE_COMMENT`] and the other constants. The numbers are
//! those of libnftnl, not of the kernel, observed in requests of nft 1.0.6.

use bstr::BStr;
use chainwright_sys::nf_tables::NFT_USERDATA_MAXLEN;

use super::name::Bytes;

/// A table's comment.
pub const TABLE_COMMENT: u8 = 0;
/// The version of nft that created a table: three bytes, and further data. Observed in requests of nft 1.1.7.
pub(super) const TABLE_NFT_VERSION: u8 = 1;
/// The build time of that nft: seconds, as a 64-bit number in network byte order.
pub(super) const TABLE_NFT_BUILD: u8 = 2;
/// The creator of a table, besides its comment: this library writes it into tables of services whose name and comment
/// another program also uses. `nft` skips entries of unknown types.
#[doc(hidden)]
pub const TABLE_CREATOR: u8 = 200;
/// A chain's comment.
pub const CHAIN_COMMENT: u8 = 0;
/// A rule's comment.
pub const RULE_COMMENT: u8 = 0;
/// A stateful object's comment.
pub const OBJECT_COMMENT: u8 = 0;
/// An element's comment.
pub const ELEMENT_COMMENT: u8 = 0;
/// Flags of an element: a u32 in host byte order, [`ELEMENT_OPEN_INTERVAL`].
pub const ELEMENT_FLAGS: u8 = 1;
/// The interval that begins with this element has no end: it reaches to the last value.
pub const ELEMENT_OPEN_INTERVAL: u32 = 1;
/// Byte order of a set's keys: a u32 in host byte order, [`HOST_ENDIAN`] or [`BIG_ENDIAN`].
pub const SET_KEY_BYTE_ORDER: u8 = 0;
/// Byte order of a map's data.
pub const SET_DATA_BYTE_ORDER: u8 = 1;
/// Whether `nft` joins overlapping intervals (`auto-merge`): a u32 in host byte order.
pub const SET_MERGE_ELEMENTS: u8 = 2;
/// The expression by which a set's keys were declared (`typeof`), as entries within this one.
pub const SET_KEY_TYPEOF: u8 = 3;
/// The expression by which a map's data was declared.
pub const SET_DATA_TYPEOF: u8 = 4;
/// Whether a map's data are intervals: a u32 in host byte order.
pub const SET_DATA_INTERVAL: u8 = 6;
/// A set's comment.
pub const SET_COMMENT: u8 = 7;

/// Numbers in host byte order: see [`SET_KEY_BYTE_ORDER`].
pub const HOST_ENDIAN: u32 = 1;
/// Numbers in network byte order: see [`SET_KEY_BYTE_ORDER`].
pub const BIG_ENDIAN: u32 = 2;

/// Entry of a `typeof` declaration: the kind of expression, a u32 in host byte order.
#[doc(hidden)]
pub const TYPEOF_KIND: u8 = 0;
/// Entry of a `typeof` declaration: entries that depend on the kind.
#[doc(hidden)]
pub const TYPEOF_DATA: u8 = 1;
/// A concatenation, with one entry per field.
#[doc(hidden)]
pub const TYPEOF_CONCAT: u32 = 13;
/// A lookup in the routing table, as numbered by nft 1.1.
#[doc(hidden)]
pub const TYPEOF_FIB: u32 = 27;
/// An IPsec state, as numbered by nft 1.1.
#[doc(hidden)]
pub const TYPEOF_XFRM: u32 = 28;
/// `fib`, as numbered by nft 1.0.6.
#[doc(hidden)]
pub const TYPEOF_FIB_OLDER: u32 = 26;
/// `ipsec`, as numbered by nft 1.0.6.
#[doc(hidden)]
pub const TYPEOF_XFRM_OLDER: u32 = 27;

/// Converts a `typeof` declaration of any version to the numbers of nft 1.1; `None` for a lone `ipsec`, which some
/// versions write and others cannot read.
pub(super) fn typeof_of_any_version(note: &[u8]) -> Option<Vec<u8>> {
    let is_whole = |note: &[u8]| {
        let mut entries = UserData::new(note);
        entries.by_ref().for_each(drop);
        entries.rest().is_empty()
    };
    let field = |note: &[u8]| {
        let entries = UserData::new(note);
        let mut data = UserData::new(entries.clone().get(TYPEOF_DATA).unwrap_or_default());
        let kind = entries
            .clone()
            .number(TYPEOF_KIND)
            .filter(|_| is_whole(note))?;
        let kind = match kind {
            TYPEOF_FIB_OLDER => TYPEOF_FIB,
            // `fib` has no direction.
            TYPEOF_XFRM_OLDER if data.any(|(entry, _)| entry == 2) => TYPEOF_XFRM,
            kind => kind,
        };
        let mut field = Vec::new();
        for (entry, value) in entries {
            let number = kind.to_ne_bytes();
            let value = if entry == TYPEOF_KIND { &number } else { value };
            field.extend([entry, value.len() as u8]); // the length was one byte before
            field.extend(value);
        }
        Some((kind, field))
    };
    let entries = UserData::new(note);
    let of_concat = || entries.clone().get(TYPEOF_DATA).unwrap_or_default();
    let parts: Vec<_> = match entries.clone().number(TYPEOF_KIND) {
        Some(TYPEOF_CONCAT) if is_whole(note) && is_whole(of_concat()) => {
            UserData::new(of_concat()).map(|(_, part)| part).collect()
        }
        _ => vec![note],
    };
    let fields = parts.iter().map(|part| field(part));
    match fields.collect::<Option<Vec<_>>>() {
        Some(fields) if matches!(fields[..], [(TYPEOF_XFRM, _)]) => None,
        Some(fields) => Some(fields.into_iter().flat_map(|(_, field)| field).collect()),
        None => Some(note.to_vec()),
    }
}

/// Maximum length of a comment in bytes, without the trailing NUL (`NFTNL_UDATA_COMMENT_MAXLEN`).
pub const COMMENT_MAXLEN: usize = 128;

/// An iterator over the entries of user data: type and value.
///
/// Never fails: iteration ends at malformed data.
#[derive(Debug, Clone)]
pub struct UserData<'a>(&'a [u8]);

impl<'a> UserData<'a> {
    /// Iterates over the entries in these bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the remaining bytes: after the last entry, the malformed rest.
    pub(super) const fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Returns the value of the first entry of this type.
    #[must_use]
    pub fn get(mut self, kind: u8) -> Option<&'a [u8]> {
        self.find(|(this, _)| *this == kind).map(|(_, value)| value)
    }

    /// Returns the number in the first entry of this type, stored in host byte order.
    #[must_use]
    pub fn number(self, kind: u8) -> Option<u32> {
        self.get(kind)?.try_into().ok().map(u32::from_ne_bytes)
    }

    /// Returns the comment in the first entry of this type, without the trailing NUL.
    #[must_use]
    pub fn comment(self, kind: u8) -> Option<&'a BStr> {
        let value = self.get(kind)?;
        Some(BStr::new(value.strip_suffix(&[0]).unwrap_or(value)))
    }
}

impl<'a> Iterator for UserData<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (&[kind, length], rest) = self.0.split_first_chunk()?;
        let (value, rest) = rest.split_at_checked(usize::from(length))?;
        self.0 = rest;
        Some((kind, value))
    }
}

/// Error for a comment that cannot be stored with an object.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommentError {
    /// It is longer than `nft` accepts.
    #[error("a comment of {length} bytes is too long (at most 128)")]
    TooLong {
        /// The comment's length in bytes.
        length: usize,
    },
    /// It contains a NUL, which would end it.
    #[error("a comment cannot contain a NUL")]
    Nul,
    /// The kernel stores 256 bytes with an object, and other user data occupies too many of them.
    #[error("the user data with this comment would be {length} bytes long (at most 256)")]
    Full {
        /// Total length of the user data in bytes.
        length: usize,
    },
}

crate::debug_as_message!(CommentError);

/// Sets an entry of user data, replacing one of the same type.
#[doc(hidden)]
pub fn put(userdata: &mut Option<Bytes<'_>>, kind: u8, value: &[u8]) {
    let old = userdata.take().unwrap_or_default();
    let mut new = Vec::with_capacity(old.len() + 2 + value.len());
    let mut put = false;
    let push = |new: &mut Vec<u8>, kind, value: &[u8]| {
        new.extend_from_slice(&[kind, value.len() as u8]); // at most 255, for both callers
        new.extend_from_slice(value);
    };
    let mut entries = UserData::new(&old);
    for (this, old) in entries.by_ref() {
        if this != kind {
            push(&mut new, this, old);
        } else if !put {
            push(&mut new, kind, value);
            put = true;
        }
    }
    if !put {
        push(&mut new, kind, value);
    }
    new.extend_from_slice(entries.rest());
    *userdata = Some(new.into());
}

/// Sets the comment in user data, replacing an earlier one.
#[doc(hidden)]
pub fn put_comment(
    userdata: &mut Option<Bytes<'_>>,
    kind: u8,
    comment: &str,
) -> Result<(), CommentError> {
    let length = comment.len();
    if length > COMMENT_MAXLEN {
        return Err(CommentError::TooLong { length });
    }
    if comment.contains('\0') {
        return Err(CommentError::Nul);
    }
    let mut value = Vec::with_capacity(length + 1);
    value.extend_from_slice(comment.as_bytes());
    value.push(0);
    let mut new = userdata.clone();
    put(&mut new, kind, &value);
    let length = new.as_deref().map_or(0, <[u8]>::len);
    if length > NFT_USERDATA_MAXLEN {
        return Err(CommentError::Full { length });
    }
    *userdata = new;
    Ok(())
}

/// Implements an object's comment: `comment` of its view, `with_comment` of its builder.
macro_rules! commented {
    ($Object:ident as $View:ident, $KIND:ident) => {
        impl<'a> $View<'a> {
            /// Returns the comment stored by user space, as written and printed by `nft`.
            #[must_use]
            pub fn comment(&self) -> Option<&'a bstr::BStr> {
                $crate::nft::userdata::UserData::new(self.userdata()?)
                    .comment($crate::nft::userdata::$KIND)
            }
        }
        impl $Object<'_> {
            /// Sets the comment, as written and printed by `nft`; other user data stays.
            ///
            /// # Errors
            /// [`CommentError`](crate::nft::userdata::CommentError) if the comment is longer than 128 bytes, contains a
            /// NUL, or does not fit together with the other user data.
            pub fn with_comment(
                mut self,
                comment: &str,
            ) -> Result<Self, $crate::nft::userdata::CommentError> {
                $crate::nft::userdata::put_comment(
                    &mut self.userdata,
                    $crate::nft::userdata::$KIND,
                    comment,
                )?;
                Ok(self)
            }
        }
    };
}
pub(super) use commented;

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: u8, value: &[u8]) -> Vec<u8> {
        [&[kind, value.len() as u8][..], value].concat()
    }

    /// Encodes a declaration by an expression of this kind with these numbers.
    fn note(kind: u32, numbers: &[u32]) -> Vec<u8> {
        let numbers: Vec<_> = (0_u8..).zip(numbers).collect();
        let data = numbers
            .iter()
            .flat_map(|(index, number)| entry(*index, &number.to_ne_bytes()));
        let data: Vec<u8> = data.collect();
        several(kind, &data)
    }

    fn several(kind: u32, data: &[u8]) -> Vec<u8> {
        [
            entry(TYPEOF_KIND, &kind.to_ne_bytes()),
            entry(TYPEOF_DATA, data),
        ]
        .concat()
    }

    #[test]
    fn typeof_is_independent_of_the_nft_version() {
        let of = |note: &[u8]| typeof_of_any_version(note);
        let (fib, ipsec) = ([26, 27], [27, 28]);
        assert_eq!(of(&note(fib[0], &[3, 1])), of(&note(fib[1], &[3, 1])));
        assert_ne!(of(&note(fib[0], &[3, 1])), of(&note(fib[0], &[3, 2])));
        assert_ne!(of(&note(fib[0], &[3, 1])), of(&note(9, &[3, 1])));
        let both = |kind: u32, numbers: &[u32]| {
            let parts = [entry(0, &note(kind, numbers)), entry(1, &note(9, &[3]))];
            of(&several(TYPEOF_CONCAT, &parts.concat()))
        };
        assert_eq!(both(ipsec[0], &[5, 0, 1]), both(ipsec[1], &[5, 0, 1]));
        assert_ne!(both(ipsec[0], &[5, 0, 1]), both(ipsec[1], &[6, 0, 1]));
        assert_ne!(both(ipsec[0], &[5, 1]), both(ipsec[1], &[5, 1]));
        // A lone `ipsec` is not declared at all, or as the only field of a concatenation.
        for kind in ipsec {
            let alone = note(kind, &[5, 0, 1]);
            assert_eq!(of(&alone), None);
            assert_eq!(of(&several(TYPEOF_CONCAT, &entry(0, &alone))), None);
        }
        // Declarations of another form, or with additional data, are unchanged.
        let concat = several(
            TYPEOF_CONCAT,
            &[&entry(0, &note(fib[0], &[3, 1]))[..], b"\x01"].concat(),
        );
        let more = [&note(fib[0], &[3, 1])[..], b"\x01"].concat();
        for other in [&b""[..], b"\0\x04\x01", b"\x05\x01\x01", &concat, &more] {
            assert_eq!(of(other), Some(other.to_vec()));
        }
    }
    use crate::nft::{Family, Table};

    /// nft 1.0.6: `add set ip t plain { type ipv4_addr; comment "a set"; }`.
    #[cfg(target_endian = "little")]
    const SET: &[u8] = &[
        0, 4, 2, 0, 0, 0, // key byte order
        7, 6, b'a', b' ', b's', b'e', b't', 0, // comment
    ];

    #[test]
    #[cfg(target_endian = "little")]
    fn entries_of_a_set() {
        assert_eq!(
            UserData::new(SET).number(SET_KEY_BYTE_ORDER),
            Some(BIG_ENDIAN)
        );
        assert_eq!(
            UserData::new(SET).comment(SET_COMMENT),
            Some("a set".into())
        );
        assert_eq!(UserData::new(SET).get(SET_MERGE_ELEMENTS), None);
        // A value of another length is not a number.
        assert_eq!(UserData::new(SET).number(SET_COMMENT), None);
        assert_eq!(UserData::new(SET).count(), 2);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn truncated_entries_are_skipped() {
        for end in 0..SET.len() {
            let entries = UserData::new(&SET[..end]).count();
            assert_eq!(entries, usize::from(end >= 6), "{end}");
        }
        // Empty entries, a length beyond the end, a comment without a NUL.
        let mut entries = UserData::new(&[9, 0, 9, 0, 3, 200, 1]);
        assert_eq!(entries.by_ref().count(), 2);
        assert_eq!(UserData::new(&[0, 1, b'x']).comment(0), Some("x".into()));
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn setting_a_comment_replaces_only_the_old_comment() {
        let mut userdata = Some(Bytes::borrowed(SET));
        put_comment(&mut userdata, SET_COMMENT, "b").unwrap();
        assert_eq!(
            userdata.as_deref(),
            Some(&[0, 4, 2, 0, 0, 0, 7, 2, b'b', 0][..])
        );
        put(&mut userdata, SET_MERGE_ELEMENTS, &[1, 0, 0, 0]);
        assert_eq!(userdata.as_deref().unwrap()[10..], [2, 4, 1, 0, 0, 0]);
        // Bytes after the last entry stay there.
        let mut userdata = Some(Bytes::borrowed(&[9, 0, 3]));
        put(&mut userdata, SET_COMMENT, b"b\0");
        assert_eq!(userdata.as_deref(), Some(&[9, 0, 7, 2, b'b', 0, 3][..]));
    }

    /// nft 1.0.6 accepts 128 bytes and rejects 129: "comment too long, 128 characters maximum allowed".
    #[test]
    fn rejects_long_comments() {
        let table = Table::new(Family::IP, "t");
        let longest = "x".repeat(COMMENT_MAXLEN);
        let table = table.with_comment(&longest).unwrap();
        let userdata = table.userdata.clone();
        assert_eq!(
            UserData::new(userdata.as_deref().unwrap()).comment(TABLE_COMMENT),
            Some(longest.as_str().into())
        );
        assert_eq!(
            table.with_comment(&format!("{longest}x")),
            Err(CommentError::TooLong { length: 129 })
        );
        assert_eq!(
            Table::new(Family::IP, "t").with_comment("a\0b"),
            Err(CommentError::Nul)
        );
        let mut full = Some(Bytes::from([&[9, 130][..], &[0; 130]].concat()));
        let before = full.clone();
        assert_eq!(
            put_comment(&mut full, RULE_COMMENT, &longest),
            Err(CommentError::Full { length: 263 })
        );
        assert_eq!(full, before);
    }
}
