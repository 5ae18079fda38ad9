//! Attributes: type-length-value triples, aligned to four bytes.
//!
//! Layout of one attribute (`struct nlattr`, `linux/netlink.h`), host byte order:
//!
//! ```text
//!  0         2         4
//! +---------+---------+-----------------+---------+
//! | nla_len | nla_type| payload         | padding |
//! +---------+---------+-----------------+---------+
//! ```
//!
//! `nla_len` counts header and payload, not the padding. The two top bits of `nla_type` are the
//! flags `NLA_F_NESTED` and `NLA_F_NET_BYTEORDER`.

use chainwright_sys::netlink::NLA_TYPE_MASK;

use super::Malformed;

/// Length of `struct nlattr`.
pub(super) const HEADER: usize = 4;

/// Rounds `length` up to the alignment of messages and attributes.
#[inline]
pub(super) const fn align(length: usize) -> usize {
    (length + 3) & !3
}

/// One attribute, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// `nla_type` without its flag bits.
    pub kind: u16,
    /// The payload, without padding.
    pub payload: &'a [u8],
    /// Header, payload and padding, as in the message.
    pub raw: &'a [u8],
}

/// The attributes of a message or of a nested attribute, in order.
///
/// Safe on invalid bytes: an attribute whose length does not fit ends the iteration with one
/// [`Malformed`].
#[derive(Debug, Clone)]
pub struct Attributes<'a> {
    bytes: &'a [u8],
    /// Start of the next attribute; beyond the end if the last one lacks its padding.
    at: usize,
}

impl<'a> Attributes<'a> {
    /// Creates an iterator over the attributes in `bytes`.
    #[inline]
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the offset of the next attribute.
    #[inline]
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at.min(self.bytes.len())
    }

    /// Returns the payload of the first attribute of this type, unless a malformed attribute comes
    /// before it.
    #[must_use]
    pub fn find(self, kind: u16) -> Option<&'a [u8]> {
        self.map_while(Result::ok)
            .find(|attribute| attribute.kind == kind)
            .map(|attribute| attribute.payload)
    }

    /// Returns the remaining bytes.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Returns `true` if no attributes remain.
    #[inline(always)]
    pub(crate) const fn at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Returns type and payload of the next attribute; type 0, which no attribute has, at the end.
    // A listing spends most of its instructions here: one load for the header, one comparison for
    // both ends of the length (a length below the header's own wraps around), one addition.
    #[inline(always)]
    pub(crate) fn advance(&mut self) -> Result<(u16, &'a [u8]), Malformed> {
        if self.at_end() {
            return Ok((0, &[]));
        }
        let Some((head, behind)) = self.bytes[self.at..].split_first_chunk::<HEADER>() else {
            return Err(malformed(self.at));
        };
        let (length, kind) = split_header(*head);
        let Some(payload) = behind.get(..length.wrapping_sub(HEADER)) else {
            return Err(malformed(self.at));
        };
        self.at += align(length);
        Ok((kind & NLA_TYPE_MASK, payload))
    }
}

/// Reads attributes in the expected order, each with its padding and without flags, as
/// the kernel sends them. Anything else is a [`FastPathMiss`] or stays unread; the caller then reads it
/// through [`Attributes`], which accepts any order and reports malformed attributes.
// Reading a ruleset spends most of its instructions here: a number costs one comparison of the remaining
// length, one of the whole header, and one load.
#[derive(Debug, Clone, Copy)]
#[doc(hidden)]
pub struct AttributeCursor<'a>(&'a [u8]);

/// The attributes are not as expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub struct FastPathMiss;

impl<'a> AttributeCursor<'a> {
    /// Creates an iterator over the attributes in `bytes`.
    #[inline(always)]
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns `true` if all attributes have been read.
    #[inline(always)]
    pub(crate) const fn at_end(self) -> bool {
        self.0.is_empty()
    }

    /// Returns the unread bytes.
    #[inline(always)]
    pub(crate) const fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Reads the next attribute as a number of `N` bytes, if it is of this type; otherwise `None`. `WHOLE`
    /// is the attribute's length with header and padding.
    #[inline(always)]
    pub(crate) fn number<const N: usize, const WHOLE: usize>(
        &mut self,
        kind: u16,
    ) -> Option<[u8; N]> {
        const { assert!(WHOLE == align(HEADER + N)) };
        let (attribute, rest) = self.0.split_first_chunk::<WHOLE>()?;
        let (header, value) = attribute.split_first_chunk::<HEADER>()?;
        if *header != header_of(kind, HEADER + N) {
            return None;
        }
        self.0 = rest;
        value.first_chunk().copied()
    }

