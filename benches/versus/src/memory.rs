//! How much memory a program has: what it asked its allocator for, and what the system gave it.

#![allow(unsafe_code)] // A global allocator can't be had without; it only counts and passes on.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;

use tollgate::sync::{AtomicU64, Ordering};

/// The system's allocator, which counts.
#[derive(Debug)]
pub struct Counting {
    now: AtomicU64,
    most: AtomicU64,
    calls: AtomicU64,
}

// ORDERING: Relaxed, in all of it. The counts publish nothing, and are read when nobody allocates.
impl Counting {
    /// Nothing yet.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "a static is made by a const fn")]
    pub const fn new() -> Self {
        Self {
            now: AtomicU64::new(0),
            most: AtomicU64::new(0),
            calls: AtomicU64::new(0),
        }
    }

    /// Bytes that are out.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// The most that were ever out at once.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    /// How often memory was asked for.
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

// SAFETY: every call is passed on to the system's allocator as it came, and counting touches
// nothing but atomics in a static, which never allocates.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.took(layout.size());
        // SAFETY: the caller's promises about `layout` are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    // Not by `alloc`: the system has zeroed pages, which take no memory before they are used.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.took(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        self.gave(layout.size());
        // SAFETY: `ptr` came from `System` with this `layout`, since all of ours do.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.took(size);
        self.gave(layout.size());
        // SAFETY: as above, and `size` is the caller's promise.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

/// Bytes of this process that are in memory, where the system says so in Linux's way.
#[must_use]
pub fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
