//! How long it takes to make the name of a key, which each decision does.

use std::hint::black_box;
use std::time::Instant;

use tollgate_redis::Keys;

/// How many keys one sample makes.
const EACH: u32 = 10_000;

/// Returns the median over many samples, in nanoseconds.
pub(crate) fn nanoseconds() -> f64 {
    let keys = Keys::new("api").expect("a namespace");
    let sample = |_| {
        let start = Instant::now();
        for _ in 0..EACH {
            black_box(keys.key(black_box("login"), black_box(b"alice@example.com")));
        }
        start.elapsed().as_nanos() as f64 / f64::from(EACH)
    };
    super::median((0..101).map(sample).collect())
}
