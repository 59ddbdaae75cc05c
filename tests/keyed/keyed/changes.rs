//! After many changes of the quota a word is migrated once, and not by each denial or by each new
//! key that looks at it. A key that moves to another plan keeps what its table says.

use std::cell::Cell;
use std::rc::Rc;

use crate::support::hooks::{Call, Hooked, on_calls};
use crate::support::*;

/// Counts how often a word is migrated from now on.
fn counted() -> Rc<Cell<u64>> {
    let carried = Rc::new(Cell::new(0));
    let counter = Rc::clone(&carried);
    on_calls(move |call| {
        counter.set(counter.get() + u64::from(call == Call::CarryOver));
        true
    });
    carried
}

#[test]
fn a_denial_migrates_a_word_once() {
    let limiter = table(Hooked(bucket("100/h")));
    let key = limiter.key("key");
    assert_eq!(key.take_up_to(100).n(), 100);
    let carried = counted();
    for change in 1..40 {
        let quota = Quota::per_hour(100 + change % 3);
        limiter.set_quota(quota, Keep::AsIs).expect("a quota");
        limiter.clock().advance(Duration::from_millis(1));
    }
    for _ in 0..1000 {
        assert!(key.try_acquire().is_err());
        assert_eq!(key.available(), 0);
    }
    // Once by the caller that was denied, or by the changes, when they reached its part of the
    // table.
    assert!((39..100).contains(&carried.get()), "{carried:?}");
}

/// The first new key migrates the words in its slots, and later ones do not repeat it.
#[test]
fn a_new_key_migrates_its_neighbors_once() {
    for overflow in [Overflow::Evict, Overflow::Deny] {
        let limiter = crowded(Hooked(bucket("10/h burst 100"))).with_overflow(overflow);
        let (there, new) = in_sixteen_slots(20).split_at(16);
        for key in there {
            limiter.try_acquire_n(key, 50).expect("it is fresh");
        }
        for change in 1..=25 {
            let quota = Quota::per_hour(10 + change).burst(100);
            limiter.set_quota(quota, Keep::AsIs).expect("a quota");
        }
        let carried = |key| {
            let carried = counted();
            let evicts = overflow == Overflow::Evict;
            assert_eq!(limiter.try_acquire(key).is_ok(), evicts);
            carried.get()
        };
        let took: Vec<u64> = new.iter().map(carried).collect();
        // A change itself has migrated a part of the table, which may contain some of them.
        assert!((125..=400).contains(&took[0]), "{took:?}, {overflow:?}");
        assert_eq!(took[1..], [0, 0, 0], "{overflow:?}");
    }
}

/// A key that alternates between plans gets the burst of each, unless moves keep what it used.
#[test]
fn a_key_that_moves_keeps_what_it_used() {
    for kind in [
        "token-bucket",
        "gcra",
        "fixed-window",
        "sliding-window",
        "intervals",
    ] {
        let plans = [100, 1000].map(|n| algorithm(&format!("{kind} {n}/d")));
        let granted = |keep| {
            let limiter = with_plans(&plans).with_moves(keep);
            let take = |plan| limiter.key("key").with_plan(plan).take_up_to(60).n();
            (0..60).map(|turn| take(turn % 2)).sum::<u64>()
        };
        assert_eq!(granted(Keep::Used), 1000, "{kind}");
        assert_eq!(granted(Keep::AsIs), 100, "{kind}");
        // An override is a move, too.
        let limiter = with_plans(&plans).with_moves(Keep::Used);
        let limiter = limiter.with_overrides(2).expect("two plans");
        let key = limiter.key("key");
        assert_eq!(key.take_up_to(70).n(), 70);
        assert!(key.set_quota(Quota::per_day(1000)).is_ok());
        assert_eq!(key.available(), 930, "{kind}");
        assert!(key.remove_override());
        assert_eq!(key.available(), 30, "{kind}");
    }
}
