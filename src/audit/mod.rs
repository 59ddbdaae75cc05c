//! Shows that a limiter kept its promise: records what it granted, from any number of threads, and
//! checks the bound over **every** interval.
//!
//! Each thread keeps a [`Log`] of its own, which costs a push to a vector; afterwards an [`Audit`]
//! is made of them all and compared with a [`Bound`]: what the algorithm says of itself
//! ([`Bounded`]), or one of your own. Of a token bucket it is
//!
//! ```text
//! granted - given back in [a, b]  <=  burst + rate * (b - a)        for all a <= b
//! ```
//!
//! Grants count at [`Granted::at`](crate::Granted::at). What came back counts in the intervals in
//! which it came back, and a reset allows one burst more in every interval that holds it. A charge
//! counts, but only grants are judged: it may go into debt, and no grant may come out of that debt
//! until it is paid or a reset forgives it, or the window that it was charged in is over, where
//! debt is forgotten with it.
//!
//! # Threads that are stopped in the middle
//!
//! A thread that read the clock and was then put to sleep gives back at an old tick, and others
//! spend it at new ones. Where permits come back in a concurrent history, say for each verb when it
//! began and ended, by one clock for all threads ([`Entry::during`]): what came back then counts in
//! every interval with which it may have overlapped. Without it a verb takes no time. A reset then
//! allows, besides its burst, what comes in the time by which the threads' ticks overlapped at it:
//! ticks of before it may be later than ticks of after it.
//!
//! That clock must order its readings with the verbs: `Instant`, or a counter that all increment.
//! The [`SystemClock`](crate::clock::SystemClock) does not between threads, since the processor may
//! read its counter a little early or late. It need not be the clock of the ticks.
//!
//! What came back is recorded in whole permits, a part of one counted whole, so the check is looser
//! by as much for each.
//!
//! # How it is checked
//!
//! The check sorts the events and then looks at each tick once. If `over(b)` is the most by which
//! any interval that ends at `b` exceeds what came in it, and `back` is what came back, then
//!
//! ```text
//! over(b) = max(over(previous tick) - what came since the previous tick - back newly overlapping,
//!               - back still overlapping)  +  granted(b)
//! ```
//!
//! and the bound holds if no `over` is above the burst. What comes is `rate * (b - previous tick)`,
//! or `n` at each window's beginning; where all comes anew in each window, `over` begins anew with
//! it. What comes in steps a period apart, wherever they begin, does not add up so: there all
//! beginnings are kept, by where in a period they lie, in a tree that knows the greatest. And where
//! no interval is promised anything but those up to some length, the beginnings near enough are
//! kept, in a queue that has the worst in front.
//!
//! All of it is exact arithmetic on integers. Where there are charges, the grants alone are checked
//! so, and then once more with the charges that certainly stood in the way of what came after them.
//!
//! ```
//! use tollgate::audit::{Bounded, Audit, Log};
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

mod allowed;
mod bound;
mod bounded;
mod check;
mod credits;
mod log;
mod moment;
mod steps;
mod sweep;
#[cfg(test)]
mod tests;
mod windows;
mod within;

use core::error::Error;
use core::fmt;

pub use bound::Bound;
pub use bounded::Bounded;
pub use check::Audit;
pub use log::{Entry, Log};

use crate::clock::Tick;

/// What a history that kept the bound has in it.
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
    /// Distinct ticks at which something happened.
    pub ticks: usize,
}

/// An interval in which more was granted than was promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Excess {
    /// Where the interval begins.
    pub from: Tick,
    /// Where it ends.
    pub to: Tick,
    /// What was taken in it, net of what came back; charges are in it.
    pub granted: i128,
    /// What may be granted in it, without a reset.
    pub allowed: u128,
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} permits were granted from {} ns to {} ns, where at most {} may be",
            self.granted,
            self.from.as_nanos(),
            self.to.as_nanos(),
            self.allowed
        )
    }
}

impl Error for Excess {}
