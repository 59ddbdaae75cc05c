//! The check of bounds that limit only intervals up to some length: at most `n` permits within any
//! `span` adjacent ticks or slots of the clock.
//!
//! The permits taken from `a` to `b` are `total(b) - before(a)`, so the worst beginning `a` within
//! reach of `b` is the one with the least `before(a)`. The beginnings are kept in a queue. The
//! front one leaves when it is out of reach. Beginnings at the back leave when a new one has a
//! smaller `before`, because the new one is worse and stays in reach for longer. So the worst is
//! always in front, and each beginning enters and leaves once.

use core::cmp::Reverse;
use core::mem;
use std::collections::{BinaryHeap, VecDeque};

use crate::Excess;
use crate::bound::{Bound, Comes};
use crate::credits::{Credits, Worth};
use crate::moment::Moment;
use crate::windows::Windows;
use tollgate::Tick;

/// A tick at which an interval may begin.
struct Beginning {
    at: Tick,
    place: u128,
    /// The units taken before it, less the credits that ended before it. A unit is a permit here.
    /// `net` is the same without resets, which are worth units but no permits.
    before: i128,
    net: i128,
}

/// The state of the check at one tick. No sum comes near the limits of 128 bits: each event adds at
/// most 64 bits.
pub(crate) struct Within<'h> {
    bound: &'h Bound,
    places: Windows,
    span: u128,
    /// Sorted by tick, and so that `before` never decreases from front to back.
    beginnings: VecDeque<Beginning>,
    /// The units taken so far, less those that came back. `net` is the same in permits.
    total: i128,
    net: i128,
    credits: Credits<'h>,
    /// Charges that have perhaps not ended when a later grant begins: the end, beginning, tick and
    /// permits of each. The one that ended first is on top.
    coming: BinaryHeap<Reverse<(Tick, Tick, Tick, u64)>>,
    /// The tick and permits of charges counted in `total`. Some may be out of reach by now.
    owed: Vec<(Tick, i128)>,
    /// When the last reset so far ended. It may have forgiven any charge that began earlier.
    forgiven: Option<Tick>,
    /// When the last grant so far ended.
    last_done: Option<Tick>,
}

impl<'h> Within<'h> {
    /// Checks all moments. Does nothing if the bound is of another kind.
    pub(crate) fn run(
        bound: &'h Bound,
        credits: &'h [Worth],
        moments: impl Iterator<Item = Moment<'h>>,
    ) -> Result<(), Excess> {
        let Comes::Within { places, span } = bound.comes else {
            return Ok(());
        };
        let mut within = Self {
            bound,
            places,
            span: span.get().into(),
            beginnings: VecDeque::new(),
            total: 0,
            net: 0,
            credits: Credits::new(credits),
            coming: BinaryHeap::new(),
            owed: Vec::new(),
            forgiven: None,
            last_done: None,
        };
        for moment in moments {
            within.look_at(&moment)?;
        }
        Ok(())
    }

    fn look_at(&mut self, moment: &Moment<'h>) -> Result<(), Excess> {
        let place = self.places.index(moment.tick);
        let is_far = |first: &Beginning| place - first.place >= self.span;
        while self.beginnings.front().is_some_and(is_far) {
            self.beginnings.pop_front();
        }
        self.last_done = self.last_done.max(moment.done());
        self.receive();
        self.owe(moment.grants_begin);
        // For an interval that begins here, only credits that may overlap it count.
        self.credits.expire(moment.begin);
        self.begin(Beginning {
            at: moment.tick,
            place,
            before: self.total + self.credits.units,
            net: self.net + self.credits.permits,
        });
        let granted = moment.granted();
        self.total += granted as i128;
        self.net += granted as i128;
        // Only grants are judged: a tick that only charged may exceed the bound.
        if granted > 0 {
            self.judge(moment.tick)?;
        }
        for charge in moment.charges() {
            let took = charge.took;
            let entry = (took.done, took.begun, charge.tick, charge.n);
            self.coming.push(Reverse(entry));
        }
        Ok(())
    }

    /// Counts credits that may have come back before the last grant so far ended.
    fn receive(&mut self) {
        while let Some(credit) = self.credits.receive(self.last_done) {
            if credit.is_reset {
                self.forgiven = self.forgiven.max(Some(credit.took.done));
                self.forgive();
            }
            self.total -= credit.units;
            self.net -= credit.permits;
        }
    }

    /// Counts the charges that certainly precede all grants to come. The earliest of those grants
    /// began at `begun`.
    fn owe(&mut self, begun: Tick) {
        while let Some(&Reverse((done, charge_begun, tick, n))) = self.coming.peek() {
            if done >= begun {
                break;
            }
            self.coming.pop();
            if Some(charge_begun) > self.forgiven && self.is_near(tick) {
                self.charge(tick, n.into());
                self.owed.push((tick, n.into()));
            }
        }
    }

    /// Returns whether any interval that the check still keeps contains this tick.
    fn is_near(&self, tick: Tick) -> bool {
        self.beginnings
            .front()
            .is_some_and(|first| first.at <= tick)
    }

    /// Counts a charge at this tick in the intervals that contain it.
    fn charge(&mut self, tick: Tick, n: i128) {
        self.total += n;
        self.net += n;
        let later = self.beginnings.iter_mut().rev();
        for beginning in later.take_while(|beginning| beginning.at > tick) {
            beginning.before += n;
            beginning.net += n;
        }
    }

    /// Removes the charges from the totals.
    fn forgive(&mut self) {
        for (tick, n) in mem::take(&mut self.owed) {
            if self.is_near(tick) {
                self.charge(tick, -n);
            }
        }
        // `before` has become smaller for beginnings after a removed charge.
        for beginning in mem::take(&mut self.beginnings) {
            self.begin(beginning);
        }
    }

    fn begin(&mut self, beginning: Beginning) {
        let is_better = |last: &Beginning| last.before > beginning.before;
        while self.beginnings.back().is_some_and(is_better) {
            self.beginnings.pop_back();
        }
        self.beginnings.push_back(beginning);
    }

    fn judge(&self, now: Tick) -> Result<(), Excess> {
        let Some(worst) = self.beginnings.front() else {
            return Ok(());
        };
        let burst = i128::try_from(self.bound.burst).unwrap_or(i128::MAX);
        if self.total - worst.before <= burst {
            return Ok(());
        }
        Err(Excess {
            from: worst.at,
            to: now,
            granted: self.net - worst.net,
            allowed: self.bound.allows_between(worst.at, now),
        })
    }
}
