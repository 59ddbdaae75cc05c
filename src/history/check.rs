use core::cmp::Reverse;
use core::iter::Peekable;
use core::slice;
use core::time::Duration;
use std::collections::BinaryHeap;

use super::log::{Credit, Log, Span, Taking};
use super::{Bound, Excess, Summary};
use crate::clock::Tick;

/// What all threads saw. Collect it from [`Log`]s.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// By tick.
    takings: Vec<Taking>,
    /// By their beginning.
    credits: Vec<Credit>,
}

impl FromIterator<Log> for History {
    fn from_iter<I: IntoIterator<Item = Log>>(logs: I) -> Self {
        let mut history = Self::default();
        for log in logs {
            history.takings.extend(log.takings);
            history.credits.extend(log.credits);
        }
        // Stable, since that finds the sorted runs that logs mostly are.
        history.takings.sort_by_key(|taking| taking.tick);
        history.credits.sort_by_key(|credit| credit.took.begun);
        history
    }
}

impl History {
    /// Checks the bound over every interval.
    ///
    /// # Errors
    ///
    /// [`Excess`]: the first interval in which more was granted than may be.
    pub fn check(&self, bound: &Bound) -> Result<Summary, Excess> {
        let mut summary = Summary::default();
        for credit in &self.credits {
            let n = u128::from(credit.n);
            *(if credit.is_reset {
                &mut summary.resets
            } else {
                &mut summary.gave_back
            }) += n;
        }
        let grants_begin = self.begin(|taking| !taking.is_charge);
        let all_begin = self.begin(|_| true);
        let credits = self.worth(bound);
        let mut sweep = Sweep::new(bound, &credits);
        let mut start = 0;
        for group in self.takings.chunk_by(|a, b| a.tick == b.tick) {
            let (Some(first), Some(&grants), Some(&all)) =
                (group.first(), grants_begin.get(start), all_begin.get(start))
            else {
                continue;
            };
            start += group.len();
            summary.ticks += 1;
            let granting = || group.iter().filter(|taking| !taking.is_charge);
            let granted = granting().map(|taking| u128::from(taking.n)).sum();
            let done = granting().map(|taking| taking.took.done).max();
            sweep.pass_to(first.tick, done);
            sweep.receive();
            sweep.owe(grants);
            sweep.begin_anew(all);
            sweep.take(granted);
            // Only grants are judged: a tick that only charged may exceed the bound.
            if granted > 0 {
                sweep.judge()?;
            }
            for charge in group.iter().filter(|taking| taking.is_charge) {
                summary.charged += u128::from(charge.n);
                let took = charge.took;
                sweep
                    .owed
                    .push(Reverse((took.done, took.begun, charge.tick, charge.n)));
            }
            summary.granted += granted;
        }
        Ok(summary)
    }

