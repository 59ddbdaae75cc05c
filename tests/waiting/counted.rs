//! The counts of `Counted` on limiters that wait, that lend and that limit concurrency, and
//! reservations that keep their limiter alive.

use tollgate::Reservation;
use tollgate::stats::LimiterStats;

use crate::support::*;

/// Returns the counts of grants, their permits, denials and returned permits.
fn counts(granted: u64, permits: u64, denied: u64, returned: u64) -> LimiterStats {
    let mut counts = LimiterStats::default();
    (counts.granted, counts.permits) = (granted, permits);
    (counts.denied, counts.returned) = (denied, returned);
    counts
}

#[test]
fn threads_that_wait_are_counted_once() {
    let (clock, limiter) = bucket(Quota::per_second(10).burst(2));
    let limiter = Counted::new(limiter);
    assert!(limiter.blocking_acquire_n(2).is_ok()); // at once
    assert!(limiter.blocking_acquire().is_ok()); // later
    assert_eq!(millis(clock.now()), 100);
    assert!(
        limiter
            .blocking_acquire_timeout(1, Duration::from_millis(99))
            .is_err()
    );
    assert!(
        limiter.blocking_acquire_n(3).is_err(),
        "more than the burst"
    );
    assert_eq!(limiter.stats(), counts(2, 3, 2, 0));
}

#[test]
fn reservations_are_counted_when_made_and_when_returned() {
    let (_, limiter) = bucket(Quota::per_hour(10));
    let limiter = Counted::new(limiter);
    let all = limiter.reserve(10).expect("the burst");
    let second = limiter.reserve(2).expect("later");
    assert!(limiter.reserve_within(1, Duration::ZERO).is_err());
    assert_eq!(limiter.stats(), counts(2, 12, 1, 0));
    assert_eq!(second.cancel().returned, 2);
    assert_eq!(limiter.stats(), counts(2, 12, 1, 2));
    let (_, settled) = all.settle(14);
    assert_eq!((settled.charged, limiter.stats().charged), (4, 4));
}

#[test]
fn futures_that_wait_are_counted_once_and_give_back_when_dropped() {
    let (clock, limiter) = bucket(Quota::per_second(1).burst(1));
    let limiter = Counted::new(limiter);
    let waits = limiter.with_timer(&clock);
    assert!(run(&clock, waits.acquire()).is_ok());
    assert!(run(&clock, waits.acquire()).is_ok());
    {
        let _dropped = that_waits(waits.acquire());
        assert_eq!(limiter.stats(), counts(3, 3, 0, 0));
    }
    assert_eq!(limiter.stats(), counts(3, 3, 0, 1));
    assert!(run(&clock, waits.acquire_timeout(1, Duration::ZERO)).is_err());
    assert_eq!(limiter.stats(), counts(3, 3, 1, 1));
}

#[test]
fn waits_of_at_most_a_time_are_counted() {
    let (_, limiter) = bucket(Quota::per_second(10).burst(1));
    let (limiter, longest) = (Counted::new(limiter), Duration::from_millis(200));
    let reserved = [(); 4].map(|()| limiter.reserve_within(1, longest).is_ok());
    assert_eq!(reserved, [true, true, true, false]);
    assert!(limiter.blocking_acquire_timeout(1, longest).is_err());
    assert_eq!(limiter.stats(), counts(3, 3, 2, 0));
}

