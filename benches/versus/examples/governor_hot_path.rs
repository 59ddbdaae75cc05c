//! The hot path of `examples/hot_path.rs` with governor, which has no leases.

use std::num::NonZeroU32;
use std::sync::LazyLock;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

/// At most ten lines a second in the log, from any thread.
static WARNINGS: LazyLock<DefaultDirectRateLimiter> = LazyLock::new(|| limiter(10));
static PACKETS: LazyLock<DefaultDirectRateLimiter> = LazyLock::new(|| limiter(10_000_000));

fn limiter(a_second: u32) -> DefaultDirectRateLimiter {
    RateLimiter::direct(Quota::per_second(
        NonZeroU32::new(a_second).expect("not zero"),
    ))
}

fn warn(text: &str) -> bool {
    let is_granted = WARNINGS.check().is_ok();
    if is_granted {
        eprintln!("warning: {text}");
    }
    is_granted
}

fn main() {
    let written = (0..1_000_000)
        .filter(|n| warn(&format!("packet {n} is broken")))
        .count();
    println!("{written} of 1 000 000 warnings were written");
    assert!((10..1_000_000).contains(&written));

    let (mut sent, mut denied) = (0_u64, 0_u64);
    for _ in 0..3_000_000 {
        match PACKETS.check() {
            Ok(()) => sent += 1,
            Err(_) => denied += 1,
        }
    }
    println!("{sent} packets sent, {denied} dropped");
    assert_eq!((sent, denied), (3_000_000, 0));
}
