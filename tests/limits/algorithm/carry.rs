//! A word is carried over to another quota, another algorithm or another clock. It never gains
//! permits, and loses fewer than two.

use std::mem;

use tollgate::algorithm::{Debt, Forecast, Gauge, Rebase};

use crate::support::*;

pub(super) const NOW: Tick = tick(86_400_500_000_007);

/// Every kind of algorithm, small and large.
pub(super) fn all() -> impl Iterator<Item = AnyAlgorithm> {
    let texts = [
        "token-bucket 10/s",
        "token-bucket 13/s burst 40",
        "token-bucket 47/10ns",
        "token-bucket 4/ns burst 9",
        "token-bucket 1/d",
        "token-bucket 1000/h burst 3",
        "gcra 10/s burst 3",
        "gcra 1/10ms tolerance 25ms",
        "leaky-meter 10/s burst 20",
        "leaky-queue 7/min burst 5 free 2",
        "fixed-window 10/s",
        "fixed-window 100/min offset 7s",
        "fixed-window 5/s first-hit",
        "fixed-window 20/s first-hit",
        "fixed-window 1000/d first-hit",
        "sliding-window 10/s",
        "sliding-window 50/min origin 9s rounding down",
        "intervals 10/s burst 20",
        "intervals 3/h burst 7 offset 1ms",
        "intervals 10/s burst 25 greedy",
        "intervals 4/s burst 60 greedy",
        "intervals 2/d burst 9 greedy",
    ];
    texts.into_iter().map(|text| text.parse().expect(text))
}

/// Returns words for every number of permits taken, up to the largest debt. Some were taken a while
/// ago, and some include a fraction of a permit.
pub(super) fn words(algorithm: &AnyAlgorithm) -> Vec<u64> {
    let period = algorithm.quota().period();
    let then = [Duration::ZERO, period / 3, period, period + period / 2];
    let words = (0..=2 * algorithm.quota().burst_size().min(40)).flat_map(|n| {
        then.map(|ago| {
            let (word, _) = algorithm.charge(0, NOW.saturating_sub(ago), n);
            algorithm.take_up_to(word, NOW, n / 2).0
        })
    });
    words
        .flat_map(|word| [word, word + u64::from(is_bucket(algorithm))])
        .collect()
}

fn is_bucket(algorithm: &AnyAlgorithm) -> bool {
    matches!(algorithm, AnyAlgorithm::TokenBucket(_))
}

pub(super) fn owed(algorithm: &AnyAlgorithm, word: u64, now: Tick) -> u64 {
    algorithm.charge(word, now, 0).1.debt()
}

#[test]
fn a_word_is_carried_over_between_any_two_algorithms() {
    let mut compared = 0;
    let pairs = all().flat_map(|old| all().map(move |new| (old, new)));
    // Leaves out windows and intervals that become fast algorithms: a period that starts at a
    // quantum is carried over from there, and by then a fast algorithm has refilled more.
    let is_fast = |algorithm: &AnyAlgorithm| algorithm.to_string().contains("ns");
    for (old, new) in pairs.filter(|(old, new)| is_bucket(old) || !is_fast(new)) {
        for word in words(&old) {
            let carried = old.carry_over(word, NOW, &new);
            let (had, has) = (old.available(word, NOW), new.available(carried, NOW));
            let most = had.min(new.quota().burst_size());
            assert!(
                has <= most && has + 1 >= most,
                "{has} of {most}: {old} to {new}"
            );
            let (owed, owes) = (owed(&old, word, NOW), owed(&new, carried, NOW));
            // A window has a maximum debt.
            let room = new.charge(0, NOW, u64::MAX).1.debt();
            let right = owed.min(room)..=owed + 1;
            assert!(right.contains(&owes), "{owed}, {owes}: {old} to {new}");
            assert!(old != new || carried == word, "{old} keeps its word");
            // The same share is carried over. Another kind of limit gets whole permits.
            let scaled = new.available(old.carry_scaled(word, NOW, &new), NOW);
            let part = |had: u64| had * new.quota().burst_size() / old.quota().burst_size();
            // A bucket also gets a share of the permit that it is about to have.
            let is_window = old.to_string().contains("window");
            let is_other = is_window || mem::discriminant(&old) != mem::discriminant(&new);
            let least = part(had).saturating_sub(1);
            let right = least..=part(had + u64::from(!is_other));
            assert!(
                right.contains(&scaled),
                "{scaled} for {had}: {old} to {new}"
            );
            compared += 1;
        }
        // A bucket that was not in debt is not in debt.
        let (word, _) = old.take_up_to(0, NOW, u64::MAX);
        let is_free = new.step(old.carry_over(word, NOW, &new), NOW, 0).is_ok();
        let are_buckets = is_bucket(&old) && is_bucket(&new);
        assert!(is_free || !are_buckets, "{old} to {new}");
        let fresh = old.carry_over(0, NOW, &new);
        let (small, large) = (old.quota().burst_size(), new.quota().burst_size());
        // A larger bucket is not full because a smaller one was. A tolerance may hold a fraction of
        // a permit more than the same burst without one.
        let holds_more = small < large || new.to_string().contains("tolerance");
        assert!(fresh == 0 || holds_more, "{old} to {new}");
    }
    assert!(compared > 10_000, "{compared}");
}

