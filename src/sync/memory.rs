//! The memory of a keyed table: zeroed by the system, so that unused pages take no memory, and
//! aligned to cache lines.

use super::AtomicU128;

/// Whether this build is a model.
pub(crate) const IS_MODEL: bool = cfg!(any(
    all(tollgate_loom, feature = "loom"),
    all(tollgate_shuttle, feature = "shuttle")
));

/// How many slots a bucket has. Models use as few as possible.
pub(crate) const SLOTS: usize = if IS_MODEL { 1 } else { 4 };

/// A cache line of slots, of 128 bits each.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Bucket {
    pub(crate) slots: [AtomicU128; SLOTS],
}

#[cfg(not(any(
    all(tollgate_loom, feature = "loom"),
    all(tollgate_shuttle, feature = "shuttle")
)))]
pub(crate) use zeroed::Buckets;

#[cfg(not(any(
    all(tollgate_loom, feature = "loom"),
    all(tollgate_shuttle, feature = "shuttle")
)))]
#[allow(
    unsafe_code,
    reason = "safe code cannot turn zeroed memory into buckets of atomics"
)]
mod zeroed {
    use core::ptr::NonNull;
    use std::alloc::{Layout, alloc_zeroed, dealloc};

    use super::{AtomicU128, Bucket, SLOTS};

    /// The buckets of a table. They begin at the first cache line of the allocation.
    #[derive(Debug)]
    pub(crate) struct Buckets {
        memory: NonNull<u8>,
        layout: Layout,
        first: NonNull<Bucket>,
        count: usize,
    }

    // SAFETY: the memory is owned by this value alone, as a box's is, and any thread may free it.
    unsafe impl Send for Buckets {}
    // SAFETY: it gives out only shared references to atomics.
    unsafe impl Sync for Buckets {}

    impl Buckets {
        /// Allocates `count` zeroed buckets. Returns `None` if there is no memory for them.
        ///
        /// The allocation asks only for a slot's alignment, and for a few more slots, so that the
        /// first bucket can be aligned. With a bucket's alignment, many allocators would write the
        /// zeros themselves and touch every page.
        pub(crate) fn zeroed(count: usize) -> Option<Self> {
            let slots = count.checked_mul(SLOTS)?.checked_add(SLOTS - 1)?;
            let layout = Layout::array::<AtomicU128>(slots).ok()?;
            // SAFETY: there are at least three slots, so the layout's size is not zero.
            let memory = NonNull::new(unsafe { alloc_zeroed(layout) })?;
            #[cfg(all(feature = "huge-pages", target_os = "linux", not(miri)))]
            super::huge_pages::advise(memory, layout.size());
            let beyond = memory.addr().get() % align_of::<Bucket>();
            let before = (align_of::<Bucket>() - beyond) % align_of::<Bucket>();
            // SAFETY: the address is a multiple of a slot's size, and a bucket's alignment is
            // `SLOTS` times that. So `before` is at most the size of `SLOTS - 1` slots, which were
            // allocated in addition to those of the buckets.
            let first = unsafe { memory.add(before) }.cast();
            Some(Self {
                memory,
                layout,
                first,
                count,
            })
        }
    }

    impl core::ops::Deref for Buckets {
        type Target = [Bucket];

        #[inline(always)]
        fn deref(&self) -> &[Bucket] {
            // SAFETY: `first` is aligned for buckets and followed by the slots of `count` buckets,
            // which live as long as `self`. The slots are `AtomicU128`, which has the layout of
            // `u128`, and all zeros are a valid value.
            unsafe { core::slice::from_raw_parts(self.first.as_ptr(), self.count) }
        }
    }

    impl Drop for Buckets {
        fn drop(&mut self) {
            // SAFETY: the memory was allocated with this layout, and its contents need no drop.
            unsafe { dealloc(self.memory.as_ptr(), self.layout) };
        }
    }
}

/// Asks the system for huge pages, so that the memory of a large table takes far fewer TLB entries.
#[cfg(all(
    feature = "huge-pages",
    target_os = "linux",
    not(any(
        miri,
        all(tollgate_loom, feature = "loom"),
        all(tollgate_shuttle, feature = "shuttle")
    ))
))]
#[allow(unsafe_code, reason = "a system call")]
mod huge_pages {
    use core::ptr::NonNull;

