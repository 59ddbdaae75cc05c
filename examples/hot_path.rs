//! Limits in hot code: a `static` that all threads share, and a lease for a loop whose requests are
//! mostly granted.
//!
//! ```text
//! cargo run --release --example hot_path
//! ```

use std::error::Error;

use tollgate::{Denied, Leases, Limiter, Quota, TokenBucket, const_unwrap};

/// At most ten lines a second in the log, from all threads together.
static WARNINGS: Limiter<TokenBucket> = const_unwrap!(Limiter::token_bucket(Quota::per_second(10)));

fn warn(text: &str) -> bool {
    let is_granted = WARNINGS.try_acquire().is_ok();
    if is_granted {
        eprintln!("warning: {text}");
    }
    is_granted
}

fn main() -> Result<(), Box<dyn Error>> {
    let written = (0..1_000_000)
        .filter(|n| warn(&format!("packet {n} is broken")))
        .count();
    println!("{written} of 1 000 000 warnings were written");
    assert!((10..1_000_000).contains(&written));

    // A lease draws permits in advance, 64 or more: most grants read no clock and touch no shared
    // memory.
    let leases = Leases::token_bucket(Quota::per_second(10_000_000), 640)?;
    let mut lease = leases.lease(640);
    let (mut sent, mut denied) = (0_u64, 0_u64);
    for _ in 0..3_000_000 {
        match lease.try_acquire() {
            Ok(_) => sent += 1,
            Err(Denied::Later { .. }) => denied += 1,
            Err(denied) => return Err(denied.into()),
        }
    }
    println!("{sent} packets sent, {denied} dropped");
    assert_eq!((sent, denied), (3_000_000, 0));
    Ok(())
}
