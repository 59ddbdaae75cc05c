//! Sleeping on a manual clock, with any wakers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::task::{Wake, Waker};

use tollgate::clock::{ManualSleep, SleepClock, Timer};

use crate::support::*;

const ROUNDS: u64 = debug_or_release(10, 200);

/// Tests a waker that reads the clock when it is dropped. A waker does so if it owns the last
/// reference to a task that itself sleeps.
#[test]
fn a_waker_may_own_a_sleeper() {
    struct Owns(#[allow(dead_code, reason = "only held")] Mutex<Pin<Box<ManualSleep>>>);
    impl Wake for Owns {
        fn wake(self: Arc<Self>) {}
    }
    deadline("a waker that is dropped, and locks the sleepers", || {
        let clock = ManualClock::new();
        let mut mine = Box::pin(clock.sleep(Duration::from_secs(1)));
        let theirs = that_waits(clock.sleep(Duration::from_secs(2)));
        let waker = Waker::from(Arc::new(Owns(Mutex::new(theirs))));
        assert!(poll_by(mine.as_mut(), &waker).is_pending());
        drop(waker);
        // Moved to another task: the first one ends.
        assert!(poll(mine.as_mut()).is_pending());
        assert_eq!(clock.sleepers(), 1);
    });
}

#[test]
fn a_waker_that_panics_does_not_affect_others() {
    let (clock, wake_counter) = (ManualClock::new(), Arc::new(WakeCounter::default()));
    let [mut a, mut b] = [(); 2].map(|()| Box::pin(clock.sleep(Duration::from_secs(1))));
    assert!(poll_by(a.as_mut(), &Waker::from(Arc::new(PanicsWhenWoken))).is_pending());
    assert!(poll_by(b.as_mut(), &wake_counter.clone().into()).is_pending());
    let advance = || clock.advance(Duration::from_secs(1));
    assert!(catch_unwind(AssertUnwindSafe(advance)).is_err());
    clock.advance(Duration::from_secs(1));
    assert_eq!(wake_counter.wakes(), 1);
}

#[test]
fn the_last_waker_is_woken() {
    let clock = ManualClock::new();
    let mut sleep = Box::pin(clock.sleep(Duration::from_secs(1)));
    let wake_counters = [(); 2].map(|()| Arc::new(WakeCounter::default()));
    let wakes = || {
        wake_counters
            .each_ref()
            .map(|wake_counter| wake_counter.wakes())
    };
    for wake_counter in &wake_counters {
        assert!(poll_by(sleep.as_mut(), &wake_counter.clone().into()).is_pending());
    }
    assert_eq!(clock.sleepers(), 1);
    clock.advance(Duration::from_secs(1));
    assert_eq!(wakes(), [0, 1]);
    // The clock goes back, and then forward again.
    clock.set(Tick::ZERO);
    assert!(poll_by(sleep.as_mut(), &wake_counters[0].clone().into()).is_pending());
    clock.set(Tick::MAX);
    assert_eq!(wakes(), [1, 1]);
    assert!(poll(sleep.as_mut()).is_ready() && poll(sleep.as_mut()).is_ready());
    drop(sleep);
    assert_eq!(clock.sleepers(), 0);
}

#[test]
fn no_thread_sleeps_forever_on_a_moving_clock() {
    deadline("threads that sleep while the clock moves", || {
        for _ in 0..ROUNDS {
            let clock = ManualClock::new();
            let sleep = |id: u64| {
                for i in 0..200 {
                    let due = clock
                        .now()
                        .saturating_add(Duration::from_nanos(i * (id + 1) % 7));
                    assert!(clock.sleep_until(due, clock.now()) >= due);
                }
            };
            on_threads_while(0..4, sleep, |ended| {
                clock.advance(Duration::from_nanos(1));
                thread::yield_now();
                ended < 4
            });
            assert_eq!(clock.sleepers(), 0);
        }
    });
}