    /// What each credit is worth, by its beginning.
    fn worth(&self, bound: &Bound) -> Vec<Worth> {
        // Of the takings that began by then, the latest tick; of those that ended after, the
        // earliest: by those the threads' ticks overlap at a reset.
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
                (Some((_, latest)), Some((_, earliest))) => latest.saturating_since(*earliest),
                _ => Duration::ZERO,
            }
        };
        let credits = self.credits.iter().map(|credit| {
            let (units, permits) = if credit.is_reset {
                let made = u128::from(bound.rate) * overlap(credit.took).as_nanos();
                (bound.burst.saturating_add(made), 0)
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

    /// For each taking, when the first of such takings from it on began.
    fn begin(&self, such: impl Fn(&Taking) -> bool) -> Vec<Tick> {
        let mut first = Tick::MAX;
        let from_last = self.takings.iter().rev().map(|taking| {
            if such(taking) {
                first = first.min(taking.took.begun);
            }
            first
        });
        let mut begun: Vec<_> = from_last.collect();
        begun.reverse();
        begun
    }
}

/// What came back, in units, and in permits if it named any.
struct Worth {
    units: i128,
    permits: i128,
    is_reset: bool,
    took: Span,
}

/// The state of the check at one tick.
struct Sweep<'h> {
    bound: &'h Bound,
    now: Tick,
    /// The most by which an interval that ends now exceeds the rate, where that interval begins,
    /// and what was taken in it, net, in permits.
    over: i128,
    since: Tick,
    net: i128,
    /// What came back, by its beginning, and not before now.
    coming: Peekable<slice::Iter<'h, Worth>>,
    /// What came back and may still overlap with an interval that begins now, by its end.
    back: BinaryHeap<Reverse<(Tick, i128, i128)>>,
    back_units: i128,
    back_permits: i128,
    /// Charges that may not have been made before the next grant, by their end: with their
    /// beginning, tick and permits.
    owed: BinaryHeap<Reverse<(Tick, Tick, Tick, u64)>>,
    /// The charges in `over`, in permits.
    charged: u128,
    /// When the last reset so far ended: a charge that began earlier may have been forgiven.
    forgiven: Option<Tick>,
    /// When the last of the grants so far ended.
    last_done: Option<Tick>,
}

impl<'h> Sweep<'h> {
    fn new(bound: &'h Bound, credits: &'h [Worth]) -> Self {
        Self {
            bound,
            now: Tick::ZERO,
            over: 0,
            since: Tick::ZERO,
            net: 0,
            coming: credits.iter().peekable(),
            back: BinaryHeap::new(),
            back_units: 0,
            back_permits: 0,
            owed: BinaryHeap::new(),
            charged: 0,
            forgiven: None,
            last_done: None,
        }
    }

    /// Moves on to the next tick. `done` is when the last of the grants at it ended.
    fn pass_to(&mut self, tick: Tick, done: Option<Tick>) {
        let passed = tick.as_nanos().saturating_sub(self.now.as_nanos());
        let made = u128::from(passed) * u128::from(self.bound.rate);
        self.over = self.over.saturating_sub_unsigned(made);
        self.now = tick;
        self.last_done = self.last_done.max(done);
    }

    /// Begins a new interval here if that gives more. `begun` is when the first of all takings
    /// from here on began: what came back before that does not overlap with it.
    fn begin_anew(&mut self, begun: Tick) {
        while let Some(&Reverse((done, units, permits))) = self.back.peek() {
            if done >= begun {
                break;
            }
            self.back.pop();
            self.back_units = self.back_units.saturating_sub(units);
            self.back_permits -= permits;
        }
        if self.over <= -self.back_units {
            (self.over, self.since) = (-self.back_units, self.now);
            self.net = -self.back_permits;
            self.charged = 0;
        }
    }

    /// Counts the charges that were certainly made before all grants to come, the first of which
    /// began at `begun`.
    fn owe(&mut self, begun: Tick) {
        while let Some(&Reverse((done, charge_begun, tick, n))) = self.owed.peek() {
            if done >= begun {
                break;
            }
            self.owed.pop();
            if self.since <= tick && Some(charge_begun) > self.forgiven {
                self.take(u128::from(n));
                self.charged += u128::from(n);
            }
        }
    }

    /// Counts what may have come back before the last grant so far.
    fn receive(&mut self) {
        while let Some(credit) = self
            .coming
            .next_if(|c| Some(c.took.begun) <= self.last_done)
        {
            let (units, permits) = (credit.units, credit.permits);
            if credit.is_reset {
                self.forgiven = self.forgiven.max(Some(credit.took.done));
                self.forgive();
            }
            self.over = self.over.saturating_sub(units);
            self.net -= permits;
            self.back_units = self.back_units.saturating_add(units);
            self.back_permits += permits;
            self.back.push(Reverse((credit.took.done, units, permits)));
        }
    }

    /// Takes the charges out again.
    fn forgive(&mut self) {
        let units = self.charged.saturating_mul(u128::from(self.bound.permit));
        self.over = self.over.saturating_sub_unsigned(units);
        self.net = self.net.saturating_sub_unsigned(self.charged);
        self.charged = 0;
    }

    /// Saturation is no loss: what saturates upwards is above any burst, and stays there for
    /// longer than any clock runs.
    fn take(&mut self, n: u128) {
        let units = n.saturating_mul(u128::from(self.bound.permit));
        self.over = self.over.saturating_add_unsigned(units);
        self.net = self.net.saturating_add_unsigned(n);
    }

    fn judge(&self) -> Result<(), Excess> {
        if self.over <= i128::try_from(self.bound.burst).unwrap_or(i128::MAX) {
            return Ok(());
        }
        let length = self.now.saturating_since(self.since);
        Err(Excess {
            from: self.since,
            to: self.now,
            granted: self.net,
            allowed: self.bound.allows(length),
        })
    }
}
