//! A table ten times too small: each key has what a limiter of its own gives, but for those that the policy evicts,
//! denies or admits; it does so only when it must, to the key it says, and counts it.

use std::time::Duration;

use tollgate::{
    Algorithm, AnyAlgorithm, Charged, Denied, Granted, Keyed, ManualClock, Overflow, Tick,
};

use crate::own::{Gave, Owns, Said, Verb, ask_at};
use crate::{Chosen, Random, all, in_sixteen_slots};

/// How many slots those keys share.
const SLOTS: usize = 16;

struct Churn {
    table: Keyed<AnyAlgorithm, ManualClock, Chosen>,
    owns: Owns<AnyAlgorithm>,
    random: Random,
    now: Tick,
    /// How many keys were evicted, and for how many there was no room.
    lost: [u64; 2],
}

impl Churn {
    fn new(algorithm: AnyAlgorithm, overflow: Overflow, seed: u64) -> Self {
        let table = Keyed::with_clock(algorithm, 1, ManualClock::new());
        let table = table.expect("a table").with_hasher(Chosen::default());
        Self {
            table: table.with_overflow(overflow),
            owns: Owns::new(algorithm),
            random: Random(seed),
            now: Tick::from_nanos(86_400_000_000_007),
            lost: [0; 2],
        }
    }

    fn verb(&mut self) -> Verb {
        let burst = self.owns.algorithm.available(0, self.now);
        let n = 1 + self.random.below(burst);
        match self.random.below(16) {
            0 => Verb::Acquire(0),
            1 => Verb::Acquire(burst + 1),
            2 => Verb::TakeUpTo(n),
            3 => Verb::Charge(n),
            4 => Verb::Available,
            5 | 6 => Verb::Acquire(1 + self.random.below(n)),
            _ => Verb::Acquire(1),
        }
    }

    /// Asks a key for something, and compares.
    fn ask(&mut self, key: u64, verb: Verb) {
        let now = self.now;
        let busy = match self.owns.is_busy(key, now) {
            true => Vec::new(),
            false => self.owns.busy(now),
        };
        let is_full = busy.len() == SLOTS;
        let mut right = self.owns.ask(key, now, verb);
        let needs_room = is_full && right.moved();
        let overflow = self.table.overflow();
        if needs_room && overflow != Overflow::Evict {
            // Nothing is recorded.
            self.owns.forget(key);
            self.lost[1] += 1;
            right = match (overflow, verb) {
                (Overflow::Deny, Verb::Acquire(n)) => Said::Outcome(Err(Denied::no_room(n))),
                (Overflow::Deny, Verb::TakeUpTo(_)) => Said::Took(Gave(Granted::new(0, now))),
                (Overflow::Deny, Verb::Charge(_)) => Said::Charged(Charged::new(0, now)),
                _ => right,
            };
        }
        let said = ask_at(&self.table.key(&key).at(now), verb);
        let is = &self.owns.algorithm;
        assert_eq!(
            said, right,
            "{verb:?} of {key} at {now:?} by {is:?}, {overflow:?}"
        );
        if needs_room && overflow == Overflow::Evict {
            self.find_the_evicted(&busy);
        }
    }

    /// Exactly one, and none is idle sooner. Where a bucket holds a part of a permit more than its burst, that is about
    /// so: the part is not looked at.
    fn find_the_evicted(&mut self, busy: &[u64]) {
        let now = self.now;
        let gone = |key: &&u64| self.table.key(*key).at(now).is_idle();
        let evicted: Vec<u64> = busy.iter().filter(gone).copied().collect();
        let [evicted] = evicted[..] else {
            panic!("{evicted:?} by {:?}", self.owns.algorithm);
        };
        let part: u64 = match self.owns.algorithm.to_string().contains("tolerance") {
            true => 5_000_000,
            false => 0,
        };
        self.lost[0] += 1;
        if !self.lost[0].is_multiple_of(8) {
            self.owns.forget(evicted);
            return;
        }
        let idle_at = self.owns.idle_at(evicted, now);
        for key in busy {
            let at = self.owns.idle_at(*key, now);
            let later = at.saturating_add(Duration::from_nanos(part));
            assert!(
                later >= idle_at,
                "{at:?} {idle_at:?} {:?}",
                self.owns.algorithm
            );
        }
        self.owns.forget(evicted);
    }
}

/// Until each slot has been another's a hundred times.
fn churn(algorithm: AnyAlgorithm, period: u64, overflow: Overflow, seed: u64) {
    let keys = in_sixteen_slots(10 * SLOTS);
    let mut churn = Churn::new(algorithm, overflow, seed);
    for operation in 0_usize.. {
        // Time goes on quickly, slowly, hardly.
        let pace = [16, 200, 3000][operation / 64 % 3];
        let step = churn.random.below(period / pace);
        churn.now = churn.now.saturating_add(Duration::from_nanos(step));
        churn.table.clock().set(churn.now);
        let key = keys[churn.random.skewed(keys.len() as u64) as usize];
        let verb = churn.verb();
        churn.ask(key, verb);
        if operation % 500 == 0 {
            let stats = churn.table.stats();
            assert_eq!([stats.evicted, stats.no_room], churn.lost, "{stats:?}");
            let turned_over = stats.taken_over + stats.evicted;
            let all = stats.tracked + turned_over + stats.forgotten;
            assert_eq!(stats.inserted, all, "{stats:?}");
            if turned_over >= 100 * SLOTS as u64 && churn.lost != [0; 2] {
                break;
            }
            assert!(operation < 60_000, "{stats:?} {:?}", churn.owns.algorithm);
        }
    }
}

#[test]
fn the_one_nearest_to_idle_is_evicted_and_no_other() {
    for (seed, (algorithm, period)) in all().into_iter().enumerate() {
        churn(algorithm, period, Overflow::Evict, seed as u64);
    }
}

#[test]
fn who_finds_no_room_is_denied_and_those_who_are_there_lose_nothing() {
    for (seed, (algorithm, period)) in all().into_iter().step_by(3).enumerate() {
        churn(algorithm, period, Overflow::Deny, seed as u64);
    }
}

#[test]
fn who_finds_no_room_is_admitted_as_a_fresh_key_and_not_recorded() {
    for (seed, (algorithm, period)) in all().into_iter().skip(1).step_by(3).enumerate() {
        churn(algorithm, period, Overflow::Admit, seed as u64);
    }
}

/// Of windows all are idle at the same time, whatever was taken: those who spent what there was stay to the last.
#[test]
fn a_flood_gives_nobody_a_window_once_more() {
    for text in [
        "fixed-window 100/d",
        "sliding-window 100/d",
        "intervals 100/d",
    ] {
        let algorithm: AnyAlgorithm = text.parse().expect(text);
        let clock = ManualClock::at(Tick::from_nanos(7));
        let gate = Keyed::with_clock(algorithm, 1, clock).expect("a table");
        let spent = 0..200_u32;
        for key in spent.clone() {
            assert!(gate.try_acquire_n(&key, 100).is_ok(), "{text}");
        }
        for key in 1000..30_000_u32 {
            let _ = gate.try_acquire(&key);
        }
        assert!(gate.stats().evicted > 20_000, "{text}");
        let again = spent.filter(|key| gate.try_acquire(key).is_ok());
        assert_eq!(again.count(), 0, "{text}");
    }
}
