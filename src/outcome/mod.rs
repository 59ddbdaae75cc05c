//! The outcomes of a decision: [`Granted`], [`Denied`], [`Charged`] for permits taken
//! unconditionally, and [`Settled`] for a corrected estimate.
//!
//! # HTTP headers
//!
//! A grant holds all numbers for the headers of a response. A denial does not, so that it stays
//! small. Ask the limiter for them at the tick of the decision, so that the clock is not read
//! again.
//!
//! ```
//! use std::time::Duration;
//! use tollgate::outcome::ceil_secs;
//! use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
//!
//! /// `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset`, and `Retry-After` if denied.
//! fn headers(limiter: &Limiter<TokenBucket, ManualClock>) -> ([u64; 3], Option<u64>) {
//!     let limit = limiter.quota().burst_size();
//!     let view = limiter.at(limiter.now());
//!     match view.try_acquire() {
//!         Ok(granted) => {
//!             let reset = ceil_secs(granted.reset_after());
//!             ([limit, granted.remaining(), reset], None)
//!         }
//!         Err(denied) => {
//!             // The time until the whole limit is available again.
//!             let reset = view.time_until(limit).unwrap_or(Duration::MAX);
//!             ([limit, view.available(), ceil_secs(reset)], denied.retry_after_secs())
//!         }
//!     }
//! }
//!
//! # fn main() -> Result<(), tollgate::error::QuotaError> {
//! let bucket = TokenBucket::new(Quota::per_minute(2))?;
//! let limiter = Limiter::with_clock(bucket, ManualClock::new());
//! assert_eq!(headers(&limiter), ([2, 1, 30], None));
//! assert_eq!(headers(&limiter), ([2, 0, 60], None));
//! assert_eq!(headers(&limiter), ([2, 0, 60], Some(30)));
//! # Ok(())
//! # }
//! ```
//!
//! The keys of a table have the same verbs: `table.key("alice").at(now)`.

mod charged;
pub(crate) mod denied;
pub(crate) mod granted;
mod seconds;
mod settled;

pub use charged::Charged;
pub(crate) use denied::Denied;
pub use granted::GrantInfo;
pub(crate) use granted::Granted;
#[cfg(feature = "std")]
pub(crate) use granted::SEVERAL;
pub use seconds::ceil_secs;
pub use settled::Settled;
