//! A late owner, on one thread. A decision has read its key's word and computed its result. Before
//! it writes, others make the key leave, insert it again and take all permits. The decision must
//! then be counted together with theirs.

use std::rc::Rc;

use tollgate::clock::NoClock;
use tollgate::{Denied, KeyedMap, Overflow, Quota, TokenBucket};

use super::{bucket_of, of};
use crate::support::hooks::{Call, Hooked, HookedKey, at_call, unhook};
use crate::support::tick;

/// One of the two permits of key 1 was taken at 0. A decision on the other one is interrupted after
/// it has computed its result. Returns whether that decision grants the permit, the permits left
/// then and at 1000, and how often keys left, were removed and were evicted.
#[test]
fn a_decision_counts_the_decisions_that_interrupted_it() {
    for (meanwhile, at, is_granted, left, gone) in [
        ("left as idle and taken", 10, false, [0, 2], (1, 0, 0)),
        ("removed and one taken", 5, true, [0, 2], (0, 1, 0)),
        // It comes back, evicts the other key, and is counted.
        ("evicted", 5, true, [1, 2], (0, 0, 2)),
        ("removed by a predicate", 5, false, [0, 2], (0, 1, 0)),
        // No permit comes within an hour.
        ("under another algorithm", 0, true, [0, 0], (0, 0, 0)),
    ] {
        let map: Rc<KeyedMap<u64, Hooked, NoClock>> = Rc::new(of(Hooked(bucket_of(2)), 1));
        assert!(map.try_acquire_at(&1, tick(0)).is_ok());
        let others = Rc::clone(&map);
        at_call(Call::Step, 0, move || {
            let now = tick(at);
            let takes = |key, n| others.try_acquire_n_at(&key, n, now).is_ok();
            let done = match meanwhile {
                "left as idle and taken" => others.purge_idle_at(now, 1) == 1 && takes(1, 2),
                "removed and one taken" => others.remove(&1) && takes(1, 1),
                "evicted" => takes(2, 1) && others.key(&1).at(now).available() == 2,
                "removed by a predicate" => {
                    let removed = others.retain_at(now, |tracked| tracked.available() > 1);
                    removed == 1 && takes(1, 2)
                }
                _ => {
                    let hourly = TokenBucket::new(Quota::per_hour(1)).expect("a quota");
                    let set = others.set_algorithm_at(&1, Hooked(hourly), now);
                    set.is_ok() && others.key(&1).at(now).available() == 1
                }
            };
            assert!(done, "{meanwhile}");
        });
        let late = map.try_acquire_at(&1, tick(at));
        assert!(!unhook(), "the decision was not interrupted");
        assert_eq!(late.is_ok(), is_granted, "{meanwhile}");
        let then = [at, 1_000].map(|at| map.key(&1).at(tick(at)).available());
        let stats = map.stats();
        let counts = (stats.expired, stats.removed, stats.evicted);
        assert_eq!((then, counts, map.len()), (left, gone, 1), "{meanwhile}");
    }
}

/// The predicate was asked about a key that has been used since, so it is asked again.
#[test]
fn a_predicate_is_asked_again_about_a_key_that_was_used_meanwhile() {
    let map: KeyedMap<u64, Hooked, NoClock> = of(Hooked(bucket_of(2)), 1);
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

/// The map reserves room before it inserts a key, and does not just check for it. So a second key
/// finds no room while the first one is being cloned.
#[test]
fn room_is_reserved_before_the_key_is_inserted() {
    let map: KeyedMap<HookedKey, TokenBucket, NoClock> = of(bucket_of(2), 1);
    let map = Rc::new(map.with_overflow(Overflow::Deny));
    let others = Rc::clone(&map);
    at_call(Call::Clone, 0, move || {
        let denied = others.try_acquire_at(&HookedKey(2), tick(0));
        assert!(matches!(denied, Err(Denied::NoRoom { .. })), "{denied:?}");
        assert_eq!(others.len(), 1);
    });
    assert!(map.try_acquire_at(&HookedKey(1), tick(0)).is_ok());
    assert!(!unhook(), "the decision was not interrupted");
    assert_eq!((map.len(), map.stats().no_room), (1, 1));
}
