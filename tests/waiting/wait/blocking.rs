//! Threads that wait.

use crate::support::*;

const WAITERS: u64 = debug_or_release(200, 1000);
const MS: u64 = 1_000_000;

#[test]
fn many_threads_read_the_clock_twice_each_and_wake_in_time() {
    deadline("threads that wait for a manual clock", || {
        let (counting, limiter) = counting_bucket(Quota::per_second(1000).burst(1));
        let wait = |_| {
            let granted = limiter.blocking_acquire().expect("it will be there");
            assert!(counting.clock.now() >= granted.at(), "early: {granted:?}");
            granted.at()
        };
        let mut ends = on_threads_while(0..WAITERS, wait, |ended| {
            match counting.clock.next_sleeper() {
                Some(tick) => counting.clock.set(tick.max(counting.clock.now())),
                None => thread::yield_now(),
            }
            ended < WAITERS
        });
        // One thread need not sleep.
        assert_eq!(counting.readings(), 2 * WAITERS - 1);
        // The clock stops at each tick for which a thread waits, so no permit is late.
        ends.sort();
        let dues: Vec<_> = (0..WAITERS).map(|place| tick(place * MS)).collect();
        assert_eq!(ends, dues);
    });
}

#[test]
fn threads_that_need_not_wait_take_each_permit_once() {
    const BURST: usize = 10_000;
    let (_, limiter) = bucket(Quota::per_hour(1).burst(BURST as u64));
    let adjustable = Adjustable::with_clock(*limiter.algorithm(), limiter.clock().clone());
    let taken = on_threads(0..4, |_| {
        let calls = (0..BURST).map(|_| limiter.blocking_acquire_timeout(1, Duration::ZERO));
        let changed = (0..BURST).map(|_| adjustable.blocking_acquire_timeout(1, Duration::ZERO));
        [
            calls.filter(Result::is_ok).count(),
            changed.filter(Result::is_ok).count(),
        ]
    });
    let sums = [0, 1].map(|limiter| taken.iter().map(|taken| taken[limiter]).sum::<usize>());
    assert_eq!(sums, [BURST; 2]);
}

#[test]
fn each_verb_that_blocks_returns_at_its_tick() {
    let (clock, second) = (Leaping::default(), Duration::from_secs(1));
    let quota = Quota::per_second(10).burst(2);
    let limiter = Limiter::with_clock(TokenBucket::new(quota).expect("a quota"), clock.clone());
    let verbs: [&dyn Fn() -> Result<Granted, Denied>; 5] = [
        &|| limiter.blocking_acquire_n(2),
        &|| limiter.blocking_acquire(),
        &|| limiter.blocking_acquire_n(2),
        &|| limiter.blocking_acquire_timeout(1, second),
        &|| limiter.reserve(1).map(|reserved| reserved.wait()),
    ];
    let check = |granted: Granted, ms: u64| {
        assert_eq!((granted.at(), clock.now()), (tick(ms * MS), tick(ms * MS)));
    };
    for (verb, ms) in verbs.iter().zip([0, 100, 300, 400, 500]) {
        check(verb().expect("it will be there"), ms);
    }
    let queue = LeakyBucket::queue(quota).expect("a quota");
    let queue = Limiter::with_clock(queue, clock.clone());
    let adjustable =
        Adjustable::with_clock(TokenBucket::new(quota).expect("a quota"), clock.clone());
    assert!(adjustable.blocking_acquire_n(2).is_ok());
    for ms in [500, 600, 700] {
        check(queue.blocking_acquire().expect("it is let out"), ms);
    }
    // Two permits came in the meantime.
    for (n, ms) in [(2, 700), (1, 800), (2, 1000)] {
        let granted = adjustable.blocking_acquire_timeout(n, second);
        check(granted.expect("in time"), ms);
    }
    let turns = Gcra::new(Quota::per_second(10).burst(1)).expect("a quota");
    let paced = Limiter::with_clock(turns, clock.clone());
    for ms in [1000, 1100, 1200] {
        check(paced.blocking_acquire().expect("its turn comes"), ms);
    }
}

#[test]
fn a_timeout_of_zero_does_not_wait_and_a_longer_one_is_respected() {
    let (clock, limiter) = bucket(Quota::per_second(10).burst(2));
    let adjustable = Adjustable::with_clock(*limiter.algorithm(), limiter.clock().clone());
    let kept = |longest: u64| {
        let longest = Duration::from_millis(longest);
        let denials = [
            limiter.blocking_acquire_timeout(1, longest).unwrap_err(),
            limiter.reserve_within(1, longest).map(drop).unwrap_err(),
            adjustable.blocking_acquire_timeout(1, longest).unwrap_err(),
            adjustable.reserve_within(1, longest).map(drop).unwrap_err(),
        ];
        denials.map(|denied| denied.retry_after().expect("a time").as_millis())
    };
    for _ in 0..2 {
        assert!(limiter.blocking_acquire_timeout(2, Duration::ZERO).is_ok());
        let both = adjustable.blocking_acquire_timeout(2, Duration::ZERO);
        assert!(both.is_ok());
        // A refused request takes nothing.
        assert_eq!((kept(0), kept(0), kept(99)), ([100; 4], [100; 4], [1; 4]));
        clock.advance(Duration::from_millis(200));
    }
    let reserved = limiter.reserve_within(2, Duration::ZERO).expect("two");
    assert_eq!(millis(reserved.due()), 400);
}

#[test]
fn a_request_that_can_never_succeed_fails_at_once() {
    let (_, limiter) = bucket(Quota::per_second(10).burst(2));
    let adjustable = Adjustable::with_clock(*limiter.algorithm(), limiter.clock().clone());
    for denied in [
        limiter.blocking_acquire_n(3).map(drop),
        limiter.blocking_acquire_timeout(3, Duration::MAX).map(drop),
        limiter.reserve(3).map(drop),
        limiter.reserve_within(3, Duration::MAX).map(drop),
        adjustable.blocking_acquire_n(3).map(drop),
        adjustable.reserve(3).map(drop),
    ] {
        assert_eq!(denied, Err(Denied::never(3, 2)));
    }
    assert_eq!((limiter.available(), adjustable.available()), (2, 2));
    // Nor will a request beyond the clock's end be granted.
    limiter.charge(u64::MAX);
    assert!(matches!(
        limiter.blocking_acquire(),
        Err(Denied::Stuck { .. })
    ));
}
