//! An allocator that counts the allocations of each thread, and their bytes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// The allocations of this thread.
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
    /// The bytes that this thread has allocated and not freed, and the most there were. Each test
    /// runs in its own thread.
    static LIVE: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

struct Counting;

fn count(bytes: usize, sign: i64) {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX) * sign;
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        PEAK.try_with(|peak| peak.set(peak.get().max(live.get())))
    });
}

// SAFETY: Every call is passed on unchanged to the system's allocator. Counting only changes
// constant-initialized thread-local integers, which never allocates.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATED.try_with(|allocated| allocated.set(allocated.get() + 1));
        count(layout.size(), 1);
        // SAFETY: The caller's promises about `layout` are the ones that `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: `ptr` came from `System` with this `layout`, since this allocator gets all memory
        // there.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns how often this thread has allocated.
pub(crate) fn allocated() -> u64 {
    ALLOCATED.get()
}

/// Runs a function, and returns its result, how many bytes are left over, and how many were in use
/// at most.
#[cfg(all(feature = "axum", feature = "policy"))]
pub(crate) fn measured<T>(run: impl FnOnce() -> T) -> (T, i64, i64) {
    let before = LIVE.get();
    PEAK.set(before);
    let result = run();
    (result, LIVE.get() - before, PEAK.get() - before)
}
