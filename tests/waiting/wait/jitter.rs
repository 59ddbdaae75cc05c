//! Jitter: some wait longer, none is early, and none waits longer than its timeout.

use std::collections::BTreeSet;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tollgate::Quota;
use tollgate::wait::Jitter;

use crate::support::{bucket, poll, tick};

#[test]
fn jitter_is_waited_for_on_top_and_makes_no_one_early() {
    let (clock, limiter) = bucket(Quota::per_second(1000).burst(1));
    let most = Duration::from_micros(700);
    let on = limiter.with_timer(&clock).jitter(Jitter::up_to(most));
    assert!(poll(pin!(on.acquire())).is_ready(), "it need not wait");
    let mut seen = BTreeSet::new();
    for _ in 0..100 {
        let mut waits = pin!(on.acquire());
        assert!(poll(waits.as_mut()).is_pending());
        let wakes = clock.next_sleeper().expect("it sleeps");
        clock.set(wakes);
        let Poll::Ready(Ok(granted)) = poll(waits) else {
            panic!("its time has come");
        };
        assert!(wakes >= granted.at());
        let late = wakes.saturating_since(granted.at());
        assert!(late <= most, "{late:?}");
        seen.insert(late);
    }
    // A hundred random times of 700 001: fewer than 51 different ones are less likely than 10^-100.
    assert!(seen.len() > 50, "{seen:?}");
}

#[test]
fn no_one_waits_longer_than_its_timeout() {
    let (clock, limiter) = bucket(Quota::per_second(1000).burst(1));
    assert!(limiter.try_acquire().is_ok());
    let on = limiter
        .with_timer(&clock)
        .jitter(Jitter::up_to(Duration::MAX));
    let mut waits = pin!(on.acquire_timeout(1, Duration::from_millis(2)));
    assert!(poll(waits.as_mut()).is_pending());
    let wakes = clock.next_sleeper().expect("it sleeps");
    assert!(
        (tick(1_000_000)..=tick(2_000_000)).contains(&wakes),
        "{wakes:?}"
    );
}