/// Counts of two windows are scaled and rounded. What rounding adds is taken away.
#[test]
fn a_scaled_window_has_no_more_than_its_part() {
    let mut random = Random(0x5eed_0003);
    for _ in 0..2000 {
        let mut window = || sliding(1 + random.below(60));
        let (old, new) = (window(), window());
        let (mut word, mut now) = (0, 0);
        for _ in 0..2 {
            now += random.below(2_000_000_000);
            word = old.take_up_to(word, tick(now), random.below(60)).0;
        }
        let now = tick(now + random.below(1_500_000_000));
        let (have, most) = (old.available(word, now), old.available(0, now));
        let scaled = new.available(old.carry_scaled(word, now, &new), now);
        let part = have * new.available(0, now) / most;
        assert!(scaled <= part, "{scaled} of {have}: {old} to {new}");
    }
}

fn sliding(limit: u64) -> AnyAlgorithm {
    let text = format!("sliding-window {limit}/s");
    text.parse().expect("a window")
}

/// Permits taken in a period that a permit opened come back when they would have under the old
/// quota, even after a change in the middle of it.
#[test]
fn a_carried_over_period_ends_at_its_original_tick() {
    let pairs = [
        (
            "fixed-window 5/s first-hit",
            "fixed-window 20/s first-hit",
            20,
        ),
        (
            "intervals 10/s burst 25 greedy",
            "intervals 4/s burst 60 greedy",
            24,
        ),
        // The word of the larger limit has fewer bits for the end.
        (
            "fixed-window 5/s first-hit",
            "fixed-window 4000000/s first-hit",
            4_000_000,
        ),
    ];
    for (old, new, then) in pairs {
        let [old, new] = [old, new].map(|text| text.parse::<AnyAlgorithm>().expect(text));
        let (word, _) = old.take_up_to(0, NOW, 5);
        let at = |millis| NOW.saturating_add(Duration::from_millis(millis));
        let carried = old.carry_over(word, at(500), &new);
        let has = new.available(carried, at(999));
        assert_eq!(has, old.available(word, at(999)), "{old} to {new}");
        assert_eq!(new.available(carried, at(1001)), then, "{old} to {new}");
    }
}

#[test]
fn a_new_quota_keeps_the_other_options() {
    let quota = Quota::per_minute(8);
    for algorithm in all() {
        // Includes settings that no quota expresses, such as an uneven tolerance.
        let same = algorithm.with_quota(algorithm.quota()).expect("it is one");
        assert_eq!(same, algorithm);
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
        let (is, was) = (options(&new.to_string()), options(&algorithm.to_string()));
        assert_eq!(is, was, "{algorithm}");
    }
}

