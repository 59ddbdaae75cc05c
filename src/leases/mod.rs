//! Permits that are lent to a thread, which then grants them by subtraction: the [`Lease`]s of
//! [`Leases`].
//!
//! # The words
//!
//! ```text
//!  the limiter's word                      one of its own
//! ┌─────────────────────────────────────┐ ┌─────────────────────────────────────┐
//! │ as that of any limiter, with a      │ │ the sizes of all leases that live   │
//! │ burst (or limit) smaller by `total` │ │ (at most `total`)                   │
//! └─────────────────────────────────────┘ └─────────────────────────────────────┘
//! ```
//!
//! The two need not agree at any moment. A lease first gets a size out of what is left of `total`;
//! then draws up to that many permits from the limiter's word whenever it is empty; and when it is
//! dropped first gives back what it holds and then its size.
//!
//! # Why the bound is exact
//!
//! In an interval `[a, b]`, what is used of leases is what they held at `a`, and what they drew in
//! it, less what they gave back and what they hold at `b`. What they held at `a` is at most
//! `total`, since each holds at most its size, also while it is giving back. What they drew, with
//! what was granted besides, is at most what a limiter with a burst of `burst - total` grants, and
//! what came back to it: which is no more than they gave back. So all that is used is at most
//! `total + (burst - total) + rate * (b - a)`.
//!
//! A limiter may count a grant later than the tick that it was asked at, in a window that is ahead.
//! A lease uses the permits at once, and the bound still holds by when they are used, if all ticks
//! are the clock's. A window on the clock is begun by a thread that has read a tick in it, and the
//! clock does not go back: the permits are used in it. Of a period that a permit opened, the
//! beginning is rounded up to a quantum, but the tick that was read when it was opened is not
//! before the end of the period before. The proofs of the bounds need no more than that.

mod lease;
pub(crate) mod limiter;

pub use lease::{Lease, Lender};
pub(crate) use limiter::Leases;
