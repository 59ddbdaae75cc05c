//! A global allocator that counts the allocations of each thread, and their bytes.

#![allow(unsafe_code)] // A global allocator requires it. This one only counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Allocations of this thread. Each test runs in its own thread.
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

impl Counting {
    fn count(size: usize) {
        // A thread that is ending has no counter any more. It makes no decisions either.
        let _ = ALLOCATED.try_with(|allocated| allocated.set(allocated.get() + 1));
        let _ = BYTES.try_with(|bytes| bytes.set(bytes.get() + size as u64));
    }
}

// SAFETY: Every call is passed on unchanged to the system's allocator. Counting only changes a
// constant-initialized thread-local integer, which never allocates.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size());
        // SAFETY: The caller's promises about `layout` are the ones that `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: `ptr` came from `System` with this `layout`, since this allocator gets all memory
        // there.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::count(size);
        // SAFETY: `ptr` came from `System` with this `layout`. The caller promises that `size` is
        // valid.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns how often this thread has allocated.
#[allow(dead_code, reason = "each binary uses one of these")]
pub(crate) fn allocated() -> u64 {
    ALLOCATED.with(Cell::get)
}

/// Returns how many bytes this thread has allocated. Those that it freed count too.
#[allow(dead_code, reason = "each binary uses one of these")]
pub(crate) fn allocated_bytes() -> u64 {
    BYTES.with(Cell::get)
}
