//! Chooses the ticks at which a limiter is compared with its model.

use crate::support::random::Random;
use crate::support::reference::{FIFTY_YEARS, Reference, Span};
use crate::support::seen::Seen;

const YEAR: u64 = FIFTY_YEARS / 50;

/// Returns the same tick, a tick at which something changes or one beside it, a later one, an
/// earlier one, or rarely one near the end of time.
pub(crate) fn any_moment(
    model: &impl Reference,
    still: u64,
    random: &mut Random,
    seen: &mut Seen,
) -> u64 {
    let period = model.period();
    let beside =
        |random: &mut Random, tick: u64| tick.saturating_add(random.below(3)).saturating_sub(1);
    let after = |span: Span| still.saturating_add(u64::try_from(span.lo).unwrap_or(0));
    let target = match random.below(24) {
        0..=5 => still,
        6 => still.saturating_add(1),
        7 => still.saturating_add(random.upto(1_000_000)),
        8..=11 => beside(random, model.edge(still)),
        12 | 13 => {
            let n = random.upto(model.limit());
            beside(random, after(model.wait(still, n).span))
        }
        14 => beside(random, after(model.as_new_after(still, still))),
        15 => beside(random, still.saturating_add(period)),
        16 | 17 => still.saturating_add(random.upto(period.saturating_mul(3))),
        18 => still.saturating_sub(random.upto(1000)),
        19 => still.saturating_sub(random.upto(period.saturating_mul(2))),
        20 => still.saturating_add(random.upto(period / 8)),
        21 if random.one_in(40) => still.saturating_add(random.below(9 * YEAR)),
        22 if random.one_in(60) => random.below(FIFTY_YEARS),
        23 if random.one_in(150) => {
            if let Some(horizon) = model.horizon() {
                seen.note("far away");
                return match random.below(4) {
                    0 => u64::MAX - random.below(2),
                    1 => beside(random, horizon),
                    2 => random.next(),
                    _ => 0,
                };
            }
            0
        }
        _ => still.saturating_add(random.upto(period)),
    };
    if target > FIFTY_YEARS {
        seen.note("fifty years are over");
        return random.upto(FIFTY_YEARS);
    }
    target
}

/// Returns a tick at the clock's start, near the end of 50 years, or in between.
pub(crate) fn any_start(random: &mut Random) -> u64 {
    match random.below(3) {
        0 => 0,
        1 => FIFTY_YEARS - random.upto(FIFTY_YEARS / 50),
        _ => random.upto(FIFTY_YEARS),
    }
}
