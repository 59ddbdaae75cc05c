//! The memory of a table: zeroed, so that pages which nobody has used are not there, and at the
//! beginning of cache lines.

use super::AtomicU128;

/// Whether this is a model.
pub(crate) const IS_MODEL: bool = cfg!(any(
    all(tollgate_loom, feature = "loom"),
    all(tollgate_shuttle, feature = "shuttle")
));

/// How many pairs of words a bucket has: in a model, as few as can be.
pub(crate) const SLOTS: usize = if IS_MODEL { 1 } else { 4 };

/// A cache line of pairs of words.
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
    reason = "nothing else makes zeroed memory of atomics, and buckets of it"
)]
mod zeroed {
    use core::ptr::NonNull;
    use std::alloc::{Layout, alloc_zeroed, dealloc};

    use super::{AtomicU128, Bucket, SLOTS};

    /// Buckets of a table, from where the first cache line begins in a piece of memory.
    #[derive(Debug)]
    pub(crate) struct Buckets {
        memory: NonNull<u8>,
        layout: Layout,
        first: NonNull<Bucket>,
        count: usize,
    }

    // SAFETY: the memory belongs to it alone, as a box's would, and can be freed by any thread.
    unsafe impl Send for Buckets {}
    // SAFETY: all that it gives is shared references to atomics.
    unsafe impl Sync for Buckets {}

    impl Buckets {
        /// So many buckets of zeros; `None` if there is no memory for them.
        ///
        /// The memory is aligned as its slots only: aligned as buckets, many allocators would write
        /// the zeros themselves, and touch every page. So there are a few slots more.
        pub(crate) fn zeroed(count: usize) -> Option<Self> {
            let slots = count.checked_mul(SLOTS)?.checked_add(SLOTS - 1)?;
            let layout = Layout::array::<AtomicU128>(slots).ok()?;
            // SAFETY: there are three slots at least, so the layout's size is not zero.
            let memory = NonNull::new(unsafe { alloc_zeroed(layout) })?;
            #[cfg(all(feature = "huge-pages", target_os = "linux", not(miri)))]
            super::huge_pages::advise(memory, layout.size());
            let beyond = memory.addr().get() % align_of::<Bucket>();
            let before = (align_of::<Bucket>() - beyond) % align_of::<Bucket>();
            // SAFETY: the address is a multiple of a slot's size, and a bucket's alignment is
            // `SLOTS` times that. So `before` is the size of `SLOTS - 1` slots at most, which there
            // are beside those of the buckets.
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
            // SAFETY: from `first` on, which is aligned as buckets are, there are the slots of
            // `count` buckets, which live as long as this. They are `AtomicU128`, which are in
            // memory as `u128` are, and all zeros are 0.
            unsafe { core::slice::from_raw_parts(self.first.as_ptr(), self.count) }
        }
    }

    impl Drop for Buckets {
        fn drop(&mut self) {
            // SAFETY: it was allocated with this layout, and what is in it needs not be dropped.
            unsafe { dealloc(self.memory.as_ptr(), self.layout) };
        }
    }
}

/// Asks the system for large pages: the memory of a large table then takes far fewer entries in the
/// processor's list of pages.
#[cfg(all(
    feature = "huge-pages",
    target_os = "linux",
    not(any(
        miri,
        all(tollgate_loom, feature = "loom"),
        all(tollgate_shuttle, feature = "shuttle")
    ))
))]
#[allow(unsafe_code, reason = "only the system can be asked")]
mod huge_pages {
    use core::ptr::NonNull;

    /// A multiple of every size that Linux has for its ordinary pages.
    const PAGE: usize = 1 << 16;
    /// What a huge page has on most processors. Smaller memory is left as it is.
    const LEAST: usize = 1 << 21;

    /// How far the whole pages in a piece of memory are from its beginning, and their length, if
    /// they are worth it.
    fn whole_pages(address: usize, length: usize) -> Option<(usize, usize)> {
        let before = address.checked_next_multiple_of(PAGE)? - address;
        let length = length.checked_sub(before)? / PAGE * PAGE;
        (length >= LEAST).then_some((before, length))
    }

    /// Advises the system to use huge pages here. It may do so or not: what is in the memory, and
    /// whose it is, is the same.
    pub(super) fn advise(memory: NonNull<u8>, length: usize) {
        let Some((before, length)) = whole_pages(memory.addr().get(), length) else {
            return;
        };
        let start = memory.as_ptr().wrapping_add(before);
        // SAFETY: the range lies in memory that the caller has allocated. This advice changes
        // neither what is in it nor whether it can be read and written.
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

/// Buckets of a table: atomics of models have to be made one by one.
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

/// Asks for a bucket before it is needed. It changes nothing but how long that takes then.
#[inline(always)]
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(unsafe_code, reason = "the instruction is not there otherwise")]
pub(crate) fn prefetch(bucket: *const Bucket) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: it reads nothing that can be seen, may be done with any address, and SSE is part of
    // x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(bucket.cast()) };
}

/// Elsewhere the processor has to find out for itself.
#[inline(always)]
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(crate) fn prefetch(_line: *const Bucket) {}
