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

/// `length` rounded up to the alignment of messages and attributes.
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
    /// Header, payload and padding, as they stand in the message.
    pub raw: &'a [u8],
}

/// The attributes of a message or of a nested attribute, in order.
///
/// Total on hostile bytes: an attribute whose length does not fit ends the iteration with one
/// [`Malformed`].
#[derive(Debug, Clone)]
pub struct Attributes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Attributes<'a> {
    /// The attributes that `bytes` consists of.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The payload of the first attribute of this type, if there is one before any malformed
    /// attribute.
    #[must_use]
    pub fn find(self, kind: u16) -> Option<&'a [u8]> {
        self.map_while(Result::ok)
            .find(|attribute| attribute.kind == kind)
            .map(|attribute| attribute.payload)
    }
}

/// Reads the header of the attribute at the start of `rest`: its type and its `nla_len`, checked
/// against the bytes that are there.
#[inline]
fn header(rest: &[u8]) -> Option<(u16, usize)> {
    let [l0, l1, t0, t1] = *rest.first_chunk::<HEADER>()?;
    let length = usize::from(u16::from_ne_bytes([l0, l1]));
    let kind = u16::from_ne_bytes([t0, t1]) & NLA_TYPE_MASK;
    (length >= HEADER && length <= rest.len()).then_some((kind, length))
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let Some((kind, length)) = header(rest) else {
            let offset = self.at;
            self.at = self.bytes.len();
            return Some(Err(Malformed {
                what: "netlink attribute",
                offset,
                reason: "its length does not fit into the bytes that hold it",
            }));
        };
        // The padding of the last attribute may be missing.
        let padded = align(length).min(rest.len());
        self.at += padded;
        Some(Ok(Attribute {
            kind,
            payload: &rest[HEADER..length],
            raw: &rest[..padded],
        }))
    }
}

/// Where an attribute's payload lies; `offset` 0 says that the attribute is absent (a payload
/// never starts at 0, its header does).
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    offset: u32,
    length: u32,
}

/// The attributes of one message, found in one pass: a table from type to payload.
///
/// `N` is the highest type of interest plus one; attributes beyond it stay in the bytes and are
/// passed over. Of a type that stands twice the last one counts, as in the kernel.
#[derive(Debug, Clone)]
pub struct AttributeTable<'a, const N: usize> {
    bytes: &'a [u8],
    spans: [Span; N],
}

impl<'a, const N: usize> AttributeTable<'a, N> {
    /// Indexes `bytes`. `minimum` gives for each type the least length of its payload, as the
    /// kernel's attribute policies do.
    ///
    /// # Errors
    /// [`Malformed`] when an attribute does not fit into `bytes` or is shorter than its minimum.
    #[inline]
    pub fn parse(
        what: &'static str,
        bytes: &'a [u8],
        minimum: &[u16; N],
    ) -> Result<Self, Malformed> {
        let mut spans = [Span::default(); N];
        let mut at = 0;
        while at < bytes.len() {
            let Some((kind, length)) = header(&bytes[at..]) else {
                return Err(Malformed {
                    what,
                    offset: at,
                    reason: "an attribute's length does not fit into the message",
                });
            };
            if let Some(span) = spans.get_mut(usize::from(kind)) {
                if length - HEADER < usize::from(minimum[usize::from(kind)]) {
                    return Err(Malformed {
                        what,
                        offset: at,
                        reason: "an attribute is shorter than its type",
                    });
                }
                // A message is shorter than 4 GiB: its length is a u32.
                *span = Span {
                    offset: (at + HEADER) as u32,
                    length: (length - HEADER) as u32,
                };
            }
            at += align(length);
        }
        Ok(Self { bytes, spans })
    }

    /// The payload of the attribute of this type.
    #[inline]
    #[must_use]
    pub fn get(&self, kind: u16) -> Option<&'a [u8]> {
        let span = self.spans.get(usize::from(kind))?;
        if span.offset == 0 {
            return None;
        }
        let start = span.offset as usize;
        self.bytes.get(start..start + span.length as usize)
    }

    /// All the attributes, known and unknown, as they came.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
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
    fn table_finds_by_type() {
        let table = AttributeTable::<7>::parse("chain", SAMPLE, &[0; 7]).unwrap();
        assert_eq!(table.get(1), Some(&b"nat\0"[..]));
        assert_eq!(table.get(6), Some(&[0, 0, 0, 2][..]));
        assert_eq!(table.get(3), None);
        assert_eq!(table.get(200), None);
        let short = AttributeTable::<7>::parse("chain", SAMPLE, &[8; 7]).unwrap_err();
        assert_eq!(short.offset, 0);
    }

    #[test]
    fn every_truncation_is_an_error_or_shorter() {
        for end in 0..SAMPLE.len() {
            let cut = &SAMPLE[..end];
            let mut items = Attributes::new(cut);
            let good = items.by_ref().take_while(Result::is_ok).count();
            assert!(good <= 3);
            assert!(items.next().is_none(), "an error ends the iteration");
            let _ = AttributeTable::<7>::parse("chain", cut, &[0; 7]);
        }
        // A length below the header's own would never advance.
        assert!(Attributes::new(&[0, 0, 1, 0]).next().unwrap().is_err());
    }
}
