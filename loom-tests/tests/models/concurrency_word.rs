//! The word of a concurrency limit: the weight inside never exceeds the limit, a thread that enters
//! sees writes that were made inside before, and no peak is missed.

use std::sync::atomic::Ordering::Relaxed;

use tollgate::sync::model::AtomicU64;
use tollgate_loom_tests::prelude::*;

use super::concurrency::{Tested, check_empty, limiter, said};

const SOURCE: Source = Source(&["concurrency/limiter.rs"]);
const ENTER: &str = "self.exchange(word, word.with_inside(n)).ok()";
const LEAVE: &str = "self.word.fetch_sub(n, Release)";
const NEW_PEAK: &str = "self.word.fetch_add(0, Release)";

/// The weight inside now and its maximum, as counted by the holders of the guards.
#[derive(Clone, Default)]
pub(super) struct Noted(Arc<Mutex<(u64, u64)>>);

impl Noted {
    fn change(&self, change: impl Fn(u64) -> u64) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.0 = change(noted.0);
        noted.1 = noted.1.max(noted.0);
    }

    pub(super) fn enters(&self, n: u64) {
        self.change(|inside| inside + n);
    }

    pub(super) fn leaves(&self, n: u64) {
        self.change(|inside| inside - n);
    }

    pub(super) fn check(&self, limit: u64) {
        let (_, most) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(most <= limit, "more inside than the limit: {most}");
    }
}

/// Under a limit of three, two actors with a weight of two try to enter, and leave: they `visit`.
pub(super) fn two_try<L: Send + Sync + 'static>(
    run: &mut Run,
    make: impl Fn() -> Arc<L> + Send + Sync + 'static,
    visit: fn(&Arc<L>, &Noted, u64) -> &'static str,
    check_empty: fn(&L),
) {
    let outcomes = vec![["inside", "busy"], ["busy", "inside"], ["inside", "inside"]];
    run.explore_all(outcomes, move |layout| {
        let (limiter, noted) = (make(), Noted::default());
        let actors = [2, 2].map(|n| {
            let (limiter, noted) = (Arc::clone(&limiter), noted.clone());
            actor(move || visit(&limiter, &noted, n))
        });
        let told = layout.act(actors.into());
        noted.check(3);
        check_empty(&limiter);
        [told[0], told[1]]
    });
}

fn visit(limiter: &Tested, noted: &Noted, n: u64) -> &'static str {
    let entered = limiter.try_enter_owned(n);
    if entered.is_ok() {
        noted.enters(n);
        // An operation while inside.
        let _ = limiter.limit();
        noted.leaves(n);
    }
    said(&entered)
}

#[test]
fn never_more_than_the_limit() {
    let two_try = |run: &mut Run| two_try(run, || limiter(3), visit, check_empty);
    model("two try to enter", None, two_try)
        .stored("more inside than the limit | something was lost");
}

/// What an actor does inside, and returns.
pub(super) type Inside<'a> = &'a dyn Fn() -> u64;

/// Two actors are inside one after the other, never together. The second sees what the first wrote.
/// `enter` enters, does the work, leaves, and returns what the work returned.
pub(super) fn one_after_the_other<L: Send + Sync + 'static>(
    run: &mut Run,
    make: impl Fn() -> Arc<L> + Send + Sync + 'static,
    enter: fn(&L, Inside<'_>) -> Option<u64>,
) {
    run.explore(move |layout| {
        let (limiter, data) = (make(), Arc::new(AtomicU64::new(0)));
        let actors = [(), ()].map(|()| {
            let (limiter, data) = (Arc::clone(&limiter), Arc::clone(&data));
            let work = move || {
                let seen = data.load(Relaxed);
                data.store(seen + 1, Relaxed);
                seen
            };
            actor(move || enter(&limiter, &work))
        });
        let told = layout.act(actors.into());
        if let [Some(one), Some(other)] = told[..] {
            assert_eq!(one + other, 1, "a write made inside was not seen");
        }
    });
}

fn try_enter(limiter: &Concurrency, work: Inside<'_>) -> Option<u64> {
    let _guard = limiter.try_enter().ok()?;
    Some(work())
}

fn wait(limiter: &Concurrency, work: Inside<'_>) -> Option<u64> {
    let _guard = limiter.enter().wait().expect("room");
    Some(work())
}

#[test]
fn an_entering_thread_sees_earlier_writes() {
    let one_tries = |run: &mut Run| one_after_the_other(run, || limiter(1), try_enter);
    let sites = SOURCE.sites([ENTER, LEAVE]);
    let why = "a write made inside was not seen";
    model("one after the other", None, one_tries).relaxed(sites, why);
    let one_waits = |run: &mut Run| one_after_the_other(run, || limiter(1), wait);
    model("one waits for the other", None, one_waits);
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
        .relaxed(SOURCE.sites([NEW_PEAK, ENTER]), "a peak was missed");
}
