//! Algorithms as text: what each text means, how it is written, and what is said of one that means
//! nothing.

use std::time::Duration;

use tollgate::{
    AnyAlgorithm, ConfigError, FixedWindow, Gcra, Intervals, LeakyBucket, ParseAlgorithmError,
    Quota, Rounding, SlidingWindow, TokenBucket,
};

use crate::bad_input::texts::{Wrong, check_errors, is_read_back, offending};

pub(crate) fn wrong(text: &str) -> Wrong {
    match text.parse::<AnyAlgorithm>() {
        Err(error @ ParseAlgorithmError::Text(inner)) => offending(text, inner.span(), &error),
        other => panic!("{text:?}: {other:?}"),
    }
}

#[test]
fn errors_point_at_the_offending_part() {
    let cases = [
        ("", "", 0, "the text ends where an algorithm must stand"),
        ("bucket 5/s", "bucket", 0, "is no algorithm"),
        ("GCRA 5/s", "GCRA", 0, "is no algorithm"),
        ("5/s", "5/s", 0, "is no algorithm"),
        ("token_bucket 5/s", "token_bucket", 0, "is no algorithm"),
        ("gcra", "", 4, "the text ends where a number must stand"),
        ("gcra many/s", "many/s", 5, "where a number must stand"),
        (
            "gcra 18446744073709551616/s",
            "18446744073709551616",
            5,
            "is too large",
        ),
        ("gcra 5", "", 6, "the text ends where a `/` must stand"),
        (
            "gcra 5/",
            "",
            7,
            "the text ends where a unit of time must stand",
        ),
        ("gcra 5/fortnight", "fortnight", 7, "is no unit of time"),
        ("gcra 1/99999999999d", "99999999999d", 7, "is too long"),
        (
            "gcra 5/s burst 5 burst 6",
            "burst",
            17,
            "stands here for the second time",
        ),
        (
            "gcra 5/s burts 5",
            "burts",
            9,
            "is not known here: after the quota, burst and all, may stand `tolerance 25ms`",
        ),
        ("token-bucket 5/s free 2", "free", 17, "is not known here"),
        ("leaky-meter 5/s free 2", "free", 16, "is not known here"),
        (
            "leaky-queue 5/s free",
            "",
            20,
            "the text ends where a number must stand",
        ),
        (
            "leaky-queue 5/s free 1 free 1",
            "free",
            23,
            "stands here for the second time",
        ),
        (
            "fixed-window 5/s greedy",
            "greedy",
            17,
            "`utc`, `origin 5s`, `offset 2h` and `first-hit`",
        ),
        (
            "fixed-window 5/s offset",
            "",
            23,
            "the text ends where a unit of time must stand",
        ),
        ("fixed-window 5/s offset 2x", "x", 25, "is no unit of time"),
        (
            "fixed-window 5/s utc utc",
            "utc",
            21,
            "stands here for the second time",
        ),
        (
            "fixed-window 5/s first-hit first-hit",
            "first-hit",
            27,
            "for the second time",
        ),
        (
            "fixed-window 5/s first-hit offset 2s",
            "offset",
            27,
            "it does not go with `first-hit`",
        ),
        (
            "fixed-window 5/s utc first-hit",
            "first-hit",
            21,
            "it does not go with",
        ),
        (
            "fixed-window 5/s utc origin 5s",
            "origin",
            21,
            "it does not go with `utc`",
        ),
        (
            "fixed-window 5/s origin 5s utc",
            "utc",
            27,
            "it does not go with `origin`",
        ),
        (
            "fixed-window 5/s offset 1s offset 1s",
            "offset",
            27,
            "for the second time",
        ),
        (
            "sliding-window 5/s rounding up",
            "up",
            28,
            "is not known here: write `down` or `exact`",
        ),
        (
            "sliding-window 5/s rounding",
            "",
            27,
            "the text ends is not known here: write",
        ),
        (
            "sliding-window 5/s first-hit",
            "first-hit",
            19,
            "is not known here",
        ),
        (
            "sliding-window 5/s rounding down rounding down",
            "rounding",
            33,
            "second time",
        ),
        (
            "intervals 5/s first-hit",
            "first-hit",
            14,
            "`offset 2h` and `greedy`",
        ),
        (
            "intervals 5/s greedy utc",
            "utc",
            21,
            "it does not go with `greedy`",
        ),
        (
            "gcra 5/s burst 3 tolerance 25ms",
            "tolerance",
            17,
            "it does not go with `burst`",
        ),
        (
            "gcra 5/s tolerance 25ms tolerance 25ms",
            "tolerance",
            24,
            "second time",
        ),
        ("intervals 5/s 🦀🦀", "🦀🦀", 14, "is not known here"),
        ("gcra 5/s, burst 5", ",", 8, "is not known here"),
    ];
    check_errors(&cases, wrong);
}

