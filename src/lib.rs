//! A lock-free rate limiter: each limit is one 64-bit word, each decision one compare-and-swap,
//! each answer exact.
//!
//! ```
//! use tollgate::{Denied, Limiter, Quota};
//!
//! # fn main() -> Result<(), tollgate::ConfigError> {
//! let gate = Limiter::token_bucket(Quota::per_second(100).burst(20))?;
//! match gate.try_acquire() {
//!     Ok(granted) => println!("go, {} left", granted.remaining()),
//!     Err(Denied::Later { retry_after, .. }) => println!("come back in {retry_after:?}"),
//!     Err(denied) => println!("{denied}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Start with [`Limiter`] and its verbs; [`Quota`] is what to limit to, and [`ManualClock`] makes
//! time stand still in your tests. One of these decides:
//!
//! | | for |
//! |---|---|
//! | [`TokenBucket`], [`Gcra`] | a rate with a burst; the first choice |
//! | [`LeakyBucket`] | the same with a level that can be read, or a queue that says how long to wait |
//! | [`SlidingWindow`] | so many in the last minute, without a burst at the minute's edge |
//! | [`FixedWindow`] | so many a calendar day |
//! | [`Intervals`] | a bucket that is refilled all at once |
//! | [`AnyAlgorithm`] | any of them, known at run time: `"sliding-window 1000/min"` |
//!
//! And these go past one word:
//!
//! | | for |
//! |---|---|
//! | [`Sharded`] | a limit that many cores ask at once |
//! | [`Leases`] | a thread for each core, and tight loops: decisions by subtraction |
//! | [`SlottedWindow`] | so many in the last minute, by the second |
//! | [`SlidingLog`] | so many in the last minute, exactly |
//! | [`Counted`] | statistics of any of them |
//! | `SmoothBursty`, `SmoothWarmingUp` (feature `wide`) | callers who wait their turn at a rate that can be changed, as Guava's do |
//!
//! To write an algorithm of your own, see [`algorithm`]; to keep words in memory of your own, see
//! [`cell`].

#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod algorithm;
pub mod cell;
pub mod clock;
#[cfg(feature = "std")]
mod counted;
#[cfg(feature = "std")]
mod gate;
#[cfg(feature = "history")]
pub mod history;
mod limiter;
mod outcome;
pub mod primitive;
mod quota;
#[cfg(feature = "wide")]
pub mod smooth;
#[cfg(feature = "std")]
mod spread;
#[cfg(feature = "std")]
mod window;

pub use algorithm::{
    Algorithm, AnyAlgorithm, Debt, FixedWindow, Forecast, Gauge, Gcra, GiveBack, Intervals,
    LeakyBucket, Lend, Level, ParseAlgorithmError, Rebase, Requota, Rounding, SlidingWindow, Split,
    TokenBucket,
};
pub use clock::{Clock, CoarseClock, NoClock, SystemClock, Tick};
#[cfg(feature = "std")]
pub use clock::{ManualClock, Upkeep};
#[cfg(feature = "std")]
pub use counted::{Counted, Counts};
#[cfg(feature = "std")]
pub use gate::{DebtGate, Gate, GiveBackGate};
pub use limiter::{At, Limiter};
pub use outcome::{Charged, Denied, Granted};
pub use quota::{ConfigError, ParseQuotaError, Quota};
#[cfg(feature = "wide")]
pub use smooth::{SmoothBursty, SmoothWarmingUp};
#[cfg(feature = "std")]
pub use spread::{Lease, Leases, Lender, MAX_SHARDS, Sharded, ShardedAt};
#[cfg(feature = "std")]
pub use window::{MAX_LOG, MAX_SLOTS, SlidingLog, SlottedWindow};

/// The examples of the README are run with those of the documentation.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../docs/PAST_ONE_WORD.md")]
struct PastOneWord;
