//! The login of `examples/manual_clock.rs` with governor.

use std::num::NonZeroU32;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};

/// Generic over its clock, so that a test can move it.
struct Login<C: Clock> {
    clock: C,
    attempts: RateLimiter<String, DefaultKeyedStateStore<String>, C, NoOpMiddleware<C::Instant>>,
}

impl<C: Clock + Clone> Login<C> {
    fn new(clock: C) -> Self {
        let [hourly, burst] = [30, 5].map(|n| NonZeroU32::new(n).expect("not zero"));
        let quota = Quota::per_hour(hourly).allow_burst(burst);
        let states = DefaultKeyedStateStore::default();
        let attempts = RateLimiter::new(quota, states, clock.clone());
        Self { clock, attempts }
    }

    fn try_login(&self, user: &str, password: &str) -> Result<(), String> {
        let attempt = self.attempts.check_key(&user.to_owned());
        attempt.map_err(|not_until| {
            let wait = not_until.wait_time_from(self.clock.now());
            format!("too many attempts: wait {wait:?}")
        })?;
        match password {
            "correct" => Ok(()),
            _ => Err("wrong password".into()),
        }
    }
}

fn main() {
    let login = Login::new(DefaultClock::default());
    for password in ["a", "b", "c", "d", "e", "correct"] {
        println!("{password}: {:?}", login.try_login("alice", password));
    }
    assert!(login.try_login("bob", "correct").is_ok());
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use governor::clock::FakeRelativeClock;

    use super::*;

    #[test]
    fn the_sixth_attempt_has_to_wait_for_two_minutes() {
        let clock = FakeRelativeClock::default();
        let login = Login::new(clock.clone());
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
