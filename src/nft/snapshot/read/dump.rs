//! Receives dumps into a snapshot.

use std::sync::LazyLock;

use nix::unistd::{SysconfVar, sysconf};

use super::Reader;
use crate::netlink::{
    DatagramReceiver, Dump, DumpItem, Error, Malformed, Message, MessageWriter, NfGenMsg,
    RECEIVE_BUFFER, Request,
};
use crate::nft::Family;
use crate::nft::connection::message_type;
use crate::nft::snapshot::Snapshot;
use crate::nft::snapshot::index::Inserted;

/// Receive size for a short chain: the kernel then uses one page for a reply. If pages are larger, its replies have at
/// least about 8 KiB (`NLMSG_GOODSIZE`), and a smaller receive would truncate them.
pub(super) static SHORT_BUFFER: LazyLock<usize> =
    LazyLock::new(|| match sysconf(SysconfVar::PAGE_SIZE) {
        Ok(Some(..8192)) => 4096,
        _ => 8192,
    });

/// The socket of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::nft::snapshot) enum ReplySocket {
    /// Long receives.
    Long,
    /// Receives of one page.
    Short,
}

impl Reader<'_> {
    /// Requests and receives a dump; keeps the messages that `admits` accepts.
    pub(in crate::nft::snapshot) fn dump(
        &mut self,
        reply_socket: ReplySocket,
        request: &'static str,
        message: u8,
        family: Family,
        content: impl FnOnce(&mut MessageWriter<'_>),
        admits: impl Fn(&Message<'_>) -> bool,
    ) -> Result<(), Error> {
        let request = Request::new(request, message_type(message));
        let session = &mut self.connection.session;
        let dump = session.build_dump(&request, family.0, content)?;
        self.receive(reply_socket, dump, admits)
    }

    /// Sends the prepared request, and receives the dump that answers it.
    pub(super) fn receive(
        &mut self,
        reply_socket: ReplySocket,
        dump: Dump,
        admits: impl Fn(&Message<'_>) -> bool,
    ) -> Result<(), Error> {
        let (socket, length) = match (reply_socket, &self.short) {
            (ReplySocket::Short, Some(short)) => (short, *SHORT_BUFFER),
            _ => (&self.connection.session.socket, RECEIVE_BUFFER),
        };
        socket.send(self.connection.session.request())?;
        let mut objects = Objects {
            snapshot: &mut self.snapshot,
            length,
            dump,
            admits,
            resource: self.resource,
            consistent: &mut self.consistent,
            moved: self.watched.then_some(&mut self.moved),
            failed: None,
        };
        let taken = socket.receive_all(&mut objects);
        let (dump, failed) = (objects.dump, objects.failed);
        if !dump.ended() {
            match reply_socket {
                ReplySocket::Short => self.short = None,
                ReplySocket::Long => self.connection.session.abandon_dump(&dump),
            }
        }
        taken?;
        match failed {
            Some(error) => Err(error),
            None if self.consistent || self.reads_to_end => Ok(()),
            None => Err(Error::Interrupted),
        }
    }
}

/// Receives a dump, and stores its objects in the snapshot.
pub(super) struct Objects<'r, A> {
    snapshot: &'r mut Snapshot,
    /// Size of a receive.
    length: usize,
    dump: Dump,
    /// Whether to keep a message.
    admits: A,
    /// The low 16 bits of the generation, as in messages.
    resource: u16,
    /// Whether everything so far belongs to that generation.
    consistent: &'r mut bool,
    /// Where to record a change that may be outside of the scope.
    moved: Option<&'r mut bool>,
    /// The first error. Later messages are still received, so that the socket becomes usable again.
    failed: Option<Error>,
}

impl<A: Fn(&Message<'_>) -> bool> DatagramReceiver for Objects<'_, A> {
    fn is_complete(&self) -> bool {
        self.dump.ended()
    }

    fn space(&mut self) -> Result<&mut [u8], Error> {
        let space = self.snapshot.arena.space(self.length);
        Ok(space.map_err(Malformed::from)?)
    }

    fn take(&mut self, received: usize) -> Result<(), Error> {
        let Self { snapshot, dump, .. } = self;
        let start = snapshot.arena.take(received);
        let mut kept = 0;
        let mut offset = 0;
        while offset < received {
            let at = start.plus(offset);
            let rest = &snapshot.arena.bytes(at)[..received - offset];
            let message = match Message::first(rest) {
                Ok(message) => message,
                Err(malformed) => {
                    self.failed.get_or_insert(malformed.into());
                    break;
                }
            };
            offset += message.padded_length();
            if !dump.is_expected(&message) {
                match dump.accept(message) {
                    Ok(DumpItem::Object(_)) => {}
                    Ok(DumpItem::Unrelated | DumpItem::End) => continue,
                    // The kernel marked the dump as interrupted by a change.
                    Err(Error::Interrupted) => {
                        see_change(&mut self.moved, self.consistent);
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            if self.failed.is_some() || !(self.admits)(&message) {
                continue;
            }
            let resource = NfGenMsg::split(message.payload).map(|(header, _)| header.resource);
            if resource != Ok(self.resource) {
                see_change(&mut self.moved, self.consistent);
            }
            match snapshot.index.insert(&snapshot.arena, at) {
                Ok(Inserted::Added) => kept = offset,
                Ok(Inserted::ParentMissing) => *self.consistent = false,
                Ok(Inserted::Unrelated) => {}
                Err(malformed) => self.failed = Some(malformed.into()),
            }
        }
        // Discards the messages after the last object, usually the end of the dump.
        snapshot.arena.return_space(start.plus(kept));
        Ok(())
    }
}

/// Records that something changed during the read.
pub(super) fn see_change(moved: &mut Option<&mut bool>, consistent: &mut bool) {
    match moved {
        Some(moved) => **moved = true,
        None => *consistent = false,
    }
}
