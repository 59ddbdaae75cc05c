//! Permits that are lent to a thread, which then grants them by subtraction: the [`Lease`]s of
//! [`Leases`].
//!
//! # The words
//!
//! ```text
//!  the limiter's word                      a word of `Leases`
//! ┌─────────────────────────────────────┐ ┌─────────────────────────────────────┐
//! │ as in any limiter, with a burst     │ │ the sizes of all live leases        │
//! │ (or limit) smaller by `total`       │ │ (at most `total` together)          │
//! └─────────────────────────────────────┘ └─────────────────────────────────────┘
//! ```
//!
//! The two words need not agree at any moment. A new lease reserves its size from what is left of
//! `total`. Whenever the lease is empty, it draws up to its size from the limiter's word. How much
//! it draws depends on how long its last draw lasted, and on no other lease. When it is dropped, it
//! gives back its permits first and its size second.
//!
//! # Why the bound is exact
//!
//! Take an interval `[a, b]`. The permits that leases use in it are the permits that they hold at
//! `a`, plus those that they draw, minus those that they give back and those that they hold at `b`.
//!
//! - At `a` the leases hold at most `total`, since each holds at most its size, even while it gives
//!   back.
//! - The limiter has a burst of `burst - total`. It grants at most
//!   `(burst - total) + rate * (b - a)` permits, to leases and others together, plus the permits
//!   that came back to it.
//! - The permits that come back to the limiter are at most those that the leases give back.
//!
//! So leases and other callers together use at most `total + (burst - total) + rate * (b - a)`
//! permits.
//!
//! If the window of a limiter is ahead of a caller's tick, the limiter counts the grant in that
//! later window, while a lease uses the permits at once. The bound still holds for the ticks at
//! which permits are used, if all ticks come from the clock: a thread that begins a window has read
//! a tick in it, and the clock does not go back, so the permits are used in that window.
//!
//! If a permit opens the window, the word rounds the window's beginning up, so permits may be used
//! before that beginning. The tick that opened the window is still not before the end of the
//! previous one, and the proofs of the bounds need no more than that.

mod lease;
pub(crate) mod limiter;

pub use lease::{Lease, Lender};
pub(crate) use limiter::Leases;
