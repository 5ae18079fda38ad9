//! Blocking receive functions shared by the monitor and the tracer.

/// Implements blocking receive functions for a type with `try_receive` and an `EventSocket` named `events`.
macro_rules! waiting {
    ($Type:ident, $Item:ident) => {
        impl $Type {
            /// Waits for the next item.
            ///
            /// # Errors
            /// As [`try_receive`](Self::try_receive).
            pub fn receive(&mut self) -> Result<$Item, $crate::netlink::Error> {
                self.events.receive()
            }

            /// Waits for the next item until `deadline`; returns `None` if none arrived.
            ///
            /// # Errors
            /// As [`try_receive`](Self::try_receive).
            pub fn receive_until(
                &mut self,
                deadline: std::time::Instant,
            ) -> Result<Option<$Item>, $crate::netlink::Error> {
                self.events.receive_before(Some(deadline))
            }

            /// Waits for the next item for at most `time`; returns `None` if none arrived.
            ///
            /// # Errors
            /// As [`try_receive`](Self::try_receive).
            pub fn receive_within(
                &mut self,
                time: std::time::Duration,
            ) -> Result<Option<$Item>, $crate::netlink::Error> {
                // On overflow the wait has no deadline.
                self.events
                    .receive_before(std::time::Instant::now().checked_add(time))
            }

            /// Returns the actual size of the receive buffer as the kernel counts it: twice the requested size.
            #[must_use]
            pub fn receive_buffer(&self) -> usize {
                self.events.socket.receive_buffer()
            }
        }

        /// Waits for each item; never ends.
        impl Iterator for $Type {
            type Item = Result<$Item, $crate::netlink::Error>;

            fn next(&mut self) -> Option<Self::Item> {
                Some(self.receive())
            }
        }

        /// Readable when something is queued.
        impl std::os::fd::AsFd for $Type {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.events.socket.as_fd()
            }
        }

        impl std::os::fd::AsRawFd for $Type {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                std::os::fd::AsRawFd::as_raw_fd(&std::os::fd::AsFd::as_fd(&self.events.socket))
            }
        }
    };
}
pub(super) use waiting;
