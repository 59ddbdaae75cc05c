//! Threads that wait.

use tollgate::compose::Line;

use super::{Tested, is_permanent};
use crate::support::*;

const THREADS: u64 = 8;
const TIMES: u64 = 40;

#[test]
fn threads_and_a_future_share_the_line() {
    deadline("threads before a composition", || {
        let tested = Tested::new(Quota::per_second(1000).burst(5), 2);
        let work = |thread: u64| {
            for time in 0..TIMES {
                let granted = match (thread + time) % 2 {
                    0 => tested.line.blocking_acquire(),
                    _ => tested.line.blocking_acquire_each([1, 2]),
                };
                assert!(tested.inside.inside() <= 2);
                drop(granted.expect("it will be there"));
            }
        };
        on_threads_while(0..THREADS, work, |ended| {
            if let Some(tick) = tested.clock.next_sleeper() {
                tested.clock.set(tick.max(tested.clock.now()));
            }
            std::thread::yield_now();
            ended < THREADS
        });
        tested.assert_empty();
        // The clock moves only while the first in line waits for the rate.
        let expected = tick((THREADS * TIMES - 5) * SECOND / 1000);
        assert_eq!(tested.clock.now(), expected);
        assert_eq!(tested.rate(), 0);
    });
}

#[test]
fn a_thread_sleeps_for_the_longest_wait() {
    let leaping = Leaping::default();
    let bucket =
        |quota| Limiter::with_clock(TokenBucket::new(quota).expect("a quota"), leaping.clone());
    let (seconds, minutes) = (bucket(Quota::per_second(1)), bucket(Quota::per_minute(1)));
    // A member without a clock comes first.
    let inside = Concurrency::new(5).expect("a limit");
    let all = All::new((&inside, &seconds, &minutes)).expect("three limits");
    let line = Line::new(&all);
    drop(line.blocking_acquire().expect("the first"));
    assert_eq!(leaping.0.now(), tick(0));
    let granted = line.blocking_acquire_n(1).expect("in a minute");
    assert_eq!((leaping.0.now(), inside.inside()), (tick(60 * SECOND), 1));
    assert_eq!((line.waiting(), inside.waiting()), (0, 0));
    drop(granted);
    let denied = line.blocking_acquire_each([1, 2, 1]);
    let denied = denied.expect_err("more than the burst");
    assert_eq!((denied.member(), denied.is_permanent()), (Some(1), true));
    assert!(is_permanent(line.blocking_acquire_each([1])));
    assert_eq!(inside.inside(), 0);
}
