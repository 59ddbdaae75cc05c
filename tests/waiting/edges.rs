//! What once went wrong, or nearly: resets, rooms of odd rates, timers that don't sleep, wakers that do anything.

use std::cell::Cell;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::mpsc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tollgate::primitive::Ordering;
use tollgate::{
    Jitter, LeakyBucket, Limiter, ManualClock, Quota, Tick, Timer, TokenBucket, WaitingRoom,
};

use crate::adapters::counting;

fn manual(quota: Quota) -> (ManualClock, Limiter<TokenBucket, ManualClock>) {
    let clock = ManualClock::new();
    let bucket = TokenBucket::new(quota).expect("a quota");
    (clock.clone(), Limiter::with_clock(bucket, clock))
}

fn poll<F: Future>(f: Pin<&mut F>) -> Poll<F::Output> {
    f.poll(&mut Context::from_waker(Waker::noop()))
}

/// The same with futures that are dropped after it.
#[test]
fn who_is_dropped_after_a_reset_brings_nothing() {
    let (clock, gate) = manual(Quota::per_second(10).burst(2));
    let on = gate.on(&clock);
    let mut waiting: Vec<_> = (0..100).map(|_| Box::pin(on.acquire())).collect();
    let ready = waiting
        .iter_mut()
        .map(|f| poll(f.as_mut()).is_ready())
        .filter(|ready| *ready)
        .count();
    gate.reset();
    let mut goes = ready;
    // No time passes. All who wait are dropped, one after the other.
    for future in waiting {
        while gate.try_acquire().is_ok() {
            goes += 1;
        }
        drop(future);
    }
    // A burst, and a burst more for the reset.
    assert!(goes <= 4, "{goes} at one tick");
}

#[test]
fn a_room_of_a_queue_says_who_waits() {
    let queue = LeakyBucket::queue(Quota::per_second(10).burst(5)).unwrap();
    let room = WaitingRoom::for_permits(Limiter::with_clock(queue, ManualClock::new()), 4);
    let waiting = (0..5)
        .filter(|_| !room.reserve(1).unwrap().is_due())
        .count();
    assert!(room.reserve(1).is_err(), "it is full");
    assert_eq!((waiting, room.waiting()), (4, 4));
}

#[test]
fn a_room_holds_as_many_as_it_says() {
    let mut wrong = Vec::new();
    for (n, period, burst) in [
        (700_000_000, 1_000_000_000, 1),
        (300_000_000, 1_000_000_000, 1),
        (300_000_000, 1_000_000_000, 2),
        (700_000_000, 1_000_000_000, 3),
        (3_000_000_000, 1_000_000_000, 5),
        (13_000_000, 1_000_000_000, 1),
        (13_000_000, 1_000_000_000, 4),
        (999_999_937, 1_000_000_000, 1),
        (999_999_937, 1_000_000_000, 4),
        (300, 1_000_000_000, 1),
        (7, 1_000_000_000, 1),
        (13, 1_000_000_000, 1),
        (13, 1_000_000_000, 6),
    ] {
        for places in [0, 1, 2, 3, 10, 100, 1000, 10_000] {
            let bucket =
                TokenBucket::new(Quota::per(n, Duration::from_nanos(period)).burst(burst)).unwrap();
            let gate = Limiter::with_clock(bucket, ManualClock::new());
            let room = WaitingRoom::for_permits(gate, places);
            let waiting = std::iter::from_fn(|| room.reserve(1).ok())
                .filter(|one| !one.is_due())
                .count() as u64;
            // What comes in a nanosecond is due together; and where the rate is not exact, the last of a burst
            // may be due a nanosecond later, and hardly waits.
            let soon = (n / period).max(1);
            if !(places..=places + soon).contains(&waiting) {
                wrong.push((n, burst, places, waiting));
            }
        }
    }
    assert!(wrong.is_empty(), "rate, burst, places, waiting: {wrong:#?}");
}

