//! Errors and acknowledgements: `NLMSG_ERROR`, and the closing `NLMSG_DONE` of a dump.
//!
//! Payload of `NLMSG_ERROR` (`struct nlmsgerr`, host byte order): the error number, negative or 0
//! for an acknowledgement; the header of the request; the request's own payload, unless
//! `NLM_F_CAPPED` is set; and, when `NLM_F_ACK_TLVS` is set, the attributes `NLMSGERR_ATTR_*`.
//! Source: `linux/netlink.h`.

use chainwright_sys::netlink::{
    NLM_F_ACK_TLVS, NLM_F_CAPPED, NLMSG_ERROR, NLMSGERR_ATTR_MSG, NLMSGERR_ATTR_OFFS,
};

use super::attribute::{Attributes, align};
use super::message::Message;
use super::{Error, Malformed};
use crate::errno::Errno;

/// Length of the error number that starts the payload.
const ERROR: usize = 4;
/// Length of the request's header after it.
const REQUEST: usize = 16;

/// The kernel's reply to one request: success, or an error and its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledgement<'a> {
    /// `nlmsg_seq` of the request that this answers.
    pub sequence: u32,
    /// The error, or `None` if the request succeeded.
    pub errno: Option<Errno>,
    /// The kernel's own text, without its NUL (extended acknowledgements only).
    pub text: Option<&'a [u8]>,
    /// Start of the attribute that caused the error, in bytes from the start of the request's
    /// header (extended acknowledgements only).
    pub attribute_offset: Option<u32>,
}

impl<'a> Acknowledgement<'a> {
    /// Parses a message as an acknowledgement; `None` unless its type is `NLMSG_ERROR`.
    ///
    /// # Errors
    /// [`Malformed`] when the payload is too short.
    pub fn parse(message: &Message<'a>) -> Result<Option<Self>, Malformed> {
        if message.kind != NLMSG_ERROR {
            return Ok(None);
        }
        let request = message
            .payload
            .get(ERROR..ERROR + REQUEST)
            .ok_or(Malformed {
                what: "netlink acknowledgement",
                offset: 0,
                reason: "missing request header after the error number",
            })?;
        let request_length =
            u32::from_ne_bytes([request[0], request[1], request[2], request[3]]) as usize;
        let errno = error_number(message.payload);
        // Only errors echo the request's payload.
        let echoed = if message.flags & NLM_F_CAPPED != 0 || errno.is_none() {
            REQUEST
        } else {
            align(request_length.max(REQUEST))
        };
        Ok(Some(Self::with_attributes(
            message,
            message.sequence,
            errno,
            ERROR.saturating_add(echoed),
        )))
    }

    /// Reads the `NLMSG_DONE` that ends a dump; it has an error number as well.
    pub(super) fn of_done(message: &Message<'a>) -> Self {
        let errno = error_number(message.payload);
        Self::with_attributes(message, message.sequence, errno, ERROR)
    }

    fn with_attributes(
        message: &Message<'a>,
        sequence: u32,
        errno: Option<Errno>,
        attributes_at: usize,
    ) -> Self {
        let mut acknowledgement = Self {
            sequence,
            errno,
            text: None,
            attribute_offset: None,
        };
        if message.flags & NLM_F_ACK_TLVS != 0 {
            let bytes = message.payload.get(attributes_at..).unwrap_or_default();
            for attribute in Attributes::new(bytes).map_while(Result::ok) {
                match attribute.kind {
                    NLMSGERR_ATTR_MSG => {
                        let text = attribute.payload;
                        acknowledgement.text = Some(text.strip_suffix(&[0]).unwrap_or(text));
                    }
                    NLMSGERR_ATTR_OFFS => {
                        acknowledgement.attribute_offset = attribute
                            .payload
                            .first_chunk()
                            .copied()
                            .map(u32::from_ne_bytes);
                    }
                    _ => {}
                }
            }
        }
        acknowledgement
    }

    /// Converts the acknowledgement to the result of the named request.
    ///
    /// # Errors
    /// [`Error::Refused`] if it has an error.
    pub fn into_result(self, request: &'static str) -> Result<(), Error> {
        match self.errno {
            None => Ok(()),
            Some(errno) => Err(Error::Refused {
                request,
                errno,
                text: self.text.map(|t| String::from_utf8_lossy(t).into_owned()),
            }),
        }
    }
}

