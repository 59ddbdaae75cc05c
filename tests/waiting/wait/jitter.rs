//! The jitter comes before permits are taken, so no permit is used earlier than the limit allows,
//! and no caller waits longer than its timeout.

use std::collections::BTreeSet;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tollgate::clock::Clock;
use tollgate::wait::Jitter;

use crate::support::*;

const MILLISECOND: u64 = SECOND / 1000;

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn permits_are_used_an_interval_apart_with_any_jitter() {
    for jitter in [millis(50), millis(7), millis(1000)] {
        let (clock, limiter) = bucket(Quota::per_second(20).burst(1));
        let on = &limiter.with_timer(&clock).jitter(Jitter::up_to(jitter));
        let clock = &clock;
        let crawlers = (0..5).map(|_| async move {
            let mut used = Vec::new();
            for _ in 0..60 {
                on.acquire().await.expect("it comes");
                used.push(clock.now().as_nanos());
            }
            used
        });
        let crawlers: FuturesUnordered<_> = crawlers.collect();
        let mut used = run(clock, crawlers.concat());
        used.sort_unstable();
        assert_eq!(used.len(), 300);
        let gaps = used.windows(2).map(|pair| pair[1] - pair[0]);
        let least = gaps.min().expect("there are gaps");
        assert_eq!(least, 50 * MILLISECOND, "{jitter:?}");
    }
}

#[test]
fn a_caller_that_has_to_wait_waits_for_the_jitter_first() {
    let (clock, limiter) = bucket(Quota::per_second(1).burst(1));
    let (least, most) = (millis(200), millis(900));
    let on = limiter
        .with_timer(&clock)
        .jitter(Jitter::between(least, most));
    assert!(poll(pin!(on.acquire())).is_ready(), "it need not wait");
    let mut seen = BTreeSet::new();
    for _ in 0..100 {
        let now = clock.now();
        let mut waits = that_waits(on.acquire());
        let ends = clock.next_sleeper().expect("it sleeps");
        let jitter = ends.saturating_since(now);
        assert!((least..=most).contains(&jitter), "{jitter:?}");
        seen.insert(jitter);
        // The permits are taken after the jitter.
        assert_eq!(limiter.at(limiter.clock().now()).waiting(), 0);
        clock.set(ends);
        assert!(poll(waits.as_mut()).is_pending());
        assert_eq!(limiter.at(limiter.clock().now()).waiting(), 1);
        let due = now.saturating_add(Duration::from_secs(1));
        assert_eq!(clock.next_sleeper(), Some(due));
        clock.set(due);
        let Poll::Ready(Ok(granted)) = poll(waits.as_mut()) else {
            panic!("it is due");
        };
        assert_eq!(granted.at(), due);
    }
    // Of 100 draws from 700 000 001 values, fewer than 51 different ones practically never occur.
    assert!(seen.len() > 50, "{seen:?}");
}

#[test]
fn a_caller_dropped_during_its_jitter_has_taken_nothing() {
    let (clock, limiter) = bucket(Quota::per_second(1).burst(2));
    assert!(limiter.try_acquire_n(2).is_ok());
    let on = limiter
        .with_timer(&clock)
        .jitter(Jitter::between(millis(500), millis(500)));
    let waits = that_waits(on.acquire());
    let waiting = || (clock.sleepers(), limiter.at(clock.now()).waiting());
    assert_eq!(waiting(), (1, 0));
    drop(waits);
    assert_eq!(waiting(), (0, 0));
}

#[test]
fn no_caller_waits_longer_than_its_timeout() {
    let (clock, limiter) = bucket(Quota::per_second(1000).burst(1));
    assert!(limiter.try_acquire().is_ok());
    let on = limiter
        .with_timer(&clock)
        .jitter(Jitter::between(Duration::MAX, Duration::MAX));
    // Too long even without the jitter: refused at once.
    let denied = run(&clock, on.acquire_timeout(1, Duration::from_nanos(999_990)));
    let late = denied.expect_err("it is not due in time").retry_after();
    let expected = (Some(Duration::from_nanos(10)), 0);
    assert_eq!((late, clock.sleepers()), expected);
    // The jitter takes no more of the timeout than the wait leaves.
    let mut waits = that_waits(on.acquire_timeout(1, millis(2)));
    assert_eq!(clock.next_sleeper(), Some(tick(MILLISECOND)));
    // Another caller comes first, so the permit would now come at the end of the timeout.
    clock.set(tick(MILLISECOND));
    assert!(limiter.try_acquire().is_ok());
    assert!(poll(waits.as_mut()).is_pending());
    clock.set(tick(2 * MILLISECOND));
    assert!(matches!(poll(waits.as_mut()), Poll::Ready(Ok(_))));
    // Three come first, so it is refused after its jitter.
    let mut waits = that_waits(on.acquire_timeout(1, millis(3)));
    assert_eq!(limiter.charge(3).n(), 3);
    assert_eq!(clock.next_sleeper(), Some(tick(4 * MILLISECOND)));
    clock.set(tick(4 * MILLISECOND));
    let ended = poll(waits.as_mut());
    assert!(
        matches!(ended, Poll::Ready(Err(Denied::Later { .. }))),
        "{ended:?}"
    );
}

#[test]
fn a_request_that_can_never_be_granted_is_refused_at_once() {
    let (clock, limiter) = bucket(Quota::per_second(1000).burst(1));
    let on = limiter.with_timer(&clock).jitter(Jitter::up_to(millis(5)));
    let ended = poll(pin!(on.acquire_n(2)));
    assert!(
        matches!(ended, Poll::Ready(Err(Denied::Never { .. }))),
        "{ended:?}"
    );
}
