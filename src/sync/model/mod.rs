//! What models do to the atomics, besides all that the checker (loom, or shuttle) does: they stop
//! threads, and make faults that they must find.

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
#[cfg(any(feature = "map", feature = "wide"))]
pub(crate) use atomic::fence;
pub(crate) use checker::{Mutex, MutexGuard, Sleeper};
pub use fault::Fault;
pub(crate) use fault::inject_fault;
#[cfg(any(feature = "map", feature = "wide"))]
pub use lock::{SettersGuard, SettersMutex};

#[cfg(all(feature = "wide", not(all(tollgate_loom, feature = "loom"))))]
pub use atomic::AtomicU128;
#[cfg(all(feature = "wide", tollgate_loom, feature = "loom"))]
pub use pair::AtomicU128;

/// Of no model.
pub(crate) type Count = core::sync::atomic::AtomicU64;

/// Does not wait.
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

/// How a model runs. The default is as the crate is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Conditions {
    /// A fault in a protocol.
    pub fault: Option<Fault>,
    /// The operation whose orderings are `Relaxed`: the end of its file's name, and the line. (To
    /// shuttle all are sequentially consistent.)
    pub relaxed: Option<(&'static str, u32)>,
    /// Exchanges compare, and then store.
    pub stores: bool,
    /// Every second weak exchange fails without a reason.
    pub hesitates: bool,
    /// Who loads changes something before. Loom visits more orders then, and shuttle does without.
    pub rings: bool,
}

impl Conditions {
    const ALL_WELL: Self = Self {
        fault: None,
        relaxed: None,
        stores: false,
        hesitates: false,
        rings: false,
    };

    /// Those of the models that run now.
    pub fn now() -> Self {
        CONDITIONS.get()
    }
}

std::thread_local! {
    // All threads of a model run on one thread of the system.
    static CONDITIONS: Cell<Conditions> = const { Cell::new(Conditions::ALL_WELL) };
    /// Whether any model of this thread stops somebody: else nobody need be asked.
    static STOPS: Cell<bool> = const { Cell::new(false) };
}

checker::thread_local! {
    static STOP: Cell<Option<Stop>> = Cell::new(None);
    static THREAD_INDEX: Cell<u64> = Cell::new(0);
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

/// Sets the index of this thread of a model, by which it chooses a shard.
pub fn set_thread_index(place: u64) {
    THREAD_INDEX.with(|thread_index| thread_index.set(place));
}

pub(crate) fn thread_index() -> u64 {
    THREAD_INDEX.with(Cell::get)
}

/// When a thread of a model stops for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// When it has done so many operations on atomics, before the next one.
    Operations(u64),
    /// When so many of them have written, before the next operation.
    Writes(u64),
}

/// Does something on a thread of a model that stops for ever, or all of it, if it comes to its end
/// before. `None` if it stopped. (That it has stopped is a panic for what it was doing: what is
/// dropped then must use no atomics.)
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
        // Without the hook: nobody is to be told.
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
