//! Finding the rules of a request does not allocate.

#![allow(unsafe_code)] // A global allocator requires it. This one only counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::ControlFlow;

use tollgate_policy::when::{Condition, Matcher, Pattern, Test, When};
use tollgate_policy::{FactKind, FactName, Facts, Value};

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

/// Facts of all kinds: a host and a path that have to be changed before they are compared, an
/// address and a number.
struct Request;

impl Facts for Request {
    fn fact(&self, name: &FactName) -> Option<Value<'_>> {
        Some(match name.kind() {
            FactKind::Path => "//api/users/alice/?a=b".into(),
            FactKind::Host => "Www.Example.COM:8080".into(),
            FactKind::ClientIp => Value::Address([10, 0, 0, 7].into()),
            FactKind::Header("x-size") => Value::Number(800),
            FactKind::Header("x-from") => Value::Address([10, 0, 0, 7].into()),
            _ => return None,
        })
    }
}

#[test]
fn finding_rules_does_not_allocate() {
    let path = FactName::new("path");
    let prefix = Condition {
        test: Test::OneOf(vec![Pattern::prefix(&path, "/api/u").unwrap()]),
        fact: path,
    };
    let prefix = When {
        all: vec![prefix],
        ..When::default()
    };
    let rules = [
        ("path", "/api/users/{user}"),
        ("path", "/api/*/alice"),
        ("path", "/**/a*"),
        ("host", "*.example.com"),
        ("host", "*exam*"),
        ("client-ip", "10.0.0.0/8"),
        ("client-ip", "10.0.0.7"),
        ("header:x-size", "8*"),
        ("header:x-from", "10.*"),
    ];
    let rules = rules.map(|(fact, text)| {
        let fact = FactName::new(fact);
        let test = Test::OneOf(vec![Pattern::parse(&fact, text).unwrap()]);
        When {
            all: vec![Condition { fact, test }],
            ..When::default()
        }
    });
    let matcher = Matcher::new(rules.iter().chain([&prefix]).map(Some));
    let mut found = 0;
    let before = ALLOCATED.with(Cell::get);
    let end = matcher.each(&Request, |_| {
        found += 1;
        ControlFlow::<()>::Continue(())
    });
    let plain = rules.iter().all(|when| when.holds(&Request)) && prefix.holds(&Request);
    let after = ALLOCATED.with(Cell::get);
    assert!(end.is_continue() && plain);
    assert_eq!((found, after - before), (10, 0));
}
