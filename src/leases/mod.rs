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
//! The two words need not agree at any moment. A new lease reserves a size from what is left of
//! `total`. Whenever it is empty, it draws up to that many permits from the limiter's word. When it
//! is dropped, it gives back its permits first and its size second.
//!
//! # Why the bound is exact
//!
//! Take an interval `[a, b]`. The permits that are used from leases in it are those that the leases
//! held at `a`, plus those that they drew in it, minus those that they gave back in it and those
//! that they hold at `b`. At `a` the leases hold at most `total`, since each holds at most its
//! size, even while it gives back. The permits that they drew and all other grants together are at
//! most what a limiter with a burst of `burst - total` grants, plus what came back to it, which is
//! at most what the leases gave back. So at most `total + (burst - total) + rate * (b - a)` permits
//! are used.
//!
//! If the window of a limiter is ahead of a caller's tick, the limiter counts the grant in that
//! later window, while a lease uses the permits at once. The bound still holds for the ticks at
//! which permits are used, if all ticks come from the clock. A thread that begins a window has read
//! a tick in it, and the clock does not go back, so the permits are used in that window. The
//! beginning of a period that a permit opened is rounded up to a quantum, but the tick that opened
//! it is not before the end of the previous period. The proofs of the bounds need no more than
//! that.

mod lease;
pub(crate) mod limiter;

pub use lease::{Lease, Lender};
pub(crate) use limiter::Leases;
