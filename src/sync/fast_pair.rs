//! Two words in one instruction, where it is known to be there.
//!
//! `portable-atomic` has to look for it, and does so by a call through a pointer for each
//! operation, which costs as much again as the operation. Code that does several operations looks
//! once, and keeps the result.

use super::{AtomicU128, Ordering};

/// The processor exchanges two words in one step, and loads them in one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FastPair(());

#[cfg(all(
    target_arch = "x86_64",
    target_pointer_width = "64",
    not(any(
        miri,
        all(tollgate_loom, feature = "loom"),
        all(tollgate_shuttle, feature = "shuttle")
    ))
))]
#[allow(
    unsafe_code,
    reason = "nothing else is this instruction, without a call"
)]
mod instructions {
    use core::arch::asm;

    use super::{AtomicU128, FastPair, Ordering};

    impl FastPair {
        /// If it is so, and `portable-atomic` knows it: where it was built not to look for it, it
        /// takes locks, which do not keep out a thread that takes none.
        pub(crate) fn there() -> Option<Self> {
            let is_there = AtomicU128::is_lock_free()
                && std::arch::is_x86_feature_detected!("cmpxchg16b")
                && std::arch::is_x86_feature_detected!("avx");
            is_there.then_some(Self(()))
        }

        #[cfg(feature = "keyed")]
        #[inline(always)]
        pub(crate) fn load(self, pair: &AtomicU128, _order: Ordering) -> u128 {
            let found: core::arch::x86_64::__m128i;
            // SAFETY: the address is that of an atomic, aligned to 16 bytes and valid. A processor
            // with AVX (and there is no `FastPair` for any other) loads aligned 16 bytes in one
            // step, as its makers say, and never goes back behind an earlier load. The compiler
            // moves no access of memory over it.
            unsafe {
                asm!(
                    "vmovdqa {found}, xmmword ptr [{pair}]",
                    pair = in(reg) pair.as_ptr(),
                    found = out(xmm_reg) found,
                    options(nostack, preserves_flags),
                );
            }
            // SAFETY: both are 16 bytes, of which any are valid.
            unsafe { core::mem::transmute(found) }
        }

        /// Half a pair is loaded in less time than both.
        #[cfg(feature = "keyed")]
        pub(crate) const LOADS_HALVES: bool = true;

        /// The low half alone.
        #[cfg(feature = "keyed")]
        #[inline(always)]
        pub(crate) fn load_low(self, pair: &AtomicU128, _order: Ordering) -> u64 {
            let low: u64;
            // SAFETY: the address is that of an atomic, aligned to 16 bytes and valid. The
            // processor loads aligned 8 bytes in one step, and never goes back behind an earlier
            // load. The compiler moves no access of memory over it.
            unsafe {
                asm!(
                    "mov {low}, qword ptr [{pair}]",
                    pair = in(reg) pair.as_ptr(),
                    low = out(reg) low,
                    options(nostack, preserves_flags),
                );
            }
            low
        }

        /// A fence after an exchange of this thread, which is one already: no access of memory
        /// goes past a locked instruction.
        #[cfg(feature = "keyed")]
        #[inline(always)]
        pub(crate) fn fence_after_exchange(self, order: Ordering) {
            core::sync::atomic::compiler_fence(order);
        }

        /// Both halves as they were at one moment. The high half must never return to an earlier
        /// value, as a version never does. Faster than [`load`](Self::load), which brings both
        /// through a vector register.
        #[inline(always)]
        pub(crate) fn load_versioned(self, pair: &AtomicU128, _order: Ordering) -> u128 {
            let (low, high): (u64, u64);
            // SAFETY: the address is that of an atomic, aligned to 16 bytes and valid. The
            // processor loads aligned 8 bytes in one step, and never goes back behind an earlier
            // load. The pair is written only by locked exchanges of all 16 bytes. The low half was
            // loaded between two loads of the same high half. The compiler moves no access of
            // memory over it.
            unsafe {
                asm!(
                    "2:",
                    "mov {high}, qword ptr [{pair} + 8]",
                    "mov {low}, qword ptr [{pair}]",
                    "cmp {high}, qword ptr [{pair} + 8]",
                    "jne 2b",
                    pair = in(reg) pair.as_ptr(),
                    high = out(reg) high,
                    low = out(reg) low,
                    options(nostack),
                );
            }
            u128::from(high) << 64 | u128::from(low)
        }

