//! A word goes on under another quota, under another algorithm, or on another clock, where it left off:
//! with no more than it had, and less by less than two permits at most.

use std::time::Duration;

use tollgate::cell::{Cell, Place};
use tollgate::{
    Algorithm, AnyAlgorithm, At, Debt, FixedWindow, Forecast, Gauge, Quota, Rebase, Requota,
    SlidingWindow, Tick, TokenBucket,
};

fn quotas() -> Vec<TokenBucket> {
    [
        Quota::per_second(10),
        Quota::per_second(13).burst(40),
        Quota::per(47, Duration::from_nanos(10)),
        Quota::per(4, Duration::from_nanos(1)).burst(9),
        Quota::per_day(1),
        Quota::per_hour(1000).burst(3),
    ]
    .map(|quota| TokenBucket::new(quota).expect("a quota"))
    .into()
}

/// Words that stand for every number of permits, for debt, and between two.
fn words(bucket: &TokenBucket, now: Tick) -> Vec<u64> {
    let taken = (0..=bucket.quota().burst_size() + 5).map(|n| {
        let cell = Cell::new(0);
        At::new(bucket, &cell, now).charge(n);
        cell.load()
    });
    taken.flat_map(|word| [word, word + 1]).collect()
}

#[test]
fn what_is_carried_over_is_what_there_was() {
    let now = Tick::from_nanos(86_400_000_000_007);
    let mut compared = 0;
    for (old, new) in quotas()
        .iter()
        .flat_map(|old| quotas().into_iter().map(move |new| (*old, new)))
    {
        for word in words(&old, now) {
            let carried = old.carry_over(word, now, &new);
            let (had, has) = (old.available(word, now), new.available(carried, now));
            let most = had.min(new.quota().burst_size());
            assert!(has <= most, "{has} of {most}: {old:?} to {new:?}");
            assert!(has + 1 >= most, "{has} of {most}: {old:?} to {new:?}");
            let owed = |bucket: &TokenBucket, word| bucket.charge(word, now, 0).1.debt();
            let (owed, owes) = (owed(&old, word), owed(&new, carried));
            assert!(
                (owed..=owed + 1).contains(&owes),
                "{owed} and {owes}: {old:?} to {new:?}"
            );
            compared += 1;
        }
        // What was not in debt is not in debt.
        let cell = Cell::new(0);
        let burst = old.quota().burst_size();
        assert!(At::new(&old, &cell, now).try_acquire_n(burst).is_ok());
        let carried = old.carry_over(cell.load(), now, &new);
        assert!(new.step(carried, now, 0).is_ok(), "{old:?} to {new:?}");
        assert_eq!(old.carry_over(cell.load(), now, &old), cell.load());
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn a_larger_bucket_is_not_full_because_a_smaller_one_was() {
    let (old, new) = (quotas()[0], quotas()[1]);
    let carried = old.carry_over(0, Tick::ZERO, &new);
    assert!((9..=10).contains(&new.available(carried, Tick::ZERO)));
    assert_eq!(new.carry_over(0, Tick::ZERO, &old), 0);
}

#[test]
fn a_rebased_word_stands_as_it_stood() {
    let (from, to) = (
        Tick::from_nanos(86_400_000_000_007),
        Tick::from_nanos(12_345),
    );
    for bucket in quotas() {
        assert_eq!(bucket.rebase(0, from, to), 0);
        for word in words(&bucket, from) {
            assert_eq!(bucket.rebase(word, from, from), word);
            let moved = bucket.rebase(word, from, to);
            let (had, has) = (bucket.available(word, from), bucket.available(moved, to));
            assert!(
                (has..=has + 1).contains(&had),
                "{had} and {has}: {bucket:?}"
            );
            let wait = |word, now: Tick| {
                let due = bucket.due(word, now, 1).expect("in time");
                due.saturating_since(now).as_nanos()
            };
            let (before, after) = (wait(word, from), wait(moved, to));
            assert!(
                (before..=before + 1).contains(&after),
                "{before} and {after}: {bucket:?}"
            );
        }
    }
}

/// Every kind of algorithm, small ones and large ones.
fn all() -> Vec<AnyAlgorithm> {
    let texts = [
        "token-bucket 10/s",
        "token-bucket 13/s burst 40",
        "gcra 10/s burst 3",
        "gcra 1/10ms tolerance 25ms",
        "leaky-meter 10/s burst 20",
        "leaky-queue 7/min burst 5 free 2",
        "fixed-window 10/s",
        "fixed-window 100/min offset 7s",
        "fixed-window 5/s first-hit",
        "fixed-window 1000/d first-hit",
        "sliding-window 10/s",
        "sliding-window 50/min origin 9s rounding down",
        "intervals 10/s burst 20",
        "intervals 3/h burst 7 offset 1ms",
        "intervals 10/s burst 25 greedy",
        "intervals 2/d burst 9 greedy",
    ];
    let read = texts.map(|text| {
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    });
    read.into()
}

/// Words for every number of permits taken, up to as many as are owed then; some of them taken a while
/// ago.
fn counted(algorithm: &AnyAlgorithm, now: Tick) -> Vec<u64> {
    let period = algorithm.quota().period();
    let then = [Duration::ZERO, period / 3, period, period + period / 2];
    let counts = [0, 1, 2]
        .into_iter()
        .chain(3..=2 * algorithm.quota().burst_size().min(40));
    let words = counts.flat_map(|n| {
        then.map(|ago| {
            let (word, _) = algorithm.charge(0, now.saturating_sub(ago), n);
            algorithm.take_up_to(word, now, n / 2).0
        })
    });
    words.collect()
}

fn owed(algorithm: &AnyAlgorithm, word: u64, now: Tick) -> u64 {
    algorithm.charge(word, now, 0).1.debt()
}

#[test]
fn any_algorithm_goes_on_as_any_other() {
    let now = Tick::from_nanos(86_400_000_000_007);
    let mut compared = 0;
    for (old, new) in all()
        .iter()
        .flat_map(|old| all().into_iter().map(move |new| (*old, new)))
    {
        // Who is exact, and goes on as itself or counts whole permits, loses nothing.
        for word in counted(&old, now) {
            let carried = old.carry_over(word, now, &new);
            assert_ne!(carried, u64::MAX);
            let (had, has) = (old.available(word, now), new.available(carried, now));
            let most = had.min(new.quota().burst_size());
            assert!(has <= most, "{has} of {most}: {old} to {new}");
            assert!(has + 1 >= most, "{has} of {most}: {old} to {new}");
            let (owed, owes) = (owed(&old, word, now), owed(&new, carried, now));
            // A window can owe so much and no more.
            let room = new.charge(0, now, u64::MAX).1.debt();
            assert!(
                (owed.min(room)..=owed + 1).contains(&owes),
                "{owed}, {owes}: {old} to {new}"
            );
            compared += 1;
        }
        let fresh = old.carry_over(0, now, &new);
        let (small, large) = (old.quota().burst_size(), new.quota().burst_size());
        // A tolerance may hold a part of a permit more than the same burst without one.
        let holds_more = small < large || new.to_string().contains("tolerance");
        assert!(fresh == 0 || holds_more, "{old} to {new}");
    }
    assert!(compared > 10_000, "{compared}");
}

#[test]
fn what_does_not_change_keeps_its_word() {
    let now = Tick::from_nanos(86_400_000_000_007);
    for algorithm in all() {
        for word in counted(&algorithm, now) {
            assert_eq!(
                algorithm.carry_over(word, now, &algorithm),
                word,
                "{algorithm}"
            );
        }
        let same = algorithm.with_quota(algorithm.quota()).expect("it is one");
        // A tolerance that is no multiple of the interval is not said by a quota.
        if !algorithm.to_string().contains("tolerance") {
            assert_eq!(same, algorithm);
        }
    }
}

#[test]
fn another_quota_leaves_all_else_as_it_is() {
    let quota = Quota::per_minute(8);
    for algorithm in all() {
        let new = algorithm.with_quota(quota).expect("a quota");
        assert_eq!(new.quota(), quota);
        let options = |text: &str| {
            let words = text
                .split(' ')
                .skip(2)
                .filter(|word| word.parse::<u64>().is_err());
            let words = words.filter(|word| !["burst", "tolerance", "25ms"].contains(word));
            words.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(
            options(&new.to_string()),
            options(&algorithm.to_string()),
            "{algorithm}"
        );
    }
}

/// On the other clock the window is another one, and so much of it is over: what was counted counts there.
#[test]
fn a_rebased_window_counts_what_it_counted() {
    let (from, to) = (
        Tick::from_nanos(86_400_500_000_007),
        Tick::from_nanos(12_345),
    );
    for algorithm in all() {
        assert_eq!(algorithm.rebase(0, from, to), 0, "{algorithm}");
        for word in counted(&algorithm, from) {
            assert_eq!(algorithm.rebase(word, from, from), word);
            let moved = algorithm.rebase(word, from, to);
            let (was, is) = (algorithm.level(word, from), algorithm.level(moved, to));
            assert!(
                (was.ceil()..=was.ceil() + 1).contains(&is.ceil()),
                "{was:?}, {is:?}: {algorithm}"
            );
            let (had, has) = (
                algorithm.available(word, from),
                algorithm.available(moved, to),
            );
            assert!(
                (has..=has + 1).contains(&had),
                "{had} and {has}: {algorithm}"
            );
            let (owed, owes) = (owed(&algorithm, word, from), owed(&algorithm, moved, to));
            assert!(
                (owed..=owed + 1).contains(&owes),
                "{owed}, {owes}: {algorithm}"
            );
            // Where a clock is not exact, a nanosecond may lie between nothing owed and a part of a permit.
            // A window that is rounded down counts whole what it did not count of the one before.
            let rounds = algorithm.quota().permits() == 13;
            let rounds = rounds || algorithm.to_string().ends_with("rounding down");
            let is_same = (owed > 0) == (owes > 0) || rounds;
            assert!(
                is_same,
                "{was:?} owes {owed}, {is:?} owes {owes}: {algorithm}"
            );
            // Whatever is due is due, within the length of a window.
            let wait = |word, now: Tick| {
                algorithm
                    .due(word, now, 1)
                    .map(|due| due.saturating_since(now))
            };
            let (before, after) = (wait(word, from), wait(moved, to));
            let period = algorithm.quota().period();
            let more = before
                .zip(after)
                .map(|(before, after)| after.saturating_sub(before));
            assert!(
                more.is_some_and(|more| more <= 2 * period),
                "{before:?}, {after:?}: {algorithm}"
            );
        }
    }
}

#[test]
fn a_word_that_is_ahead_goes_on_where_it_is() {
    // Somebody with a later tick has written it: whoever changes the quota is two windows behind.
    let (now, later) = (Tick::from_nanos(5), Tick::from_nanos(2_500_000_000));
    let old = FixedWindow::new(Quota::per_second(10)).expect("windows");
    let new = SlidingWindow::new(Quota::per_second(20)).expect("a window");
    let (old, new) = (AnyAlgorithm::from(old), AnyAlgorithm::from(new));
    let (word, _) = old.step(0, later, 9).expect("fresh");
    let carried = old.carry_over(word, now, &new);
    assert_eq!(
        (new.available(carried, now), new.available(carried, later)),
        (1, 1)
    );
}

/// Whatever is over of the windows of the other clock: what is counted, also by somebody with a later tick, is not
/// forgotten sooner.
#[test]
fn a_rebased_window_is_over_no_sooner() {
    let windows = ["fixed-window 10/s", "sliding-window 10/s"];
    let mut later = 0;
    for window in windows.map(|text| text.parse::<AnyAlgorithm>().expect(text)) {
        for (from, to) in [(0.1, 0.9), (0.9, 0.1), (5.5, 0.5), (0.2, 7.3)] {
            let tick = |seconds: f64| Tick::ZERO.saturating_add(Duration::from_secs_f64(seconds));
            for ahead in [0.0, 0.3, 1.0, 2.5] {
                let (word, taken) = window.take_up_to(0, tick(from + ahead), 10);
                assert_eq!(taken.n(), 10);
                let moved = window.rebase(word, tick(from), tick(to));
                // A sliding window slides on from what it was, at most as fast as it could have.
                let all = if window.to_string().starts_with("fixed") {
                    10
                } else {
                    1
                };
                let wait = |word, now| {
                    let due = window.due(word, now, all).expect("in time");
                    due.saturating_since(now)
                };
                let (before, after) = (wait(word, tick(from)), wait(moved, tick(to)));
                let slides = all == 1 && ahead < 1.0 - from.fract();
                assert!(
                    after >= before || slides,
                    "{before:?} {after:?} {window} {from} {to} {ahead}"
                );
                assert!(
                    after <= before + Duration::from_secs(1),
                    "{before:?} {after:?} {window}"
                );
                later += usize::from(after > before);
            }
        }
    }
    assert!(later > 5, "{later}");
}
