//! A word never has fewer permits at a later tick than at an earlier one, because a denial may use
//! what another thread found at another tick. And if words are ordered, a smaller word has no fewer
//! permits at any tick, because a shard may be compared with an earlier state of another.

use tollgate::algorithm::{Debt, Forecast, GiveBack, Split};

use crate::support::algorithms::any_edge;
use crate::support::*;

/// Returns shards of each algorithm, from one to several of them.
fn all_parts() -> impl Iterator<Item = AnyAlgorithm> {
    let parts = |whole: AnyAlgorithm| [1, 2, 7].map(|of| whole.per_shard(of));
    let parts = algorithms().into_iter().flat_map(parts).flatten();
    parts.map(|(part, _)| part)
}

/// Returns ticks around a middle one, near and far, in order.
fn ticks_around(middle: u64, random: &mut Random) -> Vec<Tick> {
    let mut ticks = vec![0, middle, u64::MAX - 1, u64::MAX];
    for _ in 0..40 {
        let reach = 1 << random.below(63);
        let distance = random.upto(reach);
        ticks.push(middle.saturating_sub(distance));
        ticks.push(middle.saturating_add(distance));
    }
    ticks.sort_unstable();
    ticks.into_iter().map(tick).collect()
}

/// Returns a word after some verbs, and the last of their ticks.
fn any_word(algorithm: &AnyAlgorithm, random: &mut Random) -> (u64, u64) {
    let mut now = random.upto(FIFTY_YEARS);
    let mut word = algorithm.initial_word(tick(now));
    for _ in 0..random.below(12) {
        let tick = tick(now);
        let n = match random.below(3) {
            0 => any_edge(random),
            _ => random.upto(algorithm.available(0, tick)),
        };
        word = match random.below(4) {
            0 => algorithm.charge(word, tick, n).0,
            1 => algorithm.refund(word, tick, n).0,
            _ => algorithm.take_up_to(word, tick, n).0,
        };
        let reach = 1 << random.below(45);
        now = now.saturating_add(random.upto(reach));
    }
    (word, now)
}

#[test]
fn a_word_never_has_fewer_permits_later() {
    let mut random = Random(0x5eed_0001);
    let falls = algorithms().into_iter().find(|one| !one.never_falls());
    assert_eq!(falls, None);
    for part in all_parts() {
        for _ in 0..300 {
            let (word, now) = any_word(&part, &mut random);
            let ticks = ticks_around(now, &mut random);
            let have: Vec<_> = ticks.iter().map(|at| part.available(word, *at)).collect();
            let falls = have.windows(2).position(|pair| pair[0] > pair[1]);
            let falls = falls.map(|place| (ticks[place], have[place], ticks[place + 1]));
            assert_eq!(falls, None, "{part} with the word {word}");
            // The first tick with one permit more is the same from any earlier tick.
            let one_more = have.first().map_or(1, |least| least.saturating_add(1));
            let due = part.due(word, Tick::ZERO, one_more);
            for at in ticks.iter().filter(|at| due.is_none_or(|due| **at <= due)) {
                assert_eq!(part.due(word, *at, one_more), due, "{part}, {word}, {at:?}");
            }
        }
    }
}

/// If an algorithm says that its words are ordered, the smaller of two words always has as many
/// permits or more.
#[test]
fn a_smaller_word_has_no_fewer_permits() {
    let mut random = Random(0x5eed_0002);
    let is_bucket = |one: &AnyAlgorithm| {
        let name = one.to_string();
        ["token-bucket", "gcra", "leaky-bucket", "leaky-queue"]
            .iter()
            .any(|kind| name.starts_with(kind))
    };
    for part in all_parts().filter(is_bucket) {
        assert!(part.is_ordered(), "{part}");
    }
    for part in all_parts().filter(Split::is_ordered) {
        for _ in 0..300 {
            let (one, now) = any_word(&part, &mut random);
            // Another word, or a later state of the same one.
            let other = match random.below(2) {
                0 => any_word(&part, &mut random).0,
                _ => {
                    let n = random.upto(part.available(0, Tick::ZERO));
                    let reach = 1 << random.below(45);
                    let later = now.saturating_add(random.upto(reach));
                    part.take_up_to(one, tick(later), n).0
                }
            };
            let (small, large) = (one.min(other), one.max(other));
            for at in ticks_around(now, &mut random) {
                let have = [small, large].map(|word| part.available(word, at));
                assert!(
                    have[0] >= have[1],
                    "{part}: {small}, {large} at {at:?}: {have:?}"
                );
            }
        }
    }
}
