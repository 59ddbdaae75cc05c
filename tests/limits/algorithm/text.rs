//! Algorithms as text: the meaning of each text, how an algorithm is written, and the error of an
//! invalid text. Any text is an algorithm or an error that points at the offending part, and every
//! algorithm that has a text is parsed from it again.

use tollgate::algorithm::Rounding;
use tollgate::error::{ParseAlgorithmError, QuotaError};

use crate::quota::text::{any_quota, any_time, check_any, check_errors, is_read_back, soup};
use crate::support::*;

/// Returns a random algorithm with random options.
pub(crate) fn any_algorithm(random: &mut Random) -> AnyAlgorithm {
    let mut tries = (0..1000).filter_map(|_| try_any(random).ok());
    tries.next().expect("many are valid")
}

fn try_any(random: &mut Random) -> Result<AnyAlgorithm, QuotaError> {
    let quota = any_quota(1 << 44, random);
    let (origin, offset) = (any_time(random), any_time(random));
    let plain = Quota::per(quota.permits(), quota.period());
    let alignment = random.below(4);
    macro_rules! aligned {
        ($windows:expr) => {
            match alignment {
                0 => $windows.into(),
                1 => $windows.offset(offset).into(),
                2 => $windows.aligned_to_unix(origin).offset(offset).into(),
                _ => $windows.aligned_to_utc().into(),
            }
        };
    }
    Ok(match random.below(10) {
        0 => TokenBucket::new(quota)?.into(),
        1 => Gcra::new(quota)?.into(),
        2 => Gcra::from_interval(quota.period(), offset)?.into(),
        3 => LeakyBucket::queue(quota)?
            .free(random.upto(u64::MAX))
            .into(),
        4 => aligned!(FixedWindow::new(plain)?),
        5 => FixedWindow::new(plain)?.opened_by_first_hit()?.into(),
        6 => Intervals::new(quota)?.greedy()?.into(),
        7 => aligned!(SlidingWindow::new(plain)?),
        8 => aligned!(SlidingWindow::new(plain)?.rounding(Rounding::Down)),
        _ => aligned!(Intervals::new(quota)?),
    })
}

#[test]
fn any_text_parses_as_an_algorithm_or_an_error_with_its_position() {
    let words = "token-bucket gcra leaky-meter leaky-queue fixed-window sliding-window intervals 5 \
                 100/s 1/10ms 99999999999999999999 / s 2h µs burst initial free utc origin offset \
                 rounding down exact first-hit greedy tolerance per minute 5k Mi B - . 🦀 \u{0} \u{2003} x";
    let words: Vec<_> = words.split(' ').collect();
    let soup = |random: &mut Random| {
        let first = [&words[..7], &[""]].concat()[random.below(8) as usize];
        let rate = ["", "100/s "][random.below(2) as usize];
        format!("{first} {rate}{}", soup(&words, " ", random))
    };
    check_any(4000, &mut Random(0x0070_11a7_e601), soup, any_algorithm);
}

