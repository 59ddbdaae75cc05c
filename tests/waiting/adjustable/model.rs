//! Compares a bucket with its model while the quota changes at any time.

use super::{KEEPS, adjustable};
use crate::support::*;

const OPERATIONS: u64 = debug_or_release(10_000, 80_000);

/// One permit every `interval` nanoseconds, up to a burst. Available permits are counted in
/// intervals of the current quota, each with as many parts as nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Model {
    interval: i128,
    burst: i128,
    /// Negative in debt.
    parts: i128,
}

impl Model {
    fn full(&self) -> i128 {
        self.burst * self.interval
    }

    fn give(&mut self, parts: i128) {
        self.parts = (self.parts + parts).min(self.full());
    }

    fn available(&self) -> u64 {
        (self.parts / self.interval).max(0) as u64
    }

    fn take(&mut self, n: u64) -> bool {
        let fits = n <= self.available() && (n > 0 || self.parts >= 0);
        if fits {
            self.parts -= i128::from(n) * self.interval;
        }
        fits
    }

    /// A fraction of a permit is rounded against the caller.
    fn change(&mut self, (interval, burst): (i128, i128), keep: Keep) {
        if (interval, burst) == (self.interval, self.burst) && keep != Keep::Fresh {
            return;
        }
        let full = burst * interval;
        self.parts = match keep {
            Keep::Fresh => full,
            Keep::Scaled if self.parts > 0 => self.parts * full / self.full(),
            Keep::Used => full + ((self.parts - self.full()) * interval).div_euclid(self.interval),
            _ => (self.parts * interval).div_euclid(self.interval).min(full),
        };
        (self.interval, self.burst) = (interval, burst);
    }
}

/// Intervals with and without common divisors, and bursts from small to large.
const QUOTAS: [(i128, i128); 6] = [(10, 7), (10, 20), (70, 3), (3, 1), (7_919, 5), (64, 64)];

fn quota((interval, burst): (i128, i128)) -> Quota {
    Quota::per(1, Duration::from_nanos(interval as u64)).burst(burst as u64)
}

/// Returns the numbers of grants, denials and changes.
fn follow(kind: &str) -> [u64; 3] {
    let limiter = adjustable(algorithm(&format!("{kind} 1/10ns burst 7")), Tick::ZERO);
    let (interval, burst) = QUOTAS[0];
    let parts = interval * burst;
    let mut model = Model {
        interval,
        burst,
        parts,
    };
    let (mut random, mut now, mut seen) = (Random(1), 0, [0; 3]);
    for operation in 0..OPERATIONS {
        let passed = match random.below(4) {
            0 => 0,
            1 => random.below(1 + 2 * model.interval as u64),
            _ => random.below(20),
        };
        now += passed;
        model.give(passed.into());
        let view = limiter.at(tick(now));
        let (verb, n) = (random.below(16), random.below(4));
        match verb {
            0 | 1 => {
                let next = QUOTAS[random.below(6) as usize];
                let keep = KEEPS[n as usize];
                view.set_quota(quota(next), keep).expect("a quota");
                model.change(next, keep);
                assert_eq!(limiter.quota(), quota(next));
                seen[2] += 1;
            }
            2 => {
                assert_eq!(view.charge(n).n(), n);
                model.parts -= i128::from(n) * model.interval;
            }
            3 => {
                view.refund(n);
                model.give(i128::from(n) * model.interval);
            }
            _ => {
                let (is, right) = (view.try_acquire_n(n).is_ok(), model.take(n));
                assert_eq!(
                    is, right,
                    "{n} in operation {operation} at {now}: {model:?}"
                );
                seen[usize::from(!is)] += 1;
            }
        }
        let owes = (-model.parts).max(0) as u128;
        let owes = owes.div_ceil(model.interval as u128);
        let is = (view.available(), u128::from(view.charge(0).debt()));
        let right = (model.available(), owes);
        assert_eq!(is, right, "after operation {operation} at {now}: {model:?}");
    }
    seen
}

#[test]
fn a_bucket_matches_its_model_through_all_changes() {
    let seen = ["token-bucket", "gcra", "leaky-meter"].map(follow);
    assert_eq!(seen, [seen[0]; 3]);
    assert!(
        seen[0].iter().all(|count| *count > OPERATIONS / 20),
        "{seen:?}"
    );
}
