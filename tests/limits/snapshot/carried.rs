//! Restores with another quota, or another algorithm.

use tollgate::algorithm::{Rebase, Settings};
use tollgate::error::RestoreError;
use tollgate::store::{AtomicWord, WordCell};

use super::{One, on};
use crate::algorithm::words::Own;
use crate::support::*;

#[test]
fn a_restore_with_another_quota_carries_over_as_set_quota_does() {
    let at = tick(123_456_789_012);
    for (old, new) in algorithms()
        .into_iter()
        .flat_map(|old| algorithms().map(|new| (old, new)))
    {
        for (make, use_up) in One::kinds(&new).flat_map(|make| [(make, false), (make, true)]) {
            let (n, debt) = if use_up { (u64::MAX, 3) } else { (2, 0) };
            let saved = make(old);
            let _ = on!(&saved, at, |view| view.take_up_to(n));
            on!(&saved, at, |view| view.charge(debt));
            let mut restored = make(new);
            restored.restore(at, &saved.saved(at), Duration::ZERO);

            let cell = WordCell::new(tollgate::store::UNSTARTED);
            let same = Limiter::with_cell(old, NoClock, &cell);
            let _ = same.at(at).take_up_to(n);
            same.at(at).charge(debt);
            if old != new {
                cell.swap(old.carry_over(cell.load(), at, &new));
            }
            let expected = Limiter::with_cell(new, NoClock, &cell);
            for step in [0, 1, 1_000_000, 1_000_000_000, 100_000_000_000] {
                let now = at.saturating_add(Duration::from_nanos(step));
                let found = on!(&restored, now, |view| (
                    view.available(),
                    view.time_until(1)
                ));
                let right = (expected.at(now).available(), expected.at(now).time_until(1));
                assert_eq!(found, right, "{old} to {new}");
            }
            // No permits are gained.
            let [had, has] = [&saved, &restored].map(|one| on!(one, at, |view| view.available()));
            assert!(has <= had, "{has} of {had}: {old} to {new}");
        }
    }
}

/// So many permits a second.
fn own(n: u64) -> Limiter<Own, NoClock> {
    let bucket = TokenBucket::new(Quota::per_second(n)).expect("a quota");
    Limiter::unstarted(Own(bucket.into()), NoClock)
}

/// On another clock it returns a word that no limiter stores.
impl Rebase for Own {
    fn rebase(&self, word: u64, from: Tick, to: Tick) -> u64 {
        match from == to {
            true => self.0.rebase(word, from, to),
            false => tollgate::store::UNSTARTED,
        }
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
    // An unstarted limiter would be full.
    let later = same.at(tick(1));
    assert!(later.restore_after(&bytes, Duration::ZERO).is_ok());
    assert_eq!(later.available(), 0);
}
