//! The one place that knows where atomics come from.
//!
//! The rest of the crate, and code that wants to be model-checked together with it, takes its
//! atomics from here. A normal build gets the processor's (or `portable-atomic`'s, where the
//! processor has no 64-bit ones), a build with `--cfg tollgate_loom` and the feature `loom` gets
//! loom's. They are `type` aliases and not re-exports, so that clippy's ban on raw atomics is loud
//! at a direct use and quiet here.

#![allow(clippy::disallowed_types)]

pub use core::sync::atomic::Ordering;

#[cfg(all(tollgate_loom, feature = "loom"))]
mod source {
    pub(super) type AtomicU64 = super::modelled::AtomicU64;
}

#[cfg(all(
    not(all(tollgate_loom, feature = "loom")),
    any(not(target_has_atomic = "64"), tollgate_portable_atomic)
))]
mod source {
    pub(super) type AtomicU64 = portable_atomic::AtomicU64;
}

#[cfg(all(
    not(all(tollgate_loom, feature = "loom")),
    target_has_atomic = "64",
    not(tollgate_portable_atomic)
))]
mod source {
    pub(super) type AtomicU64 = core::sync::atomic::AtomicU64;
}

/// The 64-bit atomic that every word of this crate lives in.
///
/// Which type that is depends on the processor and on the build, so name it by this name only: what
/// stands behind it is not covered by the crate's version.
///
/// ```
/// use tollgate::primitive::{AtomicU64, Ordering};
///
/// let word = AtomicU64::new(7);
/// assert_eq!(word.load(Ordering::Relaxed), 7);
/// ```
pub type AtomicU64 = source::AtomicU64;

/// Two words that change together: `portable-atomic`'s, and a model's of it under loom.
#[cfg(all(feature = "wide", not(all(tollgate_loom, feature = "loom"))))]
pub(crate) type AtomicU128 = portable_atomic::AtomicU128;
#[cfg(all(feature = "wide", tollgate_loom, feature = "loom"))]
pub(crate) type AtomicU128 = modelled::AtomicU128;

/// A fence between accesses of several atomics.
#[cfg(all(feature = "wide", not(all(tollgate_loom, feature = "loom"))))]
pub(crate) use core::sync::atomic::fence;
#[cfg(all(feature = "wide", tollgate_loom, feature = "loom"))]
pub(crate) use modelled::fence;

/// A lock, for what is done only where somebody has to wait anyhow.
#[cfg(all(feature = "std", not(all(tollgate_loom, feature = "loom"))))]
pub(crate) type Mutex<T> = std::sync::Mutex<T>;
#[cfg(all(feature = "std", not(all(tollgate_loom, feature = "loom"))))]
pub(crate) type MutexGuard<'a, T> = std::sync::MutexGuard<'a, T>;
#[cfg(all(tollgate_loom, feature = "loom"))]
pub(crate) type Mutex<T> = loom::sync::Mutex<T>;
#[cfg(all(tollgate_loom, feature = "loom"))]
pub(crate) type MutexGuard<'a, T> = loom::sync::MutexGuard<'a, T>;

#[cfg(all(tollgate_loom, feature = "loom"))]
pub(crate) use modelled::Sleeper;
#[cfg(all(feature = "std", not(all(tollgate_loom, feature = "loom"))))]
pub(crate) use sleeper::Sleeper;

#[cfg(all(feature = "std", not(all(tollgate_loom, feature = "loom"))))]
mod sleeper {
    use core::time::Duration;
    use std::sync::Arc;
    use std::task::Wake;
    use std::thread::{self, Thread};

    /// A thread that sleeps until it is woken, and not at all if it was woken since. It may also wake
    /// without a reason.
    pub(crate) struct Sleeper(Thread);

    impl Sleeper {
        pub(crate) fn here() -> Arc<Self> {
            Arc::new(Self(thread::current()))
        }

        pub(crate) fn sleep(&self) {
            thread::park();
        }

        pub(crate) fn sleep_at_most(&self, long: Duration) {
            thread::park_timeout(long);
        }
    }

