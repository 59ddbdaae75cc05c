use crate::bound::{Bound, Comes};
use crate::credits::Worth;
use crate::log::{Credit, Log, Span, Taking};
use crate::moment::Moment;
use crate::sweep::Sweep;
use crate::within::Within;
use crate::{Excess, Summary, steps};
use tollgate::Tick;

/// The collected [`Log`]s of all threads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audit {
    /// Sorted by tick.
    takings: Vec<Taking>,
    /// Sorted by when they began.
    credits: Vec<Credit>,
}

impl FromIterator<Log> for Audit {
    fn from_iter<I: IntoIterator<Item = Log>>(logs: I) -> Self {
        let mut history = Self::default();
        for log in logs {
            history.takings.extend(log.takings);
            history.credits.extend(log.credits);
        }
        // A stable sort, since it is fast on the sorted runs that logs mostly consist of.
        history.takings.sort_by_key(|taking| taking.tick);
        history.credits.sort_by_key(|credit| credit.took.begun);
        history
    }
}

impl Audit {
    /// Checks the bound over every interval: first on the grants alone, which is exact, and then
    /// together with the charges that preceded them.
    ///
    /// # Errors
    ///
    /// [`Excess`] describes the first interval that the check finds in which more was granted than
    /// the bound allows.
    pub fn check(&self, bound: &Bound) -> Result<Summary, Excess> {
        let grants = self.takings.iter().filter(|taking| !taking.is_charge);
        let grants: Vec<_> = grants.copied().collect();
        let credits = self.worth(bound);
        let (begin, moments) = (first_begun(&grants, |_| true), by_tick(&grants));
        let moments = moments.map(|(start, takings)| Moment::of(takings, start, &begin, &begin));
        match bound.comes {
            Comes::InSteps { .. } => steps::run(bound, &credits, moments)?,
            Comes::Within { .. } => Within::run(bound, &credits, moments)?,
            _ => Sweep::run(bound, &credits, moments)?,
        }
        if grants.len() < self.takings.len() {
            self.check_charges(bound)?;
        }
        Ok(self.summary())
    }

    fn check_charges(&self, bound: &Bound) -> Result<(), Excess> {
        let Some(with_charges) = bound.with_charges() else {
            return Ok(());
        };
        let credits = self.worth(&with_charges);
        let grants_begin = first_begun(&self.takings, |taking| !taking.is_charge);
        let begin = first_begun(&self.takings, |_| true);
        let moments = by_tick(&self.takings)
            .map(|(start, takings)| Moment::of(takings, start, &grants_begin, &begin));
        let checked = match with_charges.comes {
            Comes::Within { .. } => Within::run(&with_charges, &credits, moments),
            _ => Sweep::run(&with_charges, &credits, moments),
        };
        checked.map_err(|excess| Excess {
            allowed: bound.allows_between(excess.from, excess.to),
            ..excess
        })
    }

    fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        for credit in &self.credits {
            let sum = match credit.is_reset {
                true => &mut summary.resets,
                false => &mut summary.gave_back,
            };
            *sum += u128::from(credit.n);
        }
        for taking in &self.takings {
            let sum = match taking.is_charge {
                true => &mut summary.charged,
                false => &mut summary.granted,
            };
            *sum += u128::from(taking.n);
        }
        summary.ticks = by_tick(&self.takings).count();
        summary
    }

    /// Returns the worth of each credit, in the order in which the credits began.
    fn worth(&self, bound: &Bound) -> Vec<Worth> {
        // For any moment, `by_begun` gives the latest tick of the takings that had begun, and
        // `by_done` the earliest tick of those that ended later. At a reset, the ticks of different
        // threads overlap between these two.
        let mut by_begun: Vec<_> = self
            .takings
            .iter()
            .map(|t| (t.took.begun, t.tick))
            .collect();
        by_begun.sort();
        let mut latest = Tick::ZERO;
        for (_, tick) in &mut by_begun {
            latest = latest.max(*tick);
            *tick = latest;
        }
        let mut by_done: Vec<_> = self.takings.iter().map(|t| (t.took.done, t.tick)).collect();
        by_done.sort();
        let mut earliest = Tick::MAX;
        for (_, tick) in by_done.iter_mut().rev() {
            earliest = earliest.min(*tick);
            *tick = earliest;
        }
        let overlap = |took: Span| {
            let before = by_begun.partition_point(|(begun, _)| *begun <= took.done);
            let before = before.checked_sub(1).and_then(|last| by_begun.get(last));
            let after = by_done.partition_point(|(done, _)| *done < took.begun);
            match (before, by_done.get(after)) {
                (Some((_, latest)), Some((_, earliest))) => (*earliest, *latest),
                _ => (Tick::ZERO, Tick::ZERO),
            }
        };
        let credits = self.credits.iter().map(|credit| {
            let (units, permits) = if credit.is_reset {
                let (earliest, latest) = overlap(credit.took);
                (bound.worth_of_reset(earliest, latest), 0)
            } else {
                let n = u128::from(credit.n);
                (n.saturating_mul(u128::from(bound.permit)), n)
            };
            Worth {
                units: i128::try_from(units).unwrap_or(i128::MAX),
                permits: i128::try_from(permits).unwrap_or(i128::MAX),
                is_reset: credit.is_reset,
                took: credit.took,
            }
        });
        credits.collect()
    }
}

/// Returns, for each taking, the earliest beginning among it and the takings after it. Only those
/// that `such` selects count.
fn first_begun(takings: &[Taking], such: impl Fn(&Taking) -> bool) -> Vec<Tick> {
    let mut first = Tick::MAX;
    let from_last = takings.iter().rev().map(|taking| {
        if such(taking) {
            first = first.min(taking.took.begun);
        }
        first
    });
    let mut begun: Vec<_> = from_last.collect();
    begun.reverse();
    begun
}

/// Groups the takings by tick, each group with the index of its first taking.
fn by_tick(takings: &[Taking]) -> ByTick<'_> {
    ByTick {
        rest: takings,
        first: 0,
    }
}

#[derive(Clone)]
struct ByTick<'h> {
    rest: &'h [Taking],
    first: usize,
}

impl<'h> Iterator for ByTick<'h> {
    type Item = (usize, &'h [Taking]);

    fn next(&mut self) -> Option<Self::Item> {
        let tick = self.rest.first()?.tick;
        let others = self.rest.iter().position(|taking| taking.tick != tick);
        let (group, rest) = self.rest.split_at(others.unwrap_or(self.rest.len()));
        let first = self.first;
        self.first += group.len();
        self.rest = rest;
        Some((first, group))
    }
}