#[test]
fn what_is_understood_but_can_not_be_had_says_so_as_the_constructor_does() {
    let period = Duration::from_secs(1);
    let cases = [
        ("gcra 0/s", ConfigError::ZeroPermits),
        ("leaky-queue 1/0s free 3", ConfigError::ZeroPeriod),
        ("token-bucket 5/s burst 0", ConfigError::ZeroBurst),
        (
            "fixed-window 5/s burst 6",
            ConfigError::BurstInWindow { burst: 6, n: 5 },
        ),
        (
            "fixed-window 5/s initial 6 first-hit",
            ConfigError::InitialInWindow { initial: 6, n: 5 },
        ),
        (
            "gcra 3/s tolerance 5ms",
            ConfigError::IntervalNotWhole { n: 3, period },
        ),
        (
            "intervals 5/s initial 6 greedy",
            ConfigError::InitialAboveBurst {
                initial: 6,
                burst: 5,
            },
        ),
    ];
    for (text, error) in cases {
        let got = text.parse::<AnyAlgorithm>();
        assert_eq!(got, Err(ParseAlgorithmError::Config(error)), "{text}");
        assert_eq!(
            ParseAlgorithmError::Config(error).to_string(),
            error.to_string()
        );
    }
    let large = "sliding-window 65536/s rounding down".parse::<AnyAlgorithm>();
    let from_new = SlidingWindow::new(Quota::per_second(65_536)).expect_err("too large");
    assert_eq!(large, Err(ParseAlgorithmError::Config(from_new)));
}

fn made<A: Into<AnyAlgorithm>>(algorithm: Result<A, ConfigError>) -> AnyAlgorithm {
    algorithm.expect("it can be had").into()
}

