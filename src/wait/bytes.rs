//! Readers and writers at a limited rate, one permit a byte.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::boxed::Box;
use std::io;

use ::tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use pin_project_lite::pin_project;

use super::AsyncLimiter;
use super::permit_wait::{BoxedSleeps, PermitWait};
use crate::clock::{Clock, Timer};
use crate::outcome::{Denied, Granted};
use crate::traits::ReserveLimiter;

/// The most permits taken at once while bytes keep coming.
const MOST: u64 = 64 * 1024;
/// The default size of a piece: the number of permits taken at a time at first.
const FEW: u64 = 512;

impl<G: ReserveLimiter<Clock: Clock>, T: Timer> AsyncLimiter<G, T> {
    /// Limits a reader or writer to the limiter's rate, one permit a byte.
    ///
    /// Permits are taken before bytes move, in [pieces](Throttled::in_pieces_of) of 512 bytes by
    /// default. Each direction keeps at most one piece of unused permits for its next bytes, and
    /// gives it back on drop. So in any interval, each direction moves at most one piece more than
    /// the limiter granted it.
    ///
    /// Reading and writing take from the same limiter, and wait separately.
    ///
    /// ```
    /// use tokio::io::AsyncReadExt;
    /// use tollgate::wait::TokioTimer;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    /// # runtime.block_on(async {
    /// let limiter = Limiter::token_bucket(Quota::per_hour(1_000))?;
    /// let mut reader = limiter.with_timer(TokioTimer).bytes(&b"four hundred"[..]);
    /// let mut text = String::new();
    /// reader.read_to_string(&mut text).await?;
    /// drop(reader);
    /// assert_eq!(limiter.available(), 988);
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    pub fn bytes<I>(self, inner: I) -> Throttled<I, G, T> {
        Throttled {
            inner,
            on: self.boxed_sleeps(),
            pieces: Pieces {
                few: FEW,
                most: MOST,
            },
            reading: Way::new(),
            writing: Way::new(),
        }
    }
}

/// The number of permits to take at a time: `few`, or up to `most` while bytes keep coming.
#[derive(Debug, Clone, Copy)]
struct Pieces {
    few: u64,
    most: u64,
}

pin_project! {
    /// The permits of one direction, reading or writing.
    struct Way<S> {
        // Permits that are due and not used yet.
        kept: Option<Granted>,
        // Whether the last permits were all used, so that more bytes are likely to follow.
        flows: bool,
        #[pin]
        turn: PermitWait<S>,
    }
}

impl<S> Way<S> {
    const fn new() -> Self {
        Self {
            kept: None,
            flows: false,
            turn: PermitWait::new(),
        }
    }
}

