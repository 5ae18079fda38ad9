//! The monitor as an async stream.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::assembler::Item;
use super::monitor::Monitor;
use crate::netlink::Error;
use crate::nft::Generation;

/// A [`Monitor`] as an endless stream, on tokio's reactor. [`next`](Self::next) is cancel safe.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let sandbox = chainwright_testing::Sandbox::new()?;
/// # let nft_monitor = sandbox.run(chainwright::nft::live::Monitor::open)??;
/// # let mut nft = sandbox.run(chainwright::nft::Connection::open)??;
/// use chainwright::nft::live::{Item, Monitor};
///
/// # let mut tx = chainwright::nft::Transaction::new();
/// # tx.add(&chainwright::nft::Table::new(chainwright::nft::Family::IP, "t"))?;
/// # let open = || {
/// let mut changes = Monitor::open()?.into_stream()?;
/// # Ok::<_, chainwright::netlink::Error>(()) };
/// # let mut changes = nft_monitor.into_stream()?;
/// # nft.commit(&tx)?;
/// if let Item::Change(change) = changes.next().await? {
///     println!("{change:?}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MonitorStream {
    inner: AsyncFd<Monitor>,
}

impl Monitor {
    /// Converts the monitor into a stream. Must be called within a tokio runtime with I/O enabled.
    ///
    /// # Errors
    /// [`Error::Receive`] when tokio cannot register the descriptor.
    ///
    /// # Panics
    /// Outside such a runtime, as [`AsyncFd`] does.
    pub fn into_stream(self) -> Result<MonitorStream, Error> {
        // Its replacement (tokio 1.54) is an unsafe function, because of types that close their descriptor before they
        // are dropped; a monitor keeps its own until then.
        #[allow(deprecated)]
        let registered = AsyncFd::with_interest(self, Interest::READABLE);
        match registered {
            Ok(inner) => Ok(MonitorStream { inner }),
            Err(source) => Err(Error::Receive { source }),
        }
    }
}

impl MonitorStream {
    /// Waits for the next item.
    ///
    /// # Errors
    /// As [`Monitor::receive`].
    pub async fn next(&mut self) -> Result<Item, Error> {
        std::future::poll_fn(|context| self.poll_item(context)).await
    }

    /// Returns the last reported generation, like [`Monitor::reported`].
    #[must_use]
    pub fn reported(&self) -> Generation {
        self.inner.get_ref().reported()
    }

    /// Returns the underlying monitor.
    #[must_use]
    pub fn into_inner(self) -> Monitor {
        self.inner.into_inner()
    }

    fn poll_item(&mut self, context: &mut Context<'_>) -> Poll<Result<Item, Error>> {
        loop {
            let ready: io::Result<_> = ready!(self.inner.poll_read_ready_mut(context));
            let mut ready = ready.map_err(|source| Error::Receive { source })?;
            match ready.get_inner_mut().try_receive() {
                Ok(Some(item)) => return Poll::Ready(Ok(item)),
                Ok(None) => ready.clear_ready(),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl Stream for MonitorStream {
    type Item = Result<Item, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_item(context).map(Some)
    }
}
