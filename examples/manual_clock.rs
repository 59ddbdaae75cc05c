//! Tests with a manual clock: a login that allows five attempts at once and one more every two
//! minutes, tested without waiting.
//!
//! ```text
//! cargo test --example manual_clock --all-features
//! ```

use std::error::Error;

use tollgate::clock::{Clock, SystemClock};
use tollgate::error::LimiterError;
use tollgate::{Keyed, Quota, TokenBucket};

/// A login that is generic over its clock, so that a test can advance the clock.
struct Login<C> {
    attempts: Keyed<TokenBucket, C>,
}

impl<C: Clock> Login<C> {
    fn new(clock: C) -> Result<Self, LimiterError> {
        let quota = Quota::per_hour(30).burst(5);
        let attempts = Keyed::with_clock(TokenBucket::new(quota)?, 100_000, clock)?;
        Ok(Self { attempts })
    }

    fn try_login(&self, user: &str, password: &str) -> Result<(), String> {
        let attempt = self.attempts.try_acquire(user);
        attempt.map_err(|denied| format!("too many attempts: {denied}"))?;
        match password {
            "correct" => Ok(()),
            _ => Err("wrong password".into()),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let login = Login::new(SystemClock)?;
    for password in ["a", "b", "c", "d", "e", "correct"] {
        println!("{password}: {:?}", login.try_login("alice", password));
    }
    assert!(login.try_login("bob", "correct").is_ok());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tollgate::ManualClock;

    use super::*;

    #[test]
    fn the_sixth_attempt_has_to_wait_for_two_minutes() {
        let clock = ManualClock::new();
        let login = Login::new(clock.clone()).expect("a quota");
        for _ in 0..5 {
            assert_eq!(
                login.try_login("alice", "guess"),
                Err("wrong password".into())
            );
        }
        assert!(login.try_login("alice", "correct").is_err());
        assert!(login.try_login("bob", "correct").is_ok());
        clock.advance(Duration::from_secs(120));
        assert!(login.try_login("alice", "correct").is_ok());
    }
}
