//! Copies standard input to standard output, at 5 MB/s at most.
//!
//! ```text
//! head -c 10000000 /dev/zero | cargo run --release --example bandwidth > /dev/null
//! ```

use std::error::Error;
use std::io::{self, BufReader};
use std::time::Instant;

use tollgate::wait::BlockingBytes;
use tollgate::{Limiter, Quota};

fn main() -> Result<(), Box<dyn Error>> {
    let limiter = Limiter::token_bucket(Quota::per_second(5_000_000).burst(64 * 1024))?;
    let start = Instant::now();
    let mut input = BufReader::new(io::stdin());
    let mut output = BlockingBytes::new(&limiter, io::stdout().lock());
    let bytes = io::copy(&mut input, &mut output)?;
    let elapsed = start.elapsed();
    eprintln!("{bytes} bytes in {elapsed:?}");
    // The burst passes at once. The two clocks may differ a little.
    let most = 64.0 * 1024.0 + 5_000_000.0 * elapsed.as_secs_f64() * 1.01;
    assert!(bytes as f64 <= most);
    Ok(())
}
