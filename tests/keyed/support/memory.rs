//! The memory that a thread has allocated and not freed.

#![allow(unsafe_code)] // A global allocator requires it. This one only counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes that this thread has allocated minus those that it has freed. Each test runs in its
    /// own thread.
    static TAKEN: Cell<i64> = const { Cell::new(0) };
}

struct Counting;

impl Counting {
    /// Counts an allocation unless it failed: then `ptr` is null.
    fn count(ptr: *mut u8, more: usize, less: usize) -> *mut u8 {
        if !ptr.is_null() {
            let bytes = more as i64 - less as i64;
            // A thread that is ending has no counter any more.
            let _ = TAKEN.try_with(|taken| taken.set(taken.get() + bytes));
        }
        ptr
    }
}

// SAFETY: Every call is passed on unchanged to the system's allocator. Counting only changes a
// constant-initialized thread-local integer, which never allocates.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: The caller's promises about `layout` are the ones that `System` requires.
        let ptr = unsafe { System.alloc(layout) };
        Self::count(ptr, layout.size(), 0)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: The caller's promises about `layout` are the ones that `System` requires.
        let ptr = unsafe { System.alloc_zeroed(layout) };
        Self::count(ptr, layout.size(), 0)
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        Self::count(ptr, 0, layout.size());
        // SAFETY: `ptr` came from `System` with this `layout`, since this allocator gets all memory
        // there.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: `ptr` came from `System` with this `layout`. The caller promises that `size` is
        // valid.
        let ptr = unsafe { System.realloc(ptr, layout, size) };
        Self::count(ptr, size, layout.size())
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the bytes that this thread has allocated and not freed. Only differences are meaningful,
/// since another thread may free what this one allocated.
pub(crate) fn taken() -> i64 {
    TAKEN.with(Cell::get)
}
