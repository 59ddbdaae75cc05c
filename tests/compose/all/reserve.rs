//! Reservations from several limits: all members are taken from as of one tick.

use tollgate::TryAcquire;
use tollgate::compose::Named;

use super::{Bucket, bucket, full, secs};
use crate::support::*;

/// A single member answers as its limiter would.
#[test]
fn a_single_member_reserves_as_its_limiter_does() {
    let (random, clock) = (&mut Random(7), ManualClock::new());
    for round in 0..200 {
        let burst = 1 + random.below(5);
        let (one, other) = (bucket(burst, &clock), bucket(burst, &clock));
        let all = All::new([&one]).expect("a limit");
        let mut now = tick(random.below(9));
        for _ in 0..30 {
            now = now.saturating_add(Duration::from_millis(random.skewed(3000)));
            let n = random.below(burst + 2);
            let within = Duration::from_millis(random.below(5000));
            let mine = all.at(now).reserve_within(n, within);
            match (mine, other.reserve_within_at(n, within, now)) {
                (Ok(mine), Ok(its)) => {
                    assert_eq!(mine.due(), its.due(), "round {round}");
                    if random.one_in(3) {
                        let (back, its) = (mine.cancel_at(now), its.cancel_at(now).returned);
                        assert_eq!(back, its, "round {round}");
                    }
                }
                (Err(mine), Err(its)) => assert_eq!(mine.denied(), Some(its), "round {round}"),
                (mine, its) => panic!("round {round}: {mine:?}, and the limiter {its:?}"),
            }
            let actual = one.available_at(now);
            assert_eq!(actual, other.available_at(now), "round {round}");
        }
    }
}

/// Two limits: `slow` has no permit left, and `fast` has all.
fn one_empty() -> (ManualClock, [Bucket; 2]) {
    let (clock, [slow, fast]) = full([5, 10]);
    assert_eq!(slow.take_up_to(5).n(), 5);
    (clock, [slow, fast])
}

#[test]
fn callers_before_the_due_tick_find_what_is_left_as_of_it() {
    let (clock, [slow, fast]) = one_empty();
    let all = All::new((&slow, &fast)).expect("two limits");
    let reserved = all.reserve(4).expect("due in 4 s");
    assert_eq!(reserved.time_left(), Duration::from_secs(4));
    assert!(!reserved.is_due());
    // Full in 8 s: the 4 permits, and the 4 seconds before.
    assert_eq!((slow.available(), fast.available()), (0, 2));
    assert!(fast.try_acquire_n(3).is_err());
    clock.advance(Duration::from_secs(4));
    assert!(reserved.is_due());
    assert_eq!((slow.available(), fast.available()), (0, 6));
    let mut granted = reserved.into_granted();
    assert_eq!((granted.n(), granted.delay()), (8, Duration::ZERO));
    let settled = granted.settle([1, 4]).expect("two costs");
    assert_eq!(settled.returned, 3);
    assert_eq!((slow.available(), fast.available()), (3, 6));
}

#[test]
fn a_due_reservation_is_undone_as_a_grant() {
    let (clock, [slow, fast]) = one_empty();
    let all = All::new((&slow, &fast)).expect("two limits");
    let reserved = all.reserve(4).expect("due in 4 s");
    clock.advance(Duration::from_secs(4));
    assert!(fast.try_acquire_n(2).is_ok());
    assert_eq!(reserved.into_granted().undo(), 8);
    assert_eq!((slow.available(), fast.available()), (4, 8));
}

#[test]
fn a_due_reservation_of_a_limit_twice_is_undone_as_a_grant() {
    let (clock, [slow, fast]) = one_empty();
    let all = All::new((&fast, &fast, &slow)).expect("two limits");
    let reserved = all.reserve_each([1, 3, 4]).expect("due in 4 s");
    clock.advance(Duration::from_secs(4));
    assert!(fast.try_acquire_n(2).is_ok());
    assert_eq!(reserved.into_granted().undo(), 8);
    assert_eq!((slow.available(), fast.available()), (4, 8));
}

#[test]
fn a_cancelled_reservation_leaves_every_member_as_it_was() {
    for seconds in [0, 1, 3, 4, 9] {
        let (clock, [slow, fast]) = one_empty();
        let (alone, [slow_alone, fast_alone]) = one_empty();
        let all = All::new((&slow, &fast)).expect("two limits");
        let reserved = all.reserve(4).expect("due in 4 s");
        let _ = [&clock, &alone].map(|clock| clock.advance(Duration::from_secs(seconds)));
        let back = reserved.cancel();
        let refilled = 2 * seconds.saturating_sub(4).min(4);
        assert_eq!(back, 8 - refilled, "after {seconds} s");
        assert_eq!(slow.available(), slow_alone.available());
        assert_eq!(fast.available(), fast_alone.available());
    }
}

