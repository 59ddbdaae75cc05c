//! Limits in threads that have no async runtime.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake};
use std::thread::{self, ThreadId};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::unconstrained;

/// Waits for the crate's futures in threads that have no async runtime.
///
/// One thread in the background reads and writes the connections, and keeps the time for budgets.
/// Many threads can wait at once. All limits work as they do in async code: budgets, fallbacks and
/// compositions.
///
/// ```no_run
/// use std::sync::Arc;
/// use tollgate::Quota;
/// use tollgate_redis::{Blocking, Fallback, Keys, RedisLimiter, Server};
///
/// # #[cfg(feature = "redis-rs")]
/// # fn start() -> Result<(), Box<dyn std::error::Error>> {
/// use tollgate_redis::client::connect_lazily;
///
/// let blocking = Blocking::new()?;
/// let client = blocking.wait(async { connect_lazily("redis://127.0.0.1/") })?;
/// let server = Arc::new(Server::new(client));
/// let (keys, quota) = (Keys::new("api")?, Quota::per_minute(100));
/// let login = RedisLimiter::new(server, &keys, "login", quota, Fallback::Closed)?;
///
/// match blocking.wait(login.key("alice").try_acquire()) {
///     Ok(grant) => println!("go, {} left", grant.granted().remaining()),
///     Err(denial) => println!("{denial}"),
/// }
/// # Ok(())
/// # }
/// ```
///
/// Keep it as long as the limits are used: when it is dropped, its connections end.
pub struct Blocking {
    runtime: Handle,
    thread: ThreadId,
    /// The background thread ends when this is dropped.
    _stop: oneshot::Sender<()>,
}

impl Blocking {
    /// Starts the background thread.
    ///
    /// ```
    /// use tollgate_redis::Blocking;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let blocking = Blocking::new()?;
    /// assert_eq!(blocking.wait(async { 6 * 7 }), 42);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The system's error if it has no thread, or no means to wait for connections.
    pub fn new() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let run = move || {
            // An error says that the sender was dropped.
            let _ = runtime.block_on(stopped);
        };
        let thread = thread::Builder::new().name("tollgate-redis".into());
        let thread = thread.spawn(run)?;
        Ok(Self {
            runtime: handle,
            thread: thread.thread().id(),
            _stop: stop,
        })
    }

    /// Blocks this thread until the future is ready, and returns its output. The future may borrow.
    ///
    /// In async code, await the future instead. If this is called there all the same, it does not
    /// panic, but it blocks the thread, with all its other tasks. In a task on the background
    /// thread itself, that includes those of all connections, so limits fall back.
    pub fn wait<F: Future>(&self, future: F) -> F::Output {
        if thread::current().id() == self.thread {
            // This thread would wait for itself. Without another one, it does.
            if let Ok(other) = Self::new() {
                return other.wait(future);
            }
        }
        // A future that yields is woken by the runtime that this thread runs and blocks.
        let mut most = match Handle::try_current() {
            Ok(_) => Duration::from_millis(1),
            Err(_) => Duration::MAX,
        };
        let _inside = self.runtime.enter();
        // In a task of another runtime, a used-up budget would make the future pending for ever.
        let mut future = pin!(unconstrained(future));
        let parker = Arc::new(Parker::default());
        let waker = Arc::clone(&parker).into();
        let mut context = Context::from_waker(&waker);
        loop {
            match future.as_mut().poll(&mut context) {
                Poll::Ready(output) => return output,
                Poll::Pending => parker.park_for(most),
            }
            if most < Duration::from_millis(50) {
                most = most.saturating_mul(2);
            }
        }
    }
}

impl fmt::Debug for Blocking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocking").finish_non_exhaustive()
    }
}

/// Blocks a thread until it is woken. A thread's own `park` would not do: code inside the future
/// may use it too, and take the wake.
#[derive(Default)]
struct Parker {
    is_woken: Mutex<bool>,
    woken: Condvar,
}

impl Parker {
    /// Blocks until it is woken, or for at most this time.
    fn park_for(&self, most: Duration) {
        let is_asleep = |is_woken: &mut bool| !*is_woken;
        let waited = self.woken.wait_timeout_while(self.lock(), most, is_asleep);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_woken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        *self.lock() = true;
        self.woken.notify_one();
    }
}
