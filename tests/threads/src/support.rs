//! Shared helpers of these tests.

#[path = "../../support/prelude.rs"]
mod prelude;

use std::panic::resume_unwind;
use std::sync::Barrier;

#[cfg(feature = "audit")]
pub(crate) use tollgate_audit::{Audit, Bound, Bounded, Log};

pub(crate) use crate::deadline::deadline;
#[cfg(feature = "audit")]
pub(crate) use crate::random::Random;
pub(crate) use prelude::*;

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

/// Runs `work` on one thread for each input, all started together, and returns the results.
pub(crate) fn on_threads<I: Send, T: Send>(
    each: impl IntoIterator<Item = I>,
    work: impl Fn(I) -> T + Sync,
) -> Vec<T> {
    let each: Vec<_> = each.into_iter().collect();
    let (start, work) = (&Barrier::new(each.len()), &work);
    thread::scope(|scope| {
        let spawn = |one| {
            scope.spawn(move || {
                start.wait();
                work(one)
            })
        };
        let workers: Vec<_> = each.into_iter().map(spawn).collect();
        let results = workers.into_iter().map(|worker| worker.join());
        results
            .map(|result| result.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

/// Returns the sum of `work` on one thread for each input.
pub(crate) fn sum<I: Send>(
    each: impl IntoIterator<Item = I>,
    work: impl Fn(I) -> u64 + Sync,
) -> u64 {
    on_threads(each, work).into_iter().sum()
}

pub(crate) fn algorithm(text: &str) -> AnyAlgorithm {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}
