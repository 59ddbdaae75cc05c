//! The log pipe of `examples/bandwidth.rs` with governor, which has no blocking wait.

use std::error::Error;
use std::io::{self, BufReader, Read, Write};
use std::num::NonZeroU32;
use std::time::Instant;

use governor::clock::{Clock, DefaultClock};
use governor::{Quota, RateLimiter};

fn main() -> Result<(), Box<dyn Error>> {
    let [rate, burst] = [5_000_000, 64 * 1024].map(|n| NonZeroU32::new(n).expect("not zero"));
    let limiter = RateLimiter::direct(Quota::per_second(rate).allow_burst(burst));
    let (clock, start) = (DefaultClock::default(), Instant::now());
    let mut input = BufReader::new(io::stdin());
    let mut output = io::stdout().lock();
    let (mut buffer, mut bytes) = ([0; 8192], 0);
    loop {
        let n = input.read(&mut buffer)?;
        let Some(permits) = NonZeroU32::new(n as u32) else {
            break;
        };
        while let Err(not_until) = limiter.check_n(permits)? {
            std::thread::sleep(not_until.wait_time_from(clock.now()));
        }
        output.write_all(&buffer[..n])?;
        bytes += n;
    }
    eprintln!("{bytes} bytes in {:?}", start.elapsed());
    Ok(())
}
