//! Reservations of windows and intervals: a permit counts in the window in which it is due, no
//! caller overtakes a reservation, and the bound holds at the ticks at which permits are used.

use tollgate::algorithm::{Forecast, Gauge, Reserve};

use super::asks_anything;
use super::orders::{Back, MORE, Search};
use crate::support::*;

/// Small limits that hold permits for later callers.
const SMALL: [&str; 13] = [
    "token-bucket 2/4ns",
    "sliding-window 2/4ns",
    "sliding-window 3/12ns",
    "sliding-window 2/12ns offset 5ns",
    "sliding-window 2/4ns rounding down",
    "sliding-window 3/12ns rounding down",
    "sliding-window 3/2ns",
    "intervals 2/4ns",
    "intervals 2/4ns burst 3 offset 1ns",
    "intervals 3/4ns burst 2",
    "intervals 2/4ns greedy",
    "intervals 2/7ns burst 3 greedy",
    "intervals 1/4ns burst 3 greedy",
];

/// Small limits that only grant what is available now.
const NOT_HELD: [&str; 4] = [
    "fixed-window 2/4ns",
    "fixed-window 3/4ns offset 1ns",
    "fixed-window 2/4ns first-hit",
    "intervals 3/4ns burst 2 greedy",
];

fn try_every_order(text: &str, steps: u32, is_skewed: bool) -> Search<AnyAlgorithm> {
    let search = Search {
        is_skewed,
        gives_back: if is_skewed { Back::Never } else { Back::Cancel },
        ..Search::new(algorithm(text))
    };
    let search = search.run(steps + MORE, Search::keeps_the_bound);
    assert_eq!(search.excess, None);
    search
}

#[test]
fn every_order_of_reservations_keeps_the_bound_at_use() {
    for text in SMALL {
        let search = try_every_order(text, 5, false);
        assert!(search.waited > 100 && search.returned > 100, "{text}");
    }
    for text in NOT_HELD {
        assert_eq!(try_every_order(text, 5, false).waited, 0, "{text}");
    }
}

#[test]
fn reservations_keep_the_bound_where_they_count_if_clocks_differ() {
    for text in SMALL.into_iter().chain(NOT_HELD) {
        let search = try_every_order(text, 6, true);
        let waits = SMALL.contains(&text);
        assert!(search.waited > 100 || !waits, "{text}: {}", search.waited);
    }
}

/// Limits whose ticks are far apart.
const LARGE: [&str; 14] = [
    "token-bucket 7/s burst 20",
    "gcra 10/s burst 3",
    "leaky-meter 300/s burst 5",
    "sliding-window 10/s",
    "sliding-window 100/min offset 7s",
    "sliding-window 1/h",
    "sliding-window 7/s rounding down",
    "intervals 10/min",
    "intervals 10/s burst 25 offset 333ms",
    "intervals 25/s burst 10",
    "intervals 1/h burst 7",
    "intervals 10/min greedy",
    "intervals 7/s burst 40 greedy",
    "intervals 1/h burst 3 greedy",
];

/// Checks one reservation. Returns the next word, and whether it is due later than now.
fn compare(algorithm: &AnyAlgorithm, word: u64, now: Tick, n: u64) -> (u64, bool) {
    let label = format!("{algorithm}: {word:#x} at {now:?}, {n}");
    let (next, granted) = match algorithm.reserve(word, now, n, Tick::MAX) {
        Ok(reserved) => reserved,
        Err(Denied::Never { limit, .. }) => {
            assert!(
                n > limit && algorithm.due(word, now, n).is_none(),
                "{label}"
            );
            return (word, false);
        }
        // The line is as long as the word can record. It will be shorter by then.
        Err(denied) => {
            let wait = denied.retry_after().expect(&label);
            let then = now.saturating_add(wait);
            assert!(
                algorithm.reserve(word, then, n, Tick::MAX).is_ok(),
                "{label}"
            );
            return (word, false);
        }
    };
    // Only the word of a sliding window may be in a later window.
    let due = granted.due().max(now);
    let is_later = granted.delay() > Duration::ZERO;
    let grants = |at| {
        let (next, granted) = algorithm.step(word, at, n).ok()?;
        let is_ahead = matches!(algorithm, AnyAlgorithm::SlidingWindow(_)) && granted.at() > at;
        (!is_ahead).then_some(next)
    };
    let then = grants(if is_later { due } else { now }).expect(&label);
    let period = algorithm.quota().period();
    let quantum = match algorithm {
        AnyAlgorithm::Intervals(bucket) => bucket.quantum().unwrap_or_default(),
        _ => Duration::ZERO,
    };
    for after in [
        Duration::ZERO,
        Duration::from_nanos(1),
        period / 3,
        period,
        period * 2,
    ] {
        let at = due.saturating_add(after);
        let said = |word, at| (algorithm.available(word, at), algorithm.level(word, at));
        // A greedy bucket that is full when the step runs begins a period up to a quantum later.
        let or_at = at.saturating_add(quantum);
        let is_same = said(next, at) == said(then, at) || said(next, at) == said(then, or_at);
        assert!(is_same, "{label}, {at:?}: {:?}", said(next, at));
    }
    if is_later {
        let before = tick(due.as_nanos() - 1);
        assert!(grants(before).is_none(), "{label}");
        if n > 0 {
            // Until then, no caller gets a permit without waiting.
            assert_eq!(algorithm.available(next, now), 0, "{label}");
            assert_eq!(algorithm.available(next, before), 0, "{label}");
        }
        let too_late = algorithm.reserve(word, now, n, before).unwrap_err();
        let expected = Some(Duration::from_nanos(1));
        assert_eq!(too_late.retry_after(), expected, "{label}");
    }
    (next, is_later)
}

