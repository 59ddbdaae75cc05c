//! Searches, for any algorithm, for the tick at which several words together have `n` permits.

use super::Split;
use crate::clock::Tick;

/// How many refills the search steps through before it bisects.
const STEPS: usize = 4;

pub(super) fn due_together<A: Split>(
    algorithm: &A,
    words: &[u64],
    now: Tick,
    n: u64,
) -> Option<Tick> {
    let there = |tick| {
        let each = words.iter().map(|word| algorithm.available(*word, tick));
        each.fold(0, u64::saturating_add) >= n
    };
    let mut before = now;
    if there(before) {
        return Some(before);
    }
    // Between these ticks no permits are added, so the first tick with enough permits is the
    // answer.
    for _ in 0..STEPS {
        let more = |word: &u64| {
            let one_more = algorithm.available(*word, before).saturating_add(1);
            algorithm.due(*word, before, one_more)
        };
        let next = words.iter().filter_map(more).min()?;
        if there(next) {
            return Some(next);
        }
        before = before.max(next);
    }
    let all = algorithm.available(0, before);
    let full = words.iter().map(|word| algorithm.due(*word, before, all));
    let last = full.map(|due| due.unwrap_or(Tick::MAX)).max()?;
    let mut from = before.max(last);
    if !there(from) {
        return None;
    }
    while from.as_nanos() - before.as_nanos() > 1 {
        let half = (from.as_nanos() - before.as_nanos()) / 2;
        let middle = Tick::from_nanos(before.as_nanos() + half);
        match there(middle) {
            true => from = middle,
            false => before = middle,
        }
    }
    Some(from)
}
