//! Waiting for permits: taken at once by one exchange, used when they are due. No queue, no list:
//! who waits stands in the word (see the buckets' arithmetic), knows its tick, and sleeps once.

pub(crate) mod blocking;
#[cfg(feature = "tokio")]
mod bytes;
#[cfg(feature = "wait")]
mod jitter;
#[cfg(feature = "wait")]
mod on;
mod pacer;
mod reservation;
mod room;
#[cfg(feature = "futures")]
mod streams;
#[cfg(feature = "tokio")]
mod tokio;
#[cfg(feature = "wait")]
mod turn;

#[cfg(feature = "tokio")]
pub use self::tokio::TokioTimer;
pub(crate) use blocking::{acquire, waits};
#[cfg(feature = "tokio")]
pub use bytes::Throttled;
#[cfg(feature = "wait")]
pub use jitter::Jitter;
#[cfg(feature = "wait")]
pub use on::{Acquire, On};
pub use pacer::Pacer;
pub use reservation::{Cancelled, Reservation, Settled};
pub use room::WaitingRoom;
#[cfg(feature = "futures")]
pub use streams::{LimitedSink, LimitedStream};