#[test]
fn a_reservation_has_the_effect_of_a_step_at_its_due_tick() {
    let mut random = Random(19);
    for text in LARGE {
        let algorithm = algorithm(text);
        let (period, mut waited) = (algorithm.quota().period(), 0);
        for _ in 0..200 {
            let mut now = tick(random.upto(50 * 365 * 86_400) * 1_000_000_007);
            let mut word = 0;
            for _ in 0..12 {
                let most = algorithm.available(0, now);
                let n = random.below(most + 2);
                let is_later;
                (word, is_later) = compare(&algorithm, word, now, n);
                waited += u64::from(is_later);
                if random.one_in(2) {
                    let by = random.below(period.as_nanos() as u64);
                    now = now.saturating_add(Duration::from_nanos(by));
                }
            }
        }
        assert!(waited > 200, "{text}: {waited}");
    }
}

#[test]
fn a_limit_that_holds_no_reservation_denies_with_the_tick_at_which_it_grants() {
    for text in NOT_HELD {
        let (algorithm, now) = (algorithm(text), tick(1_000));
        let (word, granted) = algorithm
            .reserve(0, now, 2, now)
            .expect("two are available");
        let (rest, again) = algorithm
            .reserve(word, now, 1, now)
            .map_or((word, 0), |(w, g)| (w, g.n()));
        assert_eq!(granted.n() + again, algorithm.available(0, now));
        for latest in [now, tick(1_003), Tick::MAX] {
            let denied = algorithm.reserve(rest, now, 1, latest).unwrap_err();
            let wait = denied.retry_after().expect("it is available later");
            assert!(wait > Duration::ZERO, "{text}");
            let then = now.saturating_add(wait);
            assert!(algorithm.reserve(rest, then, 1, then).is_ok(), "{text}");
            assert!(
                algorithm.step(rest, tick(then.as_nanos() - 1), 1).is_err(),
                "{text}"
            );
        }
        let never = algorithm.reserve(0, now, 4, Tick::MAX).unwrap_err();
        assert!(never.is_permanent(), "{text}");
        let (word, kept, back) = algorithm.cancel(rest, now, &granted, 1);
        let actual = (kept.n(), back, algorithm.available(word, now));
        assert_eq!(actual, (1, 1, 1), "{text}");
    }
}

#[test]
fn any_word_tick_or_number_is_answered_by_every_window() {
    let mut random = Random(23);
    let texts = SMALL.into_iter().chain(NOT_HELD).chain(LARGE);
    let odd = [
        "sliding-window 3/2ns",
        "intervals 1000000000/d burst 4000000000 greedy",
    ];
    for text in texts.chain(odd) {
        asks_anything(&algorithm(text), false, &mut random, 3_000);
    }
}

/// In such short windows a reservation may skip a whole window, and still leave permits in the one
/// after it. Callers whose tick is earlier would get these at once.
#[test]
fn a_reservation_that_others_could_overtake_is_denied() {
    let (window, now) = (algorithm("sliding-window 3/2ns"), tick(0));
    let (word, _) = window.reserve(0, now, 3, now).expect("they are available");
    let denied = window.reserve(word, now, 2, Tick::MAX).unwrap_err();
    assert_eq!(denied.retry_after(), Some(Duration::from_nanos(4)));
    assert!(window.reserve(word, tick(4), 2, tick(4)).is_ok());
    let (next, granted) = window
        .reserve(word, now, 3, Tick::MAX)
        .expect("none is left");
    assert_eq!((granted.due(), window.available(next, now)), (tick(4), 0));
}

#[test]
fn what_is_kept_of_the_last_reservation_is_due_sooner_and_nothing_comes_back_after_a_reset() {
    for (text, [all, one]) in [
        ("sliding-window 4/40ns", [70, 50]),
        ("intervals 4/40ns", [40, 40]),
        ("intervals 2/400ns burst 4 greedy", [800, 400]),
    ] {
        let (limit, now) = (algorithm(text), tick(0));
        let (word, _) = limit.step(0, now, 4).expect("they are available");
        let (word, granted) = limit.reserve(word, now, 3, Tick::MAX).expect(text);
        let actual = (granted.due(), limit.waiting(word, now));
        assert_eq!(actual, (tick(all), 3), "{text}");
        let (next, kept, back) = limit.cancel(word, now, &granted, 2);
        let actual = (kept.due(), back, limit.waiting(next, now));
        assert_eq!(actual, (tick(one), 2, 1), "{text}");
        let (_, again) = limit.reserve(next, now, 2, Tick::MAX).expect(text);
        assert_eq!(again.due(), tick(all), "{text}");

        // A reset lowered the word, and another caller has its place.
        let (other, _) = limit.step(0, now, 2).expect("they are available");
        assert_eq!(limit.cancel(other, now, &granted, 3).2, 0, "{text}");
    }
}
