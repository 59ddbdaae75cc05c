//! The check of bounds that allow `n` more permits each period, wherever the periods begin.
//!
//! The allowance of an interval is not the sum of the allowances of its parts, since
//! `ceil((b - a) / period)` depends on the positions of both `a` and `b`. So the check keeps all
//! beginnings `a`, by their position in the period.
//!
//! Let `a = p * period + x` and `b + period - 1 = q * period + y`, with `x` and `y` less than the
//! period. Then `ceil((b - a) / period)` is `q - p`, or one less if `x > y`. The permits taken from
//! `a` to `b` are `total(b) - before(a)`. So the bound holds at `b` if and only if
//!
//! ```text
//! total(b) - n * q + max over all a of (n * p - before(a), and n more where x > y)  <=  burst
//! ```
//!
//! The check takes two maxima: of `n * p - before(a)` over all `a`, and of `n * p - before(a) + n`
//! over those `a` with `x > y`. A [`Tree`] finds the second. The first may include beginnings with
//! `x > y`, since their value in the second is greater.

use crate::Excess;
use crate::bound::{Bound, Comes};
use crate::credits::{Credits, Worth};
use crate::moment::Moment;
use tollgate::Tick;

/// A tick at which an interval may begin.
#[derive(Clone, Copy)]
struct Beginning {
    /// `n * p - before(a)`: the part of the excess that depends on the beginning.
    value: i128,
    at: Tick,
    /// The permits taken before it, less those that came back.
    net: i128,
}

/// Returns the beginning with the greater value, or the first if they are equal.
fn greater(one: Option<Beginning>, other: Option<Beginning>) -> Option<Beginning> {
    match (one, other) {
        (Some(one), Some(other)) if other.value > one.value => Some(other),
        (Some(one), _) => Some(one),
        (None, other) => other,
    }
}

/// A Fenwick tree that finds the greatest beginning above a position in the period.
struct Tree {
    /// All positions, sorted.
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

    /// Counts the positions above `not_above`. The rank of a position in the tree is one more than
    /// this count, so the last position has rank 1.
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

    /// Returns the greatest beginning at a position above `place`.
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

/// Checks every tick at which permits were granted.
pub(crate) fn run<'h>(
    bound: &Bound,
    credits: &'h [Worth],
    moments: impl Iterator<Item = Moment<'h>> + Clone,
) -> Result<(), Excess> {
    let Comes::InSteps { units, period } = bound.comes else {
        return Ok(());
    };
    // No sum comes near the limits of 128 bits: a quota has at most 10 permits a nanosecond.
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
        // For an interval that begins here, only credits that may overlap it count.
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
