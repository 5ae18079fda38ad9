//! Floors: what the kernel alone takes for a request. The same bytes are sent, the replies are
//! received into the same buffer, and thrown away.

use chainwright_sys::netlink::{NLM_F_DUMP, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR};
use chainwright_sys::nf_tables::{
    NFT_MSG_GETCHAIN, NFT_MSG_GETGEN, NFTA_CHAIN_NAME, NFTA_CHAIN_TABLE,
};

use crate::netlink::{Error, MessageWriter, NfGenMsg, RECEIVE_BUFFER, Socket};
use crate::nft::{Family, message_type};

/// An open socket with nothing around it.
#[derive(Debug)]
pub struct Floor {
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
        // Only names of the caller's go in; one that is too long leaves an empty request, which
        // the kernel answers to with nothing: that is a mistake of the measurement's author.
        let finished = writer.finish();
        debug_assert!(finished.is_ok(), "a name is too long");
        Self(bytes)
    }

    /// Asks for all chains of a family.
    #[must_use]
    pub fn chains(family: Family) -> Self {
        Self::new(NFT_MSG_GETCHAIN, NLM_F_DUMP, family, |_| {})
    }

    /// Asks for one chain.
    #[must_use]
    pub fn chain(family: Family, table: &str, name: &str) -> Self {
        Self::new(NFT_MSG_GETCHAIN, 0, family, |writer| {
            writer
                .string(NFTA_CHAIN_TABLE, table.as_bytes())
                .string(NFTA_CHAIN_NAME, name.as_bytes());
        })
    }

    /// Asks for the generation.
    #[must_use]
    pub fn generation() -> Self {
        Self::new(NFT_MSG_GETGEN, 0, Family::UNSPEC, |_| {})
    }
}

impl Floor {
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

    /// One request, one reply.
    ///
    /// # Errors
    /// Those of sending and receiving.
    #[inline]
    pub fn ask(&mut self, request: &Request) -> Result<usize, Error> {
        self.socket.send(&request.0)?;
        self.socket.receive(&mut self.buffer)
    }

    /// One request, and all datagrams of its dump; returns their length in bytes.
    ///
    /// # Errors
    /// Those of sending and receiving.
    pub fn dump(&mut self, request: &Request) -> Result<usize, Error> {
        self.socket.send(&request.0)?;
        let mut total = 0;
        loop {
            let length = self.socket.receive(&mut self.buffer)?;
            total += length;
            // A dump ends in a datagram of its own that starts with NLMSG_DONE.
            let kind = u16::from_ne_bytes([self.buffer[4], self.buffer[5]]);
            if kind == NLMSG_DONE || kind == NLMSG_ERROR {
                return Ok(total);
            }
        }
    }

    /// Sends a whole batch as it is and receives its three acknowledgements (two from a kernel
    /// before 6.10).
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