#[test]
fn texts_mean_what_they_say() {
    let (ms, hours) = (Duration::from_millis, |n: u64| {
        Duration::from_secs(3600 * n)
    });
    let fixed = FixedWindow::new(Quota::per_day(1000));
    let sliding = SlidingWindow::new(Quota::per_minute(1000));
    let intervals = Intervals::new(Quota::per_second(10).burst(20));
    let queue = LeakyBucket::queue(Quota::per_second(10).burst(20));
    let cases = [
        (
            "token-bucket 100/s burst 20 initial 5",
            made(TokenBucket::new(
                Quota::per_second(100).burst(20).initial(5),
            )),
        ),
        (
            "gcra 100/s burst 20",
            made(Gcra::new(Quota::per_second(100).burst(20))),
        ),
        (
            "gcra 1/10ms tolerance 25ms",
            made(Gcra::from_interval(ms(10), ms(25))),
        ),
        (
            "gcra 1/10ms burst 3",
            made(Gcra::from_interval(ms(10), ms(20))),
        ),
        (
            "leaky-meter 10/s burst 20",
            made(LeakyBucket::meter(Quota::per_second(10).burst(20))),
        ),
        ("leaky-queue 10/s burst 20", made(queue)),
        (
            "leaky-queue 10/s burst 20 free 5",
            made(queue.map(|queue| queue.free(5))),
        ),
        (
            "leaky-queue 10/s burst 20 free 19",
            made(queue.map(|queue| queue.free(19))),
        ),
        (
            "leaky-meter 10/s burst 20",
            made(queue.map(|queue| queue.free(u64::MAX))),
        ),
        ("fixed-window 1000/d", made(fixed)),
        (
            "fixed-window 1000/d offset 2h",
            made(fixed.map(|w| w.offset(hours(2)))),
        ),
        (
            "fixed-window 1000/d utc",
            made(fixed.map(|w| w.aligned_to_utc())),
        ),
        (
            "fixed-window 1000/d utc offset 2h",
            made(fixed.map(|w| w.offset(hours(2)).aligned_to_utc())),
        ),
        (
            "fixed-window 1000/d origin 5s offset 1ns",
            made(fixed.map(|w| w.aligned_to_unix(ms(5000)).offset(Duration::from_nanos(1)))),
        ),
        (
            "fixed-window 1000/d origin 0ns",
            made(fixed.map(|w| w.aligned_to_unix(Duration::ZERO))),
        ),
        (
            "fixed-window 1000/d first-hit",
            made(fixed.and_then(FixedWindow::opened_by_first_hit)),
        ),
        (
            "fixed-window 1000/d first-hit",
            made(
                fixed
                    .and_then(|w| w.aligned_to_utc().opened_by_first_hit())
                    .map(|w| w.offset(ms(1))),
            ),
        ),
        ("sliding-window 1000/min", made(sliding)),
        (
            "sliding-window 1000/min rounding down",
            made(sliding.map(|w| w.rounding(Rounding::Down))),
        ),
        (
            "sliding-window 1000/min utc offset 90s rounding down",
            made(sliding.map(|w| {
                w.rounding(Rounding::Down)
                    .aligned_to_utc()
                    .offset(ms(90_000))
            })),
        ),
        ("intervals 10/s burst 20", made(intervals)),
        (
            "intervals 10/s burst 20 offset 1ms",
            made(intervals.map(|b| b.offset(ms(1)))),
        ),
        (
            "intervals 10/s burst 20 greedy",
            made(intervals.and_then(Intervals::greedy)),
        ),
    ];
    for (text, algorithm) in cases {
        assert_eq!(text.parse(), Ok(algorithm), "{text}");
        assert_eq!(algorithm.to_string(), text);
    }
}

#[test]
fn other_ways_to_write_it_mean_the_same() {
    let cases = [
        ("\tgcra100 /1 sec burst 2_0 ", "gcra 100/s burst 20"),
        ("gcra 2/20ms tolerance 25ms", "gcra 1/10ms tolerance 25ms"),
        ("gcra 100/s tolerance 20ms", "gcra 1/10ms burst 3"),
        (
            "fixed-window 60/60s burst 60 initial 60",
            "fixed-window 60/min",
        ),
        (
            "fixed-window 5/s offset 60min utc",
            "fixed-window 5/s utc offset 1h",
        ),
        ("sliding-window 5/s rounding exact", "sliding-window 5/s"),
        (
            "sliding-window 5/s rounding down offset s",
            "sliding-window 5/s offset 1s rounding down",
        ),
        (
            "leaky-queue 5/s free 18446744073709551615",
            "leaky-meter 5/s",
        ),
        ("leaky-queue 5/s free 0", "leaky-queue 5/s"),
    ];
    for (text, written) in cases {
        let read: AnyAlgorithm = text
            .parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(read.to_string(), written, "{text}");
        assert_eq!(written.parse(), Ok(read), "{text}");
    }
}

/// As it means when windows begin, what is left of it beside whole periods is as good.
#[test]
fn a_time_beyond_all_texts_has_one_that_means_the_same() {
    let windows = FixedWindow::new(Quota::per_hour(5)).expect("windows");
    for (far, near) in [
        (
            windows.aligned_to_unix(Duration::MAX),
            windows.aligned_to_unix(Duration::from_nanos(
                (Duration::MAX.as_nanos() % 3_600_000_000_000) as u64,
            )),
        ),
        (
            windows.offset(Duration::MAX).offset(Duration::MAX),
            windows.offset(Duration::from_nanos(
                (2 * Duration::MAX.as_nanos() % 3_600_000_000_000) as u64,
            )),
        ),
    ] {
        let (far, near) = (AnyAlgorithm::from(far), AnyAlgorithm::from(near));
        assert_eq!(far, near);
        is_read_back(&far);
    }
}
