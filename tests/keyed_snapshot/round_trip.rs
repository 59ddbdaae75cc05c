//! What each key can get after a restart is what it could get before.

use std::fmt::Debug;
use std::time::Duration;

use tollgate::{
    Algorithm, AnyAlgorithm, Clock, Debt, FixedWindow, Forecast, Gcra, Intervals, Keyed,
    LeakyBucket, ManualClock, Quota, Rebase, Requota, Settings, SlidingWindow, Tick, TokenBucket,
};

use crate::{Random, SECOND, all, restarted, table, ticks};

const KEYS: u64 = 60;

/// Some keys, each of which was granted and charged something, and one that was not.
fn used<A: Requota + Debt + Forecast>(algorithm: A) -> Keyed<A, ManualClock> {
    let gate = table(algorithm, ticks(60.0));
    let mut random = Random(KEYS);
    for turn in 0..400 {
        let (key, most) = (random.below(KEYS), 1 + gate.key(&0).available());
        let now = ticks(60.0 + f64::from(turn) * 0.007);
        gate.clock().set(now);
        let _ = gate.try_acquire_n(&key, 1 + random.below(most));
        if random.below(40) == 0 {
            gate.key(&key).charge(random.below(4));
        }
    }
    gate
}

/// The same table without a restart, and with one; what is `from` on the first one's clock is `to` on the other one's.
struct Pair<A> {
    stays: Keyed<A, ManualClock>,
    next: Keyed<A, ManualClock>,
    from: Tick,
    to: Tick,
}

