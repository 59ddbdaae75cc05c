use core::fmt;
use std::io::{self, Read, Write};

use super::blocking;
use crate::clock::{Clock, SleepClock, Tick};
use crate::outcome::{Denied, Granted};
use crate::traits::ReserveLimiter;

/// The most permits taken at once while bytes keep coming.
const MOST: u64 = 64 * 1024;
/// The default size of a piece: the number of permits taken at a time at first.
const FEW: u64 = 512;

/// A blocking reader or writer at a limited rate, one permit a byte.
///
/// Each call takes permits, waits until they are available, and then moves at most that many bytes.
/// Permits that a call did not use are given back. In async code use
/// `AsyncLimiter::bytes` (feature `tokio`).
///
/// ```
/// use std::io::{Read, Write};
/// use tollgate::wait::BlockingBytes;
/// use tollgate::{Limiter, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Limiter::token_bucket(Quota::per_hour(1_000))?;
/// let mut text = String::new();
/// BlockingBytes::new(&limiter, &b"four hundred"[..]).read_to_string(&mut text)?;
/// assert_eq!(limiter.available(), 988);
///
/// let mut log = BlockingBytes::new(&limiter, Vec::new());
/// log.write_all(b"a line\n")?;
/// assert_eq!(log.into_inner(), b"a line\n");
/// # Ok(())
/// # }
/// ```
pub struct BlockingBytes<G, I> {
    limiter: G,
    inner: I,
    few: u64,
    most: u64,
    /// Whether the last call used all its permits, so that more bytes are likely to follow.
    flows: bool,
}

impl<G, I> BlockingBytes<G, I> {
    /// Limits a reader or writer. The limiter may be borrowed, or shared in an `Arc`.
    pub const fn new(limiter: G, inner: I) -> Self {
        Self {
            limiter,
            inner,
            few: FEW,
            most: MOST,
            flows: false,
        }
    }

    /// Sets how many bytes to take permits for at a time (512 by default). While bytes keep coming,
    /// a call takes more permits, as far as the limiter has them. Smaller pieces spread the bytes
    /// more evenly, but the thread wakes more often. The value is raised to at least 1, and lowered
    /// to what the limiter can grant at once.
    #[must_use]
    pub fn in_pieces_of(mut self, bytes: usize) -> Self {
        self.few = (bytes as u64).max(1);
        self.most = MOST.max(self.few);
        self
    }

    /// Returns a reference to the reader or writer.
    pub const fn inner(&self) -> &I {
        &self.inner
    }

    /// Returns the reader or writer.
    pub fn into_inner(self) -> I {
        self.inner
    }
}

impl<G: ReserveLimiter<Clock: SleepClock>, I> BlockingBytes<G, I> {
    /// Waits for permits for at least one and at most `wanted` bytes.
    fn permits(&mut self, wanted: usize) -> io::Result<Granted> {
        loop {
            let wanted = (wanted as u64).min(self.most);
            let few = wanted.min(self.few);
            let now = self.limiter.clock().now();
            let n = match self.flows {
                true => self.limiter.available_at(now).clamp(few, wanted),
                false => few,
            };
            match blocking::acquire(&self.limiter, n, now, Tick::MAX) {
                Ok(granted) => return Ok(granted),
                // The limiter cannot grant this many at once: ask for fewer.
                Err(Denied::Never { limit, .. }) if 0 < limit && limit < n => self.most = limit,
                Err(denied) => return Err(io::Error::other(denied)),
            }
        }
    }

    /// Takes permits, moves at most that many bytes, and gives back the permits that were not used.
    fn limited(
        &mut self,
        wanted: usize,
        moves: impl FnOnce(&mut I, usize) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let granted = self.permits(wanted)?;
        let allowed = usize::try_from(granted.n()).map_or(wanted, |n| n.min(wanted));
        let moved = moves(&mut self.inner, allowed);
        let used = moved.as_ref().map_or(0, |moved| *moved as u64);
        let unused = granted.n().saturating_sub(used);
        self.flows = unused == 0;
        if unused > 0 {
            let now = self.limiter.clock().now();
            let _ = self.limiter.cancel_at(granted, unused, now);
        }
        moved
    }
}

impl<G: ReserveLimiter<Clock: SleepClock>, I: Read> Read for BlockingBytes<G, I> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return self.inner.read(buffer);
        }
        self.limited(buffer.len(), |inner, allowed| {
            match buffer.get_mut(..allowed) {
                Some(part) => inner.read(part),
                None => Ok(0),
            }
        })
    }
}

impl<G: ReserveLimiter<Clock: SleepClock>, I: Write> Write for BlockingBytes<G, I> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return self.inner.write(bytes);
        }
        self.limited(bytes.len(), |inner, allowed| {
            inner.write(bytes.get(..allowed).unwrap_or(bytes))
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<G, I: fmt::Debug> fmt::Debug for BlockingBytes<G, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingBytes")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
