//! A table with a tenth of the slots that its keys need. Each key gets what a limiter of its own
//! would grant, except where the overflow policy evicts, denies or admits a key. The policy acts
//! only when the slots are full and only on the key that it must choose, and each of its actions is
//! counted.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use crate::support::model::{Model, Request, Said, ask_at};
use crate::support::verbs::Verb;
use crate::support::*;

/// The slots that the keys share.
const SLOTS: usize = 16;

struct Churn {
    table: Keyed<AnyAlgorithm, ManualClock, IdentityState>,
    model: Model,
    random: Random,
    now: Tick,
    /// The number of evicted keys, and the number of keys that found no slot.
    lost: [u64; 2],
    /// Whether a present key is protected. `None` if it was idle, since another key may have used
    /// its slot.
    protected: HashMap<u64, Option<bool>>,
    /// The present keys that evicted a key in use.
    newcomers: HashSet<u64>,
    /// The number of evicted keys that were protected, and the number that may have been.
    lost_protected: u64,
    may_have_lost_protected: u64,
}

impl Churn {
    fn verb(&mut self, key: u64) -> Verb {
        let burst = self.model.algorithm_of(key).available(0, self.now);
        let n = 1 + self.random.below(burst);
        match self.random.below(16) {
            0 => Verb::Take(0),
            1 => Verb::Take(burst + 1),
            2 => Verb::TakeUpTo(n),
            3 => Verb::Charge(n),
            4 => Verb::Available,
            7 => Verb::Refund(1),
            5 | 6 => Verb::Take(1 + self.random.below(n)),
            _ => Verb::Take(1),
        }
    }

    /// Makes a request for a key, and compares the answers.
    fn ask(&mut self, key: u64, verb: Verb) {
        let now = self.now;
        let was_busy = self.model.is_busy(key, now);
        let busy = match was_busy {
            true => Vec::new(),
            false => self.model.busy(now),
        };
        let before = self.word(key);
        let is_full = busy.len() == SLOTS;
        let mut right = self.model.ask(key, 0, now, &Request::Verb(verb));
        self.note_a_grant(key, verb, (was_busy, before));
        let needs_room = is_full && self.model.is_busy(key, now);
        let overflow = self.table.overflow();
        if needs_room && overflow != Overflow::Evict {
            // Nothing is recorded.
            self.model.keys.remove(&key);
            self.protected.remove(&key);
            self.lost[1] += 1;
            right = match (overflow, verb) {
                (Overflow::Deny, Verb::Take(n)) => Said(Denied::no_room(n).into()),
                (Overflow::Deny, Verb::TakeUpTo(_)) => Said(Granted::new(0, now).into()),
                (Overflow::Deny, Verb::Charge(_)) => Said(Charged::new(0, now).into()),
                _ => right,
            };
        }
        let said = ask_at(&self.table.key(&key).at(now), Request::Verb(verb));
        let of = self.model.algorithm_of(key);
        assert_eq!(said, right, "{verb:?} of {key} by {of}, {overflow:?}");
        if needs_room && overflow == Overflow::Evict {
            self.find_the_evicted(&busy);
            self.newcomers.insert(key);
        }
    }

    /// Gives a present key another override, or none.
    fn set_own(&mut self, key: u64) {
        let kinds = all();
        let own = kinds[self.random.below(kinds.len() as u64) as usize];
        let own = (!self.random.one_in(3)).then_some(own);
        self.model.set_own(key, own, 0, self.now);
        match own {
            Some(own) => assert_eq!(self.table.key(&key).set_override(own), Ok(())),
            None => drop(self.table.key(&key).remove_override()),
        }
    }

    fn word(&self, key: u64) -> Option<u64> {
        self.model.keys.get(&key).map(|(_, word, _)| *word)
    }

    /// Records a grant. A key is protected from its second grant on, as long as it is in the table.
    fn note_a_grant(&mut self, key: u64, verb: Verb, (was_busy, before): (bool, Option<u64>)) {
        if matches!(verb, Verb::Available | Verb::Refund(_)) || self.word(key) == before {
            return;
        }
        if !was_busy {
            self.newcomers.remove(&key);
        }
        let protected = self.protected.entry(key);
        let protected = protected.and_modify(|protected| *protected = was_busy.then_some(true));
        protected.or_insert(Some(false));
    }

    /// Returns a key's place in the eviction order.
    fn turn(&self, key: u64, is_protected: bool, is_newcomer: bool) -> Turn {
        let (of, now) = (self.model.algorithm_of(key), self.now);
        let until_idle = |word| of.idle_at(word, now).saturating_since(now).as_nanos();
        let after = |n| until_idle(of.take_up_to(0, now, n).0);
        let (all, one, burst) = (after(u64::MAX), after(1), of.available(0, now));
        let word = self.word(key).expect("it is busy");
        let (idle, mut left) = (until_idle(word), of.available(word, now));
        if idle > all + (all >> 10) {
            return Turn {
                class: (is_protected, idle),
                regained: 0,
                newest: 0,
                left,
            };
        }
        let eighth = (all / 8).max(1);
        // Time does not tell what keys of windows have spent.
        let is_window = one >= all && burst > 1;
        let step = match is_window {
            true => eighth,
            false => (all / u128::from(burst)).clamp(1, eighth),
        };
        let again = all.saturating_sub(idle);
        let mut regained = (again + step / 64) / step * step;
        match (is_newcomer && !is_protected, is_window) {
            (false, _) => {}
            (true, true) => left += burst.div_ceil(8),
            (true, false) => regained += eighth,
        }
        Turn {
            class: (is_protected, 0),
            regained: (regained << 32) / all,
            newest: all + (1 << 64) - idle,
            left,
        }
    }

