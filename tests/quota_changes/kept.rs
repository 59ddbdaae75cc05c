//! What is there after a change, and what is refused.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tollgate::{
    Adjustable, Algorithm, AnyAlgorithm, ConfigError, DebtGate, Denied, Granted, Keep, LeakyBucket,
    ManualClock, NoClock, Quota, Requota, Settings, Tick, TokenBucket,
};

use crate::all;

const NOW: Tick = Tick::from_nanos(86_400_000_000_007);

/// A limiter from which so many were taken, or charged.
fn used(algorithm: AnyAlgorithm, n: u64) -> Adjustable<AnyAlgorithm, NoClock> {
    let gate = Adjustable::starting_at(algorithm, NoClock, NOW);
    assert_eq!(gate.at(NOW).charge(n).n(), n);
    gate
}

/// The most that there can be.
fn most(algorithm: &AnyAlgorithm) -> u64 {
    algorithm.available(0, NOW)
}

fn is_exact(algorithm: &AnyAlgorithm) -> bool {
    !algorithm.to_string().contains("13/s")
}

#[test]
fn after_a_change_is_there_what_was_kept() {
    let mut compared = 0;
    for old in all() {
        for new in all() {
            for n in 0..2 * most(&old).min(30) {
                for keep in [Keep::AsIs, Keep::Scaled, Keep::Fresh] {
                    let gate = used(old, n);
                    let view = gate.at(NOW);
                    let (had, owed) = (view.available(), view.charge(0).debt());
                    view.set(new, keep);
                    let right = match keep {
                        Keep::AsIs => had.min(most(&new)),
                        Keep::Scaled => had * most(&new) / most(&old),
                        Keep::Fresh => new.quota().initial_permits(),
                    };
                    let has = view.available();
                    let lost = u64::from(!(is_exact(&old) && is_exact(&new)));
                    // A tolerance holds half a permit more than its burst, and its part is scaled with it.
                    let lost = lost.max(old.to_string().contains("tolerance").into());
                    let lost = lost.max(new.to_string().contains("tolerance").into());
                    // A period that began with a hit begins at a quantum, which is up to that much later.
                    let quantum =
                        ["greedy", "first-hit"].map(|kind| old.to_string().contains(kind));
                    let lost = lost.max((quantum != [false; 2]).into());
                    let more =
                        u64::from(old.to_string().contains("tolerance") && keep == Keep::Scaled);
                    assert!(
                        (right.saturating_sub(lost)..=right + more).contains(&has),
                        "{keep:?}: {has} of {right}, {old} to {new} with {had}"
                    );
                    let owes = view.charge(0).debt();
                    let owed = if keep == Keep::Fresh { 0 } else { owed };
                    let room = new.charge_room();
                    assert!(
                        (owed.min(room)..=owed + lost).contains(&owes),
                        "{keep:?}: owes {owes} and not {owed}, {old} to {new}"
                    );
                    assert_eq!(gate.version(), 1);
                    assert_eq!(gate.algorithm(), new);
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 5000, "{compared}");
}

trait Room {
    fn charge_room(&self) -> u64;
}

impl Room for AnyAlgorithm {
    /// How much can be owed.
    fn charge_room(&self) -> u64 {
        used_up(self).at(NOW).charge(0).debt()
    }
}

fn used_up(algorithm: &AnyAlgorithm) -> Adjustable<AnyAlgorithm, NoClock> {
    let gate = Adjustable::starting_at(*algorithm, NoClock, NOW);
    gate.at(NOW).charge(u64::MAX);
    gate
}

#[test]
fn what_is_refused_changes_nothing() {
    let bad = [
        (Quota::per_second(0), ConfigError::ZeroPermits),
        (Quota::per(5, Duration::ZERO), ConfigError::ZeroPeriod),
    ];
    for algorithm in all() {
        for keep in [Keep::AsIs, Keep::Scaled, Keep::Fresh] {
            let gate = used(algorithm, 2);
            let view = gate.at(NOW);
            let granted = view.take_up_to(1);
            let (had, level) = (view.available(), view.level());
            for (quota, error) in bad {
                assert_eq!(view.set_quota(quota, keep), Err(error), "{algorithm}");
            }
            let huge = Quota::per_second(1).burst(u64::MAX);
            assert!(view.set_quota(huge, keep).is_err(), "{algorithm}");
            assert_eq!((view.available(), view.level()), (had, level));
            assert_eq!((gate.version(), gate.algorithm()), (0, algorithm));
            assert_eq!(view.undo(granted), granted.n());
        }
    }
}

#[test]
fn the_same_quota_changes_nothing_unless_it_is_to_start_afresh() {
    for algorithm in all() {
        let gate = used(algorithm, 2);
        let view = gate.at(NOW);
        let had = view.available();
        for keep in [Keep::AsIs, Keep::Scaled] {
            view.set_quota(algorithm.quota(), keep).expect("it is one");
            assert_eq!((gate.version(), view.available()), (0, had), "{algorithm}");
        }
        view.set_quota(algorithm.quota(), Keep::Fresh)
            .expect("it is one");
        assert_eq!(gate.version(), 1);
        assert_eq!(view.available(), algorithm.quota().initial_permits());
    }
}

#[test]
fn what_was_said_besides_the_quota_stays() {
    let queue = LeakyBucket::queue(Quota::per_second(10))
        .expect("a quota")
        .free(1);
    let gate = Adjustable::with_clock(queue, ManualClock::new());
    let quota = Quota::per_second(100).burst(3);
    gate.set_quota(quota, Keep::AsIs).expect("a quota");
    let delays = [0, 0, 10].map(Duration::from_millis);
    for delay in delays {
        assert_eq!(gate.try_acquire().map(|granted| granted.delay()), Ok(delay));
    }
    assert_eq!(
        (gate.quota(), gate.algorithm().free_permits()),
        (quota, Some(1))
    );
}

#[test]
fn nothing_comes_back_of_a_grant_of_before() {
    for algorithm in all() {
        for keep in [Keep::AsIs, Keep::Scaled, Keep::Fresh] {
            let gate = Adjustable::starting_at(algorithm, NoClock, NOW);
            let view = gate.at(NOW);
            let before = view.take_up_to(2);
            let quota = Quota::per(algorithm.quota().permits(), Duration::from_secs(61));
            view.set_quota(quota, keep).expect("a quota");
            let had = view.available();
            assert_eq!(view.undo(before), 0, "{algorithm}");
            assert_eq!(view.available(), had, "{algorithm}");
            let after = view.take_up_to(1);
            assert_eq!(view.undo(after), after.n(), "{algorithm}");
            // Not of one of two changes before either, whose slot is the same.
            let after = view.take_up_to(1);
            view.set(algorithm, keep);
            view.set_quota(quota, keep).expect("a quota");
            assert_eq!(view.undo(after), 0, "{algorithm}");
        }
    }
}

#[test]
fn it_is_a_gate_as_the_others_are() {
    fn drain(gate: &impl DebtGate<Clock = NoClock>) -> u64 {
        gate.charge_at(1, NOW);
        gate.take_up_to_at(100, NOW).n()
    }
    let bucket = TokenBucket::new(Quota::per_second(10)).expect("a quota");
    let gate = Adjustable::starting_at(bucket, NoClock, NOW);
    assert_eq!(drain(&&gate), 9);
    assert_eq!(gate.at(NOW).time_until(1), Some(Duration::from_millis(100)));
    assert!(Adjustable::<TokenBucket>::is_lock_free() || !cfg!(target_arch = "aarch64"));
}

/// A limit whose carrying over panics, for the limit 13.
#[derive(Debug, Clone)]
struct Fragile(u64);

impl Algorithm for Fragile {
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

impl Requota for Fragile {
    fn quota(&self) -> Quota {
        Quota::per_second(self.0)
    }
    fn with_quota(&self, quota: Quota) -> Result<Self, ConfigError> {
        Ok(Self(quota.permits()))
    }
    fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64 {
        assert_ne!(next.0, 13, "as it was asked to");
        next.0 - self.available(word, now).min(next.0)
    }
}

impl Settings for Fragile {
    const WORDS: usize = 1;
    fn save(&self, write: &mut impl FnMut(u64)) {
        write(self.0);
    }
    fn restore(read: &mut impl FnMut() -> u64) -> Option<Self> {
        Some(Self(read()))
    }
}

#[test]
fn who_panics_in_a_change_has_changed_nothing_and_stops_nobody() {
    let gate = Adjustable::with_clock(Fragile(5), ManualClock::new());
    assert!(gate.try_acquire_n(2).is_ok());
    for turn in 1..=3 {
        let panics = AssertUnwindSafe(|| gate.set_quota(Quota::per_second(13), Keep::AsIs));
        assert!(catch_unwind(panics).is_err());
        assert_eq!(gate.version(), turn - 1);
        assert_eq!((gate.available(), gate.quota().permits()), (3, 4 + turn));
        let more = Quota::per_second(5 + turn);
        gate.set_quota(more, Keep::AsIs).expect("it is one");
        assert_eq!((gate.available(), gate.quota()), (3, more));
    }
}
