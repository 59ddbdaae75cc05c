//! A bucket beside a model of its own, through changes at any moment.

use std::time::Duration;

use tollgate::{Adjustable, Gcra, Keep, LeakyBucket, NoClock, Quota, Requota, Settings, Tick};
use tollgate::{Debt, GiveBack, TokenBucket};

use crate::Random;

/// One permit every `interval` nanoseconds, up to a burst. What is there is counted in intervals of the quota in
/// force, each of as many parts as it has nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Model {
    interval: i128,
    burst: i128,
    /// Below 0 it is debt.
    parts: i128,
    at: i128,
}

impl Model {
    fn go_to(&mut self, now: i128) {
        let full = self.burst * self.interval;
        self.parts = (self.parts + now - self.at).min(full);
        self.at = now;
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

    /// Parts of a permit are lost to the caller, not to the limiter.
    fn change(&mut self, (interval, burst): (i128, i128), keep: Keep) {
        if (interval, burst) == (self.interval, self.burst) && keep != Keep::Fresh {
            return;
        }
        let full = burst * interval;
        self.parts = match keep {
            Keep::Fresh => full,
            Keep::Scaled if self.parts > 0 => self.parts * full / (self.burst * self.interval),
            _ => (self.parts * interval).div_euclid(self.interval).min(full),
        };
        (self.interval, self.burst) = (interval, burst);
    }
}

/// Intervals with common divisors and without, bursts small and large.
const QUOTAS: [(i128, i128); 6] = [(10, 7), (10, 20), (70, 3), (3, 1), (7_919, 5), (64, 64)];

fn quota((interval, burst): (i128, i128)) -> Quota {
    Quota::per(1, Duration::from_nanos(interval as u64)).burst(burst as u64)
}

/// How many operations there were, and how many were granted, denied, and changes.
fn follow<A>(algorithm: A, seed: u64, operations: u64) -> [u64; 3]
where
    A: Requota + GiveBack + Debt + Settings + Clone,
{
    let gate = Adjustable::starting_at(algorithm, NoClock, Tick::ZERO);
    let (interval, burst) = QUOTAS[0];
    let parts = interval * burst;
    let mut model = Model {
        interval,
        burst,
        parts,
        at: 0,
    };
    let (mut random, mut now, mut seen) = (Random(seed), 0, [0; 3]);
    for operation in 0..operations {
        now += match random.below(4) {
            0 => 0,
            1 => random.below(1 + 2 * model.interval as u64),
            _ => random.below(20),
        };
        model.go_to(now.into());
        let view = gate.at(Tick::from_nanos(now));
        match random.below(16) {
            0 | 1 => {
                let quota_now = QUOTAS[random.below(6) as usize];
                let keep = [Keep::AsIs, Keep::AsIs, Keep::Scaled, Keep::Fresh];
                let keep = keep[random.below(4) as usize];
                view.set_quota(quota(quota_now), keep).expect("a quota");
                model.change(quota_now, keep);
                assert_eq!(gate.quota(), quota(quota_now));
                seen[2] += 1;
            }
            2 => {
                let n = random.below(4);
                assert_eq!(view.charge(n).n(), n);
                model.parts -= i128::from(n) * model.interval;
            }
            3 => {
                let n = random.below(3);
                view.refund(n);
                let full = model.burst * model.interval;
                model.parts = (model.parts + i128::from(n) * model.interval).min(full);
            }
            _ => {
                let n = random.below(4);
                let (is, right) = (view.try_acquire_n(n).is_ok(), model.take(n));
                assert_eq!(
                    is, right,
                    "{n} in operation {operation} at {now}: {model:?}"
                );
                seen[usize::from(!is)] += 1;
            }
        }
        let (is, right) = (view.available(), model.available());
        assert_eq!(is, right, "after operation {operation} at {now}: {model:?}");
        let owes = (-model.parts).max(0) as u128;
        let owes = owes.div_ceil(model.interval as u128);
        assert_eq!(u128::from(view.charge(0).debt()), owes, "{model:?}");
    }
    seen
}

#[test]
fn a_bucket_does_what_its_model_does_through_all_changes() {
    let first = quota(QUOTAS[0]);
    for seed in 0..4 {
        let bucket = follow(TokenBucket::new(first).expect("a quota"), seed, 20_000);
        let gcra = follow(Gcra::new(first).expect("a quota"), seed, 20_000);
        let meter = follow(LeakyBucket::meter(first).expect("a quota"), seed, 20_000);
        assert_eq!((bucket, bucket), (gcra, meter));
        assert!(bucket.iter().all(|count| *count > 1000), "{bucket:?}");
    }
}

/// In every interval at most the burst of the quota in force at its beginning, and what each rate made.
#[test]
fn no_permit_comes_from_nowhere_where_it_stays_as_it_is() {
    for seed in 0..20 {
        let mut random = Random(seed);
        let bucket = TokenBucket::new(quota(QUOTAS[0])).expect("a quota");
        let gate = Adjustable::starting_at(bucket, NoClock, Tick::ZERO);
        // The grants, with the quota and the time since the quota's beginning; and what was made until each tick.
        let (mut in_force, mut now, mut made) = (QUOTAS[0], 0_u64, 0.0);
        let mut grants: Vec<(f64, u64, i128)> = Vec::new();
        for _ in 0..1000 {
            let passed = random.below(30);
            now += passed;
            made += passed as f64 / in_force.0 as f64;
            let view = gate.at(Tick::from_nanos(now));
            if random.below(8) == 0 {
                in_force = QUOTAS[random.below(6) as usize];
                view.set_quota(quota(in_force), Keep::AsIs)
                    .expect("a quota");
            }
            let granted = view.take_up_to(random.below(5));
            grants.push((made, granted.n(), in_force.1));
        }
        for (from, (begun, _, burst)) in grants.iter().enumerate() {
            let mut sum = 0;
            for (made, n, _) in &grants[from..] {
                sum += n;
                let most = *burst as f64 + (made - begun) + 1e-6;
                assert!(sum as f64 <= most, "{sum} permits, and at most {most}");
            }
        }
    }
}
