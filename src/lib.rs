//! A lock-free rate limiter: each limit is one 64-bit word, each decision one compare-and-swap,
//! each answer exact.
//!
//! ```
//! use tollgate::{Denied, Limiter, Quota};
//!
//! # fn main() -> Result<(), tollgate::error::QuotaError> {
//! let limiter = Limiter::token_bucket(Quota::per_second(100).burst(20))?;
//! match limiter.try_acquire() {
//!     Ok(granted) => println!("go, {} left", granted.remaining()),
//!     Err(Denied::Later { retry_after, .. }) => println!("come back in {retry_after:?}"),
//!     Err(denied) => println!("{denied}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Start with [`Limiter`]. [`Quota`] describes the limit, and [`ManualClock`] controls time in
//! tests. The algorithm decides which requests are granted:
//!
//! | algorithm | for |
//! |---|---|
//! | [`TokenBucket`], [`Gcra`] | a rate with a burst: the first choice; both decide alike |
//! | [`LeakyBucket`] | a meter decides as the token bucket does; a queue tells each caller how long to wait |
//! | [`SlidingWindow`] | at most `n` in the last minute, without a double burst where two minutes meet |
//! | [`FixedWindow`] | at most `n` in a calendar day |
//! | [`Intervals`] | a bucket that is refilled once a period, all at once |
//! | [`AnyAlgorithm`] | any of them, chosen at run time: `"sliding-window 1000/min"` |
//!
//! Other limiters:
//!
//! | limiter | for |
//! |---|---|
//! | [`Sharded`] | a limit that many cores use at once |
//! | [`Leases`] | a few threads that borrow permits in batches; a grant from a batch is one subtraction |
//! | [`SlottedWindow`] | at most `n` in the last minute, counted in slots, such as one per second |
//! | [`SlidingLog`] | at most `n` in the last minute, exactly |
//! | `Adjustable` (feature `wide`) | a quota that changes while the limiter is in use |
//! | [`Counted`] | statistics of any limiter ([`stats`]) |
//!
//! A limit for each key:
//!
//! | limiter | for |
//! |---|---|
//! | `Keyed` (feature `keyed`; `huge-pages` for large tables) | a million keys in one table of fixed size |
//! | [`store::AtomicWord`] in a map of your own (`examples/own_map.rs`) | keys that can be listed |
//!
//! Waiting ([`wait`]):
//!
//! | | for |
//! |---|---|
//! | [`Limiter::reserve`], [`Reservation`] | permits that become due at a later time |
//! | [`Limiter::blocking_acquire`] | a thread that blocks until its permit is due |
//! | `Limiter::with_timer`, `AsyncLimiter` (feature `wait`) | futures; with `futures` and `tokio` also streams, sinks and bytes |
//! | [`compose::Line`] | callers that wait in order; the permits that they wait for can be bounded |
//!
//! [`Concurrency`] limits how many callers are inside at once, not how often they enter.
//! `keyed::KeyedConcurrency` (feature `keyed`) does the same for each key.
//!
//! [`compose::All`] takes from several limits at once, or from none.
//!
//! The crate `tollgate-smooth` has Guava's limiters, whose callers wait for their turn at a rate
//! that can change.
//!
//! A limiter's *verbs* are its methods that take, return and count permits, such as `try_acquire`.
//! [`TryAcquire`] is the common trait of all limiters with the verbs of [`Limiter`], and of the
//! keys of a table. [`Concurrency`] and the waiting types do not implement it. [`traits`] has the
//! verbs that only some limiters support. To write an algorithm, see [`algorithm`]. To keep a
//! limiter's state in your own memory, or keys in your own map, see [`store`]. The crate
//! `tollgate-audit` checks in tests that a limiter keeps its bound.
//!
//! The [guides](guide) begin with [first steps](guide::first_steps) and [which
//! limiter](guide::which_limiter) to choose. Without the feature `std`, tollgate is
//! [`no_std`](guide::no_std).

