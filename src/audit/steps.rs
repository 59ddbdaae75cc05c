//! The check where what is allowed comes in steps: it does not add up, since `ceil((b - a) /
//! period)` depends on how `a` and `b` lie to each other. So all beginnings are kept, by where they
//! lie in a period.
//!
//! Let `a = p * period + x` and `b + period - 1 = q * period + y`, with `x` and `y` below the
//! period. Then `ceil((b - a) / period) = q - p`, less one where `x > y`. What was taken from `a`
//! to `b` is `total(b) - before(a)`; so the bound is kept at `b` iff
//!
//! ```text
//! total(b) - n * q + max over all a of (n * p - before(a), and n more where x > y)  <=  burst
//! ```
//!
//! Where `x` is not above `y` that is too much by nothing, and a maximum over all is one over those
//! as well. The maximum over `x > y` is kept in a [`Tree`].

use super::Excess;
use super::bound::{Bound, Comes};
use super::credits::{Credits, Worth};
use super::moment::Moment;
use crate::clock::Tick;

/// Where an interval begins, by how much it has above what may have come.
#[derive(Clone, Copy)]
struct Beginning {
    /// `n * p - before(a)`.
    value: i128,
    at: Tick,
    /// What had been taken before it, in permits, net.
    net: i128,
}

/// The greatest of two beginnings; the first of equal ones.
fn greater(one: Option<Beginning>, other: Option<Beginning>) -> Option<Beginning> {
    match (one, other) {
        (Some(one), Some(other)) if other.value > one.value => Some(other),
        (Some(one), _) => Some(one),
        (None, other) => other,
    }
}

/// The greatest beginning among those from some place on: a Fenwick tree.
struct Tree {
    /// All places, sorted.
    places: Vec<u64>,
    greatest: Vec<Option<Beginning>>,
}

impl Tree {
    fn over(mut places: Vec<u64>) -> Self {
        places.sort_unstable();
        places.dedup();
        Self {
            greatest: vec![None; places.len() + 1],
            places,
        }
    }

    /// From the last place, 1, to the first.
    fn rank(&self, not_above: u64) -> usize {
        self.places.len() - self.places.partition_point(|place| *place <= not_above)
    }

    fn insert(&mut self, place: u64, beginning: Beginning) {
        let mut rank = self.rank(place) + 1;
        while let Some(node) = self.greatest.get_mut(rank) {
            *node = greater(*node, Some(beginning));
            rank += rank & rank.wrapping_neg();
        }
    }

    /// The greatest at a place above this one.
    fn above(&self, place: u64) -> Option<Beginning> {
        let mut rank = self.rank(place);
        let mut best = None;
        while let Some(node) = self.greatest.get(rank).filter(|_| rank > 0) {
            best = greater(*node, best);
            rank &= rank - 1;
        }
        best
    }
}

/// Checks all moments at which something was granted.
pub(super) fn run<'h>(
    bound: &Bound,
    credits: &'h [Worth],
    moments: impl Iterator<Item = Moment<'h>> + Clone,
) -> Result<(), Excess> {
    let Comes::InSteps { units, period } = bound.comes else {
        return Ok(());
    };
    // No sum here comes near the ends of 128 bits: a quota has at most 10 permits a nanosecond.
    let (n, period) = (i128::from(units), u128::from(period.get()));
    let split = |x: u128| ((x / period) as i128, (x % period) as u64);
    let place = |tick: Tick| split(tick.as_nanos().into());
    let burst = i128::try_from(bound.burst).unwrap_or(i128::MAX);

    let mut tree = Tree::over(moments.clone().map(|m| place(m.tick).1).collect());
    let mut greatest = None;
    let mut credits = Credits::new(credits);
    let (mut total, mut net, mut done) = (0_i128, 0_i128, None);
    for moment in moments {
        done = done.max(moment.done());
        while let Some(credit) = credits.receive(done) {
            total = total.saturating_sub(credit.units);
            net -= credit.permits;
        }
        credits.expire(moment.begin);
        // An interval that begins here has of what came back only what may overlap with it.
        let (p, x) = place(moment.tick);
        let beginning = Beginning {
            value: (n * p).saturating_sub(total.saturating_add(credits.units)),
            at: moment.tick,
            net: net + credits.permits,
        };
        tree.insert(x, beginning);
        greatest = greater(greatest, Some(beginning));
        let granted = moment.granted();
        total = total.saturating_add_unsigned(granted);
        net = net.saturating_add_unsigned(granted);
        let (q, y) = split(u128::from(moment.tick.as_nanos()) + period - 1);
        let above = tree.above(y).map(|found| Beginning {
            value: found.value + n,
            ..found
        });
        if let Some(worst) = greater(greatest, above) {
            if total.saturating_sub(n * q).saturating_add(worst.value) > burst {
                return Err(Excess {
                    from: worst.at,
                    to: moment.tick,
                    granted: net - worst.net,
                    allowed: bound.allows_between(worst.at, moment.tick),
                });
            }
        }
    }
    Ok(())
}