        #[inline(always)]
        pub(crate) fn compare_exchange(
            self,
            pair: &AtomicU128,
            old: u128,
            new: u128,
            _success: Ordering,
            _failure: Ordering,
        ) -> Result<u128, u128> {
            let (low, high): (u64, u64);
            let is_done: u8;
            // SAFETY: the address is that of an atomic, aligned to 16 bytes and valid, and the
            // processor has the instruction, or there were no `FastPair`. RBX, which the compiler
            // keeps for itself, is as before afterwards. It orders all accesses of memory, and the
            // compiler moves none over it.
            unsafe {
                asm!(
                    "xchg rbx, r8",
                    "lock cmpxchg16b xmmword ptr [rdi]",
                    "sete r9b",
                    "mov rbx, r8",
                    in("rdi") pair.as_ptr(),
                    inout("r8") new as u64 => _,
                    in("rcx") (new >> 64) as u64,
                    inout("rax") old as u64 => low,
                    inout("rdx") (old >> 64) as u64 => high,
                    out("r9b") is_done,
                    options(nostack),
                );
            }
            let found = u128::from(high) << 64 | u128::from(low);
            match is_done {
                0 => Err(found),
                _ => Ok(found),
            }
        }
    }
}

/// Elsewhere `portable-atomic` does what can be done; and in a model, the model.
#[cfg(not(all(
    target_arch = "x86_64",
    target_pointer_width = "64",
    not(any(
        miri,
        all(tollgate_loom, feature = "loom"),
        all(tollgate_shuttle, feature = "shuttle")
    ))
)))]
impl FastPair {
    pub(crate) fn there() -> Option<Self> {
        Some(Self(()))
    }

    #[cfg(feature = "keyed")]
    #[inline(always)]
    #[track_caller]
    pub(crate) fn load(self, pair: &AtomicU128, order: Ordering) -> u128 {
        pair.load(order)
    }

    /// Only models do so, to see what is done where it is quicker.
    #[cfg(feature = "keyed")]
    pub(crate) const LOADS_HALVES: bool = super::IS_MODEL;

    #[cfg(feature = "keyed")]
    #[inline(always)]
    #[track_caller]
    pub(crate) fn load_low(self, pair: &AtomicU128, order: Ordering) -> u64 {
        pair.load(order) as u64
    }

    #[cfg(feature = "keyed")]
    #[inline(always)]
    #[track_caller]
    pub(crate) fn fence_after_exchange(self, order: Ordering) {
        super::fence(order);
    }

    #[inline(always)]
    #[track_caller]
    pub(crate) fn load_versioned(self, pair: &AtomicU128, order: Ordering) -> u128 {
        pair.load(order)
    }

    #[inline(always)]
    #[track_caller]
    pub(crate) fn compare_exchange(
        self,
        pair: &AtomicU128,
        old: u128,
        new: u128,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u128, u128> {
        pair.compare_exchange(old, new, success, failure)
    }
}

#[cfg(all(
    test,
    not(any(
        all(tollgate_loom, feature = "loom"),
        all(tollgate_shuttle, feature = "shuttle")
    ))
))]
mod tests {
    use super::{AtomicU128, FastPair, Ordering};

    /// With `RUSTFLAGS="--cfg portable_atomic_no_outline_atomics"` there are locks, also where
    /// there is the instruction.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn instructions_and_locks_are_not_used_together() {
        assert!(FastPair::there().is_none() || AtomicU128::is_lock_free());
    }

    #[test]
    fn it_does_what_the_atomic_does() {
        let Some(fast_pair) = FastPair::there() else {
            return;
        };
        let (first, second) = (7_u128 << 64 | 3, u128::MAX << 17);
        let pair = AtomicU128::new(first);
        let exchange = |old, new| {
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            fast_pair.compare_exchange(&pair, old, new, success, failure)
        };
        for other in [first ^ 1, first ^ 1 << 64, second] {
            assert_eq!(exchange(other, second), Err(first));
            // ORDERING: Acquire, as its users load. There is no other thread.
            #[cfg(feature = "keyed")]
            assert_eq!(fast_pair.load(&pair, Ordering::Acquire), first);
            // ORDERING: Acquire, as above.
            #[cfg(feature = "keyed")]
            assert_eq!(fast_pair.load_low(&pair, Ordering::Acquire), first as u64);
            // ORDERING: Acquire, as its users load. There is no other thread.
            assert_eq!(fast_pair.load_versioned(&pair, Ordering::Acquire), first);
        }
        assert_eq!(exchange(first, second), Ok(first));
        assert_eq!(pair.load(Ordering::Acquire), second);
    }
}
