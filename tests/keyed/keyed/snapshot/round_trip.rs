//! Each key gets the same decisions after a restart as without one.

use super::{SECOND, next_table, restarted, table, ticks, written};
use crate::support::*;

const KEYS: u64 = 60;

/// The same table without a restart and with one. The tick `from` on the first clock is `to` on the
/// other.
struct Pair {
    stays: Keyed<AnyAlgorithm, ManualClock>,
    next: Keyed<AnyAlgorithm, ManualClock>,
    from: Tick,
    to: Tick,
}

impl Pair {
    /// Creates tables with some keys that were granted and charged permits, and one that was not.
    /// The second table's clock is at `to`, or at a given distance from the first one's.
    fn new(algorithm: AnyAlgorithm, to: impl Fn(Tick) -> Tick, elapsed: Duration) -> Self {
        let stays = table(algorithm, ticks(60.0));
        let mut random = Random(KEYS);
        for turn in 0..400 {
            let (key, most) = (random.below(KEYS), 1 + stays.key(&0).available());
            stays.clock().set(ticks(60.0 + f64::from(turn) * 0.007));
            let _ = stays.try_acquire_n(&key, 1 + random.below(most));
            if random.one_in(40) {
                stays.key(&key).charge(random.below(4));
            }
        }
        let from = stays.clock().now().saturating_add(elapsed);
        let to = to(from);
        let next = restarted(&stays, algorithm, to, elapsed);
        assert!(!elapsed.is_zero() || next.len() > 1, "{next:?}");
        Self {
            stays,
            next,
            from,
            to,
        }
    }

    fn then(&self, now: Tick) -> Tick {
        self.from.saturating_add(now.saturating_since(self.to))
    }

    /// Checks that each key has the same state from now on, and gets the same decisions.
    fn are_alike(&self) {
        let (mut random, of) = (Random(7), &self.stays);
        for turn in 0..50 {
            let now = self.to.saturating_add(Duration::from_millis(61 * turn));
            let then = self.then(now);
            for key in 0..KEYS {
                let views = [self.next.key(&key).at(now), self.stays.key(&key).at(then)];
                let [next, old] = views.map(|at| (at.available(), at.time_until(1 + key % 3)));
                assert_eq!(next, old, "{key} {of:?}");
            }
            let (key, n) = (random.below(KEYS), 1 + random.below(3));
            let next = self.next.key(&key).at(now).try_acquire_n(n).is_ok();
            let old = self.stays.key(&key).at(then).try_acquire_n(n).is_ok();
            assert_eq!(next, old, "{of:?}");
        }
    }

    /// Checks that no key has more permits, or gets them sooner.
    fn has_no_more(&self) {
        for key in 0..KEYS {
            let old = self.stays.key(&key).at(self.then(self.to));
            let has = self.next.key(&key).at(self.to).available();
            let (had, of) = (old.available(), &self.stays);
            let is_right = has <= had && (had <= has + 1 || old.is_idle());
            assert!(is_right, "{has} {had} {of:?}");
        }
    }
}

/// If the clocks have the same phase, nothing differs.
#[test]
fn a_restored_key_of_each_algorithm_decides_as_before() {
    for algorithm in all() {
        // An inexact clock rounds against the caller, and so does the quantum of a period that the
        // first permit opens.
        let text = algorithm.to_string();
        let rounds = ["13/s", "first-hit", "greedy", "7/min"];
        if rounds.iter().any(|rounds| text.contains(rounds)) {
            continue;
        }
        let is_long = algorithm.quota().period() > SECOND;
        let earlier = if is_long { 60 * SECOND } else { 17 * SECOND };
        for elapsed in [Duration::ZERO, Duration::from_millis(10)] {
            Pair::new(algorithm, |from| from, elapsed).are_alike();
            Pair::new(algorithm, |from| from.saturating_sub(earlier), elapsed).are_alike();
            Pair::new(algorithm, |from| from.saturating_add(60 * SECOND), elapsed).are_alike();
        }
    }
}

#[test]
fn a_restored_key_has_no_more_on_a_clock_of_another_phase() {
    for algorithm in all() {
        for to in [0.0, 0.04, 3.2, 59.999, 777.777] {
            for elapsed in [0, 1, 130, 5000] {
                let elapsed = Duration::from_millis(elapsed);
                Pair::new(algorithm, |_| ticks(to), elapsed).has_no_more();
            }
        }
    }
}

/// A restart in the same process, by the time of day, which advances or stays. A time of day that
/// went back or was unknown counts as no pause. The fifth number is the time of writing.
#[test]
fn the_time_of_day_measures_the_pause() {
    let limiter = table(bucket("1/365d burst 100"), ticks(5.0));
    let _ = limiter.try_acquire_n("alice", 100).expect("fresh");
    let restored = |bytes: &[u8]| {
        let mut next = next_table(bucket("1/365d burst 100"), ticks(0.0));
        let restored = next.restore(&mut &*bytes).expect("whole");
        (restored, next.key("alice").available())
    };
    let bytes = written(&limiter);
    let (now, left) = restored(&bytes);
    assert_eq!((now.keys, left), (1, 0));
    assert!(now.elapsed < 86_400 * SECOND, "{now:?}");
    let (back, left) = restored(&forged::with_number(&bytes, 4 * 8, u64::MAX));
    assert_eq!((back.elapsed, left), (Duration::ZERO, 0));
    let (unknown, left) = restored(&forged::with_number(&bytes, 4 * 8, 0));
    assert_eq!((unknown.elapsed, left), (Duration::ZERO, 0));
    let (since_1970, left) = restored(&forged::with_number(&bytes, 4 * 8, 1));
    assert!(since_1970.elapsed > 50 * 365 * 86_400 * SECOND && left > 50);
}

#[test]
fn a_late_caller_counts_at_the_tick_of_the_restart() {
    let limiter = table(bucket("10/s"), ticks(9.0));
    let _ = limiter.try_acquire_n("alice", 10).expect("fresh");
    // The key is idle when the snapshot is written, and so is not in it.
    let next = restarted(&limiter, bucket("10/s"), ticks(1.0), SECOND);
    assert!(next.is_empty());
    let granted = next.key("alice").at(ticks(0.0)).try_acquire_n(10);
    assert_eq!(granted.expect("fresh").at(), ticks(1.0));
}
