//! Messages: `struct nlmsghdr`, for nfnetlink followed by `struct nfgenmsg`, then attributes.
//!
//! ```text
//!  0            4           6            8          12          16
//! +------------+-----------+------------+-----------+-----------+---------
//! | nlmsg_len  | nlmsg_type| nlmsg_flags| nlmsg_seq | nlmsg_pid | payload
//! +------------+-----------+------------+-----------+-----------+---------
//! ```
//!
//! All header fields are in host byte order; `nlmsg_len` counts the header. Sources:
//! `linux/netlink.h`, `linux/netfilter/nfnetlink.h`.

use bstr::{BString, ByteSlice};
use chainwright_sys::netlink::NLA_F_NESTED;
use chainwright_sys::nfnetlink::NFNETLINK_V0;

use super::Malformed;
use super::attribute::{Attributes, HEADER as ATTRIBUTE_HEADER, align};

/// Length of `struct nlmsghdr`.
pub(super) const HEADER: usize = 16;

/// One message, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// `nlmsg_type`.
    pub kind: u16,
    /// `nlmsg_flags`, `NLM_F_*`.
    pub flags: u16,
    /// `nlmsg_seq`: the request's number, repeated in each reply to it.
    pub sequence: u32,
    /// `nlmsg_pid`: the port of the requesting socket, 0 in the kernel's own messages.
    pub port: u32,
    /// The bytes after the header.
    pub payload: &'a [u8],
    /// Header and payload, without padding.
    pub raw: &'a [u8],
    /// Type, flags and sequence number as in the header, for a single comparison.
    pub(super) header_key: u64,
}

/// `struct nfgenmsg`, the four bytes that follow the header in every nfnetlink message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NfGenMsg {
    /// `nfgen_family`: `NFPROTO_*`, or `AF_UNSPEC` for all.
    pub family: u8,
    /// `res_id`: a resource number, here in host byte order (big-endian on the wire).
    pub resource: u16,
}

impl NfGenMsg {
    /// Length of `struct nfgenmsg` in bytes.
    pub const LENGTH: usize = 4;

    /// Splits a message's payload into its `nfgenmsg` and the bytes of its attributes.
    ///
    /// # Errors
    /// [`Malformed`] when the payload is too short.
    #[inline(always)]
    pub fn split(payload: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let Some((&[family, _version, r0, r1], attributes)) = payload.split_first_chunk() else {
            return Err(Malformed {
                what: "nfnetlink message",
                offset: HEADER,
                reason: "missing nfgenmsg after its header",
            });
        };
        let resource = u16::from_be_bytes([r0, r1]);
        Ok((Self { family, resource }, attributes))
    }
}

impl<'a> Message<'a> {
    /// Splits `bytes` into the first message and the bytes after its padding.
    ///
    /// # Errors
    /// [`Malformed`] when the length in the header does not fit.
    #[inline(always)]
    pub fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Malformed> {
        let message = Self::first(bytes)?;
        // The padding of the last message may be missing.
        let rest = bytes.get(message.padded_length()..).unwrap_or_default();
        Ok((message, rest))
    }

    /// Returns the length of the message with the padding that aligns the next one.
    #[inline(always)]
    #[must_use]
    pub const fn padded_length(&self) -> usize {
        align(self.raw.len())
    }

    /// Returns the message at the start of `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] when the length in the header does not fit.
    #[inline(always)]
    pub fn first(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let malformed = Malformed {
            what: "netlink message",
            offset: 0,
            reason: "its length exceeds the datagram",
        };
        let Some((header, behind)) = bytes.split_first_chunk::<HEADER>() else {
            return Err(malformed);
        };
        let word = |at: usize| {
            u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let half = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let length = word(0) as usize;
        // One comparison for both ends: a length below the header's own wraps around.
        let Some(payload) = behind.get(..length.wrapping_sub(HEADER)) else {
            return Err(malformed);
        };
        let [.., s0, s1, s2, s3, s4, s5, s6, s7, _, _, _, _] = *header;
        Ok(Self {
            header_key: u64::from_ne_bytes([s0, s1, s2, s3, s4, s5, s6, s7]),
            kind: half(4),
            flags: half(6),
            sequence: word(8),
            port: word(12),
            payload,
            raw: &bytes[..length],
        })
    }

    /// Splits the payload of an nfnetlink message into its `nfgenmsg` and its attributes' bytes.
    ///
    /// # Errors
    /// [`Malformed`] when the payload is too short.
    #[inline]
    pub fn nfgenmsg(&self) -> Result<(NfGenMsg, &'a [u8]), Malformed> {
        NfGenMsg::split(self.payload)
    }

    /// Returns the attributes of an nfnetlink message.
    ///
    /// # Errors
    /// As [`nfgenmsg`](Self::nfgenmsg).
    pub fn attributes(&self) -> Result<Attributes<'a>, Malformed> {
        Ok(Attributes::new(self.nfgenmsg()?.1))
    }
}

