//! Baselines: the kernel's time alone for a request. They send the same bytes, receive the replies into
//! the same buffer, and discard them.

use chainwright_sys::netlink::{NLM_F_DUMP, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR};
use chainwright_sys::nf_tables::{
    NFT_MSG_GETCHAIN, NFT_MSG_GETGEN, NFT_MSG_GETRULE, NFT_MSG_GETSETELEM, NFTA_CHAIN_NAME,
    NFTA_CHAIN_TABLE, NFTA_RULE_CHAIN, NFTA_RULE_TABLE, NFTA_SET_ELEM_LIST_SET,
    NFTA_SET_ELEM_LIST_TABLE,
};

use chainwright::netlink::{Error, MessageWriter, NfGenMsg, RECEIVE_BUFFER, Socket};
use chainwright::nft::{Family, message_type};

/// A bare open socket.
#[derive(Debug)]
pub struct Baseline {
    socket: Socket,
    buffer: Vec<u8>,
}

/// A request, ready to be sent.
#[derive(Debug, Clone)]
pub struct Request(Vec<u8>);

impl Request {
    fn new(
        message: u8,
        flags: u16,
        family: Family,
        content: impl FnOnce(&mut MessageWriter<'_>),
    ) -> Self {
        let mut bytes = Vec::new();
        let kind = message_type(message);
        let header = NfGenMsg {
            family: family.0,
            resource: 0,
        };
        let mut writer =
            MessageWriter::nfnetlink(&mut bytes, kind, NLM_F_REQUEST | flags, 1, header);
        content(&mut writer);
        // It contains only the caller's names; if one is too long, the request is empty and the
        // kernel sends no reply: that is a mistake in the measurement.
        let finished = writer.finish();
        debug_assert!(finished.is_ok(), "a name is too long");
        Self(bytes)
    }

    /// Requests all chains of a family.
    #[must_use]
    pub fn chains(family: Family) -> Self {
        Self::new(NFT_MSG_GETCHAIN, NLM_F_DUMP, family, |_| {})
    }

    /// Requests one chain.
    #[must_use]
    pub fn chain(family: Family, table: &str, name: &str) -> Self {
        Self::new(NFT_MSG_GETCHAIN, 0, family, |writer| {
            writer
                .string(NFTA_CHAIN_TABLE, table.as_bytes())
                .string(NFTA_CHAIN_NAME, name.as_bytes());
        })
    }

    /// Requests all rules of a family. The kernel's cost grows with the square of their number.
    #[must_use]
    pub fn rules(family: Family) -> Self {
        Self::new(NFT_MSG_GETRULE, NLM_F_DUMP, family, |_| {})
    }

    /// Requests the rules of one chain.
    #[must_use]
    pub fn rules_of(family: Family, table: &str, chain: &str) -> Self {
        Self::new(NFT_MSG_GETRULE, NLM_F_DUMP, family, |writer| {
            writer
                .string(NFTA_RULE_TABLE, table.as_bytes())
                .string(NFTA_RULE_CHAIN, chain.as_bytes());
        })
    }

    /// Requests the elements of a set or map.
    #[must_use]
    pub fn elements(family: Family, table: &str, set: &str) -> Self {
        Self::new(NFT_MSG_GETSETELEM, NLM_F_DUMP, family, |writer| {
            writer
                .string(NFTA_SET_ELEM_LIST_TABLE, table.as_bytes())
                .string(NFTA_SET_ELEM_LIST_SET, set.as_bytes());
        })
    }

    /// Requests all tracked connections.
    ///
    /// # Errors
    /// None known: nothing in the request can be too long.
    pub fn entries() -> Result<Self, Error> {
        Ok(Self(chainwright::conntrack::list_request()?))
    }

    /// Deletes a tracked connection.
    ///
    /// # Errors
    /// Those of [`entries`](Self::entries).
    pub fn delete_entry(key: &chainwright::conntrack::EntryKey) -> Result<Self, Error> {
        Ok(Self(chainwright::conntrack::delete_request(key)?))
    }

    /// Requests the generation.
    #[must_use]
    pub fn generation() -> Self {
        Self::new(NFT_MSG_GETGEN, 0, Family::UNSPEC, |_| {})
    }
}

impl Baseline {
    /// Opens a socket in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::Open`], [`Error::Option`].
    pub fn open() -> Result<Self, Error> {
        Ok(Self {
            socket: Socket::netfilter()?,
            buffer: vec![0; RECEIVE_BUFFER],
        })
    }

