//! Atomics for models. On top of what the checker (loom or shuttle) does, they can stop a thread
//! forever, and inject faults that the models must find.

mod atomic;
#[cfg(all(tollgate_loom, feature = "loom"))]
mod by_loom;
#[cfg(not(all(tollgate_loom, feature = "loom")))]
mod by_shuttle;
mod fault;
#[cfg(feature = "wide")]
mod lock;
#[cfg(all(feature = "wide", tollgate_loom, feature = "loom"))]
mod pair;

use core::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

#[cfg(all(tollgate_loom, feature = "loom"))]
use by_loom as checker;
#[cfg(not(all(tollgate_loom, feature = "loom")))]
use by_shuttle as checker;

pub use atomic::AtomicU64;
#[cfg(feature = "wide")]
pub(crate) use atomic::fence;
pub(crate) use checker::{Mutex, MutexGuard, Sleeper};
pub use fault::Fault;
pub(crate) use fault::inject_fault;
#[cfg(feature = "wide")]
pub use lock::{SettersGuard, SettersMutex};

#[cfg(all(feature = "wide", not(all(tollgate_loom, feature = "loom"))))]
pub use atomic::AtomicU128;
#[cfg(all(feature = "wide", tollgate_loom, feature = "loom"))]
pub use pair::AtomicU128;

/// A plain atomic that models do not track.
pub(crate) type Count = core::sync::atomic::AtomicU64;

/// A backoff that never waits.
pub(crate) struct Backoff;

impl Backoff {
    pub(crate) const fn new() -> Self {
        Self
    }

    pub(crate) fn wait_if_changed<T: PartialEq>(&mut self, _seen: T, load: impl Fn() -> T) -> T {
        load()
    }

    pub(crate) fn wait(&mut self) {}
}

/// The conditions under which a model runs. With the default, the code runs unchanged.
#[derive(Debug, Clone, Copy, Default)]
pub struct Conditions {
    /// A fault in a protocol, or of one operation.
    pub fault: Option<Fault>,
    /// An exchange is a load, a comparison and a store.
    pub stores: bool,
    /// Every second weak exchange fails spuriously.
    pub hesitates: bool,
    /// Each load first increments a counter beside the atomic. Loom then explores more
    /// interleavings of loads; shuttle does not need it.
    pub counts_loads: bool,
}

impl Conditions {
    const ALL_WELL: Self = Self {
        fault: None,
        stores: false,
        hesitates: false,
        counts_loads: false,
    };

    /// Returns the conditions of the models that run now.
    pub fn now() -> Self {
        CONDITIONS.get()
    }
}

std::thread_local! {
    // All threads of a model run on one thread of the system.
    static CONDITIONS: Cell<Conditions> = const { Cell::new(Conditions::ALL_WELL) };
    /// Whether any model on this thread stops a thread. If not, operations skip the check.
    static STOPS: Cell<bool> = const { Cell::new(false) };
}

checker::thread_local! {
    static STOP: Cell<Option<Stop>> = Cell::new(None);
    static EXCHANGES: Cell<u64> = Cell::new(0);
}

/// Runs `act`, and returns how many exchanges and other read-modify-writes this thread of a model
/// made in it. Those that failed count too.
pub fn exchanges(act: impl FnOnce()) -> u64 {
    let before = EXCHANGES.with(Cell::get);
    act();
    EXCHANGES.with(Cell::get) - before
}

fn exchanged() {
    EXCHANGES.with(|made| made.set(made.get() + 1));
}

/// Runs models under these conditions.
pub fn under<T>(conditions: Conditions, models: impl FnOnce() -> T) -> T {
    struct Restore(Conditions);
    impl Drop for Restore {
        fn drop(&mut self) {
            CONDITIONS.set(self.0);
        }
    }
    let _restore = Restore(CONDITIONS.replace(conditions));
    models()
}

pub(crate) fn is_made(fault: Fault) -> bool {
    CONDITIONS.get().fault == Some(fault)
}

/// When a thread of a model stops forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Before the next operation, once it has done this many operations on atomics.
    Operations(u64),
    /// Before the next operation, once this many of its operations have written.
    Writes(u64),
}

/// Runs `act` on a thread of a model that stops forever at `stop`, and returns its result, or
/// `None` if it stopped before the end. Stopping is a panic inside `act`: values that it drops must
/// use no atomics.
pub fn stopping<T>(stop: Stop, act: impl FnOnce() -> T) -> Option<T> {
    STOPS.set(true);
    STOP.with(|now| now.set(Some(stop)));
    let done = catch_unwind(AssertUnwindSafe(act));
    STOP.with(|now| now.set(None));
    match done {
        Ok(done) => Some(done),
        Err(stopped) if stopped.is::<Stopped>() => None,
        Err(panic) => resume_unwind(panic),
    }
}

struct Stopped;

fn stop_if_due() {
    if !STOPS.get() {
        return;
    }
    let next = match STOP.with(Cell::get) {
        // `resume_unwind` skips the panic hook, so nothing is printed.
        Some(Stop::Operations(0) | Stop::Writes(0)) => resume_unwind(Box::new(Stopped)),
        Some(Stop::Operations(left)) => Some(Stop::Operations(left - 1)),
        other => other,
    };
    STOP.with(|stop| stop.set(next));
}

fn wrote() {
    if STOPS.get() {
        STOP.with(|stop| {
            if let Some(Stop::Writes(left)) = stop.get() {
                stop.set(Some(Stop::Writes(left.saturating_sub(1))));
            }
        });
    }
}