/// The messages of one datagram, in order. Safe on invalid bytes: a message whose length does not
/// fit ends the iteration with one [`Malformed`].
#[derive(Debug, Clone)]
pub struct Messages<'a> {
    datagram: &'a [u8],
    /// Start of the next message; beyond the end if the last one lacks its padding.
    at: usize,
}

impl<'a> Messages<'a> {
    /// Creates an iterator over the messages in `datagram`.
    #[inline]
    #[must_use]
    pub const fn new(datagram: &'a [u8]) -> Self {
        Self { datagram, at: 0 }
    }

    /// Returns the offset of the next message.
    #[inline]
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at.min(self.datagram.len())
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>, Malformed>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.datagram.len() {
            return None;
        }
        let message = Message::first(&self.datagram[self.at..]).map_err(|malformed| Malformed {
            offset: self.at,
            ..malformed
        });
        self.at = match &message {
            Ok(message) => self.at + message.padded_length(),
            Err(_) => self.datagram.len(),
        };
        Some(message)
    }
}

/// The position of [`Messages`] in a receive buffer, for callers that cannot keep the buffer borrowed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unread {
    /// Start of the next message; at or beyond `end` when all are read.
    at: usize,
    end: usize,
}

impl Unread {
    /// Creates a view of all messages of a datagram of this length, at the start of the buffer.
    #[inline(always)]
    pub(crate) const fn of(length: usize) -> Self {
        Self { at: 0, end: length }
    }

    #[inline(always)]
    pub(crate) const fn is_empty(&self) -> bool {
        self.at >= self.end
    }

    /// Returns the start of the next message in the buffer.
    #[inline(always)]
    pub(crate) const fn offset(&self) -> usize {
        self.at
    }

    /// Returns the unread messages.
    #[inline(always)]
    pub(crate) fn messages<'b>(&self, buffer: &'b [u8]) -> Messages<'b> {
        Messages {
            datagram: &buffer[..self.end],
            at: self.at,
        }
    }

    /// Continues after the messages that were read.
    #[inline(always)]
    pub(crate) const fn keep(&mut self, messages: &Messages<'_>) {
        self.at = messages.at;
    }
}

/// A value does not fit its attribute: the message has been removed from the buffer.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{error_kind} (attribute {attribute})", operation.as_deref().map(|operation| format!("cannot {operation}: ")).unwrap_or_default())]
pub struct MessageError {
    /// Type of the attribute.
    pub attribute: u16,
    /// The reason.
    pub error_kind: MessageErrorKind,
    /// The purpose of the message, if it is known: `delete chain`, `look up a chain`.
    pub operation: Option<String>,
}

crate::debug_as_message!(MessageError);

/// The reason why a value does not fit its attribute.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageErrorKind {
    /// The payload is too long for the attribute's own length field.
    #[error("{length} bytes do not fit into an attribute (at most 65,531)")]
    TooLong {
        /// The payload's length in bytes.
        length: usize,
    },
    /// A name with a NUL in it. The kernel would take it for the part before the NUL.
    #[error("the name {name:?} contains a NUL byte")]
    Nul {
        /// The name.
        name: BString,
    },
    /// A name that is longer than the kernel allows: 255 bytes (`NFT_NAME_MAXLEN`), 15 for a network device
    /// (`IFNAMSIZ`), 4096 for a security context (`NFT_SECMARK_CTX_MAXLEN`).
    #[error("the name {:?}… is {} bytes long (at most {max_length})", name.get(..32).unwrap_or(name).as_bstr(), name.len())]
    LongName {
        /// The name.
        name: BString,
        /// The kernel's limit, in bytes.
        max_length: usize,
    },
    /// User data that is longer than the kernel stores (`NFT_USERDATA_MAXLEN`).
    #[error("the user data is {length} bytes long (at most {max_length})")]
    LongData {
        /// The length, in bytes.
        length: usize,
        /// The kernel's limit, in bytes.
        max_length: usize,
    },
}

