//! A lock-free rate limiter: each limit is one 64-bit word, each decision one compare-and-swap,
//! each answer exact.
//!
//! ```
//! use tollgate::{Denied, Limiter, Quota};
//!
//! # fn main() -> Result<(), tollgate::ConfigError> {
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
//! Start with [`Limiter`] and its verbs. [`Quota`] says what the limit is, and [`ManualClock`]
//! stops time in tests. An algorithm decides:
//!
//! | algorithm | for |
//! |---|---|
//! | [`TokenBucket`], [`Gcra`] | a rate with a burst: the first choice; both decide alike |
//! | [`LeakyBucket`] | as a meter, the same decisions; as a queue, it says how long to wait |
//! | [`SlidingWindow`] | at most `n` in the last minute, with no burst at the minute's edge |
//! | [`FixedWindow`] | at most `n` in a calendar day |
//! | [`Intervals`] | a bucket that is refilled all at once |
//! | [`AnyAlgorithm`] | any of them, chosen at run time: `"sliding-window 1000/min"` |
//!
//! More than one word:
//!
//! | limiter | for |
//! |---|---|
//! | [`Sharded`] | a limit that many cores ask at once |
//! | [`Leases`] | a few threads whose requests are mostly granted: such a grant is a subtraction |
//! | [`SlottedWindow`] | at most `n` in the last minute, to the second |
//! | [`SlidingLog`] | at most `n` in the last minute, exactly |
//! | `Adjustable` (feature `wide`) | a quota that changes while the limiter is in use |
//! | [`Counted`] | any limiter, with statistics ([`stats`]) |
//! | `smooth` (feature `wide`) | callers that wait for their turn at a rate that can change, as with Guava |
//!
//! A limit for each key:
//!
//! | limiter | for |
//! |---|---|
//! | `Keyed` (feature `keyed`, `huge-pages`) | a million keys in one table of fixed size |
//! | `KeyedMap` (feature `map`) | keys that can be listed and removed, and have limits of their own |
//!
//! Waiting ([`wait`]):
//!
//! | | for |
//! |---|---|
//! | [`Limiter::reserve`], [`Reservation`] | permits of the future, with the time at which they are due |
//! | [`Limiter::acquire`] | a thread that blocks until its permit is due |
//! | `Limiter::with_timer`, `AsyncLimiter` (feature `wait`) | futures; with `futures` and `tokio` also streams, sinks and bytes |
//! | [`Pacer`] | work that is evenly spaced, and must not burst |
//! | [`WaitingRoom`] | a bounded wait: overload is refused early |
//!
//! [`Concurrency`] limits how many callers are inside at once, not how often they come, and
//! `keyed::KeyedConcurrency` (feature `keyed`) does so for each key.
//!
//! [`RateLimiter`] is the trait of all limiters that have the verbs of a [`Limiter`]: keys of a
//! table or map have it, too; [`Concurrency`], the smooth limiters and what waits do not.
//! [`traits`] has what only some can do. To write an algorithm of your own, see [`algorithm`]; to
//! keep words in memory of your own, see [`store`].

// Without `std` these items are not compiled: their links lead to docs.rs.
#![cfg_attr(not(feature = "std"), doc = "", doc = include_str!("std_links.md"))]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(feature = "map", feature = "wide"))]
pub mod adjustable;
pub mod algorithm;
#[cfg(feature = "audit")]
pub mod audit;
#[cfg(any(feature = "keyed", feature = "map"))]
mod ban;
pub mod clock;
#[cfg(feature = "std")]
pub mod concurrency;
mod constructors;
#[cfg(feature = "std")]
mod counted;
#[cfg(feature = "keyed")]
pub mod keyed;
#[cfg(feature = "map")]
pub mod keyed_map;
#[cfg(feature = "std")]
pub mod leases;
mod limiter;
#[cfg(feature = "std")]
mod metrics;
#[cfg(feature = "std")]
mod multiword;
pub mod outcome;
#[cfg(any(feature = "keyed", feature = "map"))]
mod overflow;
mod quota;
mod rate_limiter;
#[cfg(feature = "wide")]
mod seq_lock;
#[cfg(feature = "std")]
pub mod sharded;
#[cfg(feature = "wide")]
pub mod smooth;
mod snapshot;
pub mod store;
#[cfg(feature = "std")]
mod striped;
pub mod sync;
#[cfg(feature = "std")]
mod thread_index;
#[cfg(feature = "std")]
pub mod wait;

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
#[cfg(feature = "map")]
pub use keyed_map::limiter::KeyedMap;
#[cfg(feature = "std")]
pub use leases::limiter::Leases;
pub use limiter::Limiter;
#[cfg(feature = "std")]
pub use multiword::{SlidingLog, SlottedWindow};
pub use outcome::denied::Denied;
pub use outcome::granted::Granted;
#[cfg(any(feature = "keyed", feature = "map"))]
pub use overflow::Overflow;
pub use quota::{ConfigError, Quota};
pub use rate_limiter::RateLimiter;
#[cfg(feature = "std")]
pub use sharded::limiter::Sharded;
#[cfg(feature = "wait")]
pub use wait::async_limiter::AsyncLimiter;
#[cfg(feature = "std")]
pub use wait::pacer::Pacer;
#[cfg(feature = "std")]
pub use wait::reservation::Reservation;
#[cfg(feature = "std")]
pub use wait::room::WaitingRoom;