/// Returns the error number at the start of a payload; `None` if it is 0 or missing.
fn error_number(payload: &[u8]) -> Option<Errno> {
    let number = i32::from_ne_bytes(*payload.first_chunk()?);
    (number != 0).then(|| Errno::new(number))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::netlink::MessageWriter;

    /// Writes an acknowledgement as the kernel sends it, for replays: capped, with the extended
    /// attributes if there are any.
    pub(crate) fn reply(
        buffer: &mut Vec<u8>,
        sequence: u32,
        errno: i32,
        text: Option<&str>,
        offset: Option<u32>,
    ) {
        let tlvs = text.is_some() || offset.is_some();
        let flags = NLM_F_CAPPED | if tlvs { NLM_F_ACK_TLVS } else { 0 };
        let mut request = Vec::new();
        MessageWriter::new(&mut request, 0xa06, 5, sequence)
            .finish()
            .unwrap();
        request[0] = 120; // its length; only the header comes back
        let mut w = MessageWriter::new(buffer, NLMSG_ERROR, flags, sequence);
        w.encoded(&(-errno).to_ne_bytes()).encoded(&request);
        if let Some(text) = text {
            w.string(NLMSGERR_ATTR_MSG, text.as_bytes());
        }
        if let Some(offset) = offset {
            w.bytes(NLMSGERR_ATTR_OFFS, &offset.to_ne_bytes());
        }
        w.finish().unwrap();
    }

    #[test]
    fn reads_errno_text_and_offset() {
        let mut bytes = Vec::new();
        reply(&mut bytes, 9, 2, Some("no such table"), Some(20));
        let (message, _) = Message::split(&bytes).unwrap();
        let ack = Acknowledgement::parse(&message).unwrap().unwrap();
        assert_eq!(ack.sequence, 9);
        assert_eq!(ack.errno, Some(Errno::new(2)));
        assert_eq!(ack.text, Some(&b"no such table"[..]));
        assert_eq!(ack.attribute_offset, Some(20));
        assert_eq!(
            ack.into_result("list chains").unwrap_err().to_string(),
            "the kernel refused to list chains: ENOENT (No such file or directory): no such table"
        );
    }

    #[test]
    fn reads_the_attributes_behind_an_echoed_request() {
        // Without NETLINK_CAP_ACK the whole request is between header and attributes.
        let mut request = Vec::new();
        let mut w = MessageWriter::new(&mut request, 0xa06, 5, 3);
        w.bytes(1, &[1; 10]);
        w.finish().unwrap();
        let mut bytes = Vec::new();
        let mut w = MessageWriter::new(&mut bytes, NLMSG_ERROR, NLM_F_ACK_TLVS, 3);
        w.encoded(&(-17i32).to_ne_bytes()).encoded(&request);
        w.bytes(NLMSGERR_ATTR_OFFS, &44u32.to_ne_bytes());
        w.finish().unwrap();
        let (message, _) = Message::split(&bytes).unwrap();
        let ack = Acknowledgement::parse(&message).unwrap().unwrap();
        assert_eq!(ack.errno, Some(Errno::new(17)));
        assert_eq!(ack.attribute_offset, Some(44));
    }

    #[test]
    fn success_and_other_messages() {
        let mut bytes = Vec::new();
        reply(&mut bytes, 4, 0, None, None);
        let (message, _) = Message::split(&bytes).unwrap();
        let ack = Acknowledgement::parse(&message).unwrap().unwrap();
        assert_eq!((ack.sequence, ack.errno), (4, None));
        ack.into_result("x").unwrap();

        let mut other = Vec::new();
        MessageWriter::new(&mut other, 3, 0, 0).finish().unwrap();
        let (message, _) = Message::split(&other).unwrap();
        assert_eq!(Acknowledgement::parse(&message), Ok(None));
    }

    #[test]
    fn truncated_payloads_are_errors_not_panics() {
        let mut bytes = Vec::new();
        reply(&mut bytes, 9, 2, Some("text"), Some(20));
        for length in 16..bytes.len() {
            let mut cut = bytes[..length].to_vec();
            cut[..4].copy_from_slice(&(length as u32).to_ne_bytes());
            let (message, _) = Message::split(&cut).unwrap();
            let parsed = Acknowledgement::parse(&message);
            assert_eq!(parsed.is_err(), length < 16 + ERROR + REQUEST);
        }
    }
}
