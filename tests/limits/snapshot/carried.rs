//! Restores with another quota, or another algorithm.

use tollgate::algorithm::{Rebase, Settings};
use tollgate::error::RestoreError;
use tollgate::store::{AtomicWord, WordCell};

use crate::algorithm::words::Own;
use crate::support::algorithms::limiter;
use crate::support::*;

#[test]
fn a_restore_with_another_quota_carries_over_as_set_quota_does() {
    for old in algorithms() {
        for new in algorithms() {
            let at = tick(123_456_789_012);
            for use_up in [false, true] {
                let saved = limiter(old);
                let view = saved.at(at);
                let n = if use_up { u64::MAX } else { 2 };
                let _ = view.take_up_to(n);
                if use_up {
                    view.charge(3);
                }
                let bytes = view.snapshot();
                let restored = limiter(new);
                restored
                    .at(at)
                    .restore_after(&bytes, Duration::ZERO)
                    .expect("whole");

                let cell = WordCell::new(tollgate::store::UNSTARTED);
                let same = Limiter::with_cell(old, NoClock, &cell);
                let _ = same.at(at).take_up_to(n);
                if use_up {
                    same.at(at).charge(3);
                }
                if old != new {
                    cell.swap(old.carry_over(cell.load(), at, &new));
                }
                let expected = Limiter::with_cell(new, NoClock, &cell);
                for step in [0, 1, 1_000_000, 1_000_000_000, 100_000_000_000] {
                    let now = at.saturating_add(Duration::from_nanos(step));
                    let (a, b) = (restored.at(now), expected.at(now));
                    assert_eq!(a.available(), b.available(), "{old} to {new}");
                    assert_eq!(a.time_until(1), b.time_until(1), "{old} to {new}");
                }
                // No permits are gained.
                let (had, has) = (view.available(), restored.at(at).available());
                assert!(has <= had, "{has} of {had}: {old} to {new}");
            }
        }
    }
}

/// So many permits a second.
fn own(n: u64) -> Limiter<Own, NoClock> {
    let bucket = TokenBucket::new(Quota::per_second(n)).expect("a quota");
    Limiter::unstarted(Own(bucket.into()), NoClock)
}

impl Rebase for Own {
    fn rebase(&self, word: u64, from: Tick, to: Tick) -> u64 {
        self.0.rebase(word, from, to)
    }
}

/// It does not check its parameters.
impl Settings for Own {
    const WORDS: usize = AnyAlgorithm::WORDS;
    const NAME: &'static str = "own";

    fn save(&self, write: &mut impl FnMut(u64)) {
        self.0.save(write);
    }

    fn restore(read: &mut impl FnMut() -> u64) -> Option<Self> {
        AnyAlgorithm::restore(read).map(Self)
    }
}

#[test]
fn a_custom_algorithm_without_checks_is_restored_only_with_the_same_parameters() {
    let saved = own(10);
    saved.at(Tick::ZERO).try_acquire_n(4).expect("fresh");
    let bytes = saved.at(Tick::ZERO).snapshot();
    let (same, other) = (own(10), own(11));
    let restore = |limiter: &Limiter<Own, NoClock>| {
        let view = limiter.at(Tick::ZERO);
        (view.restore_after(&bytes, Duration::ZERO), view.available())
    };
    assert!(matches!(restore(&same), (Ok(()), 6)));
    let (error, available) = restore(&other);
    let is_other = matches!(error, Err(RestoreError::OtherParameters { plan: None }));
    assert!(is_other && available == 11, "{error:?}");
}