    impl Wake for Sleeper {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
}

/// What keeps apart those who change parameters, of whom one may be stopped for ever. No decision takes one.
#[cfg(all(feature = "wide", not(all(tollgate_loom, feature = "loom"))))]
pub(crate) type SettersMutex<T> = std::sync::Mutex<T>;
#[cfg(all(feature = "wide", tollgate_loom, feature = "loom"))]
pub(crate) type SettersMutex<T> = modelled::Mutex<T>;

/// Defines a function that is `const` in a normal build and an ordinary one under loom, whose
/// atomics can only be made while a model runs.
macro_rules! const_unless_loom {
    ($(#[$meta:meta])* $vis:vis fn $($rest:tt)*) => {
        #[cfg(not(all(tollgate_loom, feature = "loom")))]
        $(#[$meta])* $vis const fn $($rest)*
        #[cfg(all(tollgate_loom, feature = "loom"))]
        $(#[$meta])* $vis fn $($rest)*
    };
}
pub(crate) use const_unless_loom;

/// Whether a model has asked for a mistake; or what is done then, and what is right. In any other build
/// only what is right is there.
#[cfg(not(all(tollgate_loom, feature = "loom")))]
#[allow(unused_macros, reason = "without std nobody asks")]
macro_rules! mistake {
    ($mistake:ident) => {
        false
    };
    ($mistake:ident => $wrong:expr, else $right:expr) => {
        $right
    };
}
#[cfg(all(tollgate_loom, feature = "loom"))]
macro_rules! mistake {
    ($mistake:ident) => {
        $crate::primitive::modelled::is_made($crate::primitive::modelled::Mistake::$mistake)
    };
    ($mistake:ident => $wrong:expr, else $right:expr) => {
        match mistake!($mistake) {
            true => $wrong,
            false => $right,
        }
    };
}
#[allow(unused_imports, reason = "without std nobody asks")]
pub(crate) use mistake;

/// What models do to the atomics, besides all that loom does: they stop threads, and make mistakes that
/// they must find.
#[cfg(all(tollgate_loom, feature = "loom"))]
pub mod modelled {
    use core::cell::Cell;
    use core::panic::Location;
    use core::sync::atomic::AtomicBool;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    use super::Ordering;

    /// A protocol's mistake: its code asks for it by `mistake!`, where the mistake would be.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Mistake {
        /// Shards: what was taken in vain is put back whatever the word is by now.
        PutsBackBlindly,
        /// Shards: it is put back although permits were given back since.
        IgnoresGiveBacks,
        /// Shards: permits are given back while somebody is putting back.
        LowersMeanwhile,
        /// Shards: what was taken in vain is kept.
        PutsNothingBack,
        /// Leases: a lease that is dropped releases its size first, and then its permits.
        ReleasesSizeFirst,
        /// Reservations: one in the middle comes back although somebody waits after it.
        CancelsInTheMiddle,
        /// Slots: a slot is finished without its word being frozen.
        SkipsTheFreeze,
        /// Slots: permits are taken from a frozen word.
        IgnoresTheFreeze,
        /// Slots: a finished slot is recorded by a store.
        RecordsByStore,
        /// Slots: only who froze the word records.
        LeavesRecordingToOthers,
        /// Log: what was claimed is entered before it is claimed.
        EntersFirst,
        /// Log: nobody enters what another has claimed.
        NeverHelps,
        /// Log: permits are claimed before the last claim is entered.
        TakesUnentered,
        /// Log: a helper enters its own tick, whatever was seen before.
        HelpsAtItsTick,
        /// Log: places are entered although the state has gone on.
        EntersLate,
        /// Changes: what was read of the parameters is not checked.
        ReadsUnchecked,
        /// Changes: parameters are written before it is said whose they are.
        SaysAfterwards,
        /// Changes: a decision compares the word alone, and not the version.
        ComparesTheWordAlone,
        /// Changes: the version is changed first, and the word is carried over afterwards.
        CarriesAfterwards,
        /// Changes: a grant is undone by its mark, whatever version it is of.
        UndoesOldMarks,
        /// Concurrency: who comes does not look whether somebody waits.
        Overtakes,
        /// Concurrency: who found no room says that somebody waits whatever the word is by now.
        WaitsBlindly,
        /// Concurrency: who leaves lets nobody in.
        LeavesSilently,
        /// Concurrency: who gives up the first place in the line lets nobody in.
        GivesUpSilently,
        /// Concurrency: who gives up after being let in keeps what was handed over.
        KeepsWhatWasHanded,
        /// Concurrency: a raised limit lets nobody in.
        RaisesSilently,
        /// Concurrency: who was let in at the last moment is told that it is too late.
        TooLateAnyhow,
        /// Concurrency: a limit is set by a load and a store.
        SetsByStore,
        /// Concurrency: a lowered limit refuses nobody who waits for more.
        LowersSilently,
        /// Smooth: a new rate is written over the one in force.
        OverwritesTheRate,
        /// Smooth: the rate is read before the state.
        ReadsTheRateFirst,
        /// Smooth: when the versions begin anew, the next turn stays where it is.
        KeepsTheTurn,
        /// Smooth: two set rates at once.
        SetsTogether,
        /// Smooth: a rate is told without another look at the state.
        TellsWithoutALook,
    }

    /// How a model runs. The default is as the crate is.
    #[derive(Debug, Clone, Copy, Default)]
    pub struct Conditions {
        /// A mistake in a protocol.
        pub mistake: Option<Mistake>,
        /// The operation whose orderings are `Relaxed`: the end of its file's name, and the line.
        pub relaxed: Option<(&'static str, u32)>,
        /// Exchanges compare, and then store.
        pub stores: bool,
        /// Every second weak exchange fails without a reason.
        pub hesitates: bool,
        /// Who loads changes something before. Loom visits more orders then.
        pub rings: bool,
    }

    impl Conditions {
        const ALL_WELL: Self = Self {
            mistake: None,
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
        // Loom runs all threads of a model on one thread of the system.
        static CONDITIONS: Cell<Conditions> = const { Cell::new(Conditions::ALL_WELL) };
        /// Whether any model of this thread stops somebody: else nobody need be asked.
        static STOPS: Cell<bool> = const { Cell::new(false) };
    }

    loom::thread_local! {
        static STOP: Cell<Option<Stop>> = Cell::new(None);
        static HOME: Cell<u64> = Cell::new(0);
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

    pub(crate) fn is_made(mistake: Mistake) -> bool {
        CONDITIONS.get().mistake == Some(mistake)
    }

    /// This thread of a model is at home in this place, where there are several.
    pub fn be_at_home(place: u64) {
        HOME.with(|home| home.set(place));
    }

    pub(crate) fn home() -> u64 {
        HOME.with(Cell::get)
    }

    /// When a thread of a model stops for ever.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Stop {
        /// When it has done so many operations on atomics, before the next one.
        Operations(u64),
        /// When so many of them have written, before the next operation.
        Writes(u64),
    }

    /// Does something on a thread of a model that stops for ever, or all of it, if it comes to its end before.
    /// `None` if it stopped. (That it has stopped is a panic for what it was doing: what is dropped then must
    /// use no atomics.)
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

    /// Loom's, under conditions: a fence whose ordering is `Relaxed` is none.
    #[cfg(feature = "wide")]
    #[track_caller]
    pub(crate) fn fence(order: Ordering) {
        let here = Location::caller();
        match CONDITIONS.get().relaxed {
            Some((file, line)) if here.line() == line && here.file().ends_with(file) => {}
            _ => loom::sync::atomic::fence(order),
        }
    }

    /// Loom's, under conditions.
    #[derive(Debug)]
    pub struct AtomicU64 {
        word: loom::sync::atomic::AtomicU64,
        bell: Option<loom::sync::atomic::AtomicU64>,
        hesitated: AtomicBool,
    }

    macro_rules! read_modify_writes {
        ($($name:ident)*) => {$(
            #[allow(missing_docs, reason = "as the standard library's")]
            #[track_caller]
            pub fn $name(&self, operand: u64, order: Ordering) -> u64 {
                let order = self.before(order);
                let was = self.word.$name(operand, order);
                wrote();
                was
            }
        )*};
    }

    #[allow(missing_docs, reason = "as the standard library's")]
    impl AtomicU64 {
        pub fn new(word: u64) -> Self {
            let new = loom::sync::atomic::AtomicU64::new;
            Self {
                word: new(word),
                bell: CONDITIONS.get().rings.then(|| new(0)),
                hesitated: AtomicBool::new(false),
            }
        }

        /// What comes before each operation. The ordering that it has.
        #[track_caller]
        fn before(&self, order: Ordering) -> Ordering {
            stop_if_due();
            let here = Location::caller();
            match CONDITIONS.get().relaxed {
                Some((file, line)) if here.line() == line && here.file().ends_with(file) => {
                    Ordering::Relaxed
                }
                _ => order,
            }
        }

        #[track_caller]
        pub fn load(&self, order: Ordering) -> u64 {
            let order = self.before(order);
            if let Some(bell) = &self.bell {
                bell.fetch_add(1, Ordering::Relaxed);
            }
            self.word.load(order)
        }

        #[track_caller]
        pub fn store(&self, word: u64, order: Ordering) {
            let order = self.before(order);
            self.word.store(word, order);
            wrote();
        }

        #[track_caller]
        pub fn compare_exchange(
            &self,
            word: u64,
            next: u64,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u64, u64> {
            let success = self.before(success);
            let exchanged = match CONDITIONS.get().stores {
                false => self.word.compare_exchange(word, next, success, failure),
                true => match self.word.load(failure) {
                    seen if seen == word => {
                        self.word.store(next, success);
                        Ok(word)
                    }
                    seen => Err(seen),
                },
            };
            if exchanged.is_ok() {
                wrote();
            }
            exchanged
        }

        #[track_caller]
        pub fn compare_exchange_weak(
            &self,
            word: u64,
            next: u64,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u64, u64> {
            if CONDITIONS.get().hesitates && !self.hesitated.fetch_xor(true, Ordering::Relaxed) {
                return Err(word);
            }
            self.compare_exchange(word, next, success, failure)
        }

        read_modify_writes! { swap fetch_add fetch_sub fetch_and fetch_nand fetch_or fetch_xor fetch_max fetch_min }
    }

    /// Loom's, which who stops for ever while holding it never gives back.
    #[cfg(feature = "wide")]
    #[derive(Debug)]
    pub struct Mutex<T>(loom::sync::Mutex<T>);

    /// Who has one holds it.
    #[cfg(feature = "wide")]
    #[derive(Debug)]
    pub struct MutexGuard<'a, T>(Option<loom::sync::MutexGuard<'a, T>>);

    #[cfg(feature = "wide")]
    #[allow(missing_docs, reason = "as the standard library's")]
    impl<T> Mutex<T> {
        pub fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub fn lock(&self) -> std::sync::LockResult<MutexGuard<'_, T>> {
            stop_if_due();
            self.0
                .lock()
                .map(|guard| MutexGuard(Some(guard)))
                .map_err(|poisoned| {
                    std::sync::PoisonError::new(MutexGuard(Some(poisoned.into_inner())))
                })
        }
    }

    #[cfg(feature = "wide")]
    impl<T> Drop for MutexGuard<'_, T> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                core::mem::forget(self.0.take());
            }
        }
    }

    impl Default for AtomicU64 {
        fn default() -> Self {
            Self::new(0)
        }
    }

    impl From<u64> for AtomicU64 {
        fn from(word: u64) -> Self {
            Self::new(word)
        }
    }

    /// As the one of threads, with loom's notification. What is to last for a time has passed at once.
    pub(crate) struct Sleeper(loom::sync::Notify);

    impl Sleeper {
        pub(crate) fn here() -> std::sync::Arc<Self> {
            std::sync::Arc::new(Self(loom::sync::Notify::new()))
        }

        pub(crate) fn sleep(&self) {
            self.0.wait();
        }

        pub(crate) fn sleep_at_most(&self, _long: core::time::Duration) {}
    }

    impl std::task::Wake for Sleeper {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.notify();
        }
    }

    /// Two words that change together: loom has no such atomic. What is atomic here is the number under which
    /// a pair is known, and equal pairs are known under equal numbers, so it is loom that orders the operations.
    #[cfg(feature = "wide")]
    #[derive(Debug)]
    pub struct AtomicU128 {
        number: AtomicU64,
    }

    #[cfg(feature = "wide")]
    static PAIRS: std::sync::Mutex<std::vec::Vec<u128>> =
        std::sync::Mutex::new(std::vec::Vec::new());

    #[cfg(feature = "wide")]
    #[allow(missing_docs, reason = "as portable-atomic's")]
    impl AtomicU128 {
        pub fn new(pair: u128) -> Self {
            Self {
                number: AtomicU64::new(Self::number_of(pair)),
            }
        }

        fn number_of(pair: u128) -> u64 {
            let mut pairs = PAIRS
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let known = pairs.iter().position(|known| *known == pair);
            let place = known.unwrap_or_else(|| {
                pairs.push(pair);
                pairs.len() - 1
            });
            place as u64
        }

        fn pair_of(number: u64) -> u128 {
            let pairs = PAIRS
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            pairs[number as usize]
        }

        pub fn is_lock_free() -> bool {
            true
        }

        #[track_caller]
        pub fn load(&self, order: Ordering) -> u128 {
            Self::pair_of(self.number.load(order))
        }

        #[track_caller]
        pub fn compare_exchange(
            &self,
            pair: u128,
            next: u128,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u128, u128> {
            let (pair, next) = (Self::number_of(pair), Self::number_of(next));
            let exchanged = self.number.compare_exchange(pair, next, success, failure);
            exchanged.map(Self::pair_of).map_err(Self::pair_of)
        }

        #[track_caller]
        pub fn compare_exchange_weak(
            &self,
            pair: u128,
            next: u128,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u128, u128> {
            let (pair, next) = (Self::number_of(pair), Self::number_of(next));
            let exchanged = self
                .number
                .compare_exchange_weak(pair, next, success, failure);
            exchanged.map(Self::pair_of).map_err(Self::pair_of)
        }

        #[track_caller]
        pub fn swap(&self, next: u128, order: Ordering) -> u128 {
            Self::pair_of(self.number.swap(Self::number_of(next), order))
        }
    }
}