/// On the other clock the window has another number, and the same part of it has elapsed. Its count
/// is carried over.
#[test]
fn a_rebased_word_keeps_its_state() {
    let to = tick(12_345);
    for algorithm in all() {
        assert_eq!(algorithm.rebase(0, NOW, to), 0, "{algorithm}");
        for word in words(&algorithm) {
            assert_eq!(algorithm.rebase(word, NOW, NOW), word);
            let moved = algorithm.rebase(word, NOW, to);
            let (was, is) = (algorithm.level(word, NOW), algorithm.level(moved, to));
            let had = algorithm.available(word, NOW);
            let has = algorithm.available(moved, to);
            let (owed, owes) = (owed(&algorithm, word, NOW), owed(&algorithm, moved, to));
            let as_much = |was: u64, is: u64| (was..=was + 1).contains(&is);
            assert!(
                as_much(was.ceil(), is.ceil()) && as_much(has, had) && as_much(owed, owes),
                "{was:?} and {is:?}, {had} and {has}, owed {owed} and {owes}: {algorithm}"
            );
            // On an inexact clock there may be a nanosecond between no debt and a fraction of a
            // permit. A sliding window that rounds down now fully counts the fraction that it did
            // not count before.
            let (n, text) = (algorithm.quota().permits(), algorithm.to_string());
            let rounds = [13, 47].contains(&n) || text.ends_with("rounding down");
            let is_same = (owed > 0) == (owes > 0) || rounds;
            assert!(
                is_same,
                "{was:?} owes {owed}, {is:?} owes {owes}: {algorithm}"
            );
            // Permits stay due: in a bucket at the same tick, or at one next to it if fractions of
            // a unit differ; otherwise within the length of a window.
            let wait = |word, now: Tick| {
                let due = algorithm.due(word, now, 1).expect("in time");
                due.saturating_since(now)
            };
            let (before, after) = (wait(word, NOW), wait(moved, to));
            let off = Duration::from_nanos(u64::from(rounds));
            let (least, late) = match is_bucket(&algorithm) {
                true => (before.saturating_sub(off), off),
                false => (Duration::ZERO, 2 * algorithm.quota().period()),
            };
            let is_due = least <= after && after <= before + late;
            assert!(is_due, "{before:?}, {after:?}: {algorithm}");
            // Whole periods later nothing differs, except for rounding.
            let period = algorithm.quota().period();
            let periods = NOW.saturating_add(3 * period);
            let after = wait(algorithm.rebase(word, NOW, periods), periods);
            let by_first = text.ends_with("first-hit") || text.ends_with("greedy");
            let quantum = if by_first {
                period / 64
            } else {
                Duration::ZERO
            };
            let early = if is_bucket(&algorithm) {
                off
            } else {
                Duration::ZERO
            };
            let least = before.saturating_sub(early);
            let is_due = least <= after && after <= before + quantum + off;
            assert!(is_due, "{before:?}, {after:?}: {algorithm}");
        }
    }
}

#[test]
fn a_word_ahead_of_the_clock_is_carried_over_in_place() {
    // A caller with a later tick wrote it. The one that changes the quota is two windows behind.
    let (now, later) = (tick(5), tick(2_500_000_000));
    let old = FixedWindow::new(Quota::per_second(10)).expect("windows");
    let new = SlidingWindow::new(Quota::per_second(20)).expect("a window");
    let (old, new) = (AnyAlgorithm::from(old), AnyAlgorithm::from(new));
    let (word, _) = old.step(0, later, 9).expect("fresh");
    let carried = old.carry_over(word, now, &new);
    let has = (new.available(carried, now), new.available(carried, later));
    assert_eq!(has, (1, 1));
}

/// For any elapsed part of the other clock's windows, counted permits do not expire sooner,
/// including those of a caller with a later tick.
#[test]
fn a_rebased_window_ends_no_sooner() {
    let windows = ["fixed-window 10/s", "sliding-window 10/s"];
    let mut later = 0;
    for window in windows.map(|text| text.parse::<AnyAlgorithm>().expect(text)) {
        // A sliding window continues from its level, and falls at most as fast as before.
        let is_fixed = window.to_string().starts_with("fixed");
        let all = if is_fixed { 10 } else { 1 };
        for (from, to) in [(0.1, 0.9), (0.9, 0.1), (5.5, 0.5), (0.2, 7.3)] {
            let tick = |seconds: f64| Tick::ZERO.saturating_add(Duration::from_secs_f64(seconds));
            for ahead in [0.0, 0.3, 1.0, 2.5] {
                let (word, taken) = window.take_up_to(0, tick(from + ahead), 10);
                assert_eq!(taken.n(), 10);
                let moved = window.rebase(word, tick(from), tick(to));
                let wait = |word, now| {
                    let due = window.due(word, now, all).expect("in time");
                    due.saturating_since(now)
                };
                let (before, after) = (wait(word, tick(from)), wait(moved, tick(to)));
                let slides = !is_fixed && ahead < 1.0 - from.fract();
                assert!(
                    (after >= before || slides) && after <= before + Duration::from_secs(1),
                    "{before:?} {after:?} {window} {from} {to} {ahead}"
                );
                later += usize::from(after > before);
            }
        }
    }
    assert!(later > 5, "{later}");
}
