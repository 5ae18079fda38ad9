//! Reads and writes messages like the kernel: attributes with its policies, and in the form of its listings.

use bstr::BStr;
use chainwright_sys::netlink::{
    NLM_F_ACK_TLVS, NLM_F_CAPPED, NLMSG_DONE, NLMSG_ERROR, NLMSGERR_ATTR_OFFS,
};

use chainwright::Errno;
use chainwright::netlink::Attributes;

/// The error with which the kernel refuses an operation or a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) errno: Errno,
    /// The attribute that the error refers to.
    pub(super) attribute: Option<u16>,
}

impl Refusal {
    pub(super) const fn at(self, attribute: u16) -> Self {
        Self {
            attribute: Some(attribute),
            ..self
        }
    }

    pub(super) fn is(self, number: i32) -> bool {
        self.errno.number() == number
    }
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        Self {
            errno,
            attribute: None,
        }
    }
}

/// Creates a refusal with this error number.
pub(super) const fn refuse(number: i32) -> Refusal {
    Refusal {
        errno: Errno::new(number),
        attribute: None,
    }
}

/// The kernel's length check of an attribute (netlink policy).
#[derive(Debug, Clone, Copy)]
pub(super) enum Policy {
    /// At least this many bytes.
    Number(usize),
    /// From one to this many bytes, optionally followed by a NUL.
    Text(usize),
    /// At most this many bytes.
    Binary(usize),
    /// Any length.
    Any,
}

pub(super) const U32: Policy = Policy::Number(4);
pub(super) const U64: Policy = Policy::Number(8);
/// A name of a table, chain, set or object.
pub(super) const NAME: Policy = Policy::Text(255);

/// Upper limit of the attribute numbers.
const KINDS: usize = 32;

/// The attributes of a message: the last one of each type.
#[derive(Debug, Clone, Copy)]
pub(super) struct ParsedAttributes<'a> {
    payloads: [Option<&'a [u8]>; KINDS],
}

impl<'a> ParsedAttributes<'a> {
    /// Reads attributes; ignores those without a policy.
    pub(super) fn read(bytes: &'a [u8], policies: &[(u16, Policy)]) -> Result<Self, Refusal> {
        let mut payloads = [None; KINDS];
        for attribute in Attributes::new(bytes) {
            // The kernel ignores everything after a malformed attribute.
            let Ok(attribute) = attribute else { break };
            let Some((_, policy)) = policies.iter().find(|(kind, _)| *kind == attribute.kind)
            else {
                continue;
            };
            let length = attribute.payload.len();
            let fits = match policy {
                Policy::Number(least) => length >= *least,
                Policy::Text(max) => {
                    let ends = attribute.payload.last() == Some(&0);
                    length > 0 && length - usize::from(ends) <= *max
                }
                Policy::Binary(max) => length <= *max,
                Policy::Any => true,
            };
            if !fits {
                return Err(refuse(libc::ERANGE).at(attribute.kind));
            }
            if let Some(payload) = payloads.get_mut(usize::from(attribute.kind)) {
                *payload = Some(attribute.payload);
            }
        }
        Ok(Self { payloads })
    }

    pub(super) fn get(&self, kind: u16) -> Option<&'a [u8]> {
        self.payloads.get(usize::from(kind)).copied().flatten()
    }

    pub(super) fn has(&self, kind: u16) -> bool {
        self.get(kind).is_some()
    }

    /// Returns a required attribute.
    pub(super) fn needs(&self, kind: u16) -> Result<&'a [u8], Refusal> {
        self.get(kind).ok_or(refuse(libc::EINVAL))
    }

    pub(super) fn u32(&self, kind: u16) -> Option<u32> {
        let payload = self.get(kind)?.first_chunk()?;
        Some(u32::from_be_bytes(*payload))
    }

    pub(super) fn u64(&self, kind: u16) -> Option<u64> {
        let payload = self.get(kind)?.first_chunk()?;
        Some(u64::from_be_bytes(*payload))
    }

    pub(super) fn text(&self, kind: u16) -> Option<&'a BStr> {
        self.get(kind).map(text)
    }
}

/// Returns a string up to its first NUL.
pub(super) fn text(payload: &[u8]) -> &BStr {
    let end = payload.iter().position(|&byte| byte == 0);
    BStr::new(&payload[..end.unwrap_or(payload.len())])
}

