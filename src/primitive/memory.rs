//! The memory of a table: zeroed, so that pages which nobody has used are not there, and at the beginning of cache
//! lines.

use std::boxed::Box;

use super::AtomicU128;

/// Whether this is a model.
pub(crate) const IS_MODEL: bool = cfg!(any(
    all(tollgate_loom, feature = "loom"),
    all(tollgate_shuttle, feature = "shuttle")
));

/// How many pairs of words a line has.
#[cfg(not(any(
    all(tollgate_loom, feature = "loom"),
    all(tollgate_shuttle, feature = "shuttle")
)))]
pub(crate) const SLOTS: usize = 4;
/// In a model, as few as can be.
#[cfg(any(
    all(tollgate_loom, feature = "loom"),
    all(tollgate_shuttle, feature = "shuttle")
))]
pub(crate) const SLOTS: usize = 1;

/// A cache line of pairs of words.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Line {
    pub(crate) slots: [AtomicU128; SLOTS],
}

/// So many lines of zeros; `None` if there is no memory for them.
#[cfg(not(any(
    all(tollgate_loom, feature = "loom"),
    all(tollgate_shuttle, feature = "shuttle")
)))]
#[allow(unsafe_code, reason = "nothing else makes zeroed memory of them")]
pub(crate) fn lines(count: usize) -> Option<Box<[Line]>> {
    use std::alloc::{Layout, alloc_zeroed};

    let layout = Layout::array::<Line>(count).ok()?;
    if layout.size() == 0 {
        return Some(Box::new([]));
    }
    // SAFETY: the layout's size is not zero.
    let memory = unsafe { alloc_zeroed(layout) }.cast::<Line>();
    if memory.is_null() {
        return None;
    }
    let lines = core::ptr::slice_from_raw_parts_mut(memory, count);
    // SAFETY: the memory is of the global allocator, as a box's, has the size and alignment of `count` lines, and
    // belongs to nobody else. A line is an array of `AtomicU128`, which are in memory as `u128` are, and of which
    // all zeros are the number 0.
    Some(unsafe { Box::from_raw(lines) })
}

/// Atomics of models have to be made one by one.
#[cfg(any(
    all(tollgate_loom, feature = "loom"),
    all(tollgate_shuttle, feature = "shuttle")
))]
pub(crate) fn lines(count: usize) -> Option<Box<[Line]>> {
    let line = |_| Line {
        slots: [(); SLOTS].map(|()| AtomicU128::new(0)),
    };
    Some((0..count).map(line).collect())
}

/// Asks for a line before it is needed. It changes nothing but how long that takes then.
#[inline(always)]
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(unsafe_code, reason = "the instruction is not there otherwise")]
pub(crate) fn prefetch(line: &Line) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: it reads nothing that can be seen, may be done with any address, and SSE is part of x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(line).cast()) };
}

/// Elsewhere the processor has to find out for itself.
#[inline(always)]
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(crate) fn prefetch(_line: &Line) {}
