//! Making a key allocates once, whether its user is hashed or readable.

#![allow(unsafe_code)] // A global allocator requires it. This one only counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use tollgate_redis::Keys;

thread_local! {
    /// Allocations of this thread.
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: Every call is passed on unchanged to the system's allocator. Counting only changes a
// constant-initialized thread-local integer, which never allocates.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATED.try_with(|allocated| allocated.set(allocated.get() + 1));
        // SAFETY: The caller's promises about `layout` are the ones that `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: `ptr` came from `System` with this `layout`, since this allocator gets all memory
        // there.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_key_is_one_allocation() {
    let keys = Keys::new("api").unwrap();
    let secret = keys.clone().with_secret("0123456789abcdef").unwrap();
    let tagged = keys.clone().with_tag("eu").unwrap();
    let readable = keys.clone().with_readable_users();
    for keys in [keys, secret, tagged, readable] {
        for user in [
            "alice",
            "",
            "an address that does not fit one block of the hash any more",
        ] {
            let before = ALLOCATED.get();
            let key = keys.key("login", user.as_bytes());
            assert_eq!(ALLOCATED.get() - before, 1, "{}", key.len());
        }
    }
}
