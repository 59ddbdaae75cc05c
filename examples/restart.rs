//! Limits that outlive a restart: each run goes on where the last one ended.
//!
//! ```text
//! cargo run --example restart --features keyed
//! ```
//!
//! A run serves some requests of two users and writes their limits to a file, which the next run
//! reads. Delete the file to start afresh.

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
            println!("there is no file: all users start afresh");
        }
        // Serving without the file is better than not serving.
        Err(error) => eprintln!("{error}: all users start afresh"),
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
