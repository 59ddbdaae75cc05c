//! At one tick a bucket is a number of permits: every verb adds to it or subtracts from it, and
//! says so exactly.

use tollgate::algorithm::Level;
use tollgate::traits::{GiveBackLimiter, ReserveLimiter, SettleLimiter};
use tollgate::{Adjustable, TryAcquire};

use crate::support::*;
use crate::whole_burst::{any_tick, bucket, quotas};

/// A limiter with all verbs.
trait Every: SettleLimiter {
    fn empty_of_grants(&self);
    fn level_of(&self, now: Tick) -> Level;
}

macro_rules! every {
    ($($limiter:ty)*) => {$(
        impl Every for $limiter {
            fn empty_of_grants(&self) {
                self.reset();
            }
            fn level_of(&self, now: Tick) -> Level {
                self.at(now).level()
            }
        }
    )*};
}
every!(Limiter<AnyAlgorithm, NoClock> Sharded<AnyAlgorithm, NoClock> Adjustable<AnyAlgorithm, NoClock>);

/// A bucket that is used at one tick only.
#[derive(Debug)]
struct AtOneTick {
    now: Tick,
    burst: i64,
    /// The permits that are left. Below zero they are owed.
    left: i64,
    kept: Vec<Granted>,
    label: String,
}

impl AtOneTick {
    /// Calls a random verb, and compares its answer.
    fn any_verb(&mut self, limiter: &impl Every, random: &mut Random) {
        let (now, burst) = (self.now, self.burst);
        let n = 1 + random.below(burst as u64 / 2 + 1) as i64;
        let missing = burst - self.left;
        let label = format!("{} {n} of {} at {now:?}", self.label, self.left);
        match random.below(16) {
            0..=5 => {
                let answer = limiter.try_acquire_n_at(n as u64, now);
                assert_eq!(answer.is_ok(), n <= self.left, "{label}");
                if let Ok(granted) = answer {
                    self.granted(granted, n, &label);
                }
            }
            6 => {
                let none = limiter.try_acquire_n_at(0, now);
                assert_eq!(none.is_ok(), self.left >= 0, "{label}");
            }
            7 | 8 => {
                let granted = limiter.take_up_to_at(n as u64, now);
                self.granted(granted, n.min(self.left.max(0)), &label);
            }
            9 | 10 => {
                let charged = limiter.charge_at(n as u64, now);
                self.left -= n;
                let debt = (-self.left).max(0) as u64;
                assert_eq!((charged.n(), charged.debt()), (n as u64, debt), "{label}");
                assert_eq!(charged.clear_after().is_zero(), debt == 0, "{label}");
            }
            11 | 12 => {
                let back = limiter.refund_at(n as u64, now) as i64;
                assert_eq!(back, n.min(missing), "{label}");
                self.left += back;
            }
            13 => {
                limiter.empty_of_grants();
                self.left = burst;
                self.kept.clear();
            }
            14 => {
                let Some(granted) = self.kept_grant() else {
                    return;
                };
                let n = granted.n() as i64;
                let back = limiter.undo_at(granted, now) as i64;
                assert_eq!(back, n.min(missing), "undo {n}: {label}");
                self.left += back;
            }
            _ => {
                let Some(granted) = self.kept_grant() else {
                    return;
                };
                let unused = granted.n() as i64 - n;
                let _ = limiter.settle_at(granted, n as u64, now);
                self.left += unused.min(missing);
            }
        }
        let there = limiter.available_at(now);
        assert_eq!(there, self.left.max(0) as u64, "{label}");
        let level = limiter.level_of(now);
        let counted = (burst - self.left) as u64;
        assert_eq!((level.floor(), level.ceil()), (counted, counted), "{label}");
    }

    fn is_of_shards(&self) -> bool {
        self.label.starts_with("shards")
    }

    /// Returns a grant that may be undone. After an undo in debt, the shard that granted has
    /// permits before the others have paid theirs.
    fn kept_grant(&mut self) -> Option<Granted> {
        let is_uneven = self.is_of_shards() && self.left < 0;
        if is_uneven { None } else { self.kept.pop() }
    }