#[test]
fn errors_point_at_the_offending_part() {
    check_errors::<AnyAlgorithm>(&[
        "<> => the text ends where an algorithm or a quota is expected",
        "  <> => the text ends where an algorithm or a quota is expected",
        "<bucket> 5/s => is not an algorithm",
        "<GCRA> 5/s => is not an algorithm",
        "</s> => is not an algorithm: write token-bucket, gcra,",
        "</s> => or a quota alone for token-bucket",
        "5/s <utc> => is not an option here; allowed after the rate",
        "5/s <gcra> => is not an option here",
        "5<K>/s => is not a multiplier",
        "5 <burst> 3 => where a `/` or `per` is expected",
        "leaky-queue 5/s free 1<K> => is not a multiplier",
        "leaky-queue 5/s free<> => ends where a number is expected for free,",
        "<token_bucket> 5/s => is not an algorithm",
        "gcra<> => the text ends where a number is expected",
        "gcra <many/s> => where a number is expected",
        "gcra <18446744073709551616>/s => is too large",
        "gcra 5<> => the text ends where a `/` or `per` is expected",
        "gcra 5/<> => ends where a unit of time is expected",
        "gcra 5/<fortnight> => is not a unit of time",
        "gcra 1/<99999999999d> => is too long",
        "gcra 5/s burst 5 <burst> 6 => is given twice",
        "gcra 5/s <burts> 5 => after the quota and its burst: `tolerance 25ms`",
        "token-bucket 5/s <free> 2 => is not an option here",
        "leaky-meter 5/s <free> 2 => is not an option here",
        "leaky-queue 5/s free<> => ends where a number is expected",
        "leaky-queue 5/s free 1 <free> 1 => is given twice",
        "fixed-window 5/s <greedy> => `utc`, `origin 5s`, `offset 2h` and `first-hit`",
        "fixed-window 5/s offset<> => where a unit of time is expected",
        "fixed-window 5/s offset 2<x> => is not a unit of time",
        "fixed-window 5/s utc <utc> => is given twice",
        "fixed-window 5/s first-hit <first-hit> => is given twice",
        "fixed-window 5/s first-hit <offset> 2s => can't be combined with `first-hit`",
        "fixed-window 5/s utc <first-hit> => can't be combined with",
        "fixed-window 5/s utc <origin> 5s => can't be combined with `utc`",
        "fixed-window 5/s origin 5s <utc> => can't be combined with `origin`",
        "fixed-window 5/s offset 1s <offset> 1s => is given twice",
        "sliding-window 5/s rounding <up> => where `down` or `exact` is expected",
        "sliding-window 5/s rounding<> => the text ends where `down` or `exact` is expected",
        "sliding-window 5/s <first-hit> => is not an option here",
        "sliding-window 5/s rounding down <rounding> down => is given twice",
        "intervals 5/s <first-hit> => `offset 2h` and `greedy`",
        "intervals 5/s greedy <utc> => can't be combined with `greedy`",
        "gcra 5/s burst 3 <tolerance> 25ms => can't be combined with `burst`",
        "gcra 5/s tolerance 25ms <tolerance> 25ms => is given twice",
        "intervals 5/s <🦀🦀> => is not an option here",
        "gcra 5/s<,> burst 5 => is not an option here",
    ]);
}

#[test]
fn a_text_that_parses_but_is_invalid_has_the_error_of_the_constructor() {
    let (n, period, [burst, initial]) = (5, Duration::from_secs(1), [6; 2]);
    let large = SlidingWindow::new(Quota::per_second(65_536)).expect_err("too large");
    let texts = "\
gcra 0/s
leaky-queue 1/0s free 3
token-bucket 5/s burst 0
fixed-window 5/s burst 6
fixed-window 5/s initial 6 first-hit
gcra 3/s tolerance 5ms
intervals 5/s initial 6 greedy
sliding-window 65536/s rounding down";
    let errors = [
        QuotaError::ZeroPermits,
        QuotaError::ZeroPeriod,
        QuotaError::ZeroBurst,
        QuotaError::BurstInWindow { burst, n },
        QuotaError::InitialInWindow { initial, n },
        QuotaError::IntervalNotWhole { n: 3, period },
        QuotaError::InitialAboveBurst { initial, burst: 5 },
        large,
    ];
    assert_eq!(texts.lines().count(), errors.len());
    for (text, error) in texts.lines().zip(errors) {
        let refused = ParseAlgorithmError::Quota(error);
        assert_eq!(text.parse::<AnyAlgorithm>(), Err(refused), "{text}");
        assert_eq!(refused.to_string(), error.to_string());
    }
}

#[track_caller]
fn means<A: Into<AnyAlgorithm>>(text: &str, made: Result<A, QuotaError>) {
    let algorithm = made.expect(text).into();
    assert_eq!(text.parse(), Ok(algorithm));
    assert_eq!(algorithm.to_string(), text);
}

