//! Records what a limiter grants, from any number of threads, and checks its bound over **every**
//! interval.
//!
//! Each thread keeps its own [`Log`]; recording an event is a push to a vector. Afterwards an
//! [`Audit`] is collected from all logs and checked against a [`Bound`]: the one that the algorithm
//! states ([`Bounded`]), or one of your own. The bound of a token bucket is
//!
//! ```text
//! granted - given back in [a, b]  <=  burst + rate * (b - a)        for all a <= b
//! ```
//!
//! where `b - a` counts as one unit longer if the bucket can't express the rate exactly. A unit is
//! at most a quarter of a nanosecond (see [`TokenBucket`]). Each change of the quota or the clock
//! adds another one: see [`Bound::across_changes`].
//!
//! A grant counts at [`Granted::at`]. Permits that are given back count in the intervals in which
//! they come back, and a reset allows one more burst in every interval that contains it. Charges
//! count too, but only grants are checked: a charge may go into debt, and no grant may follow until
//! the debt is paid. A reset forgives debt. So does the end of the window in which it was charged,
//! for algorithms that forget debt with the window.
//!
//! # Preempted threads
//!
//! A thread that reads the clock and is then preempted may give permits back at an old tick,
//! although other threads have decided at newer ticks by then. To audit a concurrent history in
//! which permits come back, record when each operation began and ended, by one clock that all
//! threads share ([`Entry::during`]). Permits then count as given back in every interval that the
//! operation may overlap. Without this record, the check assumes that the operation took no time.
//!
//! Around a reset, the ticks of different threads may overlap: an operation before the reset may
//! have a later tick than one after it. So a reset allows a burst, and also the refill of the time
//! by which the ticks overlap.
//!
//! The shared clock must order its readings with the operations: use `Instant`, or a counter that
//! all threads increment. The [`SystemClock`] does not do so between
//! threads, because the processor may read its counter a little early or late. The shared clock
//! need not be the clock that the ticks come from.
//!
//! Permits that come back are recorded as whole numbers, rounded up. Each such record loosens the
//! check by less than one permit.
//!
//! # How the check works
//!
//! The check sorts the events and looks at each tick once. Let `over(b)` be the most by which any
//! interval that ends at `b` exceeds the refill within it, and `back` the permits that came back.
//! Then
//!
//! ```text
//! over(b) = max(over(previous tick) - refill since the previous tick - back newly overlapping,
//!               - back still overlapping)  +  granted(b)
//! ```
//!
//! and the bound holds if no `over` exceeds the burst. The refill is `rate * (b - previous tick)`,
//! or `n` at the beginning of each window. For a fixed window, which starts with a full burst each
//! time, `over` starts again with each window.
//!
//! Two kinds of bounds need more state:
//!
//! - If `n` permits come at once, a period or more apart ([`Bound::of_steps`]), the refill of an
//!   interval is not the sum of the refills of its parts. The check keeps every tick at which an
//!   interval may begin, by its position in the period, in a tree that finds the maximum.
//! - If only intervals up to some length are limited ([`Bound::of_log`], [`Bound::of_slots`]), the
//!   check keeps the beginnings within that length in a queue, with the worst one in front.
//!
//! All arithmetic is exact, on integers. If there are charges, the grants are checked alone first,
//! and then again together with the charges that certainly preceded later grants.
//!
//! ```
//! use tollgate_audit::{Bounded, Audit, Log};
//! use tollgate::{Limiter, Quota};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let limiter = Limiter::token_bucket(Quota::per_second(1000).burst(50))?;
//! let logs = std::thread::scope(|scope| {
//!     let threads: Vec<_> = (0..4)
//!         .map(|_| {
//!             scope.spawn(|| {
//!                 let mut log = Log::new();
//!                 for _ in 0..1000 {
//!                     if let Ok(granted) = limiter.try_acquire() {
//!                         log.granted(&granted);
//!                     }
//!                 }
//!                 log
//!             })
//!         })
//!         .collect();
//!     threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
//! });
//! let audit: Audit = logs.into_iter().collect();
//! let summary = audit.check(&limiter.algorithm().bound())?;
//! assert!(summary.granted >= 50);
//! # Ok(())
//! # }
//! ```
//!
//! [`Granted::at`]: tollgate::Granted::at
//! [`SystemClock`]: tollgate::clock::SystemClock
//! [`TokenBucket`]: tollgate::TokenBucket

mod allowed;
mod bound;
mod bounded;
mod check;
mod credits;
mod log;
mod moment;
mod steps;
mod sweep;
mod windows;
mod within;

use core::error::Error;
use core::fmt;

pub use bound::Bound;
pub use bounded::Bounded;
pub use check::Audit;
pub use log::{Entry, Log};

use tollgate::Tick;

/// The totals of a history that kept the bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Permits granted.
    pub granted: u128,
    /// Permits given back.
    pub gave_back: u128,
    /// Permits charged.
    pub charged: u128,
    /// Resets.
    pub resets: u128,
    /// Distinct ticks at which permits were granted or charged.
    pub ticks: usize,
}

/// An interval in which more permits were granted than the bound allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Excess {
    /// The first tick of the interval.
    pub from: Tick,
    /// The last tick of the interval.
    pub to: Tick,
    /// Permits taken in the interval, less those that came back. Includes charges.
    pub granted: i128,
    /// Permits that the bound allows in the interval, without a reset.
    pub allowed: u128,
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} permits were granted from {} ns to {} ns, but at most {} are allowed",
            self.granted,
            self.from.as_nanos(),
            self.to.as_nanos(),
            self.allowed
        )
    }
}

impl Error for Excess {}

/// Runs the example of the README with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