    fn granted(&mut self, granted: Granted, n: i64, label: &str) {
        self.left -= n;
        let remaining = granted.remaining() as i64;
        // A grant of a sharded limiter says what is left in the shards that it came from.
        let is_right = match self.is_of_shards() {
            true => remaining <= self.left.max(0),
            false => remaining == self.left.max(0),
        };
        assert!(is_right && granted.n() as i64 == n, "{granted:?}: {label}");
        if n > 0 {
            self.kept.push(granted);
        }
    }
}

fn run(limiter: &impl Every, quota: Quota, kind: &str, (now, random): (Tick, &mut Random)) {
    let left = quota.initial_permits() as i64;
    let mut bucket = AtOneTick {
        now,
        burst: quota.burst_size() as i64,
        left,
        kept: Vec::new(),
        label: format!("{kind}, {quota}"),
    };
    assert_eq!(limiter.available_at(now), left as u64, "{kind}, {quota}");
    for _ in 0..20 {
        bucket.any_verb(limiter, random);
    }
}

/// Some quotas start with fewer permits than a burst.
fn with_initial(quota: Quota, random: &mut Random) -> Quota {
    match random.below(3) {
        0 => quota.initial(random.below(quota.burst_size() + 1)),
        _ => quota,
    }
}

#[test]
fn each_verb_of_a_bucket_is_exact_at_one_tick() {
    let mut random = Random(0x0070_11a7_eb11);
    for (kind, quota) in quotas().enumerate() {
        let quota = with_initial(quota, &mut random);
        let bucket = bucket(quota, kind as u64);
        let now = any_tick(&mut random);
        let limiter = Limiter::unstarted(bucket, NoClock);
        run(&limiter, quota, "limiter", (now, &mut random));
        let limiter = Adjustable::starting_at(bucket, NoClock, now);
        run(&limiter, quota, "adjustable", (now, &mut random));
    }
}

#[test]
fn each_verb_of_shards_is_exact_at_one_tick() {
    let mut random = Random(0x0070_11a7_eb12);
    for (kind, quota) in quotas().enumerate() {
        let shards = [1, 2, 7][kind % 3];
        let quota = quota.burst(quota.burst_size().max(shards));
        let quota = with_initial(quota, &mut random);
        let now = any_tick(&mut random);
        let bucket = bucket(quota, kind as u64);
        let limiter = Sharded::starting_at(bucket, shards as usize, NoClock, now);
        let label = format!("shards: {shards}");
        run(&limiter.expect("shards"), quota, &label, (now, &mut random));
    }
}

/// Reservations take the burst without a wait, and the next permit is due when a denial would say.
/// If a reservation is cancelled at once, all its permits come back.
#[test]
fn reservations_take_the_burst_without_a_wait() {
    let mut random = Random(0x0070_11a7_eb13);
    for (kind, quota) in quotas().enumerate() {
        let (now, burst) = (any_tick(&mut random), quota.burst_size());
        let limiter = Limiter::unstarted(bucket(quota, kind as u64), NoClock);
        let mut left = burst;
        while left > 0 {
            let n = 1 + random.below(left.min(1 + burst / 8));
            let granted = limiter
                .reserve_until_at(n, Tick::MAX, now)
                .expect("in time");
            left -= n;
            assert_eq!((granted.due(), granted.remaining()), (now, left), "{quota}");
            assert_eq!(limiter.at(now).waiting(), 0, "{quota}");
        }
        let wait = limiter.at(now).time_until(1).expect("in time");
        let next = limiter
            .reserve_until_at(1, Tick::MAX, now)
            .expect("in time");
        assert_eq!(next.delay(), wait, "{quota}");
        assert_eq!(limiter.at(now).waiting(), 1, "{quota}");
        let (rest, back) = limiter.cancel_at(next, 1, now);
        assert_eq!((rest.n(), back), (0, 1), "{quota}");
        assert_eq!(limiter.at(now).waiting(), 0, "{quota}");
        assert_eq!(limiter.refund_at(burst, now), burst, "{quota}");
        assert_eq!(limiter.available_at(now), burst, "{quota}");
    }
}
