//! A denied request stores nothing, in whatever order the members are. A granted one stores once
//! for each member.

use std::cell::RefCell;

use super::lost_races::words;
use super::{algorithm, bucket};
use crate::support::*;

/// In a chain of limiters, what the first granted is lost if the second denies.
#[test]
fn a_granted_request_stores_once_for_each_member_and_a_denied_one_never() {
    // The word that is the tight one is the first, the second or the third by its address.
    for tight in 0..3 {
        for order in ORDERS {
            let (clock, notes) = (ManualClock::new(), RefCell::default());
            let words = words(&notes, &|_| {});
            let stores = || words.each_ref().map(|word| word.stores.take());
            let limits: [_; 3] = std::array::from_fn(|index| {
                let n = if index == tight { 2 } else { 9 };
                Limiter::with_cell(algorithm(n), clock.clone(), &words[index])
            });
            let of = format!("tight {tight}, order {order:?}");
            let all = All::new(order.map(|index| &limits[index])).expect("three limits");
            let granted = all.try_acquire_n(2).expect(&of);
            assert_eq!(stores(), [1; 3], "granted: {of}");
            for n in [1, 3, 10, u64::MAX] {
                assert!(all.try_acquire_n(n).is_err() && all.check_n(n).is_err());
                assert!(all.try_acquire_each([n; 3]).is_err());
                assert!(all.at(Tick::ZERO).try_acquire_n(n).is_err());
            }
            assert!(all.try_acquire_each([0; 2]).is_err());
            assert_eq!((all.available(), stores()), (0, [0; 3]), "denied: {of}");
            assert_eq!(granted.undo(), 6);
            assert_eq!(stores(), [1; 3], "undone: {of}");
            // A cost of 0 takes nothing.
            let none = all.try_acquire_each([0; 3]).expect(&of);
            assert_eq!((none.undo(), stores()), (0, [0; 3]), "{of}");
        }
    }
}

/// Returns the available permits and the texts of limits, which hold their words.
macro_rules! state {
    ($($limit:expr),*) => {
        [$(format!("{} {:?}", $limit.available(), $limit)),*]
    };
}

/// One of the members is empty, by turns: the others keep what they have.
#[test]
fn a_denial_leaves_logs_shards_and_slots_as_they_are() {
    for empty in 0..4 {
        let clock = ManualClock::at(tick(1_000_000));
        let n = |index| if index == empty { 3 } else { 9 };
        let quota = |index| Quota::per(n(index), Duration::from_secs(60));
        let log = SlidingLog::with_clock(quota(0), clock.clone()).expect("a log");
        let sharded = TokenBucket::new(quota(1)).expect("a bucket");
        let sharded = Sharded::with_shards(sharded, 3, clock.clone()).expect("three shards");
        let slotted = SlottedWindow::with_clock(quota(2), 6, clock.clone()).expect("slots");
        let word = bucket(n(3), &clock);
        let all = All::new((&log, &sharded, &slotted, &word)).expect("four limits");
        assert!(all.try_acquire_n(3).is_ok());
        let before = state!(log, sharded, slotted, word);
        for n in [1, 4, 10] {
            let denied = all.try_acquire_n(n).expect_err("one is empty");
            assert!(n == 10 || denied.member() == Some(empty), "{denied:?}");
            assert!(all.check_n(n).is_err());
        }
        assert_eq!(state!(log, sharded, slotted, word), before, "{empty}");
        assert_eq!(all.available(), 0);
    }
}