crate::debug_as_message!(MessageErrorKind);

impl MessageErrorKind {
    /// Returns the reason why the kernel does not accept this name; `None` if it does.
    #[inline]
    pub(crate) fn of_name(name: &[u8], max_length: usize) -> Option<Self> {
        if name.find_byte(0).is_some() {
            return Some(Self::Nul { name: name.into() });
        }
        (name.len() > max_length).then(|| Self::LongName {
            name: name.into(),
            max_length,
        })
    }
}

/// The longest name of a table, a chain, a set or an object: `NFT_NAME_MAXLEN` without the NUL.
const MAX_NAME_LENGTH: usize = 255;
/// The longest name of a network device: `IFNAMSIZ` without the NUL.
const MAX_DEVICE_LENGTH: usize = libc::IFNAMSIZ - 1;
/// The longest context of a secmark: `NFT_SECMARK_CTX_MAXLEN`. Older kernels take 256 bytes.
pub(crate) const MAX_CONTEXT_LENGTH: usize = 4096;
/// The longest user data of an object, a rule or an element: `NFT_USERDATA_MAXLEN`.
const MAX_DATA_LENGTH: usize = 256;

/// Appends one message to a buffer: header, `nfgenmsg`, attributes, nested attributes.
///
/// It allocates nothing beyond the buffer's own growth. If a payload is too long for its
/// attribute, [`finish`](Self::finish) removes the whole message again.
#[derive(Debug)]
pub struct MessageWriter<'b> {
    buffer: &'b mut Vec<u8>,
    start: usize,
    error: Option<Box<MessageError>>,
    /// Flags to omit from attributes' types.
    without_nested_flag: u16,
}

impl<'b> MessageWriter<'b> {
    /// Starts a netlink message of this type.
    #[inline]
    pub fn new(buffer: &'b mut Vec<u8>, kind: u16, flags: u16, sequence: u32) -> Self {
        let start = buffer.len();
        let mut header = [0; HEADER];
        header[4..6].copy_from_slice(&kind.to_ne_bytes());
        header[6..8].copy_from_slice(&flags.to_ne_bytes());
        header[8..12].copy_from_slice(&sequence.to_ne_bytes());
        buffer.extend_from_slice(&header);
        Self {
            buffer,
            start,
            error: None,
            without_nested_flag: 0,
        }
    }

    /// Starts an nfnetlink message: [`new`](Self::new), then `nfgenmsg`.
    #[inline]
    pub fn nfnetlink(
        buffer: &'b mut Vec<u8>,
        kind: u16,
        flags: u16,
        sequence: u32,
        header: NfGenMsg,
    ) -> Self {
        let writer = Self::new(buffer, kind, flags, sequence);
        let [r0, r1] = header.resource.to_be_bytes();
        writer
            .buffer
            .extend_from_slice(&[header.family, NFNETLINK_V0, r0, r1]);
        writer
    }

    /// Starts a sequence of attributes without a message around them, for lists that
    /// are put into a message later.
    #[doc(hidden)]
    pub fn bare(buffer: &'b mut Vec<u8>) -> Self {
        let start = buffer.len();
        Self {
            buffer,
            start,
            error: None,
            without_nested_flag: 0,
        }
    }

    /// Writes nested attributes without `NLA_F_NESTED`, as nf_tables dumps them.
    #[doc(hidden)]
    pub fn without_nested_flag(mut self) -> Self {
        self.without_nested_flag = NLA_F_NESTED;
        self
    }

    /// Ends the attributes that [`bare`](Self::bare) started.
    #[doc(hidden)]
    pub fn finish_bare(self) -> Result<(), MessageError> {
        match self.error {
            None => Ok(()),
            Some(error) => {
                self.buffer.truncate(self.start);
                Err(*error)
            }
        }
    }

