//! A key of a table, on which each verb of a limiter can be used.

use core::fmt;
use core::time::Duration;

use super::core::{Asked, Core};
use super::leave::{Ban, Reset};
use super::spot::Spot;
use crate::algorithm::Algorithm;
use crate::algorithm::Debt;
use crate::algorithm::Forecast;
use crate::algorithm::Gauge;
use crate::algorithm::GiveBack;
use crate::algorithm::Level;
use crate::clock::{Clock, Tick};
use crate::deed::{Deed, verbs_of_deeds};
use crate::outcome::{Charged, Denied, Granted};

/// A key of a [`Keyed`](super::Keyed) table: [`Keyed::key`](super::Keyed::key) makes it. It has the verbs of a
/// [`Limiter`](crate::Limiter), of this key alone, and those of all that waits: it is a
/// [`Gate`](crate::Gate).
///
/// It knows where the key may be and not the key, and looks for it with each verb: it may be kept while the key leaves the
/// table and comes again. It is copied, and a [`Reservation`](crate::Reservation) has a copy: `gate.key(name).reserve(1)?`
/// is good as long as the table.
///
/// ```
/// use tollgate::{Keyed, Quota, TokenBucket};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gate = Keyed::new(TokenBucket::new(Quota::per_hour(5))?, 1000)?;
/// let alice = gate.key("alice");
/// let granted = alice.try_acquire_n(3)?;
/// assert_eq!(alice.available(), 2);
/// assert_eq!(alice.undo(granted), 3);
/// assert_eq!(alice.charge(7).debt(), 2);
/// # Ok(())
/// # }
/// ```
pub struct Key<'a, A, C> {
    core: &'a Core<A>,
    clock: &'a C,
    spot: Spot,
    plan: u8,
}

/// A key of a table at one tick: [`Key::at`] makes it. Its verbs are those of a limiter's [`At`](crate::At).
pub struct KeyAt<'a, A, C> {
    key: Key<'a, A, C>,
    now: Tick,
}

impl<'a, A, C> Key<'a, A, C> {
    #[inline(always)]
    pub(super) const fn new(core: &'a Core<A>, clock: &'a C, spot: Spot, plan: u8) -> Self {
        Self {
            core,
            clock,
            spot,
            plan,
        }
    }

    /// A view on which every verb runs at this tick, without reading a clock.
    #[inline(always)]
    pub const fn at(&self, now: Tick) -> KeyAt<'a, A, C> {
        KeyAt { key: *self, now }
    }

    /// The table's clock.
    #[inline]
    pub const fn clock(&self) -> &'a C {
        self.clock
    }
}

impl<A: Algorithm, C> Key<'_, A, C> {
    /// Takes one permit at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if it was not there.
    #[inline(always)]
    pub fn try_acquire_at(&self, now: Tick) -> Result<Granted, Denied> {
        self.at(now).try_acquire()
    }

    /// Takes `n` permits, or none, at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they were not all there.
    #[inline(always)]
    pub fn try_acquire_n_at(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        self.at(now).try_acquire_n(n)
    }

    /// Makes the key fresh again, in its place. It allows one burst more, and ends a ban.
    #[inline]
    pub fn reset(&self) {
        self.at(Tick::ZERO).reset();
    }

    /// Takes the key out of the table; whether it was there. It allows one burst more, and ends a ban.
    pub fn forget(&self) -> bool {
        self.core.forget(&self.spot)
    }
}

