//! Time from a flush to its event.

use std::cell::RefCell;
use std::time::Instant;

use chainwright_sys::nf_tables::NFT_MSG_NEWGEN;
use chainwright_sys::nfnetlink::NFNLGRP_NFTABLES;

use super::{KubeProxy, Measured, alternate_prepared};
use crate::BoxError;
use chainwright::netlink::{MessageError, Messages, RECEIVE_BUFFER, Socket};
use chainwright::nft::live::{Item, Monitor, MonitorOptions};
use chainwright::nft::{Connection, Family, Transaction, message_type};

/// Two listeners for changes: a bare socket, which is the baseline, and the monitor, with buffers of the same size.
#[derive(Debug)]
pub struct Listeners {
    socket: Socket,
    buffer: Vec<u8>,
    monitor: Monitor,
}

impl Listeners {
    /// Opens both in the calling thread's network namespace.
    ///
    /// # Errors
    /// Those of [`Monitor::open`].
    pub fn open() -> Result<Self, BoxError> {
        let mut socket = Socket::netfilter()?;
        socket.set_receive_buffer(MonitorOptions::default().receive_buffer);
        socket.join(NFNLGRP_NFTABLES)?;
        Ok(Self {
            socket,
            buffer: vec![0; RECEIVE_BUFFER],
            monitor: Monitor::open()?,
        })
    }

    /// Receives to the end of a transaction with the bare socket. Returns the number of messages before the end.
    ///
    /// # Errors
    /// Those of receiving.
    pub fn bare(&mut self) -> Result<usize, BoxError> {
        let end = message_type(NFT_MSG_NEWGEN);
        let mut events = 0;
        loop {
            let Some(length) = self.socket.try_receive(&mut self.buffer)? else {
                self.socket.wait(None)?;
                continue;
            };
            for message in Messages::new(&self.buffer[..length]) {
                if message?.kind == end {
                    return Ok(events);
                }
                events += 1;
            }
        }
    }

    /// Receives a change with the monitor. Returns when it arrived, and its number of events.
    ///
    /// # Errors
    /// Those of [`Monitor::receive`]; [`EventsLost`](super::Error::EventsLost).
    pub fn receive_change(&mut self) -> Result<(Instant, usize), BoxError> {
        loop {
            let item = self.monitor.receive()?;
            let has_it = Instant::now();
            match item {
                Item::Change(change) => return Ok((has_it, change.events().len())),
                Item::Lost(lost) => return Err(super::Error::from(lost).into()),
                // Not part of a transaction.
                _ => {}
            }
        }
    }
}

/// Returns the transactions that load a ruleset and flush it.
///
/// # Errors
/// Those of [`KubeProxy::write`].
pub fn load_and_flush(ruleset: KubeProxy) -> Result<[Transaction; 2], MessageError> {
    let mut load = Transaction::new();
    ruleset.write(&mut load)?;
    let mut flush = Transaction::new();
    flush.flush_ruleset(Family::UNSPEC)?;
    Ok([load, flush])
}

/// Measures the time from the flush of a ruleset to its event, with both listeners.
///
/// # Errors
/// Those of committing and receiving.
pub fn flush(ruleset: KubeProxy, rounds: usize) -> Result<Vec<Measured>, BoxError> {
    let [load, flush] = load_and_flush(ruleset)?;
    let nft = RefCell::new(Connection::open()?);
    let listeners = RefCell::new(Listeners::open()?);
    // The listener that has not received the last flush yet.
    let pending = RefCell::new(None::<fn(&mut Listeners) -> Result<usize, BoxError>>);
    let bare: fn(&mut Listeners) -> Result<usize, BoxError> = Listeners::bare;
    let receive_change: fn(&mut Listeners) -> Result<usize, BoxError> =
        |listeners| Ok(listeners.receive_change()?.1);
    let measure = |one: fn(&mut Listeners) -> Result<usize, BoxError>, other| {
        nft.borrow_mut().commit(&flush)?;
        one(&mut listeners.borrow_mut())?;
        *pending.borrow_mut() = Some(other);
        Ok(())
    };
    alternate_prepared::<BoxError>(
        rounds,
        &mut || {
            let mut listeners = listeners.borrow_mut();
            if let Some(receive) = pending.take() {
                receive(&mut listeners)?;
            }
            nft.borrow_mut().commit(&load)?;
            bare(&mut listeners)?;
            receive_change(&mut listeners)?;
            Ok(())
        },
        &mut [
            ("baseline: a bare socket", &mut || {
                measure(bare, receive_change)
            }),
            ("Monitor::receive()", &mut || measure(receive_change, bare)),
        ],
    )
}
