use core::panic::Location;
use core::sync::atomic::AtomicBool;

use super::{CONDITIONS, stop_if_due, wrote};
use crate::primitive::Ordering;

/// Loom's, under conditions: a fence whose ordering is `Relaxed` is none.
#[cfg(any(feature = "map", feature = "wide"))]
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