    /// Records an error of the content: [`finish`](Self::finish) then fails.
    pub(crate) fn fail(&mut self, error: &MessageError) {
        self.error.get_or_insert_with(|| Box::new(error.clone()));
    }

    #[inline]
    fn open(&mut self, kind: u16, length: usize) {
        let total = ATTRIBUTE_HEADER + length;
        if total > usize::from(u16::MAX) {
            self.error_kind(kind & !NLA_F_NESTED, MessageErrorKind::TooLong { length });
        }
        let kind = kind & !self.without_nested_flag;
        let [l0, l1] = (total as u16).to_ne_bytes();
        let [t0, t1] = kind.to_ne_bytes();
        self.buffer.extend_from_slice(&[l0, l1, t0, t1]);
    }

    #[inline]
    fn pad(&mut self) {
        // Relative to the message, wherever it starts.
        let unaligned = (self.buffer.len() - self.start) % 4;
        if unaligned != 0 {
            self.buffer.extend_from_slice(&[0; 3][..4 - unaligned]);
        }
    }

    /// Appends an attribute with these bytes as its payload.
    #[inline]
    pub fn bytes(&mut self, kind: u16, payload: &[u8]) -> &mut Self {
        self.open(kind, payload.len());
        self.buffer.extend_from_slice(payload);
        self.pad();
        self
    }

    /// Appends an attribute with an 8-bit number.
    #[inline]
    pub fn u8(&mut self, kind: u16, value: u8) -> &mut Self {
        self.bytes(kind, &[value])
    }

    /// Appends an attribute with a 16-bit number, big-endian.
    #[inline]
    pub fn be16(&mut self, kind: u16, value: u16) -> &mut Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    /// Appends an attribute with a 32-bit number, big-endian.
    #[inline]
    pub fn be32(&mut self, kind: u16, value: u32) -> &mut Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    /// Appends an attribute with a 64-bit number, big-endian.
    #[inline]
    pub fn be64(&mut self, kind: u16, value: u64) -> &mut Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    /// Records the first value that does not fit.
    #[cold]
    fn error_kind(&mut self, attribute: u16, error_kind: MessageErrorKind) {
        self.error.get_or_insert_with(|| {
            Box::new(MessageError {
                attribute,
                error_kind,
                operation: None,
            })
        });
    }

    /// Returns `true` if the kernel accepts this name; if not, [`finish`](Self::finish) fails.
    #[inline]
    pub(crate) fn admits_name(&mut self, attribute: u16, name: &[u8]) -> bool {
        self.admits(attribute, name, MAX_NAME_LENGTH)
    }

    #[inline]
    fn admits(&mut self, attribute: u16, name: &[u8], max_length: usize) -> bool {
        match MessageErrorKind::of_name(name, max_length) {
            None => true,
            Some(error_kind) => {
                self.error_kind(attribute, error_kind);
                false
            }
        }
    }

    /// Appends an attribute with a string, terminated by a NUL as in the kernel's names. If it contains
    /// a NUL or is longer than a name can be, [`finish`](Self::finish) fails.
    #[inline]
    pub fn string(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        self.string_up_to(kind, value, MAX_NAME_LENGTH)
    }

    /// Like [`string`](Self::string), for the name of a network device.
    pub(crate) fn device(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        self.string_up_to(kind, value, MAX_DEVICE_LENGTH)
    }

    #[inline]
    fn string_up_to(&mut self, kind: u16, value: &[u8], max_length: usize) -> &mut Self {
        if !self.admits(kind, value, max_length) {
            return self;
        }
        self.open(kind, value.len() + 1);
        self.buffer.extend_from_slice(value);
        self.buffer.push(0);
        self.pad();
        self
    }

    /// Like [`string`](Self::string), but without the terminating NUL. An empty string keeps it: the kernel rejects one
    /// of no bytes.
    pub(crate) fn without_nul(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        self.unterminated_up_to(kind, value, MAX_NAME_LENGTH)
    }

    /// Like [`without_nul`](Self::without_nul), for the context of a secmark.
    pub(crate) fn context(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        self.unterminated_up_to(kind, value, MAX_CONTEXT_LENGTH)
    }

    fn unterminated_up_to(&mut self, kind: u16, value: &[u8], max_length: usize) -> &mut Self {
        match value {
            [] => self.string(kind, value),
            value if self.admits(kind, value, max_length) => self.bytes(kind, value),
            _ => self,
        }
    }

