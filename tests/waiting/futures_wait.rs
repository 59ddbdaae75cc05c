//! Futures that wait.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tollgate::{Clock, Gate, Jitter, Limiter, ManualClock, On, Quota, Tick, TokenBucket};

use crate::counting::{Audited, Counting, Readings, poll_once};

#[test]
fn a_hundred_thousand_futures_end_in_order_and_when_they_should() {
    const WAITERS: u64 = 100_000;
    let (readings, clock) = (Readings::default(), ManualClock::new());
    let counting = Counting {
        clock: clock.clone(),
        readings: &readings,
    };
    let bucket = TokenBucket::new(Quota::per_second(10_000).burst(10)).expect("a quota");
    let gate = Audited::new(Limiter::with_clock(bucket, counting.clone()));
    let begun = readings.count();
    let on = On::new(&gate, counting);
    let mut waiting: FuturesUnordered<_> = (0..WAITERS).map(|_| on.acquire()).collect();
    let mut ends = Vec::new();
    futures::executor::block_on(async {
        loop {
            match futures::poll!(waiting.next()) {
                std::task::Poll::Ready(None) => break,
                std::task::Poll::Ready(Some(granted)) => {
                    let at = granted.expect("it will be there").at();
                    assert!(clock.now() >= at, "early");
                    ends.push(at);
                }
                std::task::Poll::Pending => {
                    clock.set(clock.next_sleeper().expect("somebody sleeps"))
                }
            }
        }
    });
    let each = (readings.count() - begun) as f64 / WAITERS as f64;
    assert!(each <= 2.0, "{each} readings a permit");
    assert!(ends.is_sorted() && gate.account().dues.is_sorted());
    let (ideal, last) = ((WAITERS - 10) * 100_000, ends[ends.len() - 1].as_nanos());
    assert_eq!(last, ideal, "10 at once, and then ten thousand a second");
}

#[test]
fn who_is_woken_early_sleeps_again() {
    /// A timer that sleeps for half of the time.
    struct Hasty<'c>(&'c ManualClock);

    impl tollgate::Timer for Hasty<'_> {
        type Sleep = <ManualClock as tollgate::Timer>::Sleep;

        fn sleep(&self, duration: Duration) -> Self::Sleep {
            self.0.sleep(duration / 2 + Duration::from_nanos(1))
        }
    }

    let clock = ManualClock::new();
    let bucket = TokenBucket::new(Quota::per_second(1).burst(1)).expect("a quota");
    let gate = Limiter::with_clock(bucket, clock.clone());
    let on = gate.on(Hasty(&clock));
    assert!(poll_once(pin!(on.acquire())).is_some());
    let mut second = pin!(on.acquire());
    let mut sleeps = 0;
    let granted = loop {
        match poll_once(second.as_mut()) {
            Some(granted) => break granted.expect("it will be there"),
            None => clock.set(clock.next_sleeper().expect("it sleeps")),
        }
        sleeps += 1;
    };
    assert!(sleeps > 5);
    assert_eq!(granted.at(), Tick::from_nanos(1_000_000_000));
    assert!(clock.now() >= granted.at());
}

#[test]
fn a_future_that_is_dropped_gives_its_place_to_the_next() {
    let clock = ManualClock::new();
    let bucket = TokenBucket::new(Quota::per_second(1).burst(1)).expect("a quota");
    let gate = Audited::new(Limiter::with_clock(bucket, clock.clone()));
    let on = On::new(&gate, &clock);
    assert!(poll_once(pin!(on.acquire())).is_some());
    {
        let mut waits = pin!(on.acquire());
        assert!(poll_once(waits.as_mut()).is_none());
        assert_eq!(clock.sleepers(), 1);
    }
    assert_eq!((clock.sleepers(), gate.account().came_back), (0, 1));
    let next = gate.clock().now().saturating_add(Duration::from_secs(1));
    let mut waits = pin!(on.acquire());
    assert!(poll_once(waits.as_mut()).is_none());
    assert_eq!(clock.next_sleeper(), Some(next));
    // One that was never polled has taken nothing.
    drop(on.acquire_n(1));
    assert_eq!(gate.account().reserved, 3);
}

#[test]
fn jitter_is_waited_for_on_top_and_makes_nobody_early() {
    let clock = ManualClock::new();
    let bucket = TokenBucket::new(Quota::per_second(1000).burst(1)).expect("a quota");
    let gate = Limiter::with_clock(bucket, clock.clone());
    let most = Duration::from_micros(700);
    let on = gate.on(&clock).jitter(Jitter::up_to(most));
    let mut differ = Vec::new();
    // Who need not wait is not made to.
    assert!(poll_once(pin!(on.acquire())).is_some());
    for _ in 0..100 {
        let mut waits = pin!(on.acquire());
        assert!(poll_once(waits.as_mut()).is_none());
        let wakes = clock.next_sleeper().expect("it sleeps");
        clock.set(wakes);
        let granted = poll_once(waits.as_mut()).expect("it is there");
        let late = wakes.saturating_since(granted.expect("it is there").at());
        assert!(wakes >= granted.expect("it is there").at() && late <= most);
        differ.push(late);
    }
    differ.sort_unstable();
    differ.dedup();
    assert!(differ.len() > 50, "{differ:?}");
}