impl<A: Algorithm, C: Clock> Key<'_, A, C> {
    /// What the table's clock says.
    #[inline]
    pub fn now(&self) -> Tick {
        self.clock.now()
    }

    /// Takes one permit.
    ///
    /// # Errors
    ///
    /// [`Denied`] if it was not there: then nothing was taken.
    #[inline(always)]
    pub fn try_acquire(&self) -> Result<Granted, Denied> {
        self.at(self.now()).try_acquire()
    }

    /// Takes `n` permits, or none.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they were not all there: then nothing was taken.
    #[inline(always)]
    pub fn try_acquire_n(&self, n: u64) -> Result<Granted, Denied> {
        self.at(self.now()).try_acquire_n(n)
    }

    /// Takes as many of `n` permits as there are, which may be none.
    #[inline]
    #[must_use = "it says how many were there"]
    pub fn take_up_to(&self, n: u64) -> Granted {
        self.at(self.now()).take_up_to(n)
    }

    /// How many permits there are. Takes none, and puts no key into the table.
    #[inline]
    pub fn available(&self) -> u64 {
        self.at(self.now()).available()
    }

    /// [`Keyed::ban`](super::Keyed::ban) of this key.
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] if there is no place where the ban could be kept; [`Denied::NoSuchPlan`].
    pub fn ban(&self, until: Tick) -> Result<(), Denied> {
        self.at(self.now()).ban(until)
    }
}

impl<A: Forecast, C: Clock> Key<'_, A, C> {
    /// How long until `n` permits are there, if nobody takes any; `None` if never. Takes none.
    #[inline]
    pub fn time_until(&self, n: u64) -> Option<Duration> {
        self.at(self.now()).time_until(n)
    }
}

impl<A: Gauge, C: Clock> Key<'_, A, C> {
    /// How many permits are counted: what is in the bucket, or in the window. Takes none.
    #[inline]
    pub fn level(&self) -> Level {
        self.at(self.now()).level()
    }
}

impl<A: GiveBack, C: Clock> Key<'_, A, C> {
    /// Gives back exactly this grant, which must be of this key, or as much of it as can be given without admitting
    /// more than was promised. Nothing, if the key was granted it by another plan, or before a quota of the table was
    /// changed, or is banned.
    #[inline]
    pub fn undo(&self, granted: Granted) -> u64 {
        self.at(self.now()).undo(granted)
    }

    /// Gives back `n` permits, never above a full bucket. Returns how many came back, a part of one counted whole.
    /// None, if the key is banned.
    #[inline]
    pub fn refund(&self, n: u64) -> u64 {
        self.at(self.now()).refund(n)
    }
}

impl<A: Debt, C: Clock> Key<'_, A, C> {
    /// Takes `n` permits whether they are there or not, into debt.
    #[inline]
    pub fn charge(&self, n: u64) -> Charged {
        self.at(self.now()).charge(n)
    }
}

verbs_of_deeds!(KeyAt);

impl<A: Algorithm, C> KeyAt<'_, A, C> {
    /// The tick of this view.
    #[inline]
    pub const fn now(&self) -> Tick {
        self.now
    }

    /// [`Key::reset`].
    #[inline]
    pub fn reset(&self) {
        // Who is not there is fresh.
        if self.key.core.tracks(&self.key.spot) {
            let Ok(()) = self.update(Reset);
        }
    }

    /// [`Key::ban`] at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] if there is no place where the ban could be kept.
    pub fn ban(&self, until: Tick) -> Result<(), Denied> {
        match until <= self.now {
            true => Ok(()),
            false => self.update(Ban { until }),
        }
    }

    #[inline(always)]
    const fn asked(&self) -> Asked {
        Asked {
            spot: self.key.spot,
            plan: self.key.plan,
            now: self.now,
        }
    }

    #[inline(always)]
    fn update<D: Deed<A>>(&self, deed: D) -> Result<D::Answer, D::Refusal> {
        self.key.core.update(self.asked(), deed)
    }

    #[inline(always)]
    fn try_once<D: Deed<A>>(&self, deed: D) -> Option<D::Answer> {
        self.key.core.try_once(self.asked(), deed)
    }
}

impl<A, C> Clone for Key<'_, A, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A, C> Copy for Key<'_, A, C> {}

impl<A, C> Clone for KeyAt<'_, A, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A, C> Copy for KeyAt<'_, A, C> {}

impl<A, C> fmt::Debug for Key<'_, A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

impl<A, C> fmt::Debug for KeyAt<'_, A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyAt")
            .field("key", &self.key)
            .field("now", &self.now)
            .finish()
    }
}
