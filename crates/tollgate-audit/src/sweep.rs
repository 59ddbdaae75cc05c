//! The check of bounds whose allowance adds up: the refill of an interval is the sum of the refills
//! of its parts. The check looks at each tick once and keeps a single interval, the one that
//! exceeds its refill by the most.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Excess;
use crate::bound::{Bound, Comes};
use crate::credits::{Credits, Worth};
use crate::moment::Moment;
use tollgate::Tick;

/// The state of the check at one tick.
pub(crate) struct Sweep<'h> {
    bound: &'h Bound,
    now: Tick,
    /// The most by which an interval that ends now exceeds its refill, in units. That interval
    /// begins at `since`, and `net` permits were taken in it.
    over: i128,
    since: Tick,
    net: i128,
    credits: Credits<'h>,
    /// Charges that are not yet known to precede all grants to come: when each ended, when it
    /// began, its tick and its permits. The one that ended first is on top.
    owed: BinaryHeap<Reverse<(Tick, Tick, Tick, u64)>>,
    /// The permits charged in `over`.
    charged: u128,
    /// When the last reset so far ended. It may have forgiven any charge that began earlier.
    forgiven: Option<Tick>,
    /// When the last grant so far ended.
    last_done: Option<Tick>,
}

impl<'h> Sweep<'h> {
    /// Checks all moments. The bound's allowance must add up.
    pub(crate) fn run(
        bound: &'h Bound,
        credits: &'h [Worth],
        moments: impl Iterator<Item = Moment<'h>>,
    ) -> Result<(), Excess> {
        let mut sweep = Self {
            bound,
            now: Tick::ZERO,
            over: 0,
            since: Tick::ZERO,
            net: 0,
            credits: Credits::new(credits),
            owed: BinaryHeap::new(),
            charged: 0,
            forgiven: None,
            last_done: None,
        };
        for moment in moments {
            sweep.pass_to(moment.tick, moment.done());
            sweep.receive();
            sweep.owe(moment.grants_begin);
            sweep.begin_anew(moment.begin);
            sweep.take(moment.granted());
            // Only grants are judged: a tick that only charged may exceed the bound.
            if moment.granted() > 0 {
                sweep.judge()?;
            }
            for charge in moment.charges() {
                let took = charge.took;
                let entry = (took.done, took.begun, charge.tick, charge.n);
                sweep.owed.push(Reverse(entry));
            }
        }
        Ok(())
    }

    /// Moves on to the next tick. The last grant at that tick ended at `done`.
    fn pass_to(&mut self, tick: Tick, done: Option<Tick>) {
        match self.bound.comes {
            // No interval extends into another window.
            Comes::Anew { windows } if windows.edges(self.now, tick) > 0 => self.over = i128::MIN,
            _ => {
                let made = self.bound.made(self.now, tick);
                self.over = self.over.saturating_sub_unsigned(made);
            }
        }
        if !self.bound.remembers(self.now, tick) {
            self.forgive();
        }
        self.now = tick;
        self.last_done = self.last_done.max(done);
    }

    /// Counts credits that may have come back before the last grant so far ended.
    fn receive(&mut self) {
        while let Some(credit) = self.credits.receive(self.last_done) {
            if credit.is_reset {
                self.forgiven = self.forgiven.max(Some(credit.took.done));
                self.forgive();
            }
            self.over = self.over.saturating_sub(credit.units);
            self.net -= credit.permits;
        }
    }

    /// Counts the charges that certainly precede all grants to come. The earliest of those grants
    /// began at `begun`.
    fn owe(&mut self, begun: Tick) {
        while let Some(&Reverse((done, charge_begun, tick, n))) = self.owed.peek() {
            if done >= begun {
                break;
            }
            self.owed.pop();
            let is_owed = Some(charge_begun) > self.forgiven
                && self.bound.remembers(tick, self.now)
                && self.since <= tick;
            if is_owed {
                self.take(u128::from(n));
                self.charged += u128::from(n);
            }
        }
    }

    /// Begins a new interval here, if that would exceed its refill by more than the current one
    /// does. The earliest taking from here on began at `begun`, so credits that ended earlier do
    /// not overlap the new interval.
    fn begin_anew(&mut self, begun: Tick) {
        self.credits.expire(begun);
        if self.over <= -self.credits.units {
            (self.over, self.since) = (-self.credits.units, self.now);
            self.net = -self.credits.permits;
            self.charged = 0;
        }
    }

    /// Removes the charges from the interval.
    fn forgive(&mut self) {
        let units = self.charged.saturating_mul(u128::from(self.bound.permit));
        self.over = self.over.saturating_sub_unsigned(units);
        self.net = self.net.saturating_sub_unsigned(self.charged);
        self.charged = 0;
    }

    /// Counts `n` permits. Saturation loses nothing: a sum that saturates upwards is above any
    /// burst, and stays there for longer than any clock runs.
    fn take(&mut self, n: u128) {
        let units = n.saturating_mul(u128::from(self.bound.permit));
        self.over = self.over.saturating_add_unsigned(units);
        self.net = self.net.saturating_add_unsigned(n);
    }

    fn judge(&self) -> Result<(), Excess> {
        if self.over <= i128::try_from(self.bound.burst).unwrap_or(i128::MAX) {
            return Ok(());
        }
        Err(Excess {
            from: self.since,
            to: self.now,
            granted: self.net,
            allowed: self.bound.allows_between(self.since, self.now),
        })
    }
}