    /// Appends an attribute with user data.
    pub(crate) fn userdata(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        let (length, max_length) = (value.len(), MAX_DATA_LENGTH);
        if length > max_length {
            self.error_kind(kind, MessageErrorKind::LongData { length, max_length });
            return self;
        }
        self.bytes(kind, value)
    }

    /// Appends a nested attribute (`NLA_F_NESTED`) with the attributes that `content` writes.
    #[inline]
    pub fn nested(&mut self, kind: u16, content: impl FnOnce(&mut Self)) -> &mut Self {
        let start = self.buffer.len();
        self.open(kind | NLA_F_NESTED, 0);
        content(self);
        let total = self.buffer.len() - start;
        match u16::try_from(total) {
            Ok(length) => {
                self.buffer[start..start + 2].copy_from_slice(&length.to_ne_bytes());
            }
            Err(_) => {
                let length = total - ATTRIBUTE_HEADER;
                self.error_kind(kind, MessageErrorKind::TooLong { length });
            }
        }
        self
    }

    /// Appends attributes that are already encoded and padded, as in [`Attribute::raw`].
    ///
    /// [`Attribute::raw`]: super::Attribute::raw
    #[inline]
    pub fn encoded(&mut self, attributes: &[u8]) -> &mut Self {
        self.buffer.extend_from_slice(attributes);
        self.pad();
        self
    }