#[test]
fn texts_mean_what_they_say() {
    let (ms, second) = (Duration::from_millis, Quota::per_second);
    let quota = second(100).burst(20).initial(5);
    means(
        "token-bucket 100/s burst 20 initial 5",
        TokenBucket::new(quota),
    );
    means("gcra 100/s burst 20", Gcra::new(second(100).burst(20)));
    means(
        "gcra 1/10ms tolerance 25ms",
        Gcra::from_interval(ms(10), ms(25)),
    );
    means("gcra 1/10ms burst 3", Gcra::from_interval(ms(10), ms(20)));

    let quota = second(10).burst(20);
    let queue = |free| LeakyBucket::queue(quota).map(|queue| queue.free(free));
    means("leaky-meter 10/s burst 20", LeakyBucket::meter(quota));
    means("leaky-queue 10/s burst 20", LeakyBucket::queue(quota));
    means("leaky-queue 10/s burst 20 free 5", queue(5));
    means("leaky-queue 10/s burst 20 free 19", queue(19));
    means("leaky-meter 10/s burst 20", queue(u64::MAX));

    let fixed = FixedWindow::new(Quota::per_day(1000)).expect("windows");
    let first = fixed.opened_by_first_hit();
    let hours = fixed.offset(ms(7_200_000));
    let origin = |origin| fixed.aligned_to_unix(ms(origin));
    means("fixed-window 1000/d", Ok(fixed));
    means("fixed-window 1000/d offset 2h", Ok(hours));
    means("fixed-window 1000/d utc", Ok(fixed.aligned_to_utc()));
    means(
        "fixed-window 1000/d utc offset 2h",
        Ok(hours.aligned_to_utc()),
    );
    means(
        "fixed-window 1000/d origin 5s offset 1ms",
        Ok(origin(5000).offset(ms(1))),
    );
    means("fixed-window 1000/d origin 0ns", Ok(origin(0)));
    means("fixed-window 1000/d first-hit", first);
    means(
        "fixed-window 1000/d first-hit",
        first.map(|windows| windows.offset(ms(1))),
    );
    means(
        "fixed-window 1000/d first-hit",
        fixed.aligned_to_utc().opened_by_first_hit(),
    );

    let exact = SlidingWindow::new(Quota::per_minute(1000)).expect("a window");
    let down = exact.rounding(Rounding::Down);
    let utc = down.aligned_to_utc().offset(ms(90_000));
    means("sliding-window 1000/min", Ok(exact));
    means("sliding-window 1000/min rounding down", Ok(down));
    means(
        "sliding-window 1000/min utc offset 90s rounding down",
        Ok(utc),
    );

    let intervals = Intervals::new(second(10).burst(20)).expect("a bucket");
    means("intervals 10/s burst 20", Ok(intervals));
    means(
        "intervals 10/s burst 20 offset 1ms",
        Ok(intervals.offset(ms(1))),
    );
    means("intervals 10/s burst 20 greedy", intervals.greedy());
}

#[test]
fn alternative_spellings_mean_the_same() {
    let cases = [
        "\tgcra100 /1 sec burst 2_0  => gcra 100/s burst 20",
        "gcra 2/20ms tolerance 25ms => gcra 1/10ms tolerance 25ms",
        "gcra 100/s tolerance 20ms => gcra 1/10ms burst 3",
        "fixed-window 60/60s burst 60 initial 60 => fixed-window 60/min",
        "fixed-window 5/s offset 60min utc => fixed-window 5/s utc offset 1h",
        "sliding-window 5/s rounding exact => sliding-window 5/s",
        "sliding-window 5/s rounding down offset s => sliding-window 5/s offset 1s rounding down",
        "leaky-queue 5/s free 18446744073709551615 => leaky-meter 5/s",
        "leaky-queue 5/s free 0 => leaky-queue 5/s",
        "leaky-queue 5k/s free 1 KiB => leaky-queue 5000/s free 1024",
        " 100/s burst 20  => token-bucket 100/s burst 20",
        "5MB per second => token-bucket 5000000/s",
        "gcra 100 per 2 minutes => gcra 100/2min",
        "fixed-window 60 per hour offset 2 minutes => fixed-window 60/h offset 2min",
        // The spelling from before multiples existed.
        "intervals 5/s burst 3greedy => intervals 5/s burst 3 greedy",
    ];
    for (text, written) in cases.map(|case| case.split_once(" => ").expect(case)) {
        let read: AnyAlgorithm = text.parse().expect(text);
        assert_eq!(read.to_string(), written, "{text}");
        assert_eq!(written.parse(), Ok(read), "{text}");
    }
}

/// Only the remainder of whole periods matters for the start of windows, so it replaces the time.
#[test]
fn a_time_that_no_text_can_express_has_an_equivalent_text() {
    let windows = FixedWindow::new(Quota::per_hour(5)).expect("windows");
    let rest = |times: u128| {
        let rest = times * Duration::MAX.as_nanos() % 3_600_000_000_000;
        Duration::from_nanos(rest as u64)
    };
    let origins = [Duration::MAX, rest(1)].map(|origin| windows.aligned_to_unix(origin));
    let twice = windows.offset(Duration::MAX).offset(Duration::MAX);
    for [far, near] in [origins, [twice, windows.offset(rest(2))]] {
        assert_eq!(far, near);
        is_read_back(&AnyAlgorithm::from(far));
    }
}
