//! 128-bit atomic instructions, where the processor is known to have them.
//!
//! `portable-atomic` looks for them on every operation, with a call through a pointer that costs as
//! much as the operation itself. Code that does several operations gets a [`FastPair`] once and
//! uses it for all of them.

use super::{AtomicU128, Ordering};

/// Proof that the processor can load and exchange 128 bits atomically.
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
    reason = "no intrinsic gives these instructions without a call"
)]
mod instructions {
    use core::arch::asm;

    use super::{AtomicU128, FastPair, Ordering};

    impl FastPair {
        /// Returns a `FastPair` if the processor has the instructions and `portable-atomic` uses
        /// them. If `portable-atomic` was built not to detect them, it uses locks, and a lock does
        /// not exclude a thread that uses the instructions.
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
            // SAFETY: the address comes from an atomic, so it is valid and aligned to 16 bytes. A
            // `FastPair` exists only on processors with AVX, for which the vendors guarantee that
            // an aligned 16-byte load is atomic. The processor does not move a load before an
            // earlier one, and the compiler moves no memory access across the assembly.
            unsafe {
                asm!(
                    "vmovdqa {found}, xmmword ptr [{pair}]",
                    pair = in(reg) pair.as_ptr(),
                    found = out(xmm_reg) found,
                    options(nostack, preserves_flags),
                );
            }
            // SAFETY: both types are 16 bytes, and every bit pattern is valid.
            unsafe { core::mem::transmute(found) }
        }

        /// Whether loading one half is faster than loading both.
        #[cfg(feature = "keyed")]
        pub(crate) const LOADS_HALVES: bool = true;

        /// Loads the low half only.
        #[cfg(feature = "keyed")]
        #[inline(always)]
        pub(crate) fn load_low(self, pair: &AtomicU128, _order: Ordering) -> u64 {
            let low: u64;
            // SAFETY: the address comes from an atomic, so it is valid and aligned to 16 bytes. An
            // aligned 8-byte load is atomic. The processor does not move a load before an earlier
            // one, and the compiler moves no memory access across the assembly.
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

        /// A fence directly after an exchange by this thread. The exchange is a locked instruction,
        /// which no memory access can pass, so only the compiler needs the fence.
        #[cfg(feature = "keyed")]
        #[inline(always)]
        pub(crate) fn fence_after_exchange(self, order: Ordering) {
            core::sync::atomic::compiler_fence(order);
        }

        /// Loads both halves as they were at one moment. The high half must never return to an
        /// earlier value, as with a version number. Faster than [`load`](Self::load), which goes
        /// through a vector register.
        #[inline(always)]
        pub(crate) fn load_versioned(self, pair: &AtomicU128, _order: Ordering) -> u128 {
            let (low, high): (u64, u64);
            // SAFETY: the address comes from an atomic, so it is valid and aligned to 16 bytes. An
            // aligned 8-byte load is atomic, and the processor does not move a load before an
            // earlier one. The pair is written only by locked exchanges of all 16 bytes, and the
            // low half is loaded between two loads of the same high half, so the halves belong
            // together. The compiler moves no memory access across the assembly.
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
            // SAFETY: the address comes from an atomic, so it is valid and aligned to 16 bytes. A
            // `FastPair` exists only on processors that have the instruction. RBX, which the
            // compiler reserves, is restored. The instruction orders all memory accesses, and the
            // compiler moves none across the assembly.
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

/// On other targets this forwards to `portable-atomic`, and in a model to the model's atomic.
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

    /// True in models, so that they cover the code that loads halves.
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

#[cfg(test)]
mod tests {
    use super::{AtomicU128, FastPair, Ordering};

    /// With `RUSTFLAGS="--cfg portable_atomic_no_outline_atomics"`, `portable-atomic` uses locks
    /// even if the processor has the instruction.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn instructions_and_locks_are_not_used_together() {
        assert!(FastPair::there().is_none() || AtomicU128::is_lock_free());
    }

    #[test]
    fn a_fast_pair_behaves_as_the_atomic() {
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
            // ORDERING: Acquire, as its callers use. There is no other thread.
            #[cfg(feature = "keyed")]
            assert_eq!(fast_pair.load(&pair, Ordering::Acquire), first);
            // ORDERING: Acquire, as above.
            #[cfg(feature = "keyed")]
            assert_eq!(fast_pair.load_low(&pair, Ordering::Acquire), first as u64);
            // ORDERING: Acquire, as above.
            assert_eq!(fast_pair.load_versioned(&pair, Ordering::Acquire), first);
        }
        assert_eq!(exchange(first, second), Ok(first));
        assert_eq!(pair.load(Ordering::Acquire), second);
    }
}