    /// Ends the message by writing its length. The message then ends at a multiple of four bytes.
    ///
    /// # Errors
    /// [`MessageError`] when a payload did not fit; the message is then removed from the buffer.
    #[inline]
    pub fn finish(self) -> Result<(), MessageError> {
        if let Some(error) = self.error {
            self.buffer.truncate(self.start);
            return Err(*error);
        }
        // At most some hundred attributes of 64 KiB: far below 4 GiB.
        let length = (self.buffer.len() - self.start) as u32;
        self.buffer[self.start..self.start + 4].copy_from_slice(&length.to_ne_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip() {
        let mut buffer = vec![0xaa; 8];
        let mut writer = MessageWriter::nfnetlink(
            &mut buffer,
            0xa03,
            0x301,
            7,
            NfGenMsg {
                family: 2,
                resource: 0x1234,
            },
        );
        writer.string(1, b"nat").be32(2, 5).nested(4, |w| {
            w.be64(1, 9).bytes(2, &[1, 2, 3]);
        });
        writer.finish().unwrap();

        let (message, rest) = Message::split(&buffer[8..]).unwrap();
        assert!(rest.is_empty());
        assert_eq!((message.kind, message.flags), (0xa03, 0x301));
        assert_eq!((message.sequence, message.port), (7, 0));
        let (nfgenmsg, attributes) = message.nfgenmsg().unwrap();
        assert_eq!((nfgenmsg.family, nfgenmsg.resource), (2, 0x1234));
        let found: Vec<_> = Attributes::new(attributes).map(Result::unwrap).collect();
        assert_eq!(found[0].payload, b"nat\0");
        assert_eq!(found[1].payload, [0, 0, 0, 5]);
        let inner: Vec<_> = Attributes::new(found[2].payload)
            .map(Result::unwrap)
            .collect();
        assert_eq!(inner[0].payload, 9u64.to_be_bytes());
        assert_eq!(inner[1].payload, [1, 2, 3]);
        assert_eq!(inner[1].raw.len(), 8);
    }

    #[test]
    fn an_oversized_payload_discards_the_message() {
        for nested in [false, true] {
            let mut buffer = vec![1, 2, 3, 4];
            let mut writer = MessageWriter::new(&mut buffer, 1, 0, 0);
            let half = vec![0; 40_000];
            if nested {
                writer.nested(3, |w| {
                    w.bytes(1, &half).bytes(2, &half);
                });
            } else {
                writer.bytes(3, &[0; 65_532]);
            }
            let error = writer.finish().unwrap_err();
            assert_eq!(error.attribute, 3);
            assert_eq!(buffer, [1, 2, 3, 4]);
        }
        let mut buffer = Vec::new();
        let mut writer = MessageWriter::new(&mut buffer, 1, 0, 0);
        writer.bytes(3, &[0; 65_531]);
        writer.finish().unwrap();
    }

    #[test]
    fn no_name_is_shortened() {
        let long = [b'x'; 256];
        for name in [&b"foo\0bar"[..], b"\0", b"foo\0", &long] {
            let mut buffer = vec![1, 2, 3, 4];
            let mut writer = MessageWriter::new(&mut buffer, 1, 0, 0);
            writer.be32(1, 5).nested(4, |w| {
                w.string(3, name);
            });
            let error = writer.finish().unwrap_err();
            assert_eq!((error.attribute, &buffer[..]), (3, &[1, 2, 3, 4][..]));
            match name.len() {
                256 => assert!(matches!(
                    error.error_kind,
                    MessageErrorKind::LongName {
                        max_length: 255,
                        ..
                    }
                )),
                _ => assert_eq!(
                    error.error_kind,
                    MessageErrorKind::Nul { name: name.into() }
                ),
            }
        }
        let mut buffer = Vec::new();
        let mut writer = MessageWriter::new(&mut buffer, 1, 0, 0);
        writer.string(3, &long[1..]);
        writer.finish().unwrap();
    }

    #[test]
    fn attributes_are_aligned_in_the_message_wherever_it_starts() {
        let write = |before: usize| {
            let mut buffer = vec![0xaa; before];
            let mut writer = MessageWriter::new(&mut buffer, 1, 0, 7);
            writer.u8(1, 7).u8(2, 8).nested(3, |w| {
                w.bytes(1, &[1, 2, 3]).string(2, b"ab").be16(3, 4);
            });
            writer.encoded(&[5, 0, 9, 0, 1]).be64(4, 5);
            writer.finish().unwrap();
            assert_eq!(&buffer[..before], vec![0xaa; before]);
            buffer.split_off(before)
        };
        let expected = write(0);
        for before in 1..9 {
            assert_eq!(write(before), expected, "{before}");
        }
        // A message that does not fit is removed up to its start.
        let mut buffer = vec![1; 5];
        let mut writer = MessageWriter::new(&mut buffer, 1, 0, 7);
        writer.u8(1, 7).string(2, b"\0");
        writer.finish().unwrap_err();
        assert_eq!(buffer, [1; 5]);
    }

    #[test]
    fn each_name_has_its_own_limit() {
        type Write = fn(&mut MessageWriter<'_>, &[u8]);
        let limits: [(Write, usize); 5] = [
            (|w, value| _ = w.string(1, value), 255),
            (|w, value| _ = w.without_nul(1, value), 255),
            (|w, value| _ = w.device(1, value), 15),
            (|w, value| _ = w.context(1, value), 4096),
            (|w, value| _ = w.userdata(1, value), 256),
        ];
        for (write, max_length) in limits {
            for length in [
                1,
                max_length - 1,
                max_length,
                max_length + 1,
                max_length + 2,
            ] {
                let mut buffer = Vec::new();
                let mut writer = MessageWriter::new(&mut buffer, 1, 0, 7);
                write(&mut writer, &vec![b'x'; length]);
                let result = writer.finish();
                assert_eq!(
                    result.is_ok(),
                    length <= max_length,
                    "{max_length} {length}"
                );
                if let Err(error) = result {
                    let text = error.to_string();
                    assert!(text.contains(&format!("at most {max_length}")), "{text}");
                    assert!(buffer.is_empty());
                }
            }
        }
    }

    #[test]
    fn hostile_lengths_end_the_iteration() {
        let mut datagram = Vec::new();
        MessageWriter::new(&mut datagram, 3, 2, 1).finish().unwrap();
        MessageWriter::new(&mut datagram, 3, 2, 1).finish().unwrap();
        for length in [0u32, 15, 17, u32::MAX] {
            let mut bad = datagram.clone();
            bad[16..20].copy_from_slice(&length.to_ne_bytes());
            let items: Vec<_> = Messages::new(&bad).collect();
            assert_eq!(items.len(), 2);
            assert_eq!(items[1].unwrap_err().offset, 16);
        }
        for end in 1..datagram.len() {
            assert!(Messages::new(&datagram[..end]).count() <= 2);
        }
        assert!(Message::split(&[]).is_err());
    }
}