    /// Checks that exactly one key was evicted, and that no other key comes before it. Of keys with
    /// equal places, none has more permits.
    fn find_the_evicted(&mut self, busy: &[u64]) {
        let (now, of) = (self.now, &self.model.plans[0]);
        let gone = |key: &&u64| self.table.key(*key).at(now).is_idle();
        let evicted: Vec<u64> = busy.iter().filter(gone).copied().collect();
        let [evicted] = evicted[..] else {
            panic!("{evicted:?} by {of}");
        };
        let protected = |key| self.protected.get(&key).expect("it came");
        let is_newcomer = |key: u64| self.newcomers.contains(&key);
        // A key may be a newcomer if it was idle, and another key may have used its slot.
        let may_be_newcomer = |key: u64| is_newcomer(key) || protected(key).is_none();
        let is_protected = protected(evicted).unwrap_or(false);
        let earliest = self.turn(evicted, is_protected, may_be_newcomer(evicted));
        for key in busy.iter().copied() {
            let latest = self.turn(key, protected(key).unwrap_or(true), is_newcomer(key));
            assert!(
                earliest.may_precede(&latest),
                "{earliest:?} {latest:?} {of}"
            );
        }
        let may_be = protected(evicted).unwrap_or(true);
        self.lost_protected += u64::from(*protected(evicted) == Some(true));
        self.may_have_lost_protected += u64::from(may_be);
        self.lost[0] += 1;
        self.model.keys.remove(&evicted);
        self.protected.remove(&evicted);
        self.newcomers.remove(&evicted);
    }
}

/// A key's place in the eviction order.
#[derive(Debug)]
struct Turn {
    /// Whether the key is protected, and its debt.
    class: (bool, u128),
    /// The share of the burst that is available again, in whole permits, in 2^-32 parts.
    regained: u128,
    newest: u128,
    left: u64,
}

impl Turn {
    /// Returns whether a key with this turn may be evicted before one with the other turn. The
    /// table rounds shares.
    fn may_precede(&self, other: &Self) -> bool {
        let differ = self.regained.abs_diff(other.regained);
        match self.class.cmp(&other.class) {
            Ordering::Equal if differ > 8 => self.regained > other.regained,
            Ordering::Equal if differ > 0 => true,
            Ordering::Equal => (self.newest, other.left) <= (other.newest, self.left),
            order => order == Ordering::Less,
        }
    }
}

/// Runs until each slot has been reused many times.
fn churn(algorithm: AnyAlgorithm, overflow: Overflow, seed: u64) {
    churn_with(algorithm, None, overflow, seed);
}

/// The same, with this algorithm for every third key.
fn churn_with(algorithm: AnyAlgorithm, own: Option<AnyAlgorithm>, overflow: Overflow, seed: u64) {
    let keys = in_sixteen_slots(10 * SLOTS);
    let mut churn = Churn {
        table: crowded(algorithm).with_overflow(overflow),
        model: Model::new(&[algorithm]),
        random: Random(seed),
        now: tick(NOW),
        lost: [0; 2],
        protected: HashMap::new(),
        newcomers: HashSet::new(),
        lost_protected: 0,
        may_have_lost_protected: 0,
    };
    if let Some(own) = own {
        churn.table = churn.table.with_overrides(keys.len()).expect("one plan");
        for key in keys.iter().step_by(3) {
            assert_eq!(churn.table.key(key).set_override(own), Ok(()));
            churn.model.set_own(*key, Some(own), 0, churn.now);
        }
    }
    for operation in 0_usize.. {
        // Time advances quickly, slowly, or hardly at all.
        let pace = [16, 200, 3000][operation / 64 % 3];
        let step = churn.random.below(period(&algorithm) / pace);
        churn.now = churn.now.saturating_add(Duration::from_nanos(step));
        churn.table.clock().set(churn.now);
        let key = keys[churn.random.skewed(keys.len() as u64) as usize];
        if own.is_some() && operation % 5 == 0 && churn.model.is_busy(key, churn.now) {
            churn.set_own(key);
        }
        let verb = churn.verb(key);
        churn.ask(key, verb);
        if operation % 100 == 0 {
            let stats = churn.table.stats();
            assert_eq!([stats.evicted, stats.no_room], churn.lost, "{stats:?}");
            let protected = churn.lost_protected..=churn.may_have_lost_protected;
            assert!(protected.contains(&stats.evicted_protected), "{stats:?}");
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
fn eviction_removes_exactly_the_key_that_the_policy_chooses() {
    for (seed, algorithm) in (0..).zip(all()) {
        churn(algorithm, Overflow::Evict, seed);
    }
}

#[test]
fn a_new_key_without_room_is_denied_or_not_recorded_and_others_lose_nothing() {
    for (seed, algorithm) in (0..).zip(all()) {
        let overflows = [Overflow::Deny, Overflow::Admit];
        churn(algorithm, overflows[seed as usize % 2], seed);
    }
}

#[test]
fn keys_with_their_own_algorithms_are_evicted_by_these() {
    let kinds = all();
    for (seed, algorithm) in (0..).zip(&kinds) {
        let own = kinds[(seed as usize + 1) % kinds.len()];
        let overflow = [Overflow::Evict, Overflow::Evict, Overflow::Deny][seed as usize % 3];
        churn_with(*algorithm, Some(own), overflow, seed);
    }
}
