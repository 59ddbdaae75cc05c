//! A process that is restarted goes on where it left off.
//!
//! ```text
//! cargo run --example restart --features keyed
//! ```
//!
//! Each run serves a few requests of two users and writes down what is left; the next one begins
//! with that. Delete the file and all begins anew.

use std::error::Error;
use std::io::ErrorKind;

use tollgate::snapshot::RestoreError;
use tollgate::{Keyed, Quota};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join("tollgate-restart-example");
    let mut limiter = Keyed::token_bucket(Quota::per_minute(12).burst(30), 10_000)?;
    match limiter.restore_from(&path) {
        Ok(restored) => println!("{} users, after {:?}", restored.keys, restored.elapsed),
        Err(RestoreError::Io(error)) if error.kind() == ErrorKind::NotFound => {
            println!("nothing there: all begin anew");
        }
        // Better to serve without it than not at all.
        Err(error) => eprintln!("{error}: all begin anew"),
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
    limiter.snapshot_to(&path)?;
    println!("written to {}", path.display());
    Ok(())
}
