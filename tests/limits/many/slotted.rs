//! The window of slots: what was taken in each slot, all of it remembered.

use std::collections::BTreeMap;
use std::time::Duration;

use tollgate::{Charged, Denied, Granted, Level, ManualClock, SlottedWindow, Tick};

use crate::support::model::{Answers, Fraction, Model};
use crate::support::reference::FIFTY_YEARS;
use crate::support::subject::Subject;

#[derive(Debug, Clone)]
pub(crate) struct Slotted {
    limit: u64,
    most: u64,
    slots: u64,
    /// How long a slot is.
    slot: u64,
    /// How many slots can be told.
    told: u128,
    /// Permits by slot. The last of them is where the word is.
    taken: BTreeMap<u128, u64>,
}

/// How wide a count is and how many slots can be told: the widest that leaves the slots of 50 years, of
/// which the first and the last are cut, and those of two windows.
fn budget(slot: u64, slots: u64) -> (u32, u128) {
    let needed = u128::from(FIFTY_YEARS / slot) + 2;
    let told = |bits: u32| (1_u128 << (63 - bits)) - 1 - 2 * u128::from(slots);
    let fits =
        |bits: &u32| (1_u128 << (63 - bits)) > 2 * u128::from(slots) && told(*bits) >= needed;
    let bits = (1..=62).rev().find(fits).expect("one bit always fits");
    (bits, told(bits))
}

impl Slotted {
    pub(crate) fn new(n: u64, slot: u64, slots: u64) -> Self {
        let (bits, told) = budget(slot, slots);
        Self {
            limit: n,
            most: (1 << bits) - 1,
            slots,
            slot,
            told,
            taken: BTreeMap::new(),
        }
    }

    /// The most permits that a window of such slots can have.
    pub(crate) fn largest(slot: u64, slots: u64) -> u64 {
        (1 << budget(slot, slots).0) - 1
    }

    pub(crate) fn largest_debt(&self) -> u64 {
        self.most - self.limit
    }

    /// The slot in which somebody is counted: his own, or a later one that somebody else began.
    fn slot_at(&self, time: u128) -> u128 {
        let own = time / u128::from(self.slot);
        self.taken
            .last_key_value()
            .map_or(own, |(last, _)| own.max(*last))
    }

    fn counted(&self, time: u128) -> u64 {
        let slot = self.slot_at(time);
        let oldest = (slot + 1).saturating_sub(self.slots.into());
        self.taken.range(oldest..=slot).map(|(_, n)| n).sum()
    }
}

impl Model for Slotted {
    type Mark = u128;

    fn limit(&self) -> u64 {
        self.limit
    }

    fn period(&self) -> u64 {
        self.slot * self.slots
    }

    fn horizon(&self) -> u64 {
        let last = self.told * u128::from(self.slot) - 1;
        u64::try_from(last).map_or(u64::MAX - 1, |last| last.min(u64::MAX - 1))
    }

    fn weight(&self, time: u128) -> Fraction {
        Fraction::whole(self.counted(time))
    }

    fn counted_at(&self, now: u64) -> u64 {
        let start = self.slot_at(self.clock(now)) * u128::from(self.slot);
        now.max(u64::try_from(start).expect("it was a tick"))
    }

    fn take(&mut self, now: u64, n: u64) {
        if n > 0 {
            let slot = self.slot_at(self.clock(now));
            *self.taken.entry(slot).or_default() += n;
        }
    }

    fn room(&self, now: u64) -> u64 {
        self.most - self.counted(self.clock(now))
    }

    fn mark(&self, now: u64) -> u128 {
        self.slot_at(self.clock(now))
    }

    fn undo(&mut self, now: u64, n: u64, mark: u128) -> Option<u64> {
        let is_over = self.slot_at(self.clock(now)) != mark;
        Some(if is_over { 0 } else { self.refund(now, n) })
    }

    fn refund(&mut self, now: u64, n: u64) -> u64 {
        let slot = self.slot_at(self.clock(now));
        let Some(count) = self.taken.get_mut(&slot) else {
            return 0;
        };
        let back = n.min(*count);
        *count -= back;
        back
    }

    fn is_idle(&self, _now: u64) -> bool {
        unreachable!("it does not say")
    }

    fn reset(&mut self) {
        self.taken.clear();
    }

    fn edge(&self, now: u64) -> u64 {
        let next = u128::from(now / self.slot + 1) * u128::from(self.slot);
        u64::try_from(next).unwrap_or(u64::MAX)
    }
}

/// The verb by its clock or at this tick.
macro_rules! by {
    ($gate:ident, $door:ident, $now:ident, $verb:ident / $verb_at:ident($($argument:expr),*)) => {
        match $door {
            0 => $gate.$verb($($argument),*),
            _ => $gate.$verb_at($($argument,)* $now),
        }
    };
}
pub(crate) use by;

impl Subject for SlottedWindow<ManualClock> {
    const LACKS: &'static [&'static str] = &["is_idle", "reset"];

    fn set(&self, now: Tick) {
        self.clock().set(now);
    }

    fn acquire(&self, door: u64, n: u64, now: Tick) -> Result<Granted, Denied> {
        match n {
            1 => by!(self, door, now, try_acquire / try_acquire_at()),
            _ => by!(self, door, now, try_acquire_n / try_acquire_n_at(n)),
        }
    }

    fn take_up_to(&self, door: u64, n: u64, now: Tick) -> Granted {
        by!(self, door, now, take_up_to / take_up_to_at(n))
    }

    fn available(&self, door: u64, now: Tick) -> u64 {
        by!(self, door, now, available / available_at())
    }

    fn time_until(&self, door: u64, n: u64, now: Tick) -> Option<Duration> {
        by!(self, door, now, time_until / time_until_at(n))
    }

    fn undo(&self, door: u64, granted: Granted, now: Tick) -> u64 {
        by!(self, door, now, undo / undo_at(granted))
    }

    fn refund(&self, door: u64, n: u64, now: Tick) -> u64 {
        by!(self, door, now, refund / refund_at(n))
    }

    fn charge(&self, door: u64, n: u64, now: Tick) -> Charged {
        by!(self, door, now, charge / charge_at(n))
    }

    fn level(&self, door: u64, now: Tick) -> Level {
        Level::of_permits(by!(self, door, now, counted / counted_at()))
    }
}
