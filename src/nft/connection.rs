//! A connection to the nf_tables of one network namespace.

use std::sync::atomic::{AtomicU64, Ordering};

use chainwright_sys::netlink::NLM_F_DUMP;
use chainwright_sys::netlink::NLM_F_REQUEST;
use chainwright_sys::nf_tables::{
    NFT_MSG_GETCHAIN, NFT_MSG_GETGEN, NFT_MSG_GETRULE, NFT_MSG_GETTABLE, NFTA_CHAIN_NAME,
    NFTA_CHAIN_TABLE, NFTA_RULE_CHAIN, NFTA_RULE_HANDLE, NFTA_RULE_TABLE, NFTA_TABLE_NAME,
};
use chainwright_sys::nfnetlink::NFNL_SUBSYS_NFTABLES;

use super::generation::{Generation, GenerationRef};
use super::listing::{Filter, Filtered, Listing};
use super::name::Name;
use super::{Chain, ChainRef, Family, Rule, RuleRef, Table, TableRef};
use crate::netlink::{
    Acknowledgement, Error, Message, MessageWriter, Messages, NfGenMsg, RECEIVE_BUFFER, Socket,
};

/// The message type of an nf_tables message.
pub(crate) const fn message_type(message: u8) -> u16 {
    ((NFNL_SUBSYS_NFTABLES as u16) << 8) | message as u16
}

/// How often an object is looked for while the ruleset changes.
const LOOKS: usize = 8;

/// An open connection to the nf_tables of one network namespace.
///
/// It belongs to the namespace that the calling thread was in when it was opened, whatever the
/// thread enters later. Keep it open: opening costs more than most requests, and closing after a
/// deletion waits for the kernel's clean-up. One connection serves one thread at a time; open one
/// for each thread that needs it.
#[derive(Debug)]
pub struct Connection {
    /// What tells this connection from all others of this process: generations of different
    /// namespaces look alike.
    pub(super) id: u64,
    pub(super) socket: Socket,
    /// Where replies are received.
    pub(super) buffer: Vec<u8>,
    /// Where small requests are built.
    request: Vec<u8>,
    sequence: u32,
}

impl Connection {
    /// Opens a connection in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::Open`], [`Error::Option`].
    pub fn open() -> Result<Self, Error> {
        static OPENED: AtomicU64 = AtomicU64::new(0);
        Ok(Self {
            id: OPENED.fetch_add(1, Ordering::Relaxed),
            socket: Socket::netfilter()?,
            buffer: vec![0; RECEIVE_BUFFER],
            request: Vec::with_capacity(512),
            sequence: 0,
        })
    }

    /// Receives a datagram into the buffer.
    #[inline]
    pub(super) fn receive(&mut self) -> Result<usize, Error> {
        self.socket.receive(&mut self.buffer)
    }

    /// Sends a request.
    fn ask(
        &mut self,
        message: u8,
        flags: u16,
        family: Family,
        content: impl FnOnce(&mut MessageWriter<'_>),
    ) -> Result<u32, Error> {
        self.sequence = self.sequence.wrapping_add(1);
        self.request.clear();
        let mut writer = MessageWriter::nfnetlink(
            &mut self.request,
            message_type(message),
            NLM_F_REQUEST | flags,
            self.sequence,
            NfGenMsg {
                family: family.0,
                resource: 0,
            },
        );
        content(&mut writer);
        writer.finish()?;
        self.socket.send(&self.request)?;
        Ok(self.sequence)
    }

    /// Asks for one object: the message that the kernel answered with, `None` if there is none.
    ///
    /// The kernel answers without a lock, and `ENOENT` alone proves nothing: when a commit that
    /// replaces an object by another of its name falls between the kernel's look at the generation
    /// and its look into the list, it finds neither. (Seen on Linux 6.18, while a table was replaced
    /// without a pause, in one of a thousand looks.) So an object is absent if it was not found
    /// between two looks at the same generation; when that never holds still, if it was not found
    /// many times in a row.
    fn look_up(
        &mut self,
        request: &'static str,
        message: u8,
        family: Family,
        content: impl Fn(&mut MessageWriter<'_>),
    ) -> Result<Option<Message<'_>>, Error> {
        let mut before = None;
        for _ in 0..LOOKS {
            if let Some((start, end)) = self.look_once(request, message, family, &content)? {
                return Ok(Some(Message::split(&self.buffer[start..end])?.0));
            }
            let after = Some(self.generation()?);
            if after == before {
                break;
            }
            before = after;
        }
        Ok(None)
    }

    /// Asks for one object: where in the buffer the message starts and ends.
    fn look_once(
        &mut self,
        request: &'static str,
        message: u8,
        family: Family,
        content: impl Fn(&mut MessageWriter<'_>),
    ) -> Result<Option<(usize, usize)>, Error> {
        let sequence = self.ask(message, 0, family, content)?;
        loop {
            let length = self.socket.receive(&mut self.buffer)?;
            let datagram = &self.buffer[..length];
            for message in Messages::new(datagram) {
                let message = message?;
                if message.sequence != sequence {
                    continue; // left over from an earlier request
                }
                match Acknowledgement::parse(&message)? {
                    Some(refusal)
                        if refusal.errno.map(crate::error::Errno::number) == Some(libc::ENOENT) =>
                    {
                        return Ok(None);
                    }
                    Some(refusal) => refusal.into_result(request)?,
                    None => {
                        let start = message.raw.as_ptr() as usize - datagram.as_ptr() as usize;
                        return Ok(Some((start, start + message.raw.len())));
                    }
                }
            }
        }
    }

    /// The ruleset's generation, which every committed change moves: one small request and reply.
    ///
    /// # Errors
    /// Those of a request: [`Error::Send`], [`Error::Receive`], [`Error::Refused`], …
    pub fn generation(&mut self) -> Result<Generation, Error> {
        let request = "tell the generation";
        match self.look_once(request, NFT_MSG_GETGEN, Family::UNSPEC, |_| {})? {
            Some((start, end)) => {
                let (message, _) = Message::split(&self.buffer[start..end])?;
                Ok(Generation(GenerationRef::parse(&message)?.id()))
            }
            None => Err(Error::Refused {
                request,
                errno: crate::error::Errno::new(libc::ENOENT),
                text: None,
            }),
        }
    }

    /// Looks a table up by its name, without a listing; `None` if there is none.
    ///
    /// # Errors
    /// Those of a request.
    pub fn table<'n>(
        &mut self,
        family: Family,
        name: impl Into<Name<'n>>,
    ) -> Result<Option<TableRef<'_>>, Error> {
        let name = name.into();
        let reply = self.look_up("look a table up", NFT_MSG_GETTABLE, family, |writer| {
            writer.string(NFTA_TABLE_NAME, &name);
        })?;
        reply
            .map(|message| TableRef::parse(&message))
            .transpose()
            .map_err(Error::from)
    }

