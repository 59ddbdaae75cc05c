//! A cache that is empty after a pause: its limiter starts cold, and serves its full rate once the
//! cache is filled.
//!
//! ```text
//! cargo run -p tollgate-smooth --example warming_up
//! ```

use std::error::Error;
use std::time::Duration;

use tollgate::ManualClock;
use tollgate::clock::Clock;
use tollgate_smooth::SmoothWarmingUp;

/// Sends requests for this time, each at its turn, and returns how many there were.
fn requests(limiter: &SmoothWarmingUp<ManualClock>, time: Duration) -> Result<u32, Box<dyn Error>> {
    let clock = limiter.clock();
    let end = clock.now().saturating_add(time);
    let mut count = 0;
    while clock.now() < end {
        let turn = limiter.reserve(1)?;
        // A program sleeps instead: `limiter.blocking_acquire()` does both.
        clock.advance(turn.delay());
        count += 1;
    }
    Ok(count)
}

fn main() -> Result<(), Box<dyn Error>> {
    let (second, warm_up) = (Duration::from_secs(1), Duration::from_secs(5));
    let limiter = SmoothWarmingUp::with_clock(100.0, warm_up, ManualClock::new())?;
    for begins in ["with an empty cache", "after a pause"] {
        let counts = (0..7).map(|_| requests(&limiter, second));
        let counts = counts.collect::<Result<Vec<_>, _>>()?;
        println!("{begins}: {counts:?} requests a second");
        assert!(counts[0] < 50 && counts[6] >= 100);
        // Nobody comes for a minute, and the entries of the cache expire.
        limiter.clock().advance(60 * second);
    }
    // A deployment doubles the rate; the limiter stays as warm as it is.
    limiter.set_rate(200.0)?;
    println!("a new rate: {} requests a second", limiter.rate());
    Ok(())
}
