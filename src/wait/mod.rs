//! Waiting for permits, in threads and in futures.
//!
//! A caller that waits reserves its permits at once, with one atomic exchange, and sleeps until
//! they are due. There is no queue: the limiter's state, a single word, encodes when the next
//! permits are due, so a waiter knows its tick in advance and sleeps once.

#[cfg(feature = "wait")]
pub(crate) mod async_limiter;
pub(crate) mod blocking;
mod blocking_bytes;
#[cfg(feature = "tokio")]
mod bytes;
#[cfg(feature = "wait")]
mod jitter;
#[cfg(feature = "wait")]
mod permit_wait;
pub(crate) mod reservation;
pub(crate) mod sleep_check;
#[cfg(feature = "futures")]
mod streams;
#[cfg(feature = "tokio")]
mod tokio;

#[cfg(feature = "tokio")]
pub use self::tokio::TokioTimer;
#[cfg(feature = "wait")]
pub use async_limiter::{AcquireFuture, AsyncLimiter};
pub(crate) use blocking::{acquire, waits};
pub use blocking_bytes::BlockingBytes;
#[cfg(feature = "tokio")]
pub use bytes::Throttled;
#[cfg(feature = "wait")]
pub use jitter::Jitter;
pub use reservation::Cancelled;
pub(crate) use reservation::Reservation;
#[cfg(feature = "futures")]
pub use streams::{LimitedSink, LimitedStream};

use crate::limiter::Limiter;
use crate::store::AtomicWord;

waits!([] [P: AtomicWord] borrowed Limiter<A, C, P>);