    /// A multiple of every ordinary page size on Linux.
    const PAGE: usize = 1 << 16;
    /// The size of a huge page on most processors. Smaller allocations are left as they are.
    const LEAST: usize = 1 << 21;

    /// Returns the offset and the length of the whole pages in a piece of memory, or `None` if they
    /// are too few.
    fn whole_pages(address: usize, length: usize) -> Option<(usize, usize)> {
        let before = address.checked_next_multiple_of(PAGE)? - address;
        let length = length.checked_sub(before)? / PAGE * PAGE;
        (length >= LEAST).then_some((before, length))
    }

    /// Advises the system to use huge pages for this memory. The system may ignore it. The contents
    /// and the owner of the memory do not change.
    pub(super) fn advise(memory: NonNull<u8>, length: usize) {
        let Some((before, length)) = whole_pages(memory.addr().get(), length) else {
            return;
        };
        let start = memory.as_ptr().wrapping_add(before);
        // SAFETY: the range lies in memory that the caller has allocated. This advice changes
        // neither its contents nor its protection.
        unsafe { libc::madvise(start.cast(), length, libc::MADV_HUGEPAGE) };
    }

    #[cfg(test)]
    mod tests {
        use super::{LEAST, PAGE, whole_pages};

        #[test]
        fn only_whole_pages_in_the_memory_are_advised() {
            assert_eq!(whole_pages(16, LEAST), None);
            assert_eq!(whole_pages(PAGE, LEAST), Some((0, LEAST)));
            assert_eq!(whole_pages(PAGE + 16, LEAST + PAGE - 17), None);
            assert_eq!(
                whole_pages(PAGE + 16, LEAST + PAGE - 16),
                Some((PAGE - 16, LEAST))
            );
            assert_eq!(whole_pages(usize::MAX, 1), None);
            for address in (0..3 * PAGE).step_by(4080) {
                for length in (0..LEAST + 3 * PAGE).step_by(65_520) {
                    if let Some((before, advised)) = whole_pages(address, length) {
                        assert_eq!(((address + before) % PAGE, advised % PAGE), (0, 0));
                        assert!(before + advised <= length);
                    }
                }
            }
        }

        #[test]
        fn large_memory_is_zeroed_and_can_be_written() {
            use crate::sync::{Buckets, Ordering};

            let buckets = Buckets::zeroed(2 * LEAST / 64 + 1).expect("4 MiB");
            for slot in buckets.iter().flat_map(|bucket| &bucket.slots) {
                // ORDERING: Relaxed. There is no other thread.
                assert_eq!(slot.load(Ordering::Relaxed), 0);
                slot.store(u128::MAX, Ordering::Relaxed);
            }
            let mut slots = buckets.iter().flat_map(|bucket| &bucket.slots);
            assert!(slots.all(|slot| slot.load(Ordering::Relaxed) == u128::MAX));
        }
    }
}

/// The buckets of a table in a model, where each atomic has to be made separately.
#[cfg(any(
    all(tollgate_loom, feature = "loom"),
    all(tollgate_shuttle, feature = "shuttle")
))]
#[derive(Debug)]
pub(crate) struct Buckets(std::boxed::Box<[Bucket]>);

#[cfg(any(
    all(tollgate_loom, feature = "loom"),
    all(tollgate_shuttle, feature = "shuttle")
))]
impl Buckets {
    pub(crate) fn zeroed(count: usize) -> Option<Self> {
        let bucket = |_| Bucket {
            slots: [(); SLOTS].map(|()| AtomicU128::new(0)),
        };
        Some(Self((0..count).map(bucket).collect()))
    }
}

#[cfg(any(
    all(tollgate_loom, feature = "loom"),
    all(tollgate_shuttle, feature = "shuttle")
))]
impl core::ops::Deref for Buckets {
    type Target = [Bucket];

    fn deref(&self) -> &[Bucket] {
        &self.0
    }
}

/// Prefetches a bucket before it is needed. This affects speed only.
#[inline(always)]
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(unsafe_code, reason = "no safe function gives this instruction")]
pub(crate) fn prefetch(bucket: *const Bucket) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch has no visible effect and is allowed for any address, and SSE is part of
    // x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(bucket.cast()) };
}

/// Does nothing on other targets.
#[inline(always)]
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(crate) fn prefetch(_line: *const Bucket) {}
