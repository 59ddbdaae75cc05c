//! One limit for many threads: the threads of a rayon pool share one [`Sharded`] limiter.
//!
//! ```text
//! cargo run --release --example parallel
//! ```
//!
//! All requests are at one tick, so nothing is refilled: any number of threads together gets
//! exactly the limit. [`Counted`] counts the grants and denials.

use std::error::Error;

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use tollgate::clock::NoClock;
use tollgate::{Counted, Quota, Sharded, Tick, TokenBucket, TryAcquire};

const LIMIT: u64 = 250_000;

const REQUESTS: u64 = 1_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    for threads in [1, 2, 4, 8] {
        let bucket = TokenBucket::new(Quota::per_minute(LIMIT))?;
        let sharded = Sharded::starting_at(bucket, threads, NoClock, Tick::ZERO)?;
        let limiter = Counted::new(sharded);
        let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;

        let admitted = pool.install(|| {
            (0..REQUESTS)
                .into_par_iter()
                .filter(|_| limiter.try_acquire_n_at(1, Tick::ZERO).is_ok())
                .count() as u64
        });

        let counts = limiter.stats();
        println!(
            "threads: {threads}, shards: {}, admitted: {admitted} of {REQUESTS} \
             (counted: {}, and {} denied)",
            limiter.limiter().shards(),
            counts.granted,
            counts.denied,
        );
        assert_eq!(admitted, LIMIT);
        assert_eq!(counts.granted, LIMIT);
        assert_eq!(counts.denied, REQUESTS - LIMIT);
    }
    println!("each number of threads got exactly the limit, {LIMIT}");
    Ok(())
}
