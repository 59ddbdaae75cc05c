//! Who is late, and refused at the tick at which others have been there, leaves nothing in the table that would be
//! granted to it at its own.

use tollgate::{AnyAlgorithm, Keyed, ManualClock, Tick};

use crate::{Chosen, in_sixteen_slots};

fn second(n: u64) -> Tick {
    Tick::from_nanos(n * 1_000_000_000)
}

#[test]
fn a_reservation_that_would_be_too_late_gets_no_second_queue() {
    let queue = "leaky-queue 1/s burst 5 free 2".parse().expect("a queue");
    let AnyAlgorithm::LeakyBucket(queue) = queue else {
        panic!("{queue} is a queue");
    };
    let gate = Keyed::with_clock(queue, 1, ManualClock::new()).expect("a table");
    let gate = gate.with_hasher(Chosen::default());
    let [key, others @ ..] = &in_sixteen_slots(40)[..] else {
        panic!("40 keys");
    };
    let at = |n| gate.key(key).at(second(n));
    let first = at(10).reserve_until(5, second(100)).expect("a place");
    assert_eq!(first.due(), second(12));
    // It leaves as idle, for the first who finds no place that is nobody's.
    for other in others {
        let other = gate.key(other).at(second(20));
        assert!(other.reserve_until(1, second(100)).is_ok());
    }
    assert_eq!(gate.stats_at(second(20)).taken_over, 1);
    // Five wait until 12 already, and it has been idle since 15: from then on five more have to wait until 17.
    assert!(at(10).reserve_until(5, second(16)).is_err());
    let second_time = at(10).reserve_until(5, second(30)).expect("a place");
    assert_eq!(
        (second_time.at(), second_time.due()),
        (second(15), second(17))
    );
}

/// Who is far ahead finds idle whom he finds; but since when they are, is theirs. Else all who come after him are counted
/// at his tick, and have nothing until then.
#[test]
fn one_who_is_ahead_takes_nobody_with_him() {
    for text in [
        "gcra 1/s burst 3",
        "sliding-window 3/s",
        "fixed-window 3/s",
        "gcra 1/s tolerance 2500ms",
        "sliding-window 3/s rounding down",
    ] {
        let algorithm: AnyAlgorithm = text.parse().expect(text);
        let gate = Keyed::with_clock(algorithm, 1, ManualClock::new()).expect("a table");
        let gate = gate.with_hasher(Chosen::default());
        let [ahead, others @ ..] = &in_sixteen_slots(17)[..] else {
            panic!("17 keys");
        };
        for other in others {
            assert!(gate.try_acquire_at(other, second(100)).is_ok());
        }
        assert!(gate.try_acquire_at(ahead, second(1_000_000)).is_ok());
        assert_eq!(gate.stats_at(second(200)).taken_over, 1);
        // They were idle long before 200 s, so this one, somewhere else, is not late.
        let new = gate
            .try_acquire_at(&1_u64, second(200))
            .expect("it is fresh");
        assert_eq!(new.at(), second(200), "{text}");
    }
}
