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
//! | `Adjustable` (feature `wide`) | a quota that is changed in use |
//! | [`Counted`] | statistics of any of them |
//! | `SmoothBursty`, `SmoothWarmingUp` (feature `wide`) | callers who wait their turn at a rate that can be changed, as Guava's do |
//!
//! And these limit each key by itself:
//!
//! | | for |
//! |---|---|
//! | `Keyed` (feature `keyed`) | a limit for each of a million keys, in one table of fixed size; keys are not kept |
//! | `KeyedMap` (feature `map`) | keys that are wanted back: looked through, removed by what they are, with limits of their own |
//!
//! And these wait:
//!
//! | | for |
//! |---|---|
//! | [`Limiter::reserve`], [`Reservation`] | knowing when it is one's turn |
//! | [`Limiter::acquire`] | a thread that blocks until it is |
//! | `Limiter::on`, `On` (feature `wait`) | futures, and with `futures` and `tokio` streams, sinks and bytes |
//! | [`Pacer`] | work that is evenly spaced |
//! | [`WaitingRoom`] | smoothing what comes too fast, and refusing overload early |
//!
//! And this limits not how often but how much at once:
//!
//! | | for |
//! |---|---|
//! | [`Concurrency`] | at most so many inside, weighted; waiting first come first served, blocking or async |
//!
//! To write an algorithm of your own, see [`algorithm`]; to keep words in memory of your own, see
//! [`cell`].

// Without `std` these items are not compiled: their links lead to docs.rs.
#![cfg_attr(not(feature = "std"), doc = "", doc = include_str!("std_links.md"))]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "wide")]
mod adjustable;
pub mod algorithm;
pub mod cell;
pub mod clock;
#[cfg(feature = "std")]
mod concurrency;
#[cfg(feature = "std")]
mod counted;
mod gate;
#[cfg(feature = "history")]
pub mod history;
#[cfg(feature = "keyed")]
pub mod keyed;
#[cfg(feature = "map")]
mod keyed_map;
mod limiter;
mod op;
mod outcome;
#[cfg(any(feature = "keyed", feature = "map"))]
mod overflow;
#[cfg(feature = "wide")]
mod parameters;
pub mod primitive;
mod quota;
#[cfg(feature = "wide")]
pub mod smooth;
#[cfg(feature = "std")]
mod spread;
pub mod store;
#[cfg(feature = "keyed")]
mod tally;
mod view;
#[cfg(feature = "std")]
mod wait;
#[cfg(feature = "std")]
mod window;
mod word;

#[cfg(feature = "wide")]
pub use adjustable::{Adjustable, Keep};
pub use algorithm::{
    Algorithm, AnyAlgorithm, Debt, FixedWindow, Forecast, Gauge, Gcra, GiveBack, Intervals,
    LeakyBucket, Lend, Level, MAX_SETTINGS, ParseAlgorithmError, Rebase, Requota, Reserve,
    Rounding, Settings, SlidingWindow, Split, Then, TokenBucket,
};
pub use clock::{Clock, CoarseClock, NoClock, SystemClock, Tick, Timer};
#[cfg(feature = "std")]
pub use clock::{ManualClock, ManualSleep, Sleeps, Upkeep};
#[cfg(feature = "std")]
pub use concurrency::{Concurrency, Enter, Inside, MAX_CONCURRENCY};
#[cfg(feature = "std")]
pub use counted::{Counted, Counts};
pub use gate::{DebtGate, Gate, GiveBackGate, ReserveGate};
#[cfg(feature = "keyed")]
pub use keyed::{Key, KeyHasher, Keyed, KeyedStats, PlanOf, RestoreError, Restored, Seeded};
#[cfg(feature = "map")]
pub use keyed_map::{KeyedMap, MapKey, MapStats, PinnedMap, Tracked};
pub use limiter::Limiter;
pub use outcome::{Charged, Denied, GrantInfo, Granted};
#[cfg(any(feature = "keyed", feature = "map"))]
pub use overflow::Overflow;
pub use quota::{ConfigError, ParseQuotaError, Quota};
#[cfg(feature = "wide")]
pub use smooth::{SmoothBursty, SmoothWarmingUp};
#[cfg(feature = "std")]
pub use spread::{Lease, Leases, Lender, MAX_SHARDS, Sharded, ShardedAt};
pub use view::View;
#[cfg(feature = "wait")]
pub use wait::{Acquire, Jitter, On};
#[cfg(feature = "std")]
pub use wait::{Cancelled, Pacer, Reservation, Settled, WaitingRoom};
#[cfg(feature = "futures")]
pub use wait::{LimitedSink, LimitedStream};
#[cfg(feature = "tokio")]
pub use wait::{Throttled, TokioTimer};
#[cfg(feature = "std")]
pub use window::{MAX_LOG, MAX_SLOTS, SlidingLog, SlottedWindow};
pub use word::Word;

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
