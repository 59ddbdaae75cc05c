//! Rates whose interval is not a whole number of nanoseconds. Such a limiter counts in units of a
//! quarter of a nanosecond or less. When a word moves to another clock, the fractions of a unit on
//! the two clocks differ, so permits may be due less than a unit sooner or later.

use tollgate::algorithm::{Debt, Forecast, Rebase};

use crate::support::*;

pub(crate) const KINDS: [&str; 5] = [
    "token-bucket {quota}",
    "gcra {quota}",
    "leaky-meter {quota}",
    "leaky-queue {quota}",
    "leaky-queue {quota} free 1",
];

/// Returns an algorithm of this kind with an inexact rate: more than 11 permits, and an odd number
/// of them.
pub(crate) fn inexact(kind: &str, random: &mut Random) -> AnyAlgorithm {
    let odd = [13, 17, 97, 1_009, 999_983, 2 * random.below(500) + 13];
    let n = odd[random.below(6) as usize];
    let period = ["s", "min", "h"][random.below(3) as usize];
    let quota = format!("{n}/{period} burst {}", 2 + random.below(40));
    algorithm(&kind.replace("{quota}", &quota))
}

/// Returns a tick of any size, up to eighteen years.
fn any_tick(random: &mut Random) -> Tick {
    let bits = 1 + random.below(59);
    tick(random.below(1 << bits))
}

fn after(from: Tick, nanos: u64) -> Tick {
    from.saturating_add(Duration::from_nanos(nanos))
}

/// Returns a word anywhere between idle and in debt.
fn any_word(algorithm: &AnyAlgorithm, now: Tick, random: &mut Random) -> u64 {
    let earlier = now.saturating_sub(Duration::from_nanos(random.below(2_000_000_000)));
    let most = algorithm.quota().burst_size() + 2;
    (0..3).fold(0, |word, _| {
        algorithm.charge(word, earlier, random.below(most)).0
    })
}

/// The same limiter on its old clock and on the new one.
struct Moved {
    algorithm: AnyAlgorithm,
    words: [u64; 2],
    starts: [Tick; 2],
}

impl Moved {
    fn new(algorithm: AnyAlgorithm, random: &mut Random) -> Self {
        let starts = [any_tick(random), any_tick(random)];
        let word = any_word(&algorithm, starts[0], random);
        let moved = algorithm.rebase(word, starts[0], starts[1]);
        Self {
            algorithm,
            words: [word, moved],
            starts,
        }
    }

    fn is_idle(&self, nanos: u64) -> [bool; 2] {
        [0, 1].map(|of| {
            let now = after(self.starts[of], nanos);
            self.algorithm.is_idle(self.words[of], now)
        })
    }

    /// Returns by how much later `n` permits are due on the new clock, `nanos` after the move.
    fn later(&self, n: u64, nanos: u64) -> i64 {
        let [old, new] = [0, 1].map(|of| {
            let now = after(self.starts[of], nanos);
            let due = self.algorithm.due(self.words[of], now, n);
            let wait = due.expect("in time").saturating_since(now);
            wait.as_nanos() as i64
        });
        new - old
    }

    /// Takes `n` permits from both, if both have them.
    fn take(&mut self, n: u64, nanos: u64) {
        let taken = [0, 1].map(|of| {
            let now = after(self.starts[of], nanos);
            self.algorithm.step(self.words[of], now, n)
        });
        if let [Ok((old, _)), Ok((new, _))] = taken {
            self.words = [old, new];
        }
    }
}

/// Returns the smallest and largest difference of the due ticks: while the limiter has not been
/// idle since the move, and afterwards.
fn least_and_most(kind: &str) -> [(i64, i64); 2] {
    let mut random = Random(kind.len() as u64);
    let mut seen = [(0, 0); 2];
    for _ in 0..debug_or_release(3_000, 30_000) {
        let algorithm = inexact(kind, &mut random);
        let quota = algorithm.quota();
        let permit = quota.period().as_nanos() as u64 / quota.permits();
        let mut moved = Moved::new(algorithm, &mut random);
        let (mut nanos, mut has_idled) = (0, moved.is_idle(0)[0]);
        assert_eq!(moved.is_idle(0), [has_idled; 2], "{algorithm}");
        for _ in 0..12 {
            let n = random.below(quota.burst_size() + 1);
            let later = moved.later(n, nanos);
            let (least, most) = &mut seen[usize::from(has_idled)];
            (*least, *most) = ((*least).min(later), (*most).max(later));
            has_idled |= moved.is_idle(nanos)[0];
            moved.take(1 + random.below(3), nanos);
            nanos += random.below(3 * permit + 2);
        }
    }
    seen
}

#[test]
fn a_moved_word_is_due_at_most_a_tick_sooner_or_later() {
    for kind in KINDS {
        let [busy, idled] = least_and_most(kind);
        // The difference of less than a unit lies between two ticks at times. It must occur, or the
        // test shows nothing.
        assert_eq!(busy, (-1, 1), "{kind}");
        // An idle limiter starts as a fresh one does at that tick, with another fraction on each
        // clock.
        assert_eq!(idled, (-1, 1), "{kind}");
    }
}
