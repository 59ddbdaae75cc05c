//! Fifty years of uninterrupted work: after the bucket ran dry, permit `k` is due
//! `k * period / n` later, whatever was taken on the way there.

use tollgate::{Limiter, NoClock, Quota, Tick, TokenBucket};

use crate::exact::model::FIFTY_YEARS;
use crate::support::random::Random;

/// A bucket that never was full again since it ran dry.
struct Work {
    gate: Limiter<TokenBucket, NoClock>,
    quota: Quota,
    random: Random,
    /// When the bucket ran dry.
    start: u64,
    now: u64,
    /// How many permits have been taken since.
    taken: u64,
    late: u64,
    probes: u64,
}

impl Work {
    fn from(quota: Quota, start: u64, seed: u64) -> Self {
        let bucket = TokenBucket::new(quota.initial(0)).expect("a bucket");
        let gate = Limiter::unstarted(bucket, NoClock);
        gate.at(Tick::from_nanos(start)).start();
        Self {
            gate,
            quota,
            random: Random(seed),
            start,
            now: start,
            taken: 0,
            late: 0,
            probes: 0,
        }
    }

    /// When `n` more permits are due. Rationals again, and not the model's.
    fn due(&self, n: u64) -> u64 {
        let permits = u128::from(self.taken) + u128::from(n);
        let waited =
            (permits * self.quota.period().as_nanos()).div_ceil(u128::from(self.quota.permits()));
        u64::try_from(u128::from(self.start) + waited).unwrap_or(u64::MAX)
    }

    /// How many permits the work is short of being due at `tick`.
    fn left(&self, tick: u64) -> u64 {
        let time = u128::from(tick - self.start) * u128::from(self.quota.permits());
        let permits = time / self.quota.period().as_nanos();
        u64::try_from(permits.saturating_sub(u128::from(self.taken))).unwrap_or(u64::MAX)
    }

    /// Looks for `n` permits a nanosecond before they are due, when they are, and after. Takes
    /// them then; or beforehand, if the bucket could else be full for a part of a nanosecond.
    fn probe(&mut self, n: u64) {
        let due = self.due(n);
        let at = |tick| self.gate.at(Tick::from_nanos(tick));
        assert!(
            due == self.start || at(due - 1).try_acquire_n(n).is_err(),
            "{self}"
        );
        let wait = at(self.now).time_until(n).expect("in time").as_nanos();
        let late = u128::from(self.now) + wait - u128::from(due);
        assert!(late <= 1, "{late} ns late: {self}");
        let due = due + late as u64;
        if late == 1 {
            let then = at(due - 1).try_acquire_n(n).expect_err("it said later");
            assert_eq!(
                then.retry_after().map(|wait| wait.as_nanos()),
                Some(1),
                "{self}"
            );
        }
        assert!(at(due).available() >= n, "{self}");
        if self.leaves_some(n) {
            assert!(at(due).try_acquire_n(n).is_ok(), "{self}");
            self.taken += n;
            self.now = due;
        } else {
            self.skip(n);
        }
        self.late += late as u64;
        self.probes += 1;
    }

    /// Whether the bucket is not full when `n` permits are taken as late as a nanosecond after they
    /// are due.
    fn leaves_some(&self, n: u64) -> bool {
        let a_nanosecond = u128::from(self.quota.permits()) / self.quota.period().as_nanos() + 1;
        u128::from(n) + 2 * a_nanosecond < u128::from(self.quota.burst_size())
    }

    /// Takes `n` permits long before they are due.
    fn skip(&mut self, n: u64) {
        let charged = self.gate.at(Tick::from_nanos(self.now)).charge(n);
        assert_eq!(charged.n(), n, "{self}");
        self.taken += n;
    }

    /// Some skips and probes, none of them due after `end`.
    fn work(&mut self, until: u64, turns: u32) {
        for _ in 0..turns {
            let left = self.left(until).saturating_sub(self.quota.burst_size());
            self.skip(self.random.clone().upto(left));
            self.random.next();
            let n = 1 + self.random.upto(self.quota.burst_size() - 1);
            if self.due(n) > until {
                return;
            }
            self.probe(n);
        }
    }
}

impl std::fmt::Display for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} from {}, {} taken, at {}, {:?}",
            self.quota, self.start, self.taken, self.now, self.random
        )
    }
}

/// Fifty years of it: how many probes, and how many of them found a permit late.
pub(crate) fn fifty_years(quota: Quota, start: u64, seed: u64) -> (u64, u64) {
    let mut work = Work::from(quota, start, seed);
    for tenth in 1..=10 {
        let until = start + (FIFTY_YEARS - start) / 10 * tenth;
        work.work(until, 40);
        // All that is left of these five years at once, and one by one to their end.
        let left = work.left(until);
        if left > 50 {
            work.skip(left - 50);
        }
        while work.due(1) <= until {
            work.probe(1);
        }
    }
    let (permits, period) = (u128::from(quota.permits()), quota.period().as_nanos());
    let next = u128::from(start) + u128::from(work.taken + 2) * period / permits;
    assert!(next >= u128::from(FIFTY_YEARS) - 10, "{work}");
    (work.probes, work.late)
}