/// A timer that is over at once, as its documentation's example is, must not hold the executor for ever.
#[test]
fn a_hasty_timer_gives_way() {
    struct AtOnce<'c>(&'c Cell<u64>, &'c ManualClock);
    impl Timer for AtOnce<'_> {
        type Sleep = std::future::Ready<()>;
        fn sleep(&self, _: Duration) -> Self::Sleep {
            self.0.set(self.0.get() + 1);
            if self.0.get() > 1_000_000 {
                // Else the poll would never return.
                self.1.advance(Duration::from_secs(1));
            }
            std::future::ready(())
        }
    }
    let (clock, gate) = manual(Quota::per_second(1).burst(1));
    let sleeps = Cell::new(0);
    _ = gate.try_acquire();
    let on = gate.on(AtOnce(&sleeps, &clock));
    let mut waits = pin!(on.acquire());
    _ = poll(waits.as_mut());
    assert!(sleeps.get() < 1000, "{} sleeps in one poll", sleeps.get());
}

/// A waker that reads the clock when it goes, as one does that owns the last of a task in which somebody sleeps.
#[test]
fn a_waker_may_own_a_sleeper() {
    struct Owns(#[allow(dead_code)] std::sync::Mutex<Option<Pin<Box<tollgate::ManualSleep>>>>);
    impl Wake for Owns {
        fn wake(self: Arc<Self>) {}
    }
    let (done, seen) = mpsc::channel();
    std::thread::spawn(move || {
        let clock = ManualClock::new();
        let mut mine = Box::pin(clock.sleep(Duration::from_secs(1)));
        let mut theirs = Box::pin(clock.sleep(Duration::from_secs(2)));
        assert!(poll(theirs.as_mut()).is_pending());
        {
            let task = Arc::new(Owns(std::sync::Mutex::new(Some(theirs))));
            let waker = Waker::from(task);
            assert!(
                mine.as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
            );
        }
        // Moved to another task: the first one ends.
        assert!(poll(mine.as_mut()).is_pending());
        done.send(clock.sleepers()).unwrap();
    });
    let sleepers = seen.recv_timeout(Duration::from_secs(10));
    assert_eq!(sleepers.ok(), Some(1), "deadlock");
}

#[test]
fn a_waker_that_panics_takes_no_other_with_it() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("no");
        }
    }
    let clock = ManualClock::new();
    let (mut a, mut b) = (
        Box::pin(clock.sleep(Duration::from_secs(1))),
        Box::pin(clock.sleep(Duration::from_secs(1))),
    );
    let bad = Waker::from(Arc::new(Panics));
    let (count, good) = counting();
    assert!(a.as_mut().poll(&mut Context::from_waker(&bad)).is_pending());
    assert!(
        b.as_mut()
            .poll(&mut Context::from_waker(&good))
            .is_pending()
    );
    _ = std::panic::catch_unwind(|| clock.advance(Duration::from_secs(1)));
    clock.advance(Duration::from_secs(1));
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
}

#[test]
fn the_last_waker_is_woken() {
    let clock = ManualClock::new();
    let mut a = Box::pin(clock.sleep(Duration::from_secs(1)));
    let ((first, w1), (second, w2)) = (counting(), counting());
    assert!(a.as_mut().poll(&mut Context::from_waker(&w1)).is_pending());
    assert!(a.as_mut().poll(&mut Context::from_waker(&w2)).is_pending());
    assert_eq!(clock.sleepers(), 1);
    clock.advance(Duration::from_secs(1));
    assert_eq!(
        (
            first.0.load(Ordering::SeqCst),
            second.0.load(Ordering::SeqCst)
        ),
        (0, 1)
    );
    // Back, and on again.
    clock.set(Tick::ZERO);
    assert!(a.as_mut().poll(&mut Context::from_waker(&w1)).is_pending());
    clock.set(Tick::MAX);
    assert_eq!(first.0.load(Ordering::SeqCst), 1);
    assert!(poll(a.as_mut()).is_ready());
    assert!(poll(a.as_mut()).is_ready());
    drop(a);
    assert_eq!(clock.sleepers(), 0);
}

/// "The same if that takes no longer than `timeout`".
#[test]
fn nobody_waits_longer_than_their_timeout() {
    let (clock, gate) = manual(Quota::per_second(1000).burst(1));
    _ = gate.try_acquire();
    let on = gate
        .on(&clock)
        .jitter(Jitter::up_to(Duration::from_secs(3600)));
    let mut waits = pin!(on.acquire_timeout(1, Duration::from_millis(2)));
    assert!(poll(waits.as_mut()).is_pending());
    let wakes = clock.next_sleeper().unwrap();
    assert!(wakes <= Tick::from_nanos(2_000_000), "{wakes:?}");
}

