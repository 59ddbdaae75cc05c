//! How much memory a thread has taken and not given back.

#![allow(unsafe_code)] // A global allocator can't be had without; it only counts and passes on.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes that this thread has taken, less those that it has given back. Tests run beside each
    /// other, each in its own thread.
    static TAKEN: Cell<i64> = const { Cell::new(0) };
}

struct Counting;

impl Counting {
    /// Counts what was given, if it was: `ptr` is null where there was not enough.
    fn count(ptr: *mut u8, more: usize, less: usize) -> *mut u8 {
        if !ptr.is_null() {
            let bytes = more as i64 - less as i64;
            // A thread that is ending has no counter any more.
            let _ = TAKEN.try_with(|taken| taken.set(taken.get() + bytes));
        }
        ptr
    }
}

// SAFETY: every call is passed on to the system's allocator as it came, and counting touches
// nothing but a constant-initialised, thread-local integer, which never allocates.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises about `layout` are those that `System` asks for.
        let ptr = unsafe { System.alloc(layout) };
        Self::count(ptr, layout.size(), 0)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let ptr = unsafe { System.alloc_zeroed(layout) };
        Self::count(ptr, layout.size(), 0)
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        Self::count(ptr, 0, layout.size());
        // SAFETY: `ptr` came from `System` with this `layout`, since all of ours do.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above, and `size` is the caller's promise.
        let ptr = unsafe { System.realloc(ptr, layout, size) };
        Self::count(ptr, size, layout.size())
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What this thread has taken and not given back. Only differences say something: another thread
/// may give back what this one has taken.
pub(crate) fn taken() -> i64 {
    TAKEN.with(Cell::get)
}