#[test]
fn leases_count_the_permits_taken_from_them() {
    let bucket = TokenBucket::new(Quota::per_hour(100)).expect("a quota");
    let limiter = Leases::with_clock(bucket, 40, ManualClock::new()).expect("leases");
    let limiter = Counted::new(Arc::new(limiter));
    let taken = on_threads(0..4, |_| {
        let mut lease = limiter.with_same_counters(limiter.limiter().lease_owned(10));
        (0..30).filter(|_| lease.try_acquire().is_ok()).count() as u64
    });
    let taken: u64 = taken.iter().sum();
    // A lease may give back some of the 60 that are not set aside when others have ended.
    assert!((24..=60).contains(&taken), "{taken}");
    assert_eq!(limiter.stats(), counts(taken, taken, 120 - taken, 0));

    let bucket = TokenBucket::new(Quota::per_hour(100)).expect("a quota");
    let limiter = Leases::with_clock(bucket, 40, ManualClock::new()).expect("leases");
    let limiter = Counted::new(limiter);
    let mut lease = limiter.with_same_counters(limiter.limiter().lease(10));
    assert!(lease.try_acquire_n(7).is_ok() && lease.try_acquire_n(0).is_ok());
    assert!(lease.try_acquire_n(1000).is_err());
    let actual = lease.limiter().held();
    assert_eq!(actual, 10 - 7 + 7, "it drew all available permits");
    assert!(lease.give_back() > 0);
    assert_eq!(lease.stats(), counts(2, 7, 1, 0)); // a request for 0 permits is a request
    assert!(limiter.try_acquire_n(2).is_ok()); // without a lease
    assert_eq!(limiter.stats(), counts(3, 9, 1, 0));
}

#[test]
fn entries_are_counted_by_weight_and_abandoned_waits_are_not() {
    deadline("a turn", || {
        let limiter = Concurrency::new(3).expect("a limit").counted();
        let guard = limiter.try_enter_n(2).expect("room");
        assert!(limiter.try_enter_n(2).is_err() && limiter.try_enter_n(4).is_err());
        assert!(limiter.enter_n(2).wait_timeout(Duration::ZERO).is_err());
        assert_eq!(limiter.stats(), Some(counts(1, 2, 3, 0)));
        {
            let _gives_up = that_waits(limiter.enter_n(2));
            assert!(limiter.try_enter_ahead(1).is_ok());
        }
        assert_eq!(limiter.stats(), Some(counts(2, 3, 3, 0)));
        let mut enters = that_waits(limiter.enter_n(2));
        drop(guard);
        assert!(poll(enters.as_mut()).is_ready());
        assert!(limiter.enter().wait().is_ok());
        assert_eq!(limiter.stats(), Some(counts(4, 6, 3, 0)));
        assert_eq!(limiter.inside(), 0);
    });
}

#[test]
fn guards_moved_into_tasks_are_counted() {
    let limiter = Arc::new(Concurrency::new(2).expect("a limit").counted());
    let guard = limiter.try_enter_owned(2).expect("room");
    assert!(limiter.try_enter_owned(1).is_err());
    let waits = limiter.enter_owned(1);
    let inside = thread::spawn(move || {
        drop(guard);
        waits.wait().map(|guard| guard.n())
    });
    assert_eq!(inside.join().expect("no panic"), Ok(1));
    assert_eq!(limiter.stats(), Some(counts(2, 3, 1, 0)));
}

#[test]
fn an_owned_reservation_keeps_its_limiter_alive() {
    fn is_static<T: Send + 'static>(it: T) -> T {
        it
    }
    let (clock, limiter) = bucket(Quota::per_second(10).burst(1));
    let limiter = Arc::new(Counted::new(limiter));
    let first = is_static(limiter.reserve_owned(1).expect("at once"));
    let within = Duration::from_millis(100);
    let second = is_static(limiter.reserve_within_owned(1, within).expect("in time"));
    assert!(limiter.reserve_within_owned(1, within).is_err());
    let counted = limiter.with_same_counters(Concurrency::new(1).expect("a limit"));
    drop(limiter);
    let waited = thread::spawn(move || [first, second].map(Reservation::wait));
    let waited = waited.join().expect("no panic");
    assert_eq!(waited.map(|granted| millis(granted.at())), [0, 100]);
    assert_eq!(millis(clock.now()), 100);
    assert_eq!(counted.stats(), counts(2, 2, 1, 0));
}
