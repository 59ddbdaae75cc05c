//! All waiting verbs of an algorithm that is chosen at run time.

use futures::{StreamExt, stream};

use crate::support::*;

/// Two permits at once, and when the next five are due one after another, in ms.
const LINES: [(&str, [u64; 5]); 6] = [
    ("token-bucket 2/s", [500, 1_000, 1_500, 2_000, 2_500]),
    ("gcra 2/s", [500, 1_000, 1_500, 2_000, 2_500]),
    ("leaky-meter 2/s", [500, 1_000, 1_500, 2_000, 2_500]),
    // The previous window's permits keep some weight until the window ends.
    ("sliding-window 2/s", [1_500, 2_000, 3_000, 4_000, 5_000]),
    ("intervals 2/s", [1_000, 1_000, 2_000, 2_000, 3_000]),
    // As many as its word can record as debt.
    ("intervals 2/s greedy", [1_000, 1_000, 2_000, 2_000, 3_000]),
];

fn limiter(text: &str) -> (ManualClock, Limiter<AnyAlgorithm, Leaping>) {
    let clock = ManualClock::new();
    let limiter = Limiter::with_clock(algorithm(text), Leaping(clock.clone()));
    (clock, limiter)
}

#[test]
fn every_waiting_verb_waits_until_the_same_ticks() {
    for (text, line) in LINES {
        let (clock, blocking) = limiter(text);
        assert!(blocking.blocking_acquire_n(2).is_ok());
        let acquired = line.map(|_| blocking.blocking_acquire().expect(text).at());
        assert_eq!(acquired.map(millis), line, "acquire of {text}");
        assert_eq!(millis(clock.now()), line[4]);

        let (_, reserving) = limiter(text);
        let reserving = Arc::new(reserving);
        assert!(reserving.reserve(2).expect(text).is_due());
        let due = line.map(|_| reserving.reserve_owned(1).expect(text).due());
        assert_eq!(due.map(millis), line, "reserve of {text}");

        let (clock, futures) = limiter(text);
        assert!(futures.try_acquire_n(2).is_ok());
        let on = futures.with_timer(&clock);
        let due = line.map(|_| run(&clock, on.acquire()).expect(text).at());
        assert_eq!(due.map(millis), line, "futures of {text}");

        let (clock, streams) = limiter(text);
        assert!(streams.try_acquire_n(2).is_ok());
        let items = streams.with_timer(&clock).stream(stream::iter(0..5));
        let times = items.map(|_| millis(clock.now()));
        assert_eq!(run(&clock, times.collect::<Vec<_>>()), line, "{text}");

        let adjustable = Adjustable::with_clock(algorithm(text), Leaping(ManualClock::new()));
        assert!(adjustable.blocking_acquire_n(2).is_ok());
        let acquired = line.map(|_| adjustable.blocking_acquire().expect(text).at());
        assert_eq!(acquired.map(millis), line, "Adjustable of {text}");

        let (_, waiting) = limiter(text);
        let longest = Duration::from_millis(line[1]);
        let reserve = |n| waiting.reserve_within(n, longest);
        assert!(reserve(2).expect(text).is_due());
        let due = [(); 2].map(|()| reserve(1).expect(text).due());
        assert_eq!(due.map(millis), [line[0], line[1]], "{text}");
        let denied = reserve(1).map(drop);
        assert_eq!(denied.is_err(), line[2] > line[1], "{text}");
    }
}

#[test]
fn a_fixed_window_does_not_wait_and_says_when_to_try_again() {
    let (clock, limiter) = limiter("fixed-window 2/s");
    let second = Some(Duration::from_secs(1));
    assert!(limiter.blocking_acquire_n(2).is_ok());
    let denied = limiter.blocking_acquire().unwrap_err();
    assert!(matches!(denied, Denied::Later { .. }));
    assert_eq!((denied.retry_after(), clock.now().as_nanos()), (second, 0));
    let timer = limiter.with_timer(&clock);
    assert_eq!(run(&clock, timer.acquire()), Err(denied));
    assert_eq!(limiter.reserve(1).map(drop), Err(denied));
    assert_eq!(limiter.at(clock.now()).waiting(), 0);
    // A stream asks again when the next window begins.
    let items = timer.stream(stream::iter(0..5));
    let times = items.map(|_| millis(clock.now()));
    let times: Vec<_> = run(&clock, times.collect());
    assert_eq!(times, [1_000, 1_000, 2_000, 2_000, 3_000]);
}

#[test]
fn a_window_that_slides_carries_its_waiting_callers_over_to_a_new_quota() {
    for keep in [Keep::AsIs, Keep::Scaled] {
        let limiter = Adjustable::with_clock(algorithm("sliding-window 4/s"), ManualClock::new());
        let due = [4, 1, 1].map(|n| millis(limiter.reserve(n).expect("in time").due()));
        assert_eq!(due, [0, 1_250, 1_500]);
        let quota = Quota::per_second(8);
        limiter.set_quota(quota, keep).expect("a quota");
        // No caller gets a permit before those that wait.
        assert_eq!(limiter.available(), 0);
        let next = limiter.reserve(1).expect("in time");
        assert!(millis(next.due()) >= 1_000, "{keep:?}: {next:?}");
    }
}
