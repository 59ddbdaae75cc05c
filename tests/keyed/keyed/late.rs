//! A late caller counts at the tick of earlier callers. If it is refused at that tick, it leaves no
//! entry in the table by which it would be granted at its own tick.

use crate::support::*;

fn second(n: u64) -> Tick {
    tick(n * SECOND)
}

#[test]
fn a_refused_reservation_leaves_no_second_queue() {
    let limiter = crowded(queue("leaky-queue 1/s burst 5 free 2"));
    let [key, others @ ..] = in_sixteen_slots(40) else {
        panic!("40 keys");
    };
    let at = |n| limiter.key(key).at(second(n));
    let first = at(10).reserve_until(5, second(100)).expect("a place");
    assert_eq!(first.due(), second(12));
    // An idle key leaves for the first new key that finds no free slot.
    for other in others {
        let other = limiter.key(other).at(second(20));
        assert!(other.reserve_until(1, second(100)).is_ok());
    }
    assert_eq!(limiter.stats_at(second(20)).expired, 1);
    // The first five permits leave by 12, and the key is idle from 15 on. Five more that count at
    // 15 leave by 17.
    assert!(at(10).reserve_until(5, second(16)).is_err());
    let again = at(10).reserve_until(5, second(30)).expect("a place");
    assert_eq!((again.at(), again.due()), (second(15), second(17)));
}

/// A caller that is far ahead finds keys idle, but each key keeps the tick since which it is idle.
/// Otherwise all later callers would count at the far tick, and get nothing until then.
#[test]
fn a_caller_that_is_ahead_does_not_move_other_callers_ahead() {
    for text in [
        "gcra 1/s burst 3",
        "sliding-window 3/s",
        "fixed-window 3/s",
        "gcra 1/s tolerance 2500ms",
        "sliding-window 3/s rounding down",
    ] {
        let limiter = crowded(algorithm(text));
        let [ahead, others @ ..] = in_sixteen_slots(17) else {
            panic!("17 keys");
        };
        for other in others {
            assert!(limiter.key(other).at(second(100)).try_acquire().is_ok());
        }
        let far = limiter.key(ahead).at(second(1_000_000));
        assert!(far.try_acquire().is_ok());
        assert_eq!(limiter.stats_at(second(200)).expired, 1);
        // They were idle long before 200 s, so this key, elsewhere in the table, is not late.
        let new = limiter.key(&1_u64).at(second(200)).try_acquire();
        assert_eq!(new.expect("it is fresh").at(), second(200), "{text}");
    }
}
