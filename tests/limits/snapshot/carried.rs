//! Restores with another quota, or another algorithm.

use tollgate::algorithm::{Rebase, Settings};
use tollgate::error::{QuotaError, RestoreError};
use tollgate::store::{AtomicWord, WordCell};

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
                cell.swap(if old == new {
                    cell.load()
                } else {
                    old.carry_over(cell.load(), at, &new)
                });
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

/// A fixed number of permits in total. It does not check its parameters.
#[derive(Debug, Clone, Copy)]
struct Total(u64);

impl Algorithm for Total {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        match n <= self.available(word, now) {
            true => Ok((word + n, Granted::new(n, now))),
            false => Err(Denied::never(n, self.0)),
        }
    }

    fn available(&self, word: u64, _now: Tick) -> u64 {
        self.0.saturating_sub(word)
    }

    fn is_idle(&self, word: u64, _now: Tick) -> bool {
        word == 0
    }
}

impl ChangeQuota for Total {
    fn quota(&self) -> Quota {
        Quota::per_second(self.0)
    }

    fn with_quota(&self, quota: Quota) -> Result<Self, QuotaError> {
        Ok(Self(quota.permits()))
    }

    fn carry_over(&self, word: u64, _now: Tick, _next: &Self) -> u64 {
        word
    }
}

impl Rebase for Total {
    fn rebase(&self, word: u64, _from: Tick, _to: Tick) -> u64 {
        word
    }
}

impl Settings for Total {
    const WORDS: usize = 1;
    const NAME: &'static str = "total";

    fn save(&self, write: &mut impl FnMut(u64)) {
        write(self.0);
    }

    fn restore(read: &mut impl FnMut() -> u64) -> Option<Self> {
        Some(Self(read()))
    }
}

#[test]
fn a_custom_algorithm_without_checks_is_restored_only_with_the_same_parameters() {
    let saved = Limiter::unstarted(Total(10), NoClock);
    saved.at(Tick::ZERO).try_acquire_n(4).expect("fresh");
    let bytes = saved.at(Tick::ZERO).snapshot();
    let same = Limiter::unstarted(Total(10), NoClock);
    let other = Limiter::unstarted(Total(11), NoClock);
    let restore = |limiter: &Limiter<Total, NoClock>| {
        let view = limiter.at(Tick::ZERO);
        (view.restore_after(&bytes, Duration::ZERO), view.available())
    };
    assert!(matches!(restore(&same), (Ok(()), 6)));
    let (error, available) = restore(&other);
    let is_other = matches!(error, Err(RestoreError::OtherParameters { plan: None }));
    assert!(is_other && available == 11, "{error:?}");
}