    /// Looks a chain up by its name, without a listing, in time that does not depend on how many
    /// there are; `None` if there is no such chain or table.
    ///
    /// One request and reply for a chain that is there. That one is absent is asked about again while
    /// the generation holds still (four requests), because a look-up can fall into the middle of a
    /// commit that replaces it.
    ///
    /// # Errors
    /// Those of a request.
    pub fn chain<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
        name: impl Into<Name<'n>>,
    ) -> Result<Option<ChainRef<'_>>, Error> {
        let (table, name) = (table.into(), name.into());
        let reply = self.look_up("look a chain up", NFT_MSG_GETCHAIN, family, |writer| {
            writer
                .string(NFTA_CHAIN_TABLE, &table)
                .string(NFTA_CHAIN_NAME, &name);
        })?;
        reply
            .map(|message| ChainRef::parse(&message))
            .transpose()
            .map_err(Error::from)
    }

    /// Whether there is a chain of this name: as [`chain`](Self::chain).
    ///
    /// # Errors
    /// Those of a request.
    pub fn chain_exists<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
        name: impl Into<Name<'n>>,
    ) -> Result<bool, Error> {
        Ok(self.chain(family, table, name)?.is_some())
    }

    /// Looks a rule up by its handle, without a listing; `None` if there is none.
    ///
    /// # Errors
    /// Those of a request. The kernel answers a look-up in one page: a rule of more than about
    /// 3,700 bytes comes only in a listing, and here as [`Error::Refused`] with `EPERM`.
    pub fn rule<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
        chain: impl Into<Name<'n>>,
        handle: u64,
    ) -> Result<Option<RuleRef<'_>>, Error> {
        let (table, chain) = (table.into(), chain.into());
        let reply = self.look_up("look a rule up", NFT_MSG_GETRULE, family, |writer| {
            writer
                .string(NFTA_RULE_TABLE, &table)
                .string(NFTA_RULE_CHAIN, &chain)
                .be64(NFTA_RULE_HANDLE, handle);
        })?;
        reply
            .map(|message| RuleRef::parse(&message))
            .transpose()
            .map_err(Error::from)
    }

    /// Lists tables.
    ///
    /// # Errors
    /// [`Error::Send`]; those of the listing come from [`Listing::next`].
    pub fn tables<'c>(
        &'c mut self,
        filter: Filter<'c>,
    ) -> Result<Listing<'c, Table<'static>>, Error> {
        self.list(filter)
    }

    /// Lists chains. The kernel filters by family only, the rest is left out here.
    ///
    /// # Errors
    /// [`Error::Send`]; those of the listing come from [`Listing::next`].
    pub fn chains<'c>(
        &'c mut self,
        filter: Filter<'c>,
    ) -> Result<Listing<'c, Chain<'static>>, Error> {
        self.list(filter)
    }

    /// Lists rules. The kernel filters by family, table and chain. The rules of a chain that does
    /// not exist are none.
    ///
    /// A listing of very many rules costs the kernel time that grows with the square of their
    /// number; asking chain by chain does not.
    ///
    /// # Errors
    /// [`Error::Send`]; those of the listing come from [`Listing::next`].
    pub fn rules<'c>(
        &'c mut self,
        filter: Filter<'c>,
    ) -> Result<Listing<'c, Rule<'static>>, Error> {
        self.list(filter)
    }

    /// Lists objects of one kind.
    ///
    /// # Errors
    /// [`Error::Send`]; those of the listing come from [`Listing::next`].
    pub fn list<'c, T: Filtered>(
        &'c mut self,
        filter: Filter<'c>,
    ) -> Result<Listing<'c, T>, Error> {
        let sequence = self.ask(T::MESSAGES.get, NLM_F_DUMP, filter.family, |writer| {
            filter.write::<T>(writer);
        })?;
        Ok(Listing::new(self, filter, sequence))
    }
}
