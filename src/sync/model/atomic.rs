use core::panic::Location;
use core::sync::atomic::AtomicBool;

use super::{CONDITIONS, Fault, checker, exchanged, stop_if_due, wrote};
use crate::sync::{Ordering, const_unless_loom};

/// The checker's fence under the current conditions. A fence weakened to `Relaxed` is no fence.
#[cfg(feature = "wide")]
#[track_caller]
pub(crate) fn fence(order: Ordering) {
    if !matches!(fault_here(), Some(Fault::Relaxed(_))) {
        checker::fence(order);
    }
}

/// Runs before each operation, and returns the ordering that the operation uses.
#[track_caller]
fn before(order: Ordering) -> Ordering {
    stop_if_due();
    match fault_here() {
        Some(Fault::Relaxed(_)) => Ordering::Relaxed,
        _ => order,
    }
}

/// Returns the fault of the calling operation.
#[track_caller]
pub(super) fn fault_here() -> Option<Fault> {
    let fault = CONDITIONS.get().fault?;
    let (file, line) = fault.operation()?;
    let here = Location::caller();
    (here.line() == line && here.file().ends_with(file)).then_some(fault)
}

/// Defines an atomic that wraps the checker's and applies the current
/// [`Conditions`](super::Conditions). Each operation is one operation of the checker's atomic,
/// unless a condition adds more.
macro_rules! modeled {
    ($(#[$meta:meta])* $name:ident of $word:ty, $checkers:ty) => {
        $(#[$meta])*
        #[derive(Debug)]
        pub struct $name {
            word: $checkers,
            load_counter: Option<checker::AtomicU64>,
            hesitated: AtomicBool,
        }

        #[allow(missing_docs, reason = "as the standard library's")]
        impl $name {
            const_unless_loom! {
                pub fn new(word: $word) -> Self {
                    Self {
                        word: <$checkers>::new(word),
                        load_counter: checker::load_counter(),
                        hesitated: AtomicBool::new(false),
                    }
                }
            }

            #[track_caller]
            pub fn load(&self, order: Ordering) -> $word {
                let order = before(order);
                if let Some(Fault::Zero(_)) = fault_here() {
                    return 0;
                }
                if let Some(load_counter) = &self.load_counter {
                    // ORDERING: Relaxed. It publishes nothing. The operation only lets the checker
                    // switch threads before the load.
                    load_counter.fetch_add(1, Ordering::Relaxed);
                }
                self.word.load(order)
            }

            #[track_caller]
            pub fn store(&self, word: $word, order: Ordering) {
                let order = before(order);
                self.word.store(word, order);
                wrote();
            }

            #[track_caller]
            pub fn compare_exchange(
                &self,
                word: $word,
                next: $word,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$word, $word> {
                let success = before(success);
                exchanged();
                let outcome = match fault_here() {
                    Some(Fault::Idle(_)) => return Ok(word),
                    Some(Fault::Blind(_)) => Ok(self.word.swap(next, success)),
                    _ if CONDITIONS.get().stores => match self.word.load(failure) {
                        seen if seen == word => {
                            self.word.store(next, success);
                            Ok(word)
                        }
                        seen => Err(seen),
                    },
                    _ => self.word.compare_exchange(word, next, success, failure),
                };
                if outcome.is_ok() {
                    wrote();
                }
                outcome
            }

            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                word: $word,
                next: $word,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$word, $word> {
                if CONDITIONS.get().hesitates && !self.hesitated.fetch_xor(true, Ordering::Relaxed) {
                    return Err(word);
                }
                self.compare_exchange(word, next, success, failure)
            }

            modeled! { read_modify_writes $word: swap fetch_add fetch_sub fetch_and fetch_nand fetch_or fetch_xor fetch_max fetch_min }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new(0)
            }
        }

        impl From<$word> for $name {
            fn from(word: $word) -> Self {
                Self::new(word)
            }
        }
    };
    (read_modify_writes $word:ty: $($name:ident)*) => {$(
        #[allow(missing_docs, reason = "as the standard library's")]
        #[track_caller]
        pub fn $name(&self, operand: $word, order: Ordering) -> $word {
            let order = before(order);
            exchanged();
            let was = match fault_here() {
                Some(Fault::Blind(_)) => self.word.swap(operand, order),
                _ => self.word.$name(operand, order),
            };
            wrote();
            was
        }
    )*};
}

modeled! {
    /// The checker's 64-bit atomic under the current conditions.
    AtomicU64 of u64, checker::AtomicU64
}

#[cfg(all(feature = "wide", not(all(tollgate_loom, feature = "loom"))))]
modeled! {
    /// The checker's 128-bit atomic under the current conditions.
    AtomicU128 of u128, checker::AtomicU128
}

#[cfg(all(feature = "wide", not(all(tollgate_loom, feature = "loom"))))]
#[allow(missing_docs, reason = "as portable-atomic's")]
impl AtomicU128 {
    pub const fn is_lock_free() -> bool {
        true
    }
}
