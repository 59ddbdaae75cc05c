//! Limits how many callers are inside at once: the guard and the future of [`Concurrency`].
//!
//! `word.rs` draws the word that decides, and `queue.rs` has the line of waiters.

mod enter_future;
mod guard;
pub(crate) mod limiter;
mod metrics;
mod queue;
mod word;

pub use self::enter_future::EnterFuture;
pub use self::guard::ConcurrencyGuard;
pub(crate) use limiter::Concurrency;
