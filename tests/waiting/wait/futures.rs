//! Futures that wait.

use std::sync::Mutex;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tollgate::wait::{AsyncLimiter, Jitter, TokioTimer};
use tollgate_audit::{Audit, Bounded, Log};

use crate::support::storm::{WAITERS, on_both_runtimes, rage};
use crate::support::*;

#[test]
fn thousands_of_futures_complete_in_order_and_on_time() {
    const FUTURES: u64 = debug_or_release(10_000, 100_000);
    let (counting, limiter) = counting_bucket(Quota::per_second(10_000).burst(10));
    let on = limiter.with_timer(&counting.clock);
    let mut waiting: FuturesUnordered<_> = (0..FUTURES).map(|_| on.acquire()).collect();
    for place in 0..FUTURES {
        let ended = run(&counting.clock, waiting.next()).expect("one more");
        // Ten at once, and then ten thousand a second.
        let due = tick((place + 1).saturating_sub(10) * 100_000);
        assert_eq!(ended.map(|granted| granted.at()), Ok(due));
        assert_eq!(counting.clock.now(), due);
    }
    assert_eq!(counting.readings(), 2 * FUTURES - 10);
}

#[test]
fn a_future_that_is_woken_early_sleeps_again() {
    let (clock, limiter) = bucket(Quota::per_second(1).burst(1));
    let on = limiter.with_timer(HalfAsleep(&clock));
    assert!(poll(pin!(on.acquire())).is_ready());
    let granted = run(&clock, on.acquire()).expect("it will be there");
    assert_eq!((granted.at(), clock.now()), (tick(SECOND), tick(SECOND)));
}

#[test]
fn a_timer_that_does_not_sleep_yields_to_the_executor() {
    let (_, limiter) = bucket(Quota::per_second(1).burst(1));
    assert!(limiter.try_acquire().is_ok());
    let on = limiter.with_timer(AtOnce::default());
    assert!(poll(pin!(on.acquire())).is_pending());
}

#[test]
fn a_dropped_future_gives_its_place_to_the_next() {
    let (clock, limiter) = bucket(Quota::per_second(1).burst(1));
    let on = limiter.with_timer(&clock);
    assert!(poll(pin!(on.acquire())).is_ready());
    for _ in 0..2 {
        let waits = that_waits(on.acquire());
        let expected = (1, Some(tick(SECOND)));
        assert_eq!((clock.sleepers(), clock.next_sleeper()), expected);
        drop(waits);
        assert_eq!(clock.sleepers(), 0);
        // A future that was never polled has taken nothing.
        drop(on.acquire_n(1));
    }
}

#[test]
fn dropped_futures_in_the_middle_of_a_queue_let_none_leave_faster_than_the_rate() {
    let queue = LeakyBucket::queue(Quota::per_second(1).burst(20)).expect("a queue");
    let clock = ManualClock::new();
    let limiter = Limiter::with_clock(queue, clock.clone());
    let on = limiter.with_timer(&clock);
    let first = run(&clock, on.acquire()).expect("it leaves at once");
    let mut waiting: Vec<_> = (0..5).map(|_| Box::pin(on.acquire())).collect();
    for waits in &mut waiting {
        assert!(poll(waits.as_mut()).is_pending());
    }
    let mut last = waiting.pop().expect("five");
    drop(waiting);
    assert_eq!(limiter.undo(first), 0, "another caller waits behind it");
    let mut newcomers: Vec<_> = (0..5).map(|_| Box::pin(on.acquire())).collect();
    for waits in &mut newcomers {
        assert!(poll(waits.as_mut()).is_pending());
    }
    let left = run(&clock, last.as_mut()).expect("its turn");
    assert_eq!(left.at(), tick(5 * SECOND));
    for (turn, waits) in (6..).zip(&mut newcomers) {
        let left = run(&clock, waits.as_mut()).expect("its turn");
        assert_eq!(left.at(), tick(turn * SECOND));
    }
}

