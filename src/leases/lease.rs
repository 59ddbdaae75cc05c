use core::fmt;
use core::ops::Deref;

use super::Leases;
use crate::algorithm::Lend;
use crate::clock::{Clock, Tick};
use crate::outcome::Denied;
use crate::sync::inject_fault;
use lender::Sealed as _;

/// Permits that one thread holds: while there are some, a grant is a subtraction.
///
/// [`Leases::lease`] makes one. An empty lease reads the clock and draws as many permits as its
/// [`size`](Self::size) from the limiter, or denies the request. A lease that is dropped gives back
/// the permits that it holds.
///
/// ```
/// use tollgate::{Leases, ManualClock, Quota, TokenBucket};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let bucket = TokenBucket::new(Quota::per_second(100))?;
/// let limiter = Leases::with_clock(bucket, 50, ManualClock::new())?;
/// let mut lease = limiter.lease(40);
/// lease.try_acquire()?;
/// assert_eq!((lease.size(), lease.held()), (40, 39));
/// assert_eq!(limiter.limiter().available(), 10);
/// assert_eq!(limiter.lease(40).size(), 10); // that is all that is left of the total
/// drop(lease);
/// assert_eq!(limiter.limiter().available(), 49);
/// # Ok(())
/// # }
/// ```
#[must_use = "a lease that is dropped gives back what it holds"]
pub struct Lease<G: Deref<Target: Lender>> {
    limiter: G,
    held: u64,
    size: u64,
}

impl<G: Deref<Target: Lender>> Lease<G> {
    pub(super) fn new(limiter: G, size: u64) -> Self {
        let size = limiter.reserve(size);
        let held = 0;
        Self {
            limiter,
            held,
            size,
        }
    }

    /// Takes one permit.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the lease is empty and the limiter has none.
    #[inline]
    pub fn try_acquire(&mut self) -> Result<(), Denied> {
        self.try_acquire_n(1)
    }

    /// Takes `n` permits, or none. `n` = 0 succeeds if the lease holds a permit, or the limiter is
    /// not in debt.
    ///
    /// # Errors
    ///
    /// [`Denied`] if lease and limiter together have not so many. What there was then is held by
    /// the lease, up to its size. It is [`Denied::Never`] if `n` is more than the limiter can have
    /// at once and what the lease holds: a lease that holds more later may be granted more.
    #[inline(always)]
    pub fn try_acquire_n(&mut self, n: u64) -> Result<(), Denied> {
        match self.held.checked_sub(n) {
            // Also of an empty lease none can be taken, if it may.
            Some(left) if self.held > 0 => {
                self.held = left;
                Ok(())
            }
            _ if n == 1 => {
                let now = self.limiter.now();
                // Inline, as a limiter's denial: where most is denied this is what it does most.
                match self.limiter.denial(now) {
                    Some(denied) => Err(denied),
                    None => self.draw_one(now),
                }
            }
            _ => self.draw(n),
        }
    }

    /// One permit of an empty lease.
    #[cold]
    #[inline(never)]
    fn draw_one(&mut self, now: Tick) -> Result<(), Denied> {
        self.held = self.limiter.draw_one(self.size.max(1), now)?;
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn draw(&mut self, n: u64) -> Result<(), Denied> {
        let wanted = match n {
            0 => 0,
            _ => self.size.saturating_sub(self.held),
        };
        self.limiter
            .draw(&mut self.held, wanted, n)
            .map_err(|denied| match denied {
                Denied::Never { limit, .. } => Denied::never(n, limit),
                Denied::Later { retry_after, .. } => Denied::later(n, retry_after),
                _ => Denied::stuck(n),
            })
    }

    /// How many permits it holds.
    #[inline]
    #[must_use]
    pub const fn held(&self) -> u64 {
        self.held
    }

    /// How many it can hold: what was asked for, or what was left of the total.
    #[inline]
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Gives back what it holds, and returns how many permits came back: of those that the limiter
    /// would have refilled anyhow, none. The lease can draw again.
    pub fn give_back(&mut self) -> u64 {
        let held = core::mem::take(&mut self.held);
        match held {
            0 => 0,
            held => self.limiter.take_back(held),
        }
    }
}

/// Its permits first, and then its size: never is more held than the total.
impl<G: Deref<Target: Lender>> Drop for Lease<G> {
    fn drop(&mut self) {
        if inject_fault!(ReleasesSizeFirst) {
            self.limiter.release(core::mem::take(&mut self.size));
        }
        self.give_back();
        if self.size > 0 {
            self.limiter.release(self.size);
        }
    }
}

impl<G: Deref<Target: Lender>> fmt::Debug for Lease<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("held", &self.held)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

/// What leases can be had of: [`Leases`].
pub trait Lender: lender::Sealed {}

impl<A: Lend, C: Clock> Lender for Leases<A, C> {}

mod lender {
    use super::{Clock, Denied, Leases, Lend, Tick};

    pub trait Sealed {
        /// Reserves a size, or what is left of one.
        fn reserve(&self, size: u64) -> u64;

        /// Gives a size back, after the permits.
        fn release(&self, size: u64);

        /// What the clock says.
        fn now(&self) -> Tick;

        /// The denial of one permit, if there is none.
        fn denial(&self, now: Tick) -> Option<Denied>;

        /// Draws as many of `n` as there are, which is not 0, and takes one of them: what is held
        /// then.
        fn draw_one(&self, n: u64, now: Tick) -> Result<u64, Denied>;

        /// Draws as many as are wanted and takes `n` from what is held then, or from the limiter
        /// what is missing.
        fn draw(&self, held: &mut u64, wanted: u64, n: u64) -> Result<(), Denied>;

        /// Takes permits back; how many came back.
        fn take_back(&self, held: u64) -> u64;
    }

    impl<A: Lend, C: Clock> Sealed for Leases<A, C> {
        fn reserve(&self, size: u64) -> u64 {
            self.reserve(size)
        }

        fn release(&self, size: u64) {
            self.release(size);
        }

        #[inline(always)]
        fn now(&self) -> Tick {
            self.limiter.now()
        }

        #[inline(always)]
        fn denial(&self, now: Tick) -> Option<Denied> {
            self.limiter.at(now).denial()
        }

        #[inline(always)]
        fn draw_one(&self, n: u64, now: Tick) -> Result<u64, Denied> {
            let granted = self.limiter.at(now).take_some(n)?;
            Ok(granted.n().saturating_sub(1))
        }

        fn draw(&self, held: &mut u64, wanted: u64, n: u64) -> Result<(), Denied> {
            let limiter = self.limiter.at(self.limiter.now());
            *held += limiter.take_up_to(wanted).n();
            if *held > 0 && *held >= n {
                *held -= n;
                return Ok(());
            }
            match limiter.try_acquire_n(n - *held) {
                Ok(_) => {
                    *held = 0;
                    Ok(())
                }
                // The lease can't hold more than now and have the limiter full as well.
                Err(Denied::Never { limit, .. }) => {
                    Err(Denied::never(n, limit.saturating_add(*held)))
                }
                Err(denied) => Err(denied),
            }
        }

        fn take_back(&self, held: u64) -> u64 {
            self.limiter.refund(held)
        }
    }
}