/// The value of a constructor's `Result`, at compile time: for a `static` or a `const`.
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
/// An error stops the compiler, and never the program: the macro expands to a `const` block, also
/// inside a function.
///
/// ```compile_fail,E0080
/// use tollgate::{Limiter, Quota, TokenBucket, const_unwrap};
///
/// // error[E0080]: evaluation panicked: n must be at least 1 permit
/// static LOGINS: Limiter<TokenBucket> = const_unwrap!(Limiter::token_bucket(Quota::per_minute(0)));
/// ```
///
/// So it takes no value that is known only at run time:
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
                    ::core::panic!("{}", $crate::ConfigError::const_message(&error))
                }
            }
        }
    };
}

/// The errors of text that names no quota or no algorithm, and of snapshots that can't be restored.
pub mod error {
    pub use crate::algorithm::any::ParseAlgorithmError;
    pub use crate::quota::ParseQuotaError;
    pub use crate::snapshot::error::RestoreError;
}

/// Statistics of limiters and of tables of keys, and their form as [metrics](stats::write_prometheus).
///
/// The same thing has the same name everywhere:
///
/// | name | what | of |
/// |---|---|---|
/// | `granted`, `denied` | requests | what is in a [`Counted`] |
/// | `permits`, `returned`, `charged` | permits: that were granted, that came back, that were charged | the same |
/// | `tracked`, `idle` | keys that are there, and those of them that are as good as fresh | `Keyed`, `KeyedMap` (without `idle`) |
/// | `inserted`, `expired`, `evicted`, `evicted_protected`, `removed` | keys that came and left | the same (without `inserted`) |
/// | `no_room` | how often there was no room for a key | the same |
/// | `inside`, `peak`, `limit`, `waiting` | weight, and callers that wait | [`Concurrency`] |
/// | `lent`, `max_lent` | permits | [`Leases`] |
/// | `waiting_permits`, `longest_wait` | permits, and time | [`WaitingRoom`] |
/// | `rate`, `stored`, `max_stored` | permits | the smooth limiters |
///
/// [`Counted`]: crate::Counted
/// [`Concurrency`]: crate::Concurrency
/// [`Leases`]: crate::Leases
/// [`WaitingRoom`]: crate::WaitingRoom
#[cfg(feature = "std")]
pub mod stats {
    pub use crate::counted::{Counters, LimiterStats};
    #[cfg(feature = "keyed")]
    pub use crate::keyed::stats::KeyedStats;
    #[cfg(feature = "map")]
    pub use crate::keyed_map::stats::MapStats;
    pub use crate::metrics::{Metrics, MetricsError, write_prometheus};
}

/// Traits of limiters that can do more than take permits, if their algorithm allows it.
pub mod traits {
    pub use crate::rate_limiter::{DebtLimiter, GiveBackLimiter, ReserveLimiter, SettleLimiter};
}

/// The examples of the README are run with those of the documentation.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../docs/PAST_ONE_WORD.md")]
struct PastOneWord;

#[cfg(all(doctest, feature = "keyed", feature = "map"))]
#[doc = include_str!("../docs/KEYED.md")]
struct KeyedLimits;

#[cfg(all(doctest, feature = "tokio", feature = "wide"))]
#[doc = include_str!("../docs/TIME.md")]
struct Time;
