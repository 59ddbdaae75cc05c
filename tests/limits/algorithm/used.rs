//! A change of quota that keeps what was used. A quota that is raised by some permits adds exactly
//! these, and one that is lowered takes as many away. No sequence of changes adds permits.

use tollgate::Keep;
use tollgate::algorithm::Debt;
use tollgate_audit::{Audit, Bounded, Log};

use super::carry::{NOW, all, owed, words};
use crate::support::*;

/// Returns what is available, or below 0 what is owed.
fn left(algorithm: &AnyAlgorithm, word: u64) -> i128 {
    let owed = owed(algorithm, word, NOW);
    i128::from(algorithm.available(word, NOW)) - i128::from(owed)
}

/// Returns the most that is owed once the word can count no more.
fn most_owed(algorithm: &AnyAlgorithm) -> i128 {
    -left(algorithm, algorithm.charge(0, NOW, u64::MAX).0)
}

fn burst(algorithm: &AnyAlgorithm) -> i128 {
    algorithm.quota().burst_size().into()
}

#[test]
fn each_kind_adds_and_takes_the_difference() {
    for kind in [
        "token-bucket 100/d",
        "gcra 100/d",
        "leaky-meter 100/d",
        "leaky-queue 100/d",
        "fixed-window 100/d",
        "fixed-window 100/d first-hit",
        "sliding-window 100/d",
        "intervals 100/d",
        "intervals 100/d greedy",
    ] {
        let small = algorithm(kind);
        let large = small.with_quota(Quota::per_day(1000)).expect("a quota");
        let most = most_owed(&small);
        // The number used, and what is left of 100 and of 1000.
        for (used, of_small, of_large) in [
            (0, 100, 1000),
            (1, 99, 999),
            (40, 60, 960),
            (100, 0, 900),
            (130, -30, 870),
        ] {
            let (word, _) = small.charge(0, NOW, used);
            assert_eq!(left(&small, word), of_small, "{kind}");
            let word = small.carry_used(word, NOW, &large);
            assert_eq!(left(&large, word), of_large, "{kind}");
            let word = large.carry_used(word, NOW, &small);
            assert_eq!(left(&small, word), of_small, "{kind}");
        }
        for used in [0, 40, 100, 700, 1000] {
            let (word, _) = large.charge(0, NOW, used);
            let low = large.carry_used(word, NOW, &small);
            let right = 100 - i128::from(used);
            assert_eq!(left(&small, low), right.max(-most), "{kind}");
            // A debt that was too large to record stays so.
            let high = small.carry_used(low, NOW, &large);
            let right = match right > -most {
                true => right + 900,
                false => -most_owed(&large),
            };
            assert_eq!(left(&large, high), right, "{kind}");
        }
    }
}

#[test]
fn the_difference_of_any_two_quotas_is_added_or_taken() {
    let mut compared = 0;
    let pairs = all().flat_map(|old| all().map(move |new| (old, new)));
    // A window or interval that becomes a fast algorithm may begin at a later tick, by when a fast
    // algorithm has refilled more.
    let is_fast = |algorithm: &AnyAlgorithm| algorithm.to_string().contains("ns");
    for (old, new) in pairs.filter(|(old, new)| is_fast(old) || !is_fast(new)) {
        // A tolerance holds half a permit more than its burst, and a share that is rounded down is
        // less than a permit. A period that began with a hit begins at a quantum, slightly later.
        let text = format!("{old}, {new}");
        let part = i128::from(text.contains("tolerance") || text.contains("rounding down"));
        let begins_late = text.contains("first-hit") || text.contains("greedy");
        let lost = i128::from(begins_late).max(part);
        for word in words(&old) {
            let carried = old.carry_used(word, NOW, &new);
            let right = left(&old, word) + burst(&new) - burst(&old);
            let right = right.max(-most_owed(&new));
            let is = left(&new, carried);
            assert!(
                (right - lost..=right + part).contains(&is),
                "{is}, not {right}: {old} to {new}"
            );
            assert!(old != new || carried == word, "{old} keeps its word");
            assert!(!old.is_idle(word, NOW) || new.is_idle(carried, NOW));
            compared += 1;
        }
    }
    assert!(compared > 10_000, "{compared}");
}

