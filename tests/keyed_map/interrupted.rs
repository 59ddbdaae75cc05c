//! The late owner, without threads: a decision has read its key's word and computed, and before it writes others have
//! the key leave, bring it in afresh and take all there is. It must then count with them.

use std::cell::RefCell;
use std::rc::Rc;

use tollgate::{
    Algorithm, Denied, GiveBack, Granted, KeyedMap, NoClock, Overflow, Requota, Tick, TokenBucket,
};

use crate::{bucket, tick};

thread_local! {
    static INTERRUPTION: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// An algorithm that is interrupted once, after it has computed.
#[derive(Clone, Copy)]
struct Interrupted(TokenBucket);

impl Algorithm for Interrupted {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        let done = self.0.step(word, now, n);
        let interruption = INTERRUPTION.with_borrow_mut(Option::take);
        if let Some(interrupt) = interruption {
            interrupt();
        }
        done
    }
    fn available(&self, word: u64, now: Tick) -> u64 {
        self.0.available(word, now)
    }
    fn is_idle(&self, word: u64, now: Tick) -> bool {
        self.0.is_idle(word, now)
    }
}

impl GiveBack for Interrupted {
    fn undo(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
        self.0.undo(word, now, granted)
    }
    fn refund(&self, word: u64, now: Tick, n: u64) -> (u64, u64) {
        self.0.refund(word, now, n)
    }
}

impl Requota for Interrupted {
    fn quota(&self) -> tollgate::Quota {
        self.0.quota()
    }
    fn with_quota(&self, quota: tollgate::Quota) -> Result<Self, tollgate::ConfigError> {
        Ok(Self(self.0.with_quota(quota)?))
    }
    fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64 {
        self.0.carry_over(word, now, &next.0)
    }
}

type Map = KeyedMap<u64, Interrupted, NoClock>;

fn map() -> Rc<Map> {
    Rc::new(Map::with_clock(Interrupted(bucket()), 1, NoClock).expect("a map"))
}

/// Key 1 has taken one permit at 0, and takes one more at `at`; meanwhile that happens.
fn taken_while(
    at: u64,
    meanwhile: impl FnOnce(&Map) + 'static,
) -> (Rc<Map>, Result<Granted, Denied>) {
    let map = map();
    assert!(map.try_acquire_at(&1, tick(0)).is_ok());
    let others = Rc::clone(&map);
    INTERRUPTION.set(Some(Box::new(move || meanwhile(&others))));
    let late = map.try_acquire_at(&1, tick(at));
    assert!(INTERRUPTION.take().is_none(), "it was interrupted");
    (map, late)
}

#[test]
fn the_key_left_as_idle_and_was_spent() {
    let (map, late) = taken_while(10, |map| {
        assert_eq!(map.purge_idle_at(tick(10), 1), 1);
        assert!(map.try_acquire_n_at(&1, 2, tick(10)).is_ok());
    });
    assert!(late.is_err(), "{late:?}");
    assert_eq!(map.len(), 1);
}

#[test]
fn the_key_was_removed_and_one_is_left() {
    let (map, late) = taken_while(5, |map| {
        assert!(map.remove(&1));
        assert!(map.try_acquire_at(&1, tick(5)).is_ok());
    });
    assert!(late.is_ok());
    assert_eq!(map.key(&1).at(tick(5)).available(), 0);
}

#[test]
fn the_key_was_evicted() {
    let (map, late) = taken_while(5, |map| {
        assert!(map.try_acquire_at(&2, tick(5)).is_ok());
        assert_eq!(map.key(&1).at(tick(5)).available(), 2);
    });
    // It comes back, evicts the other one, and is counted.
    assert!(late.is_ok());
    assert_eq!((map.stats().evicted, map.len()), (2, 1));
    assert_eq!(map.key(&1).at(tick(5)).available(), 1);
}

#[test]
fn the_predicate_removed_it() {
    let (map, late) = taken_while(5, |map| {
        assert_eq!(map.retain_at(tick(5), |tracked| tracked.available() > 1), 1);
        assert!(map.try_acquire_n_at(&1, 2, tick(5)).is_ok());
    });
    assert!(late.is_err(), "{late:?}");
    assert_eq!(map.stats().removed, 1);
}

#[test]
fn its_algorithm_was_changed() {
    let (map, late) = taken_while(0, |map| {
        let other = TokenBucket::new(tollgate::Quota::per_hour(1)).expect("a quota");
        map.set_algorithm_at(&1, Interrupted(other), tick(0))
            .expect("room");
        assert_eq!(map.key(&1).at(tick(0)).available(), 1);
    });
    assert!(late.is_ok());
    assert!(
        map.try_acquire_at(&1, tick(1_000)).is_err(),
        "no permit comes before an hour"
    );
}

/// The predicate was asked about a key that has been used since: it is asked again.
#[test]
fn a_key_that_is_used_meanwhile_is_asked_about_again() {
    let map = map();
    assert!(map.try_acquire_at(&1, tick(0)).is_ok());
    let mut asked = 0;
    let removed = map.retain_at(tick(0), |tracked| {
        asked += 1;
        let spent = tracked.available() == 0;
        assert_eq!(map.try_acquire_at(&1, tick(0)).is_ok(), asked == 1);
        spent
    });
    assert_eq!((removed, asked, map.len()), (0, 2, 1));
}

/// A key that interrupts when it is cloned, which is when it comes in.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Cloned(u64);

impl Clone for Cloned {
    fn clone(&self) -> Self {
        let interruption = INTERRUPTION.with_borrow_mut(Option::take);
        if let Some(interrupt) = interruption {
            interrupt();
        }
        Self(self.0)
    }
}

/// Room is taken before the key is there, and not merely looked for: who comes in between finds none.
#[test]
fn the_last_room_is_taken_before_the_key_comes_in() {
    let map = KeyedMap::<Cloned, _, _>::with_clock(bucket(), 1, NoClock).expect("a map");
    let map = Rc::new(map.with_overflow(Overflow::Deny));
    let others = Rc::clone(&map);
    INTERRUPTION.set(Some(Box::new(move || {
        let denied = others.try_acquire_at(&Cloned(2), tick(0));
        assert!(matches!(denied, Err(Denied::NoRoom { .. })), "{denied:?}");
        assert_eq!(others.len(), 1);
    })));
    assert!(map.try_acquire_at(&Cloned(1), tick(0)).is_ok());
    assert!(INTERRUPTION.take().is_none(), "it was interrupted");
    assert_eq!((map.len(), map.stats().refused), (1, 1));
}
