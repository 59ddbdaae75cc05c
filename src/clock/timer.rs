use core::future::Future;
use core::time::Duration;

/// Lets futures sleep: what waiting needs of a runtime.
///
/// `TokioTimer` comes with the feature `tokio`, and `ManualClock` is a timer too. A timer for
/// another runtime is a few lines:
///
/// ```
/// use std::time::Duration;
/// use tollgate::clock::Timer;
///
/// /// That of smol and of whatever else uses `async-io`.
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
    /// Ends when the time is over.
    type Sleep: Future<Output = ()>;

    /// Sleeps for this time, from now on. It may sleep longer. (If it wakes early, the waiting
    /// future sleeps again.)
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