    /// Reads the next attribute's payload, if it is of this type; otherwise `None`.
    #[inline(always)]
    pub(crate) fn payload(&mut self, kind: u16) -> Result<Option<&'a [u8]>, FastPathMiss> {
        let Some((header, behind)) = self.0.split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let (length, found) = split_header(*header);
        if found != kind {
            return Ok(None);
        }
        // A length below the header's own wraps around.
        let length = length.wrapping_sub(HEADER);
        let Some(payload) = behind.get(..length) else {
            return Err(FastPathMiss);
        };
        let Some(rest) = behind.get(align(length)..) else {
            return Err(FastPathMiss);
        };
        self.0 = rest;
        Ok(Some(payload))
    }

    /// Skips the next attribute, if it is an empty one of this type.
    #[inline(always)]
    pub(crate) fn skip_empty(&mut self, kind: u16) -> bool {
        let found = self.0.split_first_chunk::<HEADER>();
        match found.filter(|(header, _)| **header == header_of(kind, HEADER)) {
            Some((_, rest)) => self.0 = rest,
            None => return false,
        }
        true
    }

    /// Reads the next attribute with and without its header, if it is of this type. The caller ensures that its
    /// length needs no padding, as with nested attributes.
    #[inline(always)]
    pub(crate) fn unpadded(&mut self, kind: u16) -> Option<(&'a [u8], &'a [u8])> {
        let (length, found) = split_header(*self.0.first_chunk::<HEADER>()?);
        if found != kind {
            return None;
        }
        let (raw, rest) = self.0.split_at_checked(length)?;
        let (_, payload) = raw.split_first_chunk::<HEADER>()?;
        self.0 = rest;
        Some((raw, payload))
    }

    /// Returns the payload of the rest, if that is a single attribute of this type without padding.
    #[inline(always)]
    pub(crate) fn last(self, kind: u16) -> Option<&'a [u8]> {
        let (header, payload) = self.0.split_first_chunk::<HEADER>()?;
        (split_header(*header) == (self.0.len(), kind)).then_some(payload)
    }
}

/// Encodes an attribute's header.
#[inline(always)]
const fn header_of(kind: u16, length: usize) -> [u8; HEADER] {
    let ([l0, l1], [k0, k1]) = ((length as u16).to_ne_bytes(), kind.to_ne_bytes());
    [l0, l1, k0, k1]
}

/// Splits a header into the length and the type with its flags.
#[inline(always)]
const fn split_header(header: [u8; HEADER]) -> (usize, u16) {
    let [l0, l1, k0, k1] = header;
    let (length, kind) = ([l0, l1], [k0, k1]);
    (
        u16::from_ne_bytes(length) as usize,
        u16::from_ne_bytes(kind),
    )
}

// By value, so that the cursor can stay in registers.
#[cold]
const fn malformed(offset: usize) -> Malformed {
    Malformed {
        what: "netlink attribute",
        offset,
        reason: "its length exceeds the remaining bytes",
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at_end() {
            return None;
        }
        let start = self.at;
        let item = self.advance().map(|(kind, payload)| Attribute {
            kind,
            payload,
            raw: &self.bytes[start..self.offset()],
        });
        if item.is_err() {
            self.at = self.bytes.len();
        }
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `NFTA_CHAIN_TABLE "nat"`, an unknown type 200 with one byte, `NFTA_CHAIN_USE` 2.
    #[cfg(target_endian = "little")]
    const SAMPLE: &[u8] = &[
        8, 0, 1, 0, b'n', b'a', b't', 0, // table
        5, 0, 200, 0x80, 7, 0, 0, 0, // unknown, with NLA_F_NESTED
        8, 0, 6, 0, 0, 0, 0, 2, // use
    ];
    /// The same on a big-endian machine.
    #[cfg(target_endian = "big")]
    const SAMPLE: &[u8] = &[
        0, 8, 0, 1, b'n', b'a', b't', 0, // table
        0, 5, 0x80, 200, 7, 0, 0, 0, // unknown, with NLA_F_NESTED
        0, 8, 0, 6, 0, 0, 0, 2, // use
    ];

    #[test]
    fn walks_all_attributes() {
        let all: Vec<_> = Attributes::new(SAMPLE).map(Result::unwrap).collect();
        assert_eq!(all.len(), 3);
        assert_eq!(all[0].payload, b"nat\0");
        assert_eq!((all[1].kind, all[1].payload), (200, &[7][..]));
        assert_eq!(all[1].raw.len(), 8);
        assert_eq!(Attributes::new(SAMPLE).find(6), Some(&[0, 0, 0, 2][..]));
        assert_eq!(Attributes::new(SAMPLE).find(5), None);
    }

    #[test]
    fn every_truncation_is_an_error_or_shorter() {
        for end in 0..SAMPLE.len() {
            let cut = &SAMPLE[..end];
            let mut items = Attributes::new(cut);
            let good = items.by_ref().take_while(Result::is_ok).count();
            assert!(good <= 3);
            assert!(items.next().is_none(), "an error ends the iteration");
        }
        // A length below the header's own would loop forever.
        assert!(Attributes::new(&[0, 0, 1, 0]).next().unwrap().is_err());
    }
}
