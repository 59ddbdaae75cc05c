//! Finding the client's address does not allocate.

#![allow(unsafe_code)] // A global allocator requires it. This one only counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use http::HeaderName;
use tollgate_http::AddressPrefix;

use crate::{ip, lines, trusting};

thread_local! {
    /// Allocations of this thread. Each test runs in its own thread.
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
fn the_clients_address_is_found_without_allocating() {
    let many = "10.0.0.9, ".repeat(100_000);
    let garbage = "\\\"".repeat(500_000);
    let long = HeaderName::from_bytes("x-long-".repeat(20).as_bytes()).unwrap();
    let settings = [
        ("x-forwarded-for", trusting().x_forwarded_for()),
        ("forwarded", trusting().forwarded()),
        ("x-real-ip", trusting().x_real_ip()),
        ("x-real-ip", trusting().header(long)),
        (
            "x-forwarded-for",
            trusting().x_forwarded_for().trusted_hops(3),
        ),
    ];
    for (name, addresses) in settings {
        let requests = [
            lines(name, [] as [&str; 0]),
            lines(name, ["192.0.2.7"]),
            lines(name, ["1.1.1.1, [2001:db8::7]:443", "10.0.0.3, 10.0.0.2"]),
            lines(
                name,
                [
                    "for=1.1.1.1",
                    "for=\"[2001:db8::\\7]:443\";host=\"a\\\"b\", for=10.0.0.2",
                ],
            ),
            lines(name, [&many]),
            lines(name, [&garbage]),
            lines(name, vec!["10.0.0.9"; 10_000]),
            lines(name, vec!["for=\"10.0.0\\.9\""; 10_000]),
        ];
        for headers in &requests {
            let before = ALLOCATED.with(Cell::get);
            for peer in [
                "10.0.0.1",
                "::ffff:10.0.0.1",
                "2001:db8:aaaa::1",
                "192.0.2.1",
            ] {
                let client = addresses.of(ip(peer), headers);
                let _ = AddressPrefix::default().network(client);
            }
            assert_eq!(ALLOCATED.with(Cell::get) - before, 0, "{name}");
        }
    }
}
