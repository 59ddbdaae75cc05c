//! Measures a program's memory: bytes requested from the allocator, and bytes resident in memory.

#![allow(unsafe_code)] // A global allocator needs it; this one only counts and forwards.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

/// The system's allocator, with counters.
#[derive(Debug)]
pub struct Counting {
    now: AtomicU64,
    most: AtomicU64,
    calls: AtomicU64,
}

// ORDERING: Relaxed throughout. The counts publish nothing, and are read while no thread allocates.
impl Counting {
    /// Returns an allocator with counts of zero.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "a static is made by a const fn")]
    pub const fn new() -> Self {
        Self {
            now: AtomicU64::new(0),
            most: AtomicU64::new(0),
            calls: AtomicU64::new(0),
        }
    }

    /// Returns the bytes currently allocated.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// Returns the most bytes that were allocated at once.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    /// Returns the number of allocations.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn took(&self, bytes: usize) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let bytes = bytes as u64;
        let now = self.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.most.fetch_max(now, Ordering::Relaxed);
    }

    fn gave(&self, bytes: usize) {
        self.now.fetch_sub(bytes as u64, Ordering::Relaxed);
    }
}

// SAFETY: every call is forwarded unchanged to the system's allocator. The counting only changes
// atomics in a static, and never allocates.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.took(layout.size());
        // SAFETY: the caller guarantees for `layout` what `System` requires.
        unsafe { System.alloc(layout) }
    }

    // Not through `alloc`: the system provides zeroed pages that take no memory until they are
    // used.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.took(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        self.gave(layout.size());
        // SAFETY: `ptr` came from `System` with this `layout`, as all our pointers do.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.took(size);
        self.gave(layout.size());
        // SAFETY: as above, and the caller guarantees `size`.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

/// Returns the resident bytes of this process, where the system reports them as Linux does.
#[must_use]
pub fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
