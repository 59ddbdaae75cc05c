//! Streams and sinks at a limited rate, one permit an item.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::boxed::Box;

use futures_core::{FusedStream, Stream};
use futures_sink::Sink;
use pin_project_lite::pin_project;

use super::AsyncLimiter;
use super::permit_wait::{BoxedSleeps, PermitWait};
use crate::clock::{Clock, Timer};
use crate::outcome::Granted;
use crate::traits::ReserveLimiter;

impl<G: ReserveLimiter<Clock: Clock>, T: Timer> AsyncLimiter<G, T> {
    /// Limits a stream to the limiter's rate: each item takes a permit, and waits until it is
    /// available. No permit is taken while the stream has no item.
    ///
    /// ```
    /// use futures::{StreamExt, stream};
    /// # #[cfg(feature = "tokio")]
    /// use tollgate::wait::TokioTimer;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # #[cfg(feature = "tokio")]
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    /// # runtime.block_on(async {
    /// let limiter = Limiter::token_bucket(Quota::per_hour(3))?;
    /// let mut items = limiter.with_timer(TokioTimer).stream(stream::iter(["a", "b", "c"]));
    /// while let Some(item) = items.next().await {
    ///     println!("{item}");
    /// }
    /// assert_eq!(limiter.available(), 0);
    /// # Ok(())
    /// # })
    /// # }
    /// # #[cfg(not(feature = "tokio"))]
    /// # fn main() {}
    /// ```
    pub fn stream<S: Stream>(self, inner: S) -> LimitedStream<S, G, T> {
        LimitedStream {
            inner,
            on: self.boxed_sleeps(),
            item: None,
            turn: PermitWait::new(),
        }
    }

    /// Limits a sink to the limiter's rate: it is ready for an item once a permit is available.
    ///
    /// ```
    /// use futures::{SinkExt, sink};
    /// # #[cfg(feature = "tokio")]
    /// use tollgate::wait::TokioTimer;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # #[cfg(feature = "tokio")]
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    /// # runtime.block_on(async {
    /// let limiter = Limiter::token_bucket(Quota::per_hour(3))?;
    /// let mut items = limiter.with_timer(TokioTimer).sink(sink::drain());
    /// items.send("a").await?;
    /// items.send("b").await?;
    /// drop(items);
    /// assert_eq!(limiter.available(), 1);
    /// # Ok(())
    /// # })
    /// # }
    /// # #[cfg(not(feature = "tokio"))]
    /// # fn main() {}
    /// ```
    pub fn sink<S>(self, inner: S) -> LimitedSink<S, G, T> {
        LimitedSink {
            inner,
            on: self.boxed_sleeps(),
            permit: None,
            turn: PermitWait::new(),
        }
    }
}

pin_project! {
    /// A stream at a limited rate: [`AsyncLimiter::stream`] returns one.
    #[must_use = "streams do nothing unless they are polled"]
    pub struct LimitedStream<S, G, T>
    where
        S: Stream,
        G: ReserveLimiter,
        G::Clock: Clock,
        T: Timer,
    {
        #[pin]
        inner: S,
        on: AsyncLimiter<G, BoxedSleeps<T>>,
        // The item that waits for its permit.
        item: Option<S::Item>,
        #[pin]
        turn: PermitWait<Pin<Box<T::Sleep>>>,
    }

    impl<S, G, T> PinnedDrop for LimitedStream<S, G, T>
    where
        S: Stream,
        G: ReserveLimiter,
        G::Clock: Clock,
        T: Timer,
    {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            this.turn.give_up(this.on);
        }
    }
}

impl<S: Stream, G: ReserveLimiter<Clock: Clock>, T: Timer> Stream for LimitedStream<S, G, T> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let mut this = self.project();
        if this.item.is_none() {
            match ready!(this.inner.poll_next(context)) {
                Some(item) => *this.item = Some(item),
                None => return Poll::Ready(None),
            }
        }
        _ = ready!(this.turn.as_mut().poll_one(this.on, context));
        Poll::Ready(this.item.take())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let held = usize::from(self.item.is_some());
        let (least, most) = self.inner.size_hint();
        let most = most.and_then(|most| most.checked_add(held));
        (least.saturating_add(held), most)
    }
}

impl<S: FusedStream, G: ReserveLimiter<Clock: Clock>, T: Timer> FusedStream
    for LimitedStream<S, G, T>
{
    fn is_terminated(&self) -> bool {
        self.item.is_none() && self.inner.is_terminated()
    }
}

pin_project! {
    /// A sink at a limited rate: [`AsyncLimiter::sink`] returns one.
    #[must_use = "sinks do nothing unless they are polled"]
    pub struct LimitedSink<S, G, T>
    where
        G: ReserveLimiter,
        G::Clock: Clock,
        T: Timer,
    {
        #[pin]
        inner: S,
        on: AsyncLimiter<G, BoxedSleeps<T>>,
        // The permit for the next item.
        permit: Option<Granted>,
        #[pin]
        turn: PermitWait<Pin<Box<T::Sleep>>>,
    }

    impl<S, G, T> PinnedDrop for LimitedSink<S, G, T>
    where
        G: ReserveLimiter,
        G::Clock: Clock,
        T: Timer,
    {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            this.turn.give_up(this.on);
            give_back(this.on, this.permit);
        }
    }
}

impl<I, S: Sink<I>, G: ReserveLimiter<Clock: Clock>, T: Timer> Sink<I> for LimitedSink<S, G, T> {
    type Error = S::Error;

    fn poll_ready(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        let mut this = self.project();
        ready!(this.inner.as_mut().poll_ready(context))?;
        if this.permit.is_none() {
            let permit = ready!(this.turn.as_mut().poll_one(this.on, context));
            *this.permit = Some(permit);
            // The wait may have been long: check again that the inner sink is ready.
            if let Err(error) = ready!(this.inner.poll_ready(context)) {
                give_back(this.on, this.permit);
                return Poll::Ready(Err(error));
            }
        }
        Poll::Ready(Ok(()))
    }

    fn start_send(self: Pin<&mut Self>, item: I) -> Result<(), S::Error> {
        let this = self.project();
        if this.permit.take().is_none() {
            // The caller skipped `poll_ready`, so no permit is held: charge one.
            let now = this.on.limiter.clock().now();
            this.on.limiter.charge_at(1, now);
        }
        this.inner.start_send(item)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.project().inner.poll_flush(context)
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        let this = self.project();
        this.turn.give_up(this.on);
        give_back(this.on, this.permit);
        this.inner.poll_close(context)
    }
}

/// Gives back an unused permit.
fn give_back<G: ReserveLimiter<Clock: Clock>, T>(
    on: &AsyncLimiter<G, T>,
    permit: &mut Option<Granted>,
) {
    if let Some(permit) = permit.take() {
        on.settle(permit, 0);
    }
}

macro_rules! holds_another {
    ($limited:ident, $($bound:tt)*) => {
        impl<S: $($bound)*, G: ReserveLimiter<Clock: Clock>, T: Timer> $limited<S, G, T> {
            /// Returns a reference to the stream or sink.
            pub const fn inner(&self) -> &S {
                &self.inner
            }
        }

        impl<S: $($bound)* + fmt::Debug, G: ReserveLimiter<Clock: Clock>, T: Timer> fmt::Debug
            for $limited<S, G, T>
        {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($limited))
                    .field("inner", &self.inner)
                    .finish_non_exhaustive()
            }
        }
    };
}

holds_another!(LimitedStream, Stream);
holds_another!(LimitedSink, Sized);
