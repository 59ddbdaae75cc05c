use core::future::Future;
use core::time::Duration;

/// A timer that futures can sleep on: all that waiting needs from a runtime.
///
/// `TokioTimer` comes with the feature `tokio`, and `ManualClock` implements this trait too. A
/// timer for another runtime takes a few lines:
///
/// ```
/// use std::time::Duration;
/// use tollgate::clock::Timer;
///
/// /// The timer of smol and other users of `async-io`.
/// #[derive(Debug, Clone, Copy)]
/// struct AsyncIo;
///
/// # mod async_io {
/// #     pub struct Timer;
/// #     impl Timer { pub fn after(_: std::time::Duration) -> std::future::Ready<()> { std::future::ready(()) } }
/// # }
/// impl Timer for AsyncIo {
///     type Sleep = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;
///
///     fn sleep(&self, duration: Duration) -> Self::Sleep {
///         let timer = async_io::Timer::after(duration);
///         Box::pin(async { _ = timer.await })
///     }
/// }
/// ```
pub trait Timer {
    /// A future that ends when the sleep is over.
    type Sleep: Future<Output = ()>;

    /// Returns a future that sleeps for this time, from now on. It may sleep longer. If it wakes
    /// early, the waiting future sleeps again.
    fn sleep(&self, duration: Duration) -> Self::Sleep;
}

impl<T: Timer + ?Sized> Timer for &T {
    type Sleep = T::Sleep;

    fn sleep(&self, duration: Duration) -> Self::Sleep {
        (**self).sleep(duration)
    }
}

#[cfg(feature = "std")]
impl<T: Timer + ?Sized> Timer for std::sync::Arc<T> {
    type Sleep = T::Sleep;

    fn sleep(&self, duration: Duration) -> Self::Sleep {
        (**self).sleep(duration)
    }
}