impl<S: Future<Output = ()>> Way<S> {
    /// Returns permits for at least one and at most `wanted` bytes. Uses the kept permits before it
    /// takes new ones.
    fn poll_permits<G, T>(
        self: Pin<&mut Self>,
        on: &AsyncLimiter<G, T>,
        pieces: &mut Pieces,
        wanted: usize,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Granted>>
    where
        G: ReserveLimiter<Clock: Clock>,
        T: Timer<Sleep = S>,
    {
        let mut this = self.project();
        if let Some(kept) = this.kept.take() {
            return Poll::Ready(Ok(kept));
        }
        loop {
            let wanted = (wanted as u64).min(pieces.most);
            let few = wanted.min(pieces.few);
            let there = match *this.flows {
                true => on.limiter.available_at(on.limiter.clock().now()),
                false => few,
            };
            let n = there.clamp(few, wanted);
            let turn = this.turn.as_mut();
            match ready!(turn.poll_permits(on, n, Duration::MAX, context)) {
                Ok(granted) => return Poll::Ready(Ok(granted)),
                // The limiter cannot grant this many at once: ask for fewer.
                Err(Denied::Never { limit, .. }) if 0 < limit && limit < n => pieces.most = limit,
                Err(denied) => return Poll::Ready(Err(io::Error::other(denied))),
            }
        }
    }

    /// Records that `bytes` bytes were moved with these permits. Keeps up to a piece of the unused
    /// permits, and gives the others back.
    fn moved<G: ReserveLimiter<Clock: Clock>, T>(
        self: Pin<&mut Self>,
        on: &AsyncLimiter<G, T>,
        few: u64,
        granted: Granted,
        bytes: usize,
    ) {
        let this = self.project();
        let left = granted.n().saturating_sub(bytes as u64);
        *this.flows = left == 0;
        let too_many = left.saturating_sub(few);
        let kept = match too_many {
            0 => granted,
            _ => {
                on.limiter
                    .cancel_at(granted, too_many, on.limiter.clock().now())
                    .0
            }
        };
        let left = left.min(few);
        *this.kept = (left > 0).then(|| kept.with_n(left));
    }

    fn give_up<G: ReserveLimiter<Clock: Clock>, T>(self: Pin<&mut Self>, on: &AsyncLimiter<G, T>) {
        let this = self.project();
        this.turn.give_up(on);
        if let Some(kept) = this.kept.take() {
            on.settle(kept, 0);
        }
    }
}

pin_project! {
    /// A reader or writer at a limited rate: [`AsyncLimiter::bytes`] returns one.
    pub struct Throttled<I, G, T>
    where
        G: ReserveLimiter,
        G::Clock: Clock,
        T: Timer,
    {
        #[pin]
        inner: I,
        on: AsyncLimiter<G, BoxedSleeps<T>>,
        pieces: Pieces,
        #[pin]
        reading: Way<Pin<Box<T::Sleep>>>,
        #[pin]
        writing: Way<Pin<Box<T::Sleep>>>,
    }

    impl<I, G, T> PinnedDrop for Throttled<I, G, T>
    where
        G: ReserveLimiter,
        G::Clock: Clock,
        T: Timer,
    {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            this.reading.give_up(this.on);
            this.writing.give_up(this.on);
        }
    }
}

impl<I, G: ReserveLimiter<Clock: Clock>, T: Timer> Throttled<I, G, T> {
    /// Sets how many bytes to take permits for at a time (512 by default). While bytes keep coming,
    /// a call takes more permits, as far as the limiter has them. Smaller pieces spread the bytes
    /// more evenly, but the task wakes more often. The value is raised to at least 1, and lowered
    /// to what the limiter can grant at once.
    #[must_use]
    pub fn in_pieces_of(mut self, bytes: usize) -> Self {
        let few = (bytes as u64).max(1);
        self.pieces = Pieces {
            few,
            most: MOST.max(few),
        };
        self
    }

    /// Returns a reference to the reader or writer.
    pub const fn inner(&self) -> &I {
        &self.inner
    }
}

/// Returns how many of `bytes` bytes these permits cover.
fn allowed(granted: &Granted, bytes: usize) -> usize {
    usize::try_from(granted.n()).map_or(bytes, |n| n.min(bytes))
}

impl<I: AsyncRead, G: ReserveLimiter<Clock: Clock>, T: Timer> AsyncRead for Throttled<I, G, T> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut this = self.project();
        let wanted = buffer.remaining();
        if wanted == 0 {
            return this.inner.poll_read(context, buffer);
        }
        let way = this.reading.as_mut();
        let granted = ready!(way.poll_permits(this.on, this.pieces, wanted, context))?;
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(allowed(&granted, wanted)));
        let read = this.inner.poll_read(context, &mut part);
        let moved = match read {
            Poll::Ready(Ok(())) => part.filled().len(),
            _ => 0,
        };
        buffer.advance(moved);
        this.reading.moved(this.on, this.pieces.few, granted, moved);
        read
    }
}

impl<I: AsyncWrite, G: ReserveLimiter<Clock: Clock>, T: Timer> AsyncWrite for Throttled<I, G, T> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut this = self.project();
        if bytes.is_empty() {
            return this.inner.poll_write(context, bytes);
        }
        let way = this.writing.as_mut();
        let granted = ready!(way.poll_permits(this.on, this.pieces, bytes.len(), context))?;
        let part = bytes.get(..allowed(&granted, bytes.len()));
        let written = this.inner.poll_write(context, part.unwrap_or(bytes));
        let moved = match written {
            Poll::Ready(Ok(moved)) => moved,
            _ => 0,
        };
        this.writing.moved(this.on, this.pieces.few, granted, moved);
        written
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_shutdown(context)
    }
}

impl<I: fmt::Debug, G: ReserveLimiter<Clock: Clock>, T: Timer> fmt::Debug for Throttled<I, G, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Throttled")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
