//! The threads and futures that sleep on a [`ManualClock`].

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;
use std::thread::{self, Thread};

use super::{Clock, ManualClock, Tick};

/// All sleepers, ordered by the tick for which they sleep, and then by arrival.
#[derive(Default)]
pub(super) struct Sleepers {
    all: Mutex<Registry>,
}

#[derive(Default)]
struct Registry {
    by_tick: BTreeMap<(Tick, u64), Waker>,
    came: u64,
}

/// A sleeper's key in the registry.
type SleeperKey = (Tick, u64);

impl Sleepers {
    fn all(&self) -> MutexGuard<'_, Registry> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a sleeper, or updates its waker if it is registered already. Returns `None` if the
    /// sleeper is due.
    ///
    /// The clock is read under the lock that `wake` takes too, so no wake-up is lost. If another
    /// thread moves the clock before this reading, the reading shows it. If it moves the clock
    /// later, its `wake` finds the sleeper.
    fn register(
        &self,
        due: Tick,
        known: Option<SleeperKey>,
        waker: &Waker,
        now: impl FnOnce() -> Tick,
    ) -> Option<SleeperKey> {
        // Wakers run an executor's code, so none is cloned or dropped under the lock.
        let waker = waker.clone();
        let mut all = self.all();
        if now() >= due {
            let old = known.and_then(|place| all.by_tick.remove(&place));
            drop(all);
            drop(old);
            return None;
        }
        let place = known.unwrap_or_else(|| {
            all.came += 1;
            (due, all.came)
        });
        let old = all.by_tick.insert(place, waker);
        drop(all);
        drop(old);
        Some(place)
    }

    fn forget(&self, place: SleeperKey) {
        let old = self.all().by_tick.remove(&place);
        drop(old);
    }

    pub(super) fn next(&self) -> Option<Tick> {
        let all = self.all();
        let first = all.by_tick.first_key_value();
        first.map(|((tick, _), _)| *tick)
    }

    pub(super) fn len(&self) -> usize {
        self.all().by_tick.len()
    }

    /// Wakes the sleepers that are due, the earliest first. It removes one at a time: a waker may
    /// run any code, and if one panics, the others are still registered.
    pub(super) fn wake(&self, now: impl Fn() -> Tick) {
        while let Some(waker) = self.first_until(&now) {
            waker.wake();
        }
    }

    fn first_until(&self, now: impl Fn() -> Tick) -> Option<Waker> {
        let mut all = self.all();
        let first = all.by_tick.first_entry()?;
        (first.key().0 <= now()).then(|| first.remove())
    }

    /// Blocks this thread until the clock reads `due` or later.
    pub(super) fn block_until(&self, due: Tick, now: impl Fn() -> Tick) -> Tick {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut place = None;
        loop {
            place = self.register(due, place, &waker, &now);
            if place.is_none() {
                // The clock may have been set back in between.
                return due.max(now());
            }
            thread::park();
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The future of [`ManualClock`]'s [`Timer`](crate::clock::Timer): ends when the clock reaches its
/// tick.
pub struct ManualSleep {
    clock: ManualClock,
    due: Tick,
    place: Option<SleeperKey>,
}

impl ManualSleep {
    pub(super) fn new(clock: ManualClock, due: Tick) -> Self {
        Self {
            clock,
            due,
            place: None,
        }
    }
}

impl Future for ManualSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let sleepers = self.clock.registry();
        let place = sleepers.register(self.due, self.place, context.waker(), || self.clock.now());
        self.place = place;
        match place {
            Some(_) => Poll::Pending,
            None => Poll::Ready(()),
        }
    }
}

impl Drop for ManualSleep {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.clock.registry().forget(place);
        }
    }
}

impl fmt::Debug for ManualSleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualSleep")
            .field("due", &self.due)
            .finish()
    }
}
