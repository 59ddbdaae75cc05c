//! Shared helpers of these tests.

#[path = "../../support/prelude.rs"]
mod prelude;
#[path = "../../support/threads.rs"]
mod threads;
#[path = "../../support/verbs.rs"]
pub(crate) mod verbs;

#[cfg(feature = "audit")]
pub(crate) use tollgate_audit::{Audit, Bound, Bounded, Log};

pub(crate) use crate::deadline::deadline;
#[cfg(feature = "audit")]
pub(crate) use crate::random::Random;
pub(crate) use prelude::*;
pub(crate) use threads::on_threads;

/// The amount of work under Miri, which is slow, in a debug build, and in a release build.
pub(crate) const fn scaled(miri: u64, debug: u64, release: u64) -> u64 {
    if cfg!(miri) {
        miri
    } else if cfg!(debug_assertions) {
        debug
    } else {
        release
    }
}

/// Returns the sum of `work` on one thread for each input.
pub(crate) fn sum<I: Send>(
    each: impl IntoIterator<Item = I>,
    work: impl Fn(I) -> u64 + Sync,
) -> u64 {
    on_threads(each, work).into_iter().sum()
}