/// Otherwise a caller with an older tick could use a burst, and one with the present tick another.
#[test]
fn a_reservation_that_is_cancelled_late_leaves_the_tick_of_its_end() {
    // The permits were due after 4 seconds, and are all refilled after 8.
    for seconds in [5, 6, 7] {
        let (clock, [slow, fast]) = one_empty();
        let all = All::new((&slow, &fast)).expect("two limits");
        let start = Tick::ZERO;
        let reserved = all
            .at(start)
            .reserve_within(4, Duration::MAX)
            .expect("due in 4 s");
        clock.advance(Duration::from_secs(seconds));
        let _ = reserved.cancel();
        let had = [start, clock.now(), start].map(|tick| fast.at(tick).take_up_to(10).n());
        assert_eq!(had.iter().sum::<u64>(), 10, "{had:?} after {seconds} s");
    }
}

#[test]
fn a_member_that_is_asked_for_nothing_keeps_everything() {
    let (_, [slow, fast]) = one_empty();
    let all = All::new((&slow, &fast)).expect("two limits");
    let reserved = all.reserve_each([2, 0]).expect("due in 2 s");
    assert_eq!(fast.available(), 10);
    assert_eq!(reserved.cancel(), 2);
    let nothing = all.reserve(0).expect("no debt");
    assert!(nothing.is_due());
    assert_eq!(nothing.cancel(), 0);
}

#[test]
fn a_limit_that_appears_twice_is_reserved_once_for_both() {
    let (_, [slow, fast]) = one_empty();
    let all = All::new((&slow, &fast, &fast)).expect("two limits");
    let reserved = all.reserve_each([1, 2, 3]).expect("due in 1 s");
    assert_eq!(reserved.time_left(), Duration::from_secs(1));
    assert_eq!(fast.available(), 4);
    assert_eq!(reserved.cancel(), 6);
    let denied = all.reserve_each([1, 5, 6]).map(drop).expect_err("11 of 10");
    assert!(denied.is_permanent());
}

#[test]
fn a_denied_reservation_takes_nothing() {
    let (_, [slow, fast]) = one_empty();
    let all = All::new((&fast, Named::new("slow", &slow))).expect("two limits");
    let too_many = all.reserve(6).map(drop).expect_err("more than the burst");
    assert_eq!(too_many.denied(), Some(Denied::never(6, 5)));
    assert_eq!(too_many.name(), Some("slow"));
    let too_late = all.reserve_within(3, Duration::from_secs(2));
    let too_late = too_late.map(drop).expect_err("due in 3 s");
    let actual = (too_late.member(), too_late.retry_after());
    assert_eq!(actual, (Some(1), secs(1)));
    let costs = all.reserve_each([1]).map(drop).expect_err("two members");
    let expected = "number of costs is 1, but must be 2: one for each member";
    assert_eq!(costs.to_string(), expected);
    assert_eq!((slow.available(), fast.available()), (0, 10));
    assert!(
        all.reserve_each_within([1, 3], Duration::from_secs(3))
            .is_ok()
    );
}

/// Late in the life of a bucket, when time ends for it, nothing is reserved for later.
#[test]
fn no_reservation_is_due_after_the_end_of_time() {
    let end = Tick::MAX;
    let (_, [one, other]) = full([3, 3]);
    let all = All::new((&one, &other)).expect("two limits");
    assert!(one.try_acquire_n_at(3, end).is_ok());
    let stuck = all.at(end).reserve(1).map(drop).expect_err("no more time");
    assert_eq!(stuck.denied(), Some(Denied::stuck(1)));
    assert_eq!(other.available_at(end), 3);
    // Also for a caller with an older tick.
    let early = tick(5);
    assert!(all.at(early).reserve(1).is_err());
    assert_eq!(other.available_at(early), 3);
}

#[test]
fn gcras_and_limits_that_have_not_started_are_reserved_too() {
    let clock = ManualClock::new();
    let quota = Quota::per(1, Duration::from_secs(1)).burst(4).initial(0);
    let bucket = TokenBucket::new(quota).expect("a quota");
    let bucket = Limiter::unstarted(bucket, clock.clone());
    let spaced = Gcra::from_interval(Duration::from_secs(2), Duration::from_secs(2));
    let spaced = Limiter::unstarted(spaced.expect("a pace"), clock);
    let all = All::new([All::new((&bucket, &spaced)).expect("two limits")]).expect("a list");
    let now = tick(77);
    let reserved = all.at(now).reserve(2).expect("due in 2 s");
    assert_eq!(reserved.due(), now.saturating_add(Duration::from_secs(2)));
    assert_eq!(spaced.available_at(now), 0);
    assert_eq!(reserved.cancel_at(now), 4);
    assert_eq!((bucket.available_at(now), spaced.available_at(now)), (0, 2));
}

/// Callers whose ticks are older than that of the reservation take nothing that it took.
#[test]
fn callers_with_older_ticks_find_no_more() {
    let (_, [slow, fast]) = full([4, 4]);
    let at = |seconds: u64| tick(seconds * 1_000_000_000);
    assert!(slow.try_acquire_n_at(4, at(10)).is_ok());
    let all = All::new((&slow, &fast)).expect("two limits");
    let reserved = all.at(at(10)).reserve(2).expect("due in 2 s");
    assert_eq!(reserved.due(), at(12));
    for older in [at(0), at(5), at(9)] {
        assert_eq!(fast.available_at(older), 0);
        let behind = all.at(older).reserve(2).expect("due later");
        assert_eq!(behind.due(), at(14));
        assert_eq!(behind.cancel_at(older), 4);
    }
    assert_eq!(fast.available_at(at(12)), 2);
}
