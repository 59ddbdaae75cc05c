//! An algorithm that detects whether a decision mixes two quotas, or a change is lost.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use tollgate::algorithm::Settings;
use tollgate::error::QuotaError;

use super::MANY;
use crate::support::*;

thread_local! {
    /// Runs in the middle of the next read of parameters.
    static MEANWHILE: Cell<Option<Box<dyn FnOnce()>>> = const { Cell::new(None) };
}

/// A limit kept in many words, so that a mix of two limits is visible.
#[derive(Debug, Clone)]
struct Whole([u64; 8]);

impl Whole {
    fn limit(&self) -> u64 {
        assert_eq!(self.0, [self.0[0]; 8], "mixed");
        self.0[0]
    }
}

/// The word is the limit times the number of permits taken, so a word of another limit is visible.
impl Algorithm for Whole {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        match n <= self.available(word, now) {
            true => Ok((word + n * self.limit(), Granted::new(n, now))),
            false => Err(Denied::never(n, self.limit())),
        }
    }

    fn available(&self, word: u64, _now: Tick) -> u64 {
        assert_eq!(word % self.limit(), 0, "a word of another limit");
        self.limit() - word / self.limit()
    }

    fn is_idle(&self, word: u64, _now: Tick) -> bool {
        word == 0
    }
}

impl ChangeQuota for Whole {
    fn quota(&self) -> Quota {
        Quota::per_second(self.limit())
    }

    fn with_quota(&self, quota: Quota) -> Result<Self, QuotaError> {
        Ok(Self([quota.permits(); 8]))
    }

    fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64 {
        if next.limit() == 13 {
            resume_unwind(Box::new("as it was asked to"));
        }
        (next.limit() - self.available(word, now)) * next.limit()
    }

    fn carry_used(&self, word: u64, now: Tick, next: &Self) -> u64 {
        self.carry_over(word, now, next)
    }
}

impl Settings for Whole {
    const WORDS: usize = 8;

    fn save(&self, write: &mut impl FnMut(u64)) {
        self.0.iter().for_each(|word| write(*word));
    }

    fn restore(read: &mut impl FnMut() -> u64) -> Option<Self> {
        Some(Self([0, 1, 2, 3, 4, 5, 6, 7].map(|at| {
            match MEANWHILE.take() {
                Some(work) if at == 4 => work(),
                other => MEANWHILE.set(other),
            }
            read()
        })))
    }
}

#[test]
fn no_decision_mixes_two_quotas_and_every_permit_is_granted_once() {
    deadline("threads that take until nothing is left", || {
        for threads in [1, 3, 7] {
            let limiter = Adjustable::starting_at(Whole([MANY; 8]), NoClock, Tick::ZERO);
            let view = limiter.at(Tick::ZERO);
            let take = |_| {
                let mut taken = 0;
                while view.try_acquire().is_ok() {
                    taken += 1;
                    assert!(view.try_acquire_n(MANY + 7).is_err());
                }
                taken
            };
            let mut changes = 0;
            let taken = on_threads_while(0..threads, take, |ended| {
                changes += 1;
                let quota = Quota::per_second(MANY + changes % 5);
                view.set_quota(quota, Keep::AsIs).expect("it is one");
                ended == 0 || changes < 3
            });
            assert_eq!(limiter.version(), changes);
            assert_eq!(taken.iter().sum::<u64>(), MANY);
        }
    });
}

/// After a decision has read half of its parameters, others change the quota and take two permits.
#[test]
fn a_decision_overtaken_by_a_change_is_repeated() {
    for changes in 0..4 {
        let limiter = Arc::new(Adjustable::starting_at(Whole([5; 8]), NoClock, Tick::ZERO));
        let others = Arc::clone(&limiter);
        MEANWHILE.set(Some(Box::new(move || {
            let view = others.at(Tick::ZERO);
            for more in 1..=changes {
                let quota = Quota::per_second(5 + more);
                view.set_quota(quota, Keep::AsIs).expect("it is one");
            }
            assert!(view.try_acquire_n(2).is_ok());
        })));
        assert!(limiter.at(Tick::ZERO).try_acquire_n(2).is_ok());
        let actual = (limiter.version(), limiter.at(Tick::ZERO).available());
        assert_eq!(actual, (changes, 1));
    }
}

#[test]
fn a_change_that_panics_changes_nothing_and_blocks_no_caller() {
    let limiter = Adjustable::starting_at(Whole([5; 8]), NoClock, Tick::ZERO);
    let view = limiter.at(Tick::ZERO);
    assert!(view.try_acquire_n(2).is_ok());
    for turn in 1..=3 {
        let panics = AssertUnwindSafe(|| view.set_quota(Quota::per_second(13), Keep::AsIs));
        assert!(catch_unwind(panics).is_err());
        assert_eq!(limiter.version(), turn - 1);
        assert_eq!(limiter.quota().permits(), 4 + turn);
        let more = Quota::per_second(5 + turn);
        view.set_quota(more, Keep::AsIs).expect("it is one");
        assert_eq!((view.available(), limiter.quota()), (3, more));
    }
}