#[test]
fn a_completed_future_takes_no_more() {
    let (clock, limiter) = bucket(Quota::per_second(1).burst(3));
    let on = limiter.with_timer(&clock);
    let mut waits = pin!(on.acquire());
    assert!(poll(waits.as_mut()).is_ready());
    for _ in 0..3 {
        // A grant is delivered once.
        assert!(poll(waits.as_mut()).is_pending());
        assert_eq!((limiter.available(), clock.sleepers()), (2, 0));
    }
}

#[test]
fn a_future_dropped_after_a_reset_returns_nothing() {
    let (clock, limiter) = bucket(Quota::per_second(10).burst(2));
    let on = limiter.with_timer(&clock);
    let mut waiting: Vec<_> = (0..100).map(|_| Box::pin(on.acquire())).collect();
    let polled = waiting.iter_mut().map(|waits| poll(waits.as_mut()));
    assert_eq!(polled.filter(Poll::is_ready).count(), 2);
    limiter.reset();
    // No time passes. All waiters are dropped, one after the other.
    let mut goes = 0;
    for waits in waiting {
        goes += limiter.take_up_to(100).n();
        drop(waits);
    }
    // Two more than before, since the reset gives a burst.
    assert!(goes <= 2, "{goes} at one tick");
}

#[test]
fn decades_fit_into_tokios_timer() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let _inside = runtime.enter();
    let year = Duration::from_secs(365 * 86_400);
    let limiter = Limiter::token_bucket(Quota::per(1, year).burst(1)).expect("a quota");
    assert!(limiter.try_acquire().is_ok());
    for jitter in [Jitter::NONE, Jitter::up_to(Duration::MAX)] {
        let on = limiter.with_timer(TokioTimer).jitter(jitter);
        let mut all: Vec<_> = (0..40).map(|_| Box::pin(on.acquire())).collect();
        let mut polled = all.iter_mut().map(|waits| poll(waits.as_mut()));
        assert!(polled.all(|polled| polled.is_pending()));
    }
}

#[test]
fn a_storm_serves_all_remaining_futures_and_keeps_the_bound() {
    deadline("a storm of waiting futures", || {
        on_both_runtimes(|spawn| {
            let (clock, limiter) = bucket(Quota::per_second(1000).burst(5));
            let (limiter, served) = (Arc::new(limiter), Arc::new(Mutex::new(Log::new())));
            let jobs = (0..WAITERS).map(|i| {
                let on = AsyncLimiter::new(Arc::clone(&limiter), clock.clone());
                let served = Arc::clone(&served);
                Box::pin(async move {
                    let granted = on.acquire_n(i % 3 + 1).await.expect("it will be there");
                    assert!(on.limiter().now() >= granted.at(), "early");
                    served.lock().expect("no panic").granted(&granted);
                }) as _
            });
            let go_on = || match clock.next_sleeper() {
                Some(tick) => clock.set(tick.max(clock.now())),
                None => std::thread::yield_now(),
            };
            rage(spawn, jobs, || clock.sleepers(), go_on);
            let served = std::mem::take(&mut *served.lock().expect("no panic"));
            assert!(served.len() as u64 >= WAITERS / 2);
            let history: Audit = [served].into_iter().collect();
            let bound = limiter.algorithm().bound();
            history.check(&bound).expect("the bound");
            assert_eq!(clock.sleepers(), 0);
            // After enough time the bucket is full again.
            clock.advance(Duration::from_secs(60));
            assert_eq!(limiter.available(), 5);
        });
    });
}

#[test]
fn a_future_dropped_when_due_returns_all_its_permits() {
    let (clock, limiter) = bucket(Quota::per_second(1).burst(3));
    let on = limiter.with_timer(&clock);
    assert!(limiter.try_acquire_n(3).is_ok());
    let waits = that_waits(on.acquire_n(3));
    // The future has not been polled since it became due.
    clock.set(tick(3 * SECOND));
    assert_eq!(limiter.available(), 0);
    drop(waits);
    assert_eq!((limiter.available(), clock.sleepers()), (3, 0));
}
