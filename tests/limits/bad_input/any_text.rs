//! Any text at all is an algorithm or an error that points at the offending part, and every algorithm
//! that has a text is read back from it.

use proptest::prelude::*;
use proptest::sample::Index;
use tollgate::{
    AnyAlgorithm, FixedWindow, Gcra, Intervals, LeakyBucket, ParseAlgorithmError, Quota, Rounding,
    SlidingWindow, TokenBucket,
};

use crate::bad_input::algorithms::wrong;
use crate::bad_input::texts::{is_read_back, quota, soup, time, with_a_mistake};

/// Any algorithm with any options that can be had.
pub(crate) fn algorithm() -> impl Strategy<Value = AnyAlgorithm> {
    let options = (time(), time(), any::<u64>(), 0..4_u8, 0..8_u8);
    (quota(20..64), options).prop_filter_map("can't be had", |(quota, options)| {
        let (origin, offset, free, alignment, kind) = options;
        let plain = Quota::per(quota.permits(), quota.period());
        macro_rules! aligned {
            ($windows:expr) => {{
                let windows = $windows.ok()?;
                Some(match alignment {
                    0 => windows.into(),
                    1 => windows.offset(offset).into(),
                    2 => windows.aligned_to_unix(origin).offset(offset).into(),
                    _ => windows.aligned_to_utc().into(),
                })
            }};
        }
        match kind {
            0 => Some(TokenBucket::new(quota).ok()?.into()),
            1 => Some(Gcra::new(quota).ok()?.into()),
            2 => Some(Gcra::from_interval(quota.period(), offset).ok()?.into()),
            3 => Some(
                LeakyBucket::queue(quota)
                    .ok()?
                    .free(free >> (free % 64))
                    .into(),
            ),
            4 => aligned!(FixedWindow::new(plain)),
            5 if free.is_multiple_of(2) => Some(
                FixedWindow::new(plain)
                    .ok()?
                    .opened_by_first_hit()
                    .ok()?
                    .into(),
            ),
            5 => Some(Intervals::new(quota).ok()?.greedy().ok()?.into()),
            6 if free.is_multiple_of(2) => aligned!(SlidingWindow::new(plain)),
            6 => aligned!(SlidingWindow::new(plain).map(|w| w.rounding(Rounding::Down))),
            _ => aligned!(Intervals::new(quota)),
        }
    })
}

/// Words of the language in any order.
fn any_words() -> impl Strategy<Value = String> {
    let words = [
        "token-bucket",
        "gcra",
        "leaky-meter",
        "leaky-queue",
        "fixed-window",
        "sliding-window",
        "intervals",
        "5",
        "100/s",
        "1/10ms",
        "99999999999999999999",
        "/",
        "s",
        "2h",
        "µs",
        "burst",
        "initial",
        "free",
        "utc",
        "origin",
        "offset",
        "rounding",
        "down",
        "exact",
        "first-hit",
        "greedy",
        "tolerance",
        "-",
        ".",
        "🦀",
        "\u{0}",
        "\u{2003}",
        "x",
    ];
    let first = prop::sample::select(words[..7].to_vec());
    (first, soup(words.to_vec(), " ")).prop_map(|(first, rest)| format!("{first} {rest}"))
}

fn is_algorithm_or_points_at_it(text: &str) {
    match text.parse::<AnyAlgorithm>() {
        Ok(algorithm) => is_read_back(&algorithm),
        Err(ParseAlgorithmError::Text(_)) => {
            wrong(text);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4000) })]

    #[test]
    fn any_text_is_an_algorithm_or_an_error_in_it(text in any::<String>(), soup in any_words()) {
        is_algorithm_or_points_at_it(&text);
        is_algorithm_or_points_at_it(&soup);
    }

    #[test]
    fn an_algorithm_is_read_back_from_its_text(algorithm in algorithm()) {
        is_read_back(&algorithm);
    }

    #[test]
    fn an_algorithm_with_a_mistake_is_an_error_in_it(
        algorithm in algorithm(),
        place in any::<Index>(),
        mistake in any::<char>(),
    ) {
        is_algorithm_or_points_at_it(&with_a_mistake(&algorithm, place, mistake));
    }
}

#[cfg(feature = "serde")]
mod serde {
    use proptest::prelude::*;
    use tollgate::AnyAlgorithm;

    use crate::bad_input::texts::serde::{error, is_its_text};

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

        #[test]
        fn an_algorithm_is_read_back_from_json(algorithm in super::algorithm()) {
            is_its_text(&algorithm);
        }
    }

    #[test]
    fn what_is_no_algorithm_is_an_error_that_says_so() {
        let name = error::<AnyAlgorithm>("\"bucket 5/s\"");
        assert!(
            name.contains("at byte 0: `bucket` is no algorithm"),
            "{name}"
        );
        let limit = error::<AnyAlgorithm>("\"fixed-window 5/s burst 6\"");
        assert!(
            limit.contains("burst is 6, but a window of 5 permits"),
            "{limit}"
        );
        let number = error::<AnyAlgorithm>("100");
        assert!(
            number.contains("an algorithm such as \"gcra 100/s burst 20\""),
            "{number}"
        );
    }
}
