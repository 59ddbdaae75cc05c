use core::fmt;
use core::ops::Deref;

use super::Leases;
use crate::algorithm::Lend;
use crate::clock::{Clock, Tick};
use crate::outcome::Denied;
use crate::sync::inject_fault;
use lender::Sealed as _;

/// The least that a lease draws, if its size allows.
const LEAST_DRAW: u64 = 64;

/// How long a draw should last, in nanoseconds: 2^14, about 16 microseconds. If each of 64 threads
/// draws once in this time, they draw four million times a second, which one cache line can bear.
const DRAW_LASTS_NS: u64 = 1 << 14;

/// Returns how much a lease draws this long after a draw of `last` permits: twice as much if that
/// did not last long enough, and the `n`-th part if it lasted `n` times as long.
const fn next_draw(last: u64, since_ns: u64) -> u64 {
    let draw = match since_ns / DRAW_LASTS_NS {
        0 => last.saturating_mul(2),
        times => last / times,
    };
    if draw < LEAST_DRAW { LEAST_DRAW } else { draw }
}

/// Permits that one thread holds. While it has any, a grant is a subtraction.
///
/// [`Leases::lease`] creates one. An empty lease reads the clock and draws permits from the
/// limiter, or denies the request. A lease that is dropped gives back what it holds.
///
/// **A lease draws what its thread needs for 16 to 33 microseconds**, so that many threads seldom
/// meet at the limiter. It draws 64 permits at first. If they are used up within 16 microseconds
/// (2^14 nanoseconds), it draws twice as many next, up to its [`size`](Self::size). If they lasted
/// `n` times as long, it draws the `n`-th part next, but at least 64. A size of 64 or less is drawn
/// in full. A lease that gave back its permits begins again with 64.
///
/// So a thread that stops holds at most 64 permits, or about what it used in its last 33
/// microseconds. (If its clock has coarser steps: what it used in a step.)
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
    /// What the lease had right after it last drew, with the permits that this request took.
    last_draw: u64,
    drawn_at: Tick,
}

impl<G: Deref<Target: Lender>> Lease<G> {
    pub(super) fn new(limiter: G, size: u64) -> Self {
        let size = limiter.reserve(size);
        Self {
            limiter,
            held: 0,
            size,
            last_draw: 0,
            drawn_at: Tick::ZERO,
        }
    }

    /// Takes one permit.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the lease is empty and the limiter has no permit.
    #[inline]
    pub fn try_acquire(&mut self) -> Result<(), Denied> {
        self.try_acquire_n(1)
    }

    /// Takes `n` permits or none. A request for 0 permits succeeds if the lease holds a permit or
    /// the limiter is not in debt.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the lease and the limiter together have fewer than `n` permits. The lease then
    /// keeps what it drew, up to its size. [`Denied::Never`] if `n` is more than the limiter can
    /// have at once plus what the lease holds. The same request may succeed later if the lease then
    /// holds more.
    #[inline(always)]
    pub fn try_acquire_n(&mut self, n: u64) -> Result<(), Denied> {
        match self.held.checked_sub(n) {
            // An empty lease asks the limiter even for 0 permits, since the limiter may be in debt.
            Some(left) if self.held > 0 => {
                self.held = left;
                Ok(())
            }
            _ if n == 1 => {
                let now = self.limiter.now();
                // Inline, like a limiter's denial: this is the most frequent path if most requests
                // are denied.
                match self.limiter.denial(now) {
                    Some(denied) => Err(denied),
                    None => self.draw_one(now),
                }
            }
            _ => self.draw(n),
        }
    }