// Without `std`, the items linked to above do not exist. These definitions link to docs.rs instead.
#![cfg_attr(not(feature = "std"), doc = "", doc = include_str!("std_links.md"))]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod address;
#[cfg(feature = "wide")]
mod adjustable;
pub mod algorithm;
pub mod clock;
pub mod compose;
#[cfg(feature = "std")]
pub mod concurrency;
mod constructors;
#[cfg(feature = "std")]
mod counted;
#[cfg(all(
    doc,
    any(
        not(doctest),
        all(
            feature = "futures",
            feature = "keyed",
            feature = "tokio",
            feature = "wide"
        )
    )
))]
pub mod guide;
#[cfg(feature = "keyed")]
pub mod keyed;
#[cfg(feature = "std")]
pub mod leases;
mod limiter;
mod limiter_error;
#[cfg(feature = "std")]
mod metrics;
#[cfg(feature = "std")]
mod multiword;
pub mod outcome;
mod quota;
#[cfg(feature = "wide")]
mod seq_lock;
#[cfg(feature = "std")]
pub mod sharded;
mod snapshot;
pub mod store;
#[cfg(feature = "std")]
mod striped;
#[cfg(not(any(feature = "loom", feature = "shuttle")))]
mod sync;
/// What models need of this crate's atomics.
#[cfg(any(feature = "loom", feature = "shuttle"))]
#[doc(hidden)]
pub mod sync;
#[cfg(feature = "std")]
mod thread_index;
pub mod traits;
#[cfg(feature = "std")]
pub mod wait;

#[cfg(feature = "wide")]
pub use adjustable::keep::Keep;
#[cfg(feature = "wide")]
pub use adjustable::limiter::Adjustable;
pub use algorithm::any::AnyAlgorithm;
pub use algorithm::fixed_window::FixedWindow;
pub use algorithm::gcra::Gcra;
pub use algorithm::intervals::Intervals;
pub use algorithm::leaky_bucket::LeakyBucket;
pub use algorithm::sliding_window::SlidingWindow;
pub use algorithm::token_bucket::TokenBucket;
#[cfg(feature = "std")]
pub use clock::manual::ManualClock;
pub use clock::tick::Tick;
#[cfg(feature = "std")]
pub use concurrency::limiter::Concurrency;
#[cfg(feature = "std")]
pub use counted::Counted;
#[cfg(feature = "keyed")]
pub use keyed::limiter::Keyed;
#[cfg(feature = "std")]
pub use leases::limiter::Leases;
pub use limiter::Limiter;
#[cfg(feature = "std")]
pub use multiword::log::SlidingLog;
#[cfg(feature = "std")]
pub use multiword::slotted::SlottedWindow;
pub use outcome::denied::Denied;
pub use outcome::granted::Granted;
pub use quota::Quota;
#[cfg(feature = "std")]
pub use sharded::limiter::Sharded;
pub use traits::TryAcquire;
#[cfg(feature = "std")]
pub use wait::reservation::Reservation;

/// Unwraps a constructor's `Result` at compile time, for a `static` or a `const`.
///
/// ```
/// use tollgate::{FixedWindow, Limiter, Quota, TokenBucket, const_unwrap};
///
/// static LOGINS: Limiter<TokenBucket> = const_unwrap!(Limiter::token_bucket(Quota::per_minute(10)));
/// static DAILY: Limiter<FixedWindow> = Limiter::new(
///     const_unwrap!(FixedWindow::new(Quota::per_day(1000))).aligned_to_unix(core::time::Duration::ZERO),
/// );
///
/// assert_eq!(LOGINS.available(), 10);
/// assert!(DAILY.try_acquire().is_ok());
/// ```
///
/// # Panics
///
/// Panics only at compile time: the macro expands to a `const` block, even inside a function.
///
/// ```compile_fail,E0080
/// use tollgate::{Limiter, Quota, TokenBucket, const_unwrap};
///
/// // error[E0080]: evaluation panicked: n must be at least 1 permit
/// static LOGINS: Limiter<TokenBucket> = const_unwrap!(Limiter::token_bucket(Quota::per_minute(0)));
/// ```
///
/// A value that is known only at run time does not compile:
///
/// ```compile_fail,E0435
/// use tollgate::{Limiter, Quota, const_unwrap};
///
/// fn per_minute(n: u64) {
///     let limiter = const_unwrap!(Limiter::token_bucket(Quota::per_minute(n)));
/// }
/// ```
#[macro_export]
macro_rules! const_unwrap {
    ($made:expr $(,)?) => {
        const {
            match $made {
                ::core::result::Result::Ok(made) => made,
                ::core::result::Result::Err(error) => {
                    ::core::panic!("{}", error.const_message())
                }
            }
        }
    };
}