/// Attributes as the kernel lists them: without the flag for nested attributes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AttributeBuffer(pub(super) Vec<u8>);

impl AttributeBuffer {
    pub(super) fn bytes(&mut self, kind: u16, payload: &[u8]) -> &mut Self {
        let length = (payload.len() + 4) as u16;
        self.0.extend_from_slice(&length.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(payload);
        self.pad()
    }

    fn pad(&mut self) -> &mut Self {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    pub(super) fn u32(&mut self, kind: u16, number: u32) -> &mut Self {
        self.bytes(kind, &number.to_be_bytes())
    }

    pub(super) fn u64(&mut self, kind: u16, number: u64) -> &mut Self {
        self.bytes(kind, &number.to_be_bytes())
    }

    pub(super) fn text(&mut self, kind: u16, text: &[u8]) -> &mut Self {
        let start = self.0.len();
        self.bytes(kind, text);
        // The length includes the NUL.
        self.0.truncate(start + 4 + text.len());
        self.0.push(0);
        let length = (text.len() + 5) as u16;
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.pad()
    }

    pub(super) fn nest(&mut self, kind: u16, content: impl FnOnce(&mut Self)) -> &mut Self {
        let start = self.0.len();
        self.bytes(kind, &[]);
        content(self);
        let length = (self.0.len() - start) as u16;
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self
    }
}

/// A message header without its length.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    pub(super) kind: u16,
    pub(super) flags: u16,
    pub(super) sequence: u32,
    pub(super) port: u32,
}

/// Appends a message with this payload.
pub(super) fn put(datagram: &mut Vec<u8>, header: Header, payload: &[&[u8]]) {
    let start = datagram.len();
    datagram.extend_from_slice(&[0; 4]);
    datagram.extend_from_slice(&header.kind.to_ne_bytes());
    datagram.extend_from_slice(&header.flags.to_ne_bytes());
    datagram.extend_from_slice(&header.sequence.to_ne_bytes());
    datagram.extend_from_slice(&header.port.to_ne_bytes());
    for part in payload {
        datagram.extend_from_slice(part);
    }
    let length = (datagram.len() - start) as u32;
    datagram[start..start + 4].copy_from_slice(&length.to_ne_bytes());
    datagram.resize(datagram.len().next_multiple_of(4), 0);
}

/// Builds the acknowledgement of the request that starts with these bytes, or its error.
pub(super) fn acknowledge(request: &[u8], port: u32, refusal: Option<Refusal>) -> Vec<u8> {
    let number = refusal.map_or(0, |refusal| -refusal.errno.number());
    let offset = refusal
        .and_then(|refusal| refusal.attribute)
        .and_then(|kind| offset_of(request, kind));
    let mut out = AttributeBuffer::default();
    let mut flags = NLM_F_CAPPED;
    if let Some(offset) = offset {
        // In host byte order, unlike the integers of nf_tables.
        out.bytes(NLMSGERR_ATTR_OFFS, &offset.to_ne_bytes());
        flags |= NLM_F_ACK_TLVS;
    }
    let sequence = request.get(8..12).and_then(|bytes| bytes.first_chunk());
    let header = Header {
        kind: NLMSG_ERROR,
        flags,
        sequence: u32::from_ne_bytes(sequence.copied().unwrap_or_default()),
        port,
    };
    let mut datagram = Vec::new();
    let request = request.get(..16).unwrap_or_default();
    put(
        &mut datagram,
        header,
        &[&number.to_ne_bytes(), request, &out.0],
    );
    datagram
}

/// Returns the offset of an attribute in a request.
fn offset_of(request: &[u8], kind: u16) -> Option<u32> {
    const FIRST: usize = 20;
    let mut attributes = Attributes::new(request.get(FIRST..)?);
    loop {
        let offset = attributes.offset();
        let attribute = attributes.next()?.ok()?;
        if attribute.kind == kind {
            return Some((FIRST + offset) as u32);
        }
    }
}

/// Appends the end of a dump.
pub(super) fn done(datagram: &mut Vec<u8>, header: Header) {
    let header = Header {
        kind: NLMSG_DONE,
        ..header
    };
    put(datagram, header, &[&0i32.to_ne_bytes()]);
}
