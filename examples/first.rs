//! The first limiter: 100 requests a second, in bursts of up to 20.
//!
//! ```text
//! cargo run --example first
//! ```

use std::error::Error;

use tollgate::{Denied, Limiter, Quota};

fn main() -> Result<(), Box<dyn Error>> {
    let limiter = Limiter::token_bucket(Quota::per_second(100).burst(20))?;
    let mut served = 0;
    for request in 1..=25 {
        match limiter.try_acquire() {
            Ok(granted) => {
                served += 1;
                println!("{request}: served, {} more at once", granted.remaining());
            }
            Err(Denied::Later { retry_after, .. }) => {
                println!("{request}: too many, come back in {retry_after:?}");
            }
            Err(denied) => println!("{request}: {denied}"),
        }
    }
    assert!(served >= 20);
    limiter.blocking_acquire()?; // waits for a permit
    println!("26: served after a wait");
    Ok(())
}