impl<A: Algorithm + Forecast + Debug> Pair<A> {
    fn at(&self, now: Tick, what: impl Fn(tollgate::keyed::KeyAt<'_, A, ManualClock>, u64)) {
        for key in 0..KEYS {
            what(self.next.key(&key).at(now), key);
        }
    }

    fn then(&self, now: Tick) -> Tick {
        self.from.saturating_add(now.saturating_since(self.to))
    }

    /// The same for each key, from now on; and the same decisions.
    fn are_alike(&self, now: Tick) {
        let mut random = Random(7);
        for turn in 0..50 {
            let now = now.saturating_add(Duration::from_millis(61 * turn));
            let then = self.then(now);
            self.at(now, |next, key| {
                let old = self.stays.key(&key);
                let old = old.at(then);
                let n = 1 + key % 3;
                assert_eq!(next.available(), old.available(), "{key} {:?}", self.next);
                assert_eq!(next.time_until(n), old.time_until(n), "{:?}", self.next);
            });
            let (key, n) = (random.below(KEYS), 1 + random.below(3));
            let next = self.next.key(&key).try_acquire_n_at(n, now).is_ok();
            let old = self.stays.key(&key).try_acquire_n_at(n, then).is_ok();
            assert_eq!(next, old, "{:?}", self.next);
        }
    }

    /// No key has more, or sooner.
    fn has_no_more(&self, now: Tick) {
        self.at(now, |next, key| {
            let old = self.stays.key(&key);
            let old = old.at(self.then(now));
            let (has, had) = (next.available(), old.available());
            assert!(has <= had, "{has} {had} {:?}", self.next);
            // Who is idle begins anew, with what there is initially.
            assert!(
                had <= has + 1 || old.is_idle(),
                "{has} {had} {:?}",
                self.next
            );
        });
    }
}

fn pair<A>(algorithm: A, to: Tick, elapsed: Duration) -> Pair<A>
where
    A: Requota + Rebase + Settings + Debt + Forecast + Clone + Debug,
{
    let stays = used(algorithm.clone());
    let next = restarted(&stays, algorithm, to, elapsed);
    assert!(!elapsed.is_zero() || next.len() > 1, "{next:?}");
    let from = stays.clock().now().saturating_add(elapsed);
    Pair {
        stays,
        next,
        from,
        to,
    }
}

/// Where the clocks have the same phase nothing is different.
fn is_exact<A>(algorithm: A)
where
    A: Requota + Rebase + Settings + Debt + Forecast + Clone + Debug,
{
    for elapsed in [Duration::ZERO, Duration::from_millis(10)] {
        let from = used(algorithm.clone()).clock().now();
        let from = from.saturating_add(elapsed);
        let minute = algorithm.quota().period() > SECOND;
        let earlier = if minute { 60 * SECOND } else { 17 * SECOND };
        let from_later = from.saturating_add(60 * SECOND);
        for to in [from, from.saturating_sub(earlier), from_later] {
            pair(algorithm.clone(), to, elapsed).are_alike(to);
        }
    }
}

#[test]
fn each_algorithm_goes_on_as_if_nothing_had_been() {
    let quota = Quota::per_second(10);
    is_exact(TokenBucket::new(quota.burst(25)).expect("a bucket"));
    is_exact(Gcra::new(quota).expect("a bucket"));
    is_exact(LeakyBucket::queue(quota).expect("a queue"));
    is_exact(FixedWindow::new(quota).expect("windows"));
    is_exact(SlidingWindow::new(quota).expect("a window"));
    is_exact(Intervals::new(quota.burst(15)).expect("a bucket"));
    for algorithm in all() {
        // A clock that is not exact rounds, against the caller, and so does the quantum of what opens by itself; and
        // who is idle begins anew, with what there is initially.
        let text = algorithm.to_string();
        let rounds = ["13/s", "first-hit", "greedy", "7/min", "initial"];
        if !rounds.iter().any(|rounds| text.contains(rounds)) {
            is_exact::<AnyAlgorithm>(algorithm);
        }
    }
}

#[test]
fn on_a_clock_of_another_phase_no_key_has_more() {
    // Who is idle begins anew, with what there is initially.
    let all = all().into_iter();
    for algorithm in all.filter(|algorithm| !algorithm.to_string().contains("initial")) {
        for to in [0.0, 0.04, 3.2, 59.999, 777.777] {
            for elapsed in [0, 1, 130, 5000] {
                let (to, elapsed) = (ticks(to), Duration::from_millis(elapsed));
                pair(algorithm, to, elapsed).has_no_more(to);
            }
        }
    }
}

#[test]
fn the_time_between_counts() {
    let gate = table(crate::bucket("10/s burst 100"), ticks(5.0));
    let _ = gate.try_acquire_n("alice", 100).expect("fresh");
    let _ = gate.try_acquire_n("bob", 10).expect("fresh");
    let next = restarted(
        &gate,
        crate::bucket("10/s burst 100"),
        ticks(0.5),
        3 * SECOND,
    );
    assert_eq!(next.key("alice").available(), 30);
    assert_eq!((next.key("bob").available(), next.len()), (100, 1));
}

/// A restart in the same process, by the time of day, which goes on or is the same.
#[test]
fn the_time_of_day_counts_what_has_passed_and_no_more() {
    let gate = table(crate::bucket("1/365d burst 100"), ticks(5.0));
    let _ = gate.try_acquire_n("alice", 100).expect("fresh");
    let bytes = crate::written(&gate);
    let mut next = table(crate::bucket("1/365d burst 100"), ticks(0.0));
    let restored = next.restore(&mut bytes.as_slice()).expect("whole");
    assert_eq!((restored.keys, next.key("alice").available()), (1, 0));
    assert!(restored.elapsed < 86_400 * SECOND, "{restored:?}");
}

/// The time of day at which it was written is the fourth number.
#[test]
fn a_time_of_day_that_went_back_counts_as_none() {
    let gate = table(crate::bucket("1/s burst 100"), ticks(5.0));
    let _ = gate.try_acquire_n("alice", 100).expect("fresh");
    for (then, left) in [(u64::MAX, 0), (0, 100)] {
        let bytes = crate::forged::with_number(&crate::written(&gate), 3, then);
        let mut next = table(crate::bucket("1/s burst 100"), ticks(0.0));
        let restored = next.restore(&mut bytes.as_slice()).expect("whole");
        assert_eq!(next.key("alice").available(), left, "{restored:?}");
        assert_eq!(restored.elapsed.is_zero(), left == 0);
    }
}

#[test]
fn who_is_late_comes_in_at_the_tick_of_the_restart() {
    let gate = table(crate::bucket("10/s"), ticks(9.0));
    let _ = gate.try_acquire_n("alice", 10).expect("fresh");
    // Idle when the snapshot is written, so that it is not in it.
    let next = restarted(&gate, crate::bucket("10/s"), ticks(1.0), SECOND);
    assert!(next.is_empty());
    let granted = next
        .try_acquire_n_at("alice", 10, ticks(0.0))
        .expect("fresh");
    assert_eq!(granted.at(), ticks(1.0));
}
