//! A table ten times too small: each key has what a limiter of its own gives, but for those that
//! the policy evicts, denies or admits; it does so only when it must, to the key it says, and
//! counts it.

use std::time::Duration;

use tollgate::algorithm::Algorithm;
use tollgate::outcome::Charged;
use tollgate::{AnyAlgorithm, Denied, Granted, Keyed, ManualClock, Overflow, Tick};

use crate::support::model::{Gave, Model, Said, Verb, ask_at};
use crate::support::{Chosen, NOW, Random, all, crowded, in_sixteen_slots, often, period, tick};

/// How many slots the keys share.
const SLOTS: usize = 16;

struct Churn {
    table: Keyed<AnyAlgorithm, ManualClock, Chosen>,
    model: Model,
    random: Random,
    now: Tick,
    /// How many keys were evicted, and for how many there was no room.
    lost: [u64; 2],
}

impl Churn {
    fn verb(&mut self) -> Verb {
        let burst = self.model.plans[0].available(0, self.now);
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
        let busy = match self.model.is_busy(key, now) {
            true => Vec::new(),
            false => self.model.busy(now),
        };
        let is_full = busy.len() == SLOTS;
        let mut right = self.model.ask(key, 0, now, &verb);
        let asked = format!("{verb:?}");
        let needs_room = is_full && self.model.is_busy(key, now);
        let overflow = self.table.overflow();
        if needs_room && overflow != Overflow::Evict {
            // Nothing is recorded.
            self.model.keys.remove(&key);
            self.lost[1] += 1;
            right = match (overflow, &verb) {
                (Overflow::Deny, Verb::Acquire(n)) => Said::Outcome(Err(Denied::no_room(*n))),
                (Overflow::Deny, Verb::TakeUpTo(_)) => Said::Took(Gave(Granted::new(0, now))),
                (Overflow::Deny, Verb::Charge(_)) => Said::Charged(Charged::new(0, now)),
                _ => right,
            };
        }
        let said = ask_at(&self.table.key(&key).at(now), verb);
        let of = &self.model.plans[0];
        assert_eq!(said, right, "{asked} of {key} by {of}, {overflow:?}");
        if needs_room && overflow == Overflow::Evict {
            self.find_the_evicted(&busy);
        }
    }

    /// Exactly one, and none is idle sooner. Where a bucket holds a part of a permit more than its
    /// burst, that is about so: the part is not looked at.
    fn find_the_evicted(&mut self, busy: &[u64]) {
        let (now, of) = (self.now, &self.model.plans[0]);
        let gone = |key: &&u64| self.table.key(*key).at(now).is_idle();
        let evicted: Vec<u64> = busy.iter().filter(gone).copied().collect();
        let [evicted] = evicted[..] else {
            panic!("{evicted:?} by {of}");
        };
        let part = match of.to_string().contains("tolerance") {
            true => Duration::from_millis(5),
            false => Duration::ZERO,
        };
        if self.lost[0].is_multiple_of(8) {
            let idle_at = |key| self.model.idle_at(key, now);
            let first = busy.iter().map(|key| idle_at(*key)).min();
            let first = first.expect("sixteen").saturating_add(part);
            assert!(idle_at(evicted) <= first, "{evicted} {first:?} {of}");
        }
        self.lost[0] += 1;
        self.model.keys.remove(&evicted);
    }
}

/// Until each slot has been another's many times.
fn churn(algorithm: AnyAlgorithm, overflow: Overflow, seed: u64) {
    let keys = in_sixteen_slots(10 * SLOTS);
    let mut churn = Churn {
        table: crowded(algorithm).with_overflow(overflow),
        model: Model::new(&[algorithm]),
        random: Random(seed),
        now: tick(NOW),
        lost: [0; 2],
    };
    for operation in 0_usize.. {
        // Time goes on quickly, slowly, hardly.
        let pace = [16, 200, 3000][operation / 64 % 3];
        let step = churn.random.below(period(&algorithm) / pace);
        churn.now = churn.now.saturating_add(Duration::from_nanos(step));
        churn.table.clock().set(churn.now);
        let key = keys[churn.random.skewed(keys.len() as u64) as usize];
        let verb = churn.verb();
        churn.ask(key, verb);
        if operation % 100 == 0 {
            let stats = churn.table.stats();
            assert_eq!([stats.evicted, stats.no_room], churn.lost, "{stats:?}");
            let turned_over = stats.expired + stats.evicted;
            let all = stats.tracked + turned_over + stats.removed;
            assert_eq!(stats.inserted, all, "{stats:?}");
            if turned_over >= often(20) * SLOTS as u64 && churn.lost != [0; 2] {
                break;
            }
            let most = often(60_000) as usize;
            assert!(operation < most, "{stats:?} {algorithm}");
        }
    }
}

#[test]
fn the_key_nearest_to_idle_is_evicted_and_no_other() {
    for (seed, algorithm) in (0..).zip(all()) {
        churn(algorithm, Overflow::Evict, seed);
    }
}

#[test]
fn where_there_is_no_room_a_new_key_is_denied_or_not_recorded_and_others_lose_nothing() {
    for (seed, algorithm) in (0..).zip(all()) {
        let overflows = [Overflow::Deny, Overflow::Admit];
        churn(algorithm, overflows[seed as usize % 2], seed);
    }
}