    /// Sends a request and receives one reply.
    ///
    /// # Errors
    /// Those of sending and receiving.
    #[inline]
    pub fn request(&mut self, request: &Request) -> Result<usize, Error> {
        self.socket.send(&request.0)?;
        self.socket.receive(&mut self.buffer)
    }

    /// Sends a request and receives all datagrams of its dump; returns their length in bytes.
    ///
    /// # Errors
    /// Those of sending and receiving.
    pub fn dump(&mut self, request: &Request) -> Result<usize, Error> {
        self.socket.send(&request.0)?;
        let mut total = 0;
        loop {
            let length = self.socket.receive(&mut self.buffer)?;
            total += length;
            if ends_dump(&self.buffer[..length]) {
                return Ok(total);
            }
        }
    }

    /// Sends several requests one after the other and receives all datagrams of each dump; returns
    /// their length in bytes.
    ///
    /// # Errors
    /// Those of sending and receiving.
    pub fn dump_each<'r>(
        &mut self,
        requests: impl IntoIterator<Item = &'r Request>,
    ) -> Result<usize, Error> {
        requests
            .into_iter()
            .try_fold(0, |total, request| Ok(total + self.dump(request)?))
    }

    /// Sends a complete batch and receives its three acknowledgements (two from a kernel before
    /// 6.10).
    ///
    /// # Errors
    /// Those of sending and receiving.
    pub fn commit(&mut self, datagram: &[u8]) -> Result<(), Error> {
        self.socket.reserve_send(datagram.len())?;
        self.socket.send(datagram)?;
        for _ in 0..3 {
            if self.socket.try_receive(&mut self.buffer)?.is_none() {
                break;
            }
        }
        Ok(())
    }
}

/// Length in bytes of the message that ends a dump: a header and an error number.
const DONE: usize = 20;

/// Returns `true` if a dump ends in this datagram. Most end in a separate one; a dump of elements ends after a message
/// without elements. The messages are not parsed, because a baseline does no unnecessary work.
fn ends_dump(datagram: &[u8]) -> bool {
    let kind = |at: usize| match datagram.get(at + 4..at + 6) {
        Some(&[a, b]) => u16::from_ne_bytes([a, b]),
        _ => 0,
    };
    let last = datagram.len().saturating_sub(DONE);
    let is_last = datagram.get(last..last + 4) == Some(&(DONE as u32).to_ne_bytes());
    matches!(kind(0), NLMSG_DONE | NLMSG_ERROR) || (is_last && kind(last) == NLMSG_DONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dump_end_is_found_alone_or_after_a_message() {
        let mut done = vec![0; DONE];
        done[..4].copy_from_slice(&(DONE as u32).to_ne_bytes());
        done[4..6].copy_from_slice(&NLMSG_DONE.to_ne_bytes());
        let mut object = vec![0; 40];
        object[..4].copy_from_slice(&40_u32.to_ne_bytes());
        object[4..6].copy_from_slice(&0xa0c_u16.to_ne_bytes());
        assert!(ends_dump(&done));
        assert!(!ends_dump(&object));
        assert!(ends_dump(&[&object[..], &done].concat()));
        assert!(!ends_dump(&[&done[..4], &object].concat()));
        assert!(!ends_dump(&[]));
    }
}