#[test]
fn what_has_ended_takes_no_more() {
    let (clock, gate) = manual(Quota::per_second(1).burst(3));
    let on = gate.on(&clock);
    let mut waits = pin!(on.acquire());
    assert!(poll(waits.as_mut()).is_ready());
    _ = poll(waits.as_mut());
    _ = poll(waits.as_mut());
    assert_eq!(gate.available(), 2);
}

#[test]
fn extremes_do_not_panic() {
    let ticks = [
        0,
        1,
        5,
        u64::MAX / 2,
        1_577_880_000_000_000_000,
        u64::MAX - 1,
        u64::MAX,
    ];
    let ns = [0, 1, 2, 3, 1 << 40, u64::MAX - 1, u64::MAX];
    for (n, period, burst) in [
        (1u64, 1u64, 1u64),
        (10, 1, 1),
        (10, 1, 3),
        (13, 1000, 3),
        (999_999_937, 1_000_000_000, 20),
        (1, 365 * 86400 * 1_000_000_000, 1),
        (1, 1, 1 << 40),
        (7, 10, 1),
    ] {
        let quota = Quota::per(n, Duration::from_nanos(period)).burst(burst);
        let Ok(bucket) = TokenBucket::new(quota) else {
            continue;
        };
        let queue = LeakyBucket::queue(quota).unwrap();
        go(bucket, &ticks, &ns);
        go(queue, &ticks, &ns);
        go(queue.free(1), &ticks, &ns);
        go(queue.free(u64::MAX - 1), &ticks, &ns);
    }
    fn go<A: tollgate::Reserve + Copy>(a: A, ticks: &[u64], ns: &[u64]) {
        let words = [0, 1, 2, 1 << 62, u64::MAX / 2, u64::MAX - 2, u64::MAX - 1];
        for &w in &words {
            for &t in ticks {
                for &n in ns {
                    for &l in ticks {
                        if let Ok((next, g)) =
                            a.reserve(w, Tick::from_nanos(t), n, Tick::from_nanos(l))
                        {
                            assert!(next >= w && next < u64::MAX);
                            assert!(g.due() >= Tick::from_nanos(t));
                            for &t2 in ticks {
                                for &c in ns {
                                    for w2 in [
                                        next,
                                        0,
                                        next / 2,
                                        next.saturating_add(1).min(u64::MAX - 1),
                                        u64::MAX - 1,
                                    ] {
                                        let (x, kept, back) =
                                            a.cancel(w2, Tick::from_nanos(t2), &g, c);
                                        assert!(
                                            x <= w2
                                                && back <= c.min(g.n())
                                                && kept.due() <= g.due()
                                                && kept.n() + c.min(g.n()) == g.n()
                                        );
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Held: decades on tokio's timer, the account of a storm of threads on the manual clock.
#[test]
fn decades_on_tokio() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let gate = Limiter::token_bucket(Quota::per(1, Duration::from_secs(365 * 86400)).burst(1))
            .unwrap();
        let on = gate.on(tollgate::TokioTimer);
        assert!(poll(pin!(on.acquire())).is_ready());
        let mut all: Vec<_> = (0..40).map(|_| Box::pin(on.acquire())).collect();
        for one in &mut all {
            assert!(poll(one.as_mut()).is_pending());
        }
        let far = gate
            .on(tollgate::TokioTimer)
            .jitter(Jitter::up_to(Duration::MAX));
        let mut all: Vec<_> = (0..5).map(|_| Box::pin(far.acquire())).collect();
        for one in &mut all {
            assert!(poll(one.as_mut()).is_pending());
        }
    });
}

#[test]
fn nobody_sleeps_for_ever_by_a_clock_that_moves() {
    use tollgate::{Clock, Sleeps};
    for _ in 0..200 {
        let clock = ManualClock::new();
        std::thread::scope(|scope| {
            let workers: Vec<_> = (1..=4u64)
                .map(|k| {
                    let clock = clock.clone();
                    scope.spawn(move || {
                        for i in 0..200u64 {
                            let due = clock
                                .now()
                                .saturating_add(Duration::from_nanos((i * k) % 7));
                            assert!(clock.sleep_until(due, clock.now()) >= due);
                        }
                    })
                })
                .collect();
            while !workers.iter().all(|w| w.is_finished()) {
                clock.advance(Duration::from_nanos(1));
                std::thread::yield_now();
            }
        });
        assert_eq!(clock.sleepers(), 0);
    }
}
