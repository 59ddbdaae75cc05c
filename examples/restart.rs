//! Limits that survive a restart: each run continues from the previous one.
//!
//! ```text
//! cargo run --example restart --features keyed
//! ```
//!
//! A run serves ten requests of each of two users, and writes their limits to a file that the next
//! run reads. Delete the file to start with full buckets.

use std::error::Error;
use std::io::ErrorKind;

use tollgate::error::RestoreError;
use tollgate::{Keyed, Quota};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join("tollgate-restart-example");
    let mut limiter = Keyed::token_bucket(Quota::per_minute(12).burst(30), 10_000)?;
    match limiter.restore_from(&path) {
        Ok(restored) => println!("{} users after {:?}", restored.keys, restored.elapsed),
        Err(RestoreError::Io(error)) if error.kind() == ErrorKind::NotFound => {
            println!("no file yet: all users start with full buckets");
        }
        // Serving without the file is better than not serving.
        Err(error) => eprintln!("{error}: all users start with full buckets"),
    }
    for user in ["alice", "bob"] {
        let granted = (0..10)
            .filter(|_| limiter.try_acquire(user).is_ok())
            .count();
        println!(
            "{user}: {granted} of 10 requests, {} left",
            limiter.key(user).available()
        );
    }
    let written = limiter.snapshot_to(&path)?;
    println!("{written} users written to {}", path.display());
    assert_eq!(written, 2);
    Ok(())
}
