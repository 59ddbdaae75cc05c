//! Decides in parallel: a rayon pool deals out requests to its threads, and all of them ask one
//! [`Sharded`] limiter.
//!
//! ```text
//! cargo run --release --example parallel
//! ```
//!
//! The tick stands still, so nothing is refilled, and what is admitted is the limit exactly:
//! neither more, however many threads ask at once, nor less, whichever part of the limit each of
//! them has at hand. The counts that [`Counted`] keeps beside it are those of the answers.

use std::error::Error;

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use tollgate::clock::NoClock;
use tollgate::{Counted, Quota, Sharded, Tick, TokenBucket};

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
                .filter(|_| limiter.try_acquire_at(Tick::ZERO).is_ok())
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
    println!("the limit is {LIMIT}, and all of them got exactly that");
    Ok(())
}
