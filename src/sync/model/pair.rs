use core::cell::RefCell;
use std::collections::HashMap;
use std::vec::Vec;

use super::atomic::fault_here;
use super::{AtomicU64, Fault};
use crate::sync::Ordering;

const LOW_HALF: u128 = u64::MAX as u128;

/// A 128-bit atomic for loom, which has none. It holds an atomic number that stands for a pair.
/// Equal pairs have equal numbers, so loom orders the operations correctly.
#[derive(Debug)]
pub struct AtomicU128 {
    number: AtomicU64,
}

/// The numbered pairs of all models on this thread of the system, which runs all threads of a
/// model.
#[derive(Default)]
struct Pairs {
    by_number: Vec<u128>,
    numbers: HashMap<u128, u64>,
}

std::thread_local! {
    static PAIRS: RefCell<Pairs> = RefCell::default();
}

#[allow(missing_docs, reason = "as portable-atomic's")]
impl AtomicU128 {
    pub fn new(pair: u128) -> Self {
        Self {
            number: AtomicU64::new(Self::number_of(pair)),
        }
    }

    fn number_of(pair: u128) -> u64 {
        PAIRS.with_borrow_mut(|pairs| {
            let next = pairs.by_number.len() as u64;
            let number = *pairs.numbers.entry(pair).or_insert(next);
            if number == next {
                pairs.by_number.push(pair);
            }
            number
        })
    }

    fn pair_of(number: u64) -> u128 {
        PAIRS.with_borrow(|pairs| pairs.by_number[number as usize])
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
        let half = match fault_here() {
            Some(Fault::LowHalf(_)) => LOW_HALF,
            Some(Fault::HighHalf(_)) => !LOW_HALF,
            _ => u128::MAX,
        };
        if half != u128::MAX {
            // The exchanges of this closure have another place in the source, and so no fault.
            let exchange = |pair, next| self.compare_exchange(pair, next, success, failure);
            return match exchange(pair, next) {
                Err(seen) if (seen ^ pair) & half == 0 => {
                    exchange(seen, seen & !half | next & half)
                }
                exchanged => exchanged,
            };
        }
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
