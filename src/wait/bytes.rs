//! Bytes at a rate: one permit a byte.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::io;

use ::tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use pin_project_lite::pin_project;

use super::On;
use super::turn::Turn;
use crate::clock::{Clock, Timer};
use crate::gate::ReserveGate;
use crate::outcome::{Denied, Granted};

/// As many bytes are asked for at once, or as few.
const MOST: usize = 64 * 1024;
const FEW: usize = 512;

impl<G: ReserveGate<Clock: Clock>, T: Timer> On<G, T> {
    /// This reader or writer at the limiter's rate, one permit a byte: permits are there before bytes are
    /// moved, and while none can be moved none are held. For both directions at their own rates, wrap it
    /// twice or split it.
    ///
    /// ```
    /// use tokio::io::AsyncReadExt;
    /// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let clock = ManualClock::new();
    /// let bucket = TokenBucket::new(Quota::per_second(1_000))?;
    /// let gate = Limiter::with_clock(bucket, clock.clone());
    /// let mut reader = gate.on(&clock).bytes(&b"four hundred"[..]);
    /// let mut text = String::new();
    /// reader.read_to_string(&mut text).await?;
    /// assert_eq!(gate.available(), 988);
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    pub fn bytes<I>(self, inner: I) -> Throttled<I, G, T> {
        Throttled {
            inner,
            on: self,
            most: MOST,
            few: FEW,
            turn: Turn::new(),
        }
    }
}

pin_project! {
    /// A reader or writer whose bytes are limited: [`On::bytes`] makes it.
    pub struct Throttled<I, G, T>
    where
        G: ReserveGate,
        G::Clock: Clock,
        T: Timer,
    {
        #[pin]
        inner: I,
        on: On<G, T>,
        most: usize,
        few: usize,
        #[pin]
        turn: Turn<T::Sleep>,
    }

    impl<I, G, T> PinnedDrop for Throttled<I, G, T>
    where
        G: ReserveGate,
        G::Clock: Clock,
        T: Timer,
    {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            this.turn.give_up(this.on);
        }
    }
}

impl<I, G: ReserveGate<Clock: Clock>, T: Timer> Throttled<I, G, T> {
    /// Bytes are not moved in smaller pieces than this, if there are as many to move: 512 if nothing is said.
    /// A small one spreads them more evenly, and wakes more often. At least 1, and at most what the limiter
    /// can grant at once.
    #[must_use]
    pub fn in_pieces_of(mut self, bytes: usize) -> Self {
        self.few = bytes.max(1);
        self.most = self.most.max(self.few);
        self
    }

    /// What is inside.
    pub const fn inner(&self) -> &I {
        &self.inner
    }

    /// Permits for some of `wanted` bytes.
    fn poll_some(
        on: &On<G, T>,
        mut turn: Pin<&mut Turn<T::Sleep>>,
        (few, most): (usize, &mut usize),
        wanted: usize,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Granted>> {
        loop {
            let wanted = wanted.min(*most) as u64;
            let few = wanted.min(few as u64);
            let there = on.gate.available_at(on.gate.clock().now());
            let n = there.clamp(few, wanted.max(few));
            match ready!(turn.as_mut().poll_permits(on, n, Duration::MAX, context)) {
                Ok(granted) => return Poll::Ready(Ok(granted)),
                // It can't grant as many at once: fewer, then.
                Err(Denied::Never { limit, .. }) if 0 < limit && limit < n => {
                    *most = usize::try_from(limit).unwrap_or(usize::MAX);
                }
                Err(denied) => return Poll::Ready(Err(io::Error::other(denied))),
            }
        }
    }
}

/// How many of so many bytes these permits allow.
fn allowed(granted: &Granted, bytes: usize) -> usize {
    usize::try_from(granted.n()).map_or(bytes, |n| n.min(bytes))
}

impl<I: AsyncRead, G: ReserveGate<Clock: Clock>, T: Timer> AsyncRead for Throttled<I, G, T> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.project();
        let wanted = buffer.remaining();
        if wanted == 0 {
            return this.inner.poll_read(context, buffer);
        }
        let pieces = (*this.few, this.most);
        let granted = ready!(Self::poll_some(this.on, this.turn, pieces, wanted, context))?;
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(allowed(&granted, wanted)));
        let read = this.inner.poll_read(context, &mut part);
        let moved = match read {
            Poll::Ready(Ok(())) => part.filled().len(),
            _ => 0,
        };
        buffer.advance(moved);
        this.on.settle(granted, moved as u64);
        read
    }
}

impl<I: AsyncWrite, G: ReserveGate<Clock: Clock>, T: Timer> AsyncWrite for Throttled<I, G, T> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.project();
        if bytes.is_empty() {
            return this.inner.poll_write(context, bytes);
        }
        let pieces = (*this.few, this.most);
        let granted = ready!(Self::poll_some(
            this.on,
            this.turn,
            pieces,
            bytes.len(),
            context
        ))?;
        let part = bytes.get(..allowed(&granted, bytes.len())).unwrap_or(bytes);
        let written = this.inner.poll_write(context, part);
        let moved = match written {
            Poll::Ready(Ok(moved)) => moved,
            _ => 0,
        };
        this.on.settle(granted, moved as u64);
        written
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_shutdown(context)
    }
}

impl<I: fmt::Debug, G: ReserveGate<Clock: Clock>, T: Timer> fmt::Debug for Throttled<I, G, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Throttled")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