/// Whatever changes follow each other, the first quota finds no more than it left. Quotas of the
/// same kind and period may be too small to record what was used. All others can record it.
#[test]
fn changes_up_and_down_never_add_permits() {
    let mut random = Random(0x0070_11a7_e305);
    let (mut same, mut fewer) = (0, 0);
    for first in all() {
        let quota = first.quota();
        for word in words(&first) {
            let (mut now, mut changed) = (first, word);
            let used = burst(&first) - left(&first, word) + 9;
            let stays = random.one_in(2);
            for _ in 0..1 + random.below(5) {
                let n = [1, 3, 100, 1000, 7][random.below(5) as usize];
                let period = quota.period() * [1, 5, 60][random.below(3) as usize];
                let next = match (stays, random.below(2)) {
                    (true, _) => first.with_quota(Quota::per(n, quota.period())),
                    (false, 0) => first.with_quota(Quota::per(n, period)),
                    (false, _) => Ok(all().nth(random.below(22) as usize).expect("22")),
                };
                let next = next.unwrap_or(now);
                if stays || used <= burst(&next) + most_owed(&next) {
                    changed = now.carry_used(changed, NOW, &next);
                    now = next;
                }
            }
            let changed = now.carry_used(changed, NOW, &first);
            let (had, has) = (left(&first, word), left(&first, changed));
            assert!(has <= had, "{has} of {had}: {first}");
            match has == had {
                true => same += 1,
                false => fewer += 1,
            }
        }
    }
    assert!(same > 3_000 && fewer > 50, "{same} and {fewer}");
}

/// Takes all that there is, and changes the quota often. Returns whether the grants keep the bound
/// of the largest quota.
fn is_within_the_largest(texts: [&str; 3], keep: Keep) -> bool {
    let algorithms = texts.map(algorithm);
    let limiter = tollgate::Adjustable::starting_at(algorithms[0], NoClock, Tick::ZERO);
    let (mut random, mut now, mut log) = (Random(9), 0, Log::new());
    for _ in 0..20_000 {
        now += random.below(60);
        let view = limiter.at(tick(now));
        match random.below(3) {
            0 => view.set(algorithms[random.below(3) as usize], keep),
            _ => drop(log.granted(&view.take_up_to(1 + random.below(40)))),
        }
    }
    let history: Audit = [log].into_iter().collect();
    history.check(&algorithms[0].bound()).is_ok()
}

#[test]
fn changes_keep_the_bound_of_the_largest_quota() {
    for texts in [
        [
            "token-bucket 3/40ns burst 30",
            "token-bucket 1/20ns burst 9",
            "token-bucket 1/1us burst 1",
        ],
        [
            "gcra 1/10ns burst 20",
            "gcra 1/10ns burst 3",
            "gcra 1/70ns burst 11",
        ],
        [
            "leaky-meter 1/10ns burst 20",
            "leaky-meter 1/12ns burst 1",
            "leaky-meter 1/99ns burst 7",
        ],
        [
            "fixed-window 30/500ns",
            "fixed-window 9/500ns",
            "fixed-window 1/500ns",
        ],
        [
            "fixed-window 30/500ns first-hit",
            "fixed-window 12/500ns first-hit",
            "fixed-window 20/500ns first-hit",
        ],
        [
            "sliding-window 30/500ns",
            "sliding-window 9/500ns",
            "sliding-window 1/500ns",
        ],
        [
            "intervals 9/500ns burst 30",
            "intervals 5/500ns burst 9",
            "intervals 1/500ns burst 2",
        ],
        [
            "intervals 9/500ns burst 30 greedy",
            "intervals 5/500ns burst 12 greedy",
            "intervals 8/500ns burst 20 greedy",
        ],
    ] {
        assert!(is_within_the_largest(texts, Keep::Used), "{texts:?}");
        assert!(!is_within_the_largest(texts, Keep::Fresh), "{texts:?}");
    }
}
