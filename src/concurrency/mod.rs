//! Limits how many callers are inside at once: the guard and the future of [`Concurrency`].
//!
//! `word.rs` has the layout of the word that decides, and `queue.rs` the line of waiters.

mod enter_future;
mod guard;
pub(crate) mod limiter;
mod metrics;
pub(crate) mod queue;
mod word;

pub use self::enter_future::EnterFuture;
pub use self::guard::ConcurrencyGuard;
pub(crate) use limiter::Concurrency;