    /// Draws permits for an empty lease and takes one of them.
    #[cold]
    #[inline(never)]
    fn draw_one(&mut self, now: Tick) -> Result<(), Denied> {
        let most = self.next_draw(now).max(1);
        self.held = self.limiter.draw_one(most, now)?;
        self.drew(1, now);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn draw(&mut self, n: u64) -> Result<(), Denied> {
        let now = self.limiter.now();
        let wanted = match n {
            0 => 0,
            _ => self.next_draw(now).max(n).min(self.size),
        };
        let wanted = wanted.saturating_sub(self.held);
        match self.limiter.draw(&mut self.held, wanted, n, now) {
            Ok(()) if n == 0 => Ok(()),
            Ok(()) => {
                self.drew(n, now);
                Ok(())
            }
            Err(Denied::Never { limit, .. }) => Err(Denied::never(n, limit)),
            Err(Denied::Later { retry_after, .. }) => Err(Denied::later(n, retry_after)),
            Err(_) => Err(Denied::stuck(n)),
        }
    }

    /// Returns how much the lease should hold after it draws. If the clock went back, no time has
    /// passed.
    fn next_draw(&self, now: Tick) -> u64 {
        let since = now.as_nanos().saturating_sub(self.drawn_at.as_nanos());
        next_draw(self.last_draw, since).min(self.size)
    }

    /// Records a draw for a request that took `n` permits. A limiter that is nearly empty gives
    /// less than a lease asks for, so what counts is what it got.
    const fn drew(&mut self, n: u64, now: Tick) {
        self.last_draw = self.held.saturating_add(n);
        self.drawn_at = now;
    }

    /// Returns how many permits the lease holds.
    #[inline]
    #[must_use]
    pub const fn held(&self) -> u64 {
        self.held
    }

    /// Returns how many permits the lease can hold: the requested size, or what was left of the
    /// total if that was less.
    #[inline]
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Gives back what the lease holds, and returns how many permits came back. Permits that the
    /// limiter has already refilled do not come back a second time. The lease can draw again.
    pub fn give_back(&mut self) -> u64 {
        self.last_draw = 0;
        let held = core::mem::take(&mut self.held);
        match held {
            0 => 0,
            held => self.limiter.take_back(held),
        }
    }
}

/// Gives back the permits first and the size second, so that leases never hold more than the total.
impl<G: Deref<Target: Lender>> Drop for Lease<G> {
    fn drop(&mut self) {
        let size_first = inject_fault!(ReleasesSizeFirst); // FAULT
        if size_first {
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

/// A limiter that lends permits to leases: [`Leases`].
pub trait Lender: lender::Sealed {}

impl<A: Lend, C: Clock> Lender for Leases<A, C> {}

mod lender {
    use super::{Clock, Denied, Leases, Lend, Tick};
    use crate::sync::Ordering;

    pub trait Sealed {
        /// Reserves up to `size` of the total, and returns how much.
        fn reserve(&self, size: u64) -> u64;

        /// Releases a size, after the permits came back.
        fn release(&self, size: u64);

        /// Reads the clock.
        fn now(&self) -> Tick;

        /// Returns the denial of a request for one permit, if none is available.
        fn denial(&self, now: Tick) -> Option<Denied>;

        /// Draws up to `n` permits, where `n` is not 0, and takes one of them. Returns how many the
        /// lease then holds.
        fn draw_one(&self, n: u64, now: Tick) -> Result<u64, Denied>;

        /// Draws up to `wanted` permits. Then takes `n`: first from the permits that the lease
        /// holds, and the rest from the limiter.
        fn draw(&self, held: &mut u64, wanted: u64, n: u64, now: Tick) -> Result<(), Denied>;

        /// Gives the lease's permits back to the limiter, and returns how many came back.
        fn take_back(&self, held: u64) -> u64;
    }

    impl<A: Lend, C: Clock> Sealed for Leases<A, C> {
        fn reserve(&self, size: u64) -> u64 {
            // ORDERING: Relaxed. It publishes nothing, and the exchange detects a stale value.
            let mut lent = self.lent.load(Ordering::Relaxed);
            loop {
                let size = size.min(self.total.saturating_sub(lent));
                if size == 0 {
                    return 0;
                }
                // ORDERING: Acquire. It pairs with the release in `release`: a lease that gets the
                // size of a dropped lease draws from a word in which the dropped lease's permits
                // are back. If this were Relaxed, both could hold their permits at once, which is
                // more than the total. Models: leases::
                match self.lent.compare_exchange_weak(
                    lent,
                    lent + size,
                    Ordering::Acquire,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => return size,
                    Err(seen) => lent = seen,
                }
            }
        }

        fn release(&self, size: u64) {
            // ORDERING: Release. It publishes the permits that came back, and pairs with the
            // acquire in `reserve`. Models: leases::
            self.lent.fetch_sub(size, Ordering::Release);
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

        fn draw(&self, held: &mut u64, wanted: u64, n: u64, now: Tick) -> Result<(), Denied> {
            let limiter = self.limiter.at(now);
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
                // The most that can be granted: a full limiter, and what the lease holds now.
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

#[cfg(test)]
mod tests {
    use super::next_draw;

    #[test]
    fn a_draw_follows_from_how_long_the_last_one_lasted() {
        let cases = [
            (0, 0, 64),
            (0, u64::MAX, 64),
            (1, 0, 64),
            (32, 0, 64),
            (33, 0, 66),
            (64, 16_383, 128),
            (64, 16_384, 64),
            (1_000, 2 * 16_384 - 1, 1_000),
            (1_000, 2 * 16_384, 500),
            (1_000, 3 * 16_384, 333),
            (1_000, 16 * 16_384, 64),
            (u64::MAX, 0, u64::MAX),
            (u64::MAX, u64::MAX, u64::MAX / (u64::MAX / 16_384)),
        ];
        for (last, since_ns, next) in cases {
            assert_eq!(next_draw(last, since_ns), next, "{last}, {since_ns}");
        }
    }

    #[test]
    fn a_thread_at_a_steady_rate_comes_to_draw_for_16_to_33_microseconds() {
        // The nanoseconds between two permits of a thread.
        for every in 1..200 {
            let mut draw = 0;
            for _ in 0..20 {
                draw = next_draw(draw, draw * every);
            }
            assert_eq!(next_draw(draw, draw * every), draw, "it stays");
            assert!(
                (16_384..32_768).contains(&(draw * every)),
                "{draw} every {every}"
            );
        }
    }
}
