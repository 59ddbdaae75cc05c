//! The word of a concurrency limit: the weight inside never exceeds the limit, a thread that enters
//! sees writes that were made inside before, and no peak is missed.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use tollgate::sync::model::AtomicU64;
use tollgate_loom_tests::{Run, Site, actor, model};

use super::concurrency::{check_empty, limiter, said};

/// Finds the operation in the file that contains it.
fn site(operation: &'static str) -> Site {
    Site::find(&["concurrency/limiter.rs"], operation)
}

const ENTER: &str = "compare_exchange_weak(word.0, next.0, Acquire, Relaxed)";
const LEAVE: &str = "self.word.fetch_sub(n, Release)";
const NEW_PEAK: &str = "self.word.fetch_add(0, Release)";

/// Under a limit of three, two actors with a weight of two try to enter, and leave.
fn two_try(run: &mut Run) {
    let outcomes = vec![["inside", "busy"], ["busy", "inside"], ["inside", "inside"]];
    run.explore_all(outcomes, move |layout| {
        let (limiter, inside) = (limiter(3), Arc::new(Mutex::new((0, 0))));
        let actors = [2, 2].map(|n| {
            let (limiter, inside) = (Arc::clone(&limiter), Arc::clone(&inside));
            actor(move || {
                let guard = limiter.try_enter_owned(n);
                let said = said(&guard);
                if let Ok(guard) = guard {
                    let note = |change: fn(u64, u64) -> u64| {
                        let mut inside = inside.lock().unwrap_or_else(PoisonError::into_inner);
                        inside.0 = change(inside.0, n);
                        inside.1 = inside.1.max(inside.0);
                    };
                    note(|inside, n| inside + n);
                    // An operation while inside.
                    let _ = limiter.limit();
                    note(|inside, n| inside - n);
                    drop(guard);
                }
                said
            })
        });
        let told = layout.act(actors.into());
        let most = inside.lock().unwrap_or_else(PoisonError::into_inner).1;
        assert!(most <= 3, "more inside than the limit: {most}");
        check_empty(&limiter);
        [told[0], told[1]]
    });
}

#[test]
fn never_more_than_the_limit() {
    model("two try to enter", None, two_try)
        .stored("more inside than the limit | something was lost");
}

/// Two actors are inside one after the other, never together. The second sees what the first wrote.
fn one_after_the_other(run: &mut Run) {
    run.explore(|layout| {
        let (limiter, data) = (limiter(1), Arc::new(AtomicU64::new(0)));
        let actors = [(), ()].map(|()| {
            let (limiter, data) = (Arc::clone(&limiter), Arc::clone(&data));
            actor(move || {
                let guard = limiter.try_enter().ok()?;
                let seen = data.load(Relaxed);
                data.store(seen + 1, Relaxed);
                drop(guard);
                Some(seen)
            })
        });
        let told = layout.act(actors.into());
        if let [Some(one), Some(other)] = told[..] {
            assert_eq!(one + other, 1, "a write made inside was not seen");
        }
    });
}

/// The same if the second one waits.
fn one_waits_for_the_other(run: &mut Run) {
    run.explore(|layout| {
        let (limiter, data) = (limiter(1), Arc::new(AtomicU64::new(0)));
        let actors = [(), ()].map(|()| {
            let (limiter, data) = (Arc::clone(&limiter), Arc::clone(&data));
            actor(move || {
                let guard = limiter.enter().wait().expect("room");
                let seen = data.load(Relaxed);
                data.store(seen + 1, Relaxed);
                drop(guard);
            })
        });
        layout.act(actors.into());
        assert_eq!(data.load(Relaxed), 2, "a write made inside was not seen");
    });
}

#[test]
fn an_entering_thread_sees_earlier_writes() {
    model("one after the other", None, one_after_the_other)
        .relaxed([ENTER, LEAVE].map(site), "a write made inside was not seen");
    model("one waits for the other", None, one_waits_for_the_other);
}

/// The peak is reset while an actor enters and stays: the new peak counts it.
fn reset_against_enter(run: &mut Run) {
    run.explore(|layout| {
        let limiter = limiter(2);
        drop(limiter.try_enter());
        let (one, other) = (Arc::clone(&limiter), Arc::clone(&limiter));
        let resets = move || assert_eq!(one.reset_peak(), 1);
        drop(layout.both(resets, move || other.try_enter_owned(1).ok()));
        assert_eq!(limiter.peak(), 1, "a peak was missed");
    });
}

#[test]
fn no_peak_is_missed() {
    model("the peak is reset, one enters", None, reset_against_enter)
        .relaxed([NEW_PEAK, ENTER].map(site), "a peak was missed");
}