/// Errors of making an algorithm, a limiter or a composition, of parsing a quota or an algorithm
/// from text, and of restoring a snapshot.
///
/// Three errors say why something can't be made. Each function returns the first that suffices, and
/// `?` converts each to the next:
///
/// | error | what can't be made |
/// |---|---|
/// | [`QuotaError`](error::QuotaError) | an algorithm, or a limiter of one word |
/// | [`LimiterError`](error::LimiterError) | another limiter, or a table of keys |
/// | [`ComposeError`](error::ComposeError) | a composition |
pub mod error {
    pub use crate::algorithm::any::ParseAlgorithmError;
    pub use crate::compose::error::ComposeError;
    pub use crate::limiter_error::LimiterError;
    pub use crate::quota::{ParseQuotaError, QuotaError};
    pub use crate::snapshot::error::RestoreError;
}

/// Statistics of limiters and of tables of keys.
/// [`write_prometheus`](stats::write_prometheus) exports them as metrics.
///
/// A name means the same everywhere:
///
/// | name | what it counts | where |
/// |---|---|---|
/// | `granted`, `denied` | requests | [`Counted`], [`Concurrency::counted`] |
/// | `permits`, `returned`, `charged` | permits granted, returned and charged | the same |
/// | `tracked`, `idle` | keys in the table, and those that are idle | `Keyed` |
/// | `inserted`, `expired`, `evicted`, `evicted_protected`, `removed` | keys that entered and left | `Keyed` |
/// | `no_room` | requests of new keys for which the table had no slot | `Keyed` |
/// | `inside`, `peak`, `limit` | the weight of callers | [`Concurrency`] |
/// | `waiting`, `waiting_permits` | callers, and permits | [`Concurrency`], [`Line`] |
/// | `lent`, `max_lent` | permits | [`Leases`] |
/// | `lease_messages`, `lease_trips` | messages to a server, round trips | leases of `tollgate-redis` |
/// | `lease_draws`, `lease_keys` | answers with permits, keys | the same |
/// | `lease_drawn`, `lease_returned`, `lease_lapsed`, `lease_held` | permits drawn from the server, and what became of them | the same |
/// | `lease_allowed` | permits granted of allowances | the same |
/// | `rate`, `stored`, `max_stored` | permits | the limiters of `tollgate-smooth` |
///
/// [`Counted`]: crate::Counted
/// [`Concurrency`]: crate::Concurrency
/// [`Concurrency::counted`]: crate::Concurrency::counted
/// [`Leases`]: crate::Leases
/// [`Line`]: crate::compose::Line
#[cfg(feature = "std")]
pub mod stats {
    pub use crate::counted::{Counters, LimiterStats};
    #[cfg(feature = "keyed")]
    pub use crate::keyed::stats::KeyedStats;
    pub use crate::metrics::{Metric, Metrics, MetricsError, Value, write_prometheus};
}

/// Runs the examples of the README with the documentation tests.
#[cfg(all(doctest, feature = "keyed", feature = "tokio"))]
#[doc = include_str!("../README.md")]
struct Readme;
