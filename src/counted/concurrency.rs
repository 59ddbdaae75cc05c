//! `Concurrency` in a `Counted`, and the futures that enter it.

use core::borrow::Borrow;
use core::future::Future;
use core::ops::Deref;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::Arc;

use super::{Counted, Counters, LimiterStats};
use crate::concurrency::{Concurrency, ConcurrencyGuard, EnterFuture};
use crate::outcome::Denied;

impl<S: Borrow<Counters>> Counted<Concurrency, S> {
    /// Returns what was counted so far.
    #[must_use]
    pub fn stats(&self) -> LimiterStats {
        self.counts()
    }
}

/// Implements methods that enter at once, and count the outcome.
macro_rules! counted_entries {
    ($($(#[$example:meta])* fn $verb:ident($($argument:ident: $type:ty),*);)*) => {$(
        #[doc = concat!("Enters as [`Concurrency::", stringify!($verb), "`] does, and counts the outcome.")]
        ///
        $(#[$example])*
        /// # Errors
        ///
        #[doc = concat!("The same as for [`Concurrency::", stringify!($verb), "`].")]
        #[inline]
        pub fn $verb(&self $(, $argument: $type)*) -> Result<ConcurrencyGuard<&Concurrency>, Denied> {
            self.entered(self.limiter.borrow().$verb($($argument),*))
        }
    )*};
}

/// Methods for the limiter itself, or an `Arc` of it.
impl<G: Borrow<Concurrency>, S: Borrow<Counters>> Counted<G, S> {
    counted_entries! {
        /// ```
        /// use tollgate::{Concurrency, Counted};
        ///
        /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
        /// let uploads = Counted::new(Concurrency::new(2)?);
        /// let guard = uploads.try_enter_n(2)?;
        /// assert!(uploads.try_enter().is_err());
        /// drop(guard);
        /// let stats = uploads.stats();
        /// assert_eq!((stats.granted, stats.permits, stats.denied), (1, 2, 1));
        /// # Ok(())
        /// # }
        /// ```
        ///
        fn try_enter();
        fn try_enter_n(n: u64);
        fn try_enter_ahead(n: u64);
    }

    /// Returns a future that enters, and counts its outcome.
    #[inline]
    #[must_use = "it enters only when it is awaited or waited for"]
    pub fn enter(&self) -> Counted<EnterFuture<&Concurrency>, &Counters> {
        self.enter_n(1)
    }

    /// Returns a future that enters with weight `n`, and counts its outcome.
    #[inline]
    #[must_use = "it enters only when it is awaited or waited for"]
    pub fn enter_n(&self, n: u64) -> Counted<EnterFuture<&Concurrency>, &Counters> {
        self.part(self.limiter.borrow().enter_n(n))
    }
}

/// Methods whose guards keep the limiter alive.
impl<S: Borrow<Counters>> Counted<Arc<Concurrency>, S> {
    /// Returns what was counted so far.
    #[must_use]
    pub fn stats(&self) -> LimiterStats {
        self.counts()
    }

    /// Enters if there is room, with a guard that keeps the limiter alive, and counts the outcome:
    /// see [`Concurrency::try_enter_owned`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::{Concurrency, Counted};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let uploads = Counted::new(Arc::new(Concurrency::new(2)?));
    /// let guard = uploads.try_enter_owned(1)?;
    /// std::thread::spawn(move || drop(guard)).join().unwrap();
    /// assert_eq!(uploads.stats().granted, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`Concurrency::try_enter_owned`].
    #[inline]
    pub fn try_enter_owned(&self, n: u64) -> Result<ConcurrencyGuard<Arc<Concurrency>>, Denied> {
        self.entered(self.limiter.try_enter_owned(n))
    }

    /// Returns a future that enters with a guard that keeps the limiter alive, and counts its
    /// outcome.
    #[inline]
    #[must_use = "it enters only when it is awaited or waited for"]
    pub fn enter_owned(&self, n: u64) -> Counted<EnterFuture<Arc<Concurrency>>> {
        self.with_same_counters(self.limiter.enter_owned(n))
    }
}

impl<G: Deref<Target = Concurrency> + Clone, S: Borrow<Counters>> Counted<EnterFuture<G>, S> {
    /// Waits to enter, and counts the outcome.
    ///
    /// # Errors
    ///
    /// The same as for [`EnterFuture::wait`].
    pub fn wait(self) -> Result<ConcurrencyGuard<G>, Denied> {
        let Self { limiter, counters } = self;
        counted(counters.borrow(), limiter.wait())
    }

    /// Waits to enter for at most `timeout`, and counts the outcome.
    ///
    /// # Errors
    ///
    /// The same as for [`EnterFuture::wait_timeout`].
    pub fn wait_timeout(self, timeout: Duration) -> Result<ConcurrencyGuard<G>, Denied> {
        let Self { limiter, counters } = self;
        counted(counters.borrow(), limiter.wait_timeout(timeout))
    }
}

impl<G, S> Future for Counted<EnterFuture<G>, S>
where
    G: Deref<Target = Concurrency> + Clone + Unpin,
    S: Borrow<Counters> + Unpin,
{
    type Output = Result<ConcurrencyGuard<G>, Denied>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let entered = Pin::new(&mut this.limiter).poll(context);
        entered.map(|entered| this.entered(entered))
    }
}

impl<T, S: Borrow<Counters>> Counted<T, S> {
    #[inline(always)]
    fn entered<G: Deref<Target = Concurrency>>(&self, entered: Entered<G>) -> Entered<G> {
        counted(self.counters(), entered)
    }
}

type Entered<G> = Result<ConcurrencyGuard<G>, Denied>;

#[inline(always)]
fn counted<G: Deref<Target = Concurrency>>(counters: &Counters, entered: Entered<G>) -> Entered<G> {
    match &entered {
        Ok(guard) => counters.granted(guard.n()),
        Err(_) => counters.denied(),
    }
    entered
}
