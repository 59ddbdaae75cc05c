//! A gateway to a language model that allows 60 requests and 90 000 tokens a minute.
//!
//! ```text
//! cargo run --example language_model
//! ```
//!
//! The cost of a call is known only when it is over. The gateway takes an estimate first and
//! corrects it afterwards: `settle` returns tokens that were not used, or charges more if the
//! estimate was too low.

use std::error::Error;
use std::thread;

use tollgate::{Denied, Limiter, ManualClock, Quota, TokenBucket};

type Limit = Limiter<TokenBucket, ManualClock>;

struct Gateway {
    requests: Limit,
    tokens: Limit,
}

impl Gateway {
    fn call(&self, prompt_tokens: u64, max_tokens: u64) -> Result<u64, Denied> {
        let request = self.requests.try_acquire()?;
        let estimate = match self.tokens.try_acquire_n(prompt_tokens + max_tokens) {
            Ok(estimate) => estimate,
            Err(denied) => {
                self.requests.undo(request); // a call that is not made does not count
                return Err(denied);
            }
        };
        let used = prompt_tokens + answer(max_tokens);
        self.tokens.settle(estimate, used);
        Ok(used)
    }
}

/// Returns the length of the model's answer in tokens.
fn answer(max_tokens: u64) -> u64 {
    max_tokens / 4
}

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::new(); // `Limiter::token_bucket(quota)` reads the system's clock
    let requests = TokenBucket::new(Quota::per_minute(60))?;
    let tokens = TokenBucket::new(Quota::per_minute(90_000))?;
    let gateway = Gateway {
        requests: Limiter::with_clock(requests, clock.clone()),
        tokens: Limiter::with_clock(tokens, clock),
    };
    let used: u64 = thread::scope(|scope| {
        let calls = || {
            (0..4)
                .filter_map(|_| gateway.call(500, 2_000).ok())
                .sum::<u64>()
        };
        let callers: Vec<_> = (0..16).map(|_| scope.spawn(calls)).collect();
        callers
            .into_iter()
            .map(|caller| caller.join().expect("no panic"))
            .sum()
    });
    let left = gateway.tokens.available();
    println!(
        "{used} tokens used, {left} left, {} requests left",
        gateway.requests.available()
    );
    assert_eq!((used, left), (60_000, 30_000));
    Ok(())
}
