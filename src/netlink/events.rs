//! A socket that receives events.

use std::collections::VecDeque;
use std::time::Instant;

use super::error::Error;
use super::socket::{RECEIVE_BUFFER, Socket};

/// Decodes the datagrams of an [`EventSocket`] into items.
pub(crate) trait EventDecoder {
    type Item;

    /// Runs before each receive: sends a request whose reply is to be queued among the events.
    fn prepare(&mut self, _socket: &Socket) -> Result<(), Error> {
        Ok(())
    }

    /// Appends the items of a datagram.
    fn decode(&mut self, datagram: &[u8], items: &mut VecDeque<Self::Item>) -> Result<(), Error>;

    /// Processes an error of the socket: lost events are an item.
    fn record_loss(&mut self, error: Error, items: &mut VecDeque<Self::Item>) -> Result<(), Error>;

    /// Records that the queue is empty. Returns whether a request has to be sent now.
    fn drained(&mut self) -> bool {
        false
    }
}

/// A socket in multicast groups, with the decoded items that the caller has not taken yet.
#[derive(Debug)]
pub(crate) struct EventSocket<D: EventDecoder> {
    pub(crate) socket: Socket,
    pub(crate) decoder: D,
    /// Contains the datagram of the items until the next one is received.
    pub(crate) buffer: Vec<u8>,
    items: VecDeque<D::Item>,
}

impl<D: EventDecoder> EventSocket<D> {
    /// Joins these groups, with a receive buffer of this many bytes.
    pub(crate) fn open(
        mut socket: Socket,
        receive_buffer: usize,
        groups: &[u32],
        decoder: D,
    ) -> Result<Self, Error> {
        socket.set_receive_buffer(receive_buffer);
        groups.iter().try_for_each(|&group| socket.join(group))?;
        Ok(Self {
            socket,
            decoder,
            buffer: vec![0; RECEIVE_BUFFER],
            items: VecDeque::new(),
        })
    }

    /// Returns the next item without waiting; `None` if none is complete.
    pub(crate) fn try_receive(&mut self) -> Result<Option<D::Item>, Error> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Ok(Some(item));
            }
            if !self.receive_once()? {
                return Ok(None);
            }
        }
    }

    /// Receives a datagram; `false` if none is queued.
    pub(crate) fn receive_once(&mut self) -> Result<bool, Error> {
        self.decoder.prepare(&self.socket)?;
        match self.socket.try_receive(&mut self.buffer) {
            Ok(None) => return Ok(self.decoder.drained()),
            Ok(Some(length)) => {
                let datagram = &self.buffer[..length];
                self.decoder.decode(datagram, &mut self.items)?;
            }
            Err(error) => self.decoder.record_loss(error, &mut self.items)?,
        }
        Ok(true)
    }

    /// Waits for the next item until `deadline`; `None` if none arrived. Without a deadline it waits indefinitely.
    pub(crate) fn receive_before(
        &mut self,
        deadline: Option<Instant>,
    ) -> Result<Option<D::Item>, Error> {
        loop {
            if let Some(item) = self.try_receive()? {
                return Ok(Some(item));
            }
            if !self.socket.wait(deadline)? {
                return Ok(None);
            }
        }
    }

    /// Waits for the next item.
    pub(crate) fn receive(&mut self) -> Result<D::Item, Error> {
        loop {
            if let Some(item) = self.receive_before(None)? {
                return Ok(item);
            }
        }
    }
}

#[cfg(all(test, feature = "conntrack"))]
mod tests;
