//! The gateway of `examples/language_model.rs` with governor, as far as possible. governor has no
//! `undo`, no `settle` and no `available`, and cannot take from several limits at once. Unused
//! tokens of a call are lost, so 36 calls are answered instead of 60. There is no daily budget.

use std::error::Error;
use std::num::NonZeroU32;
use std::thread;

use governor::clock::FakeRelativeClock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

type Clock = FakeRelativeClock;
type Limit = RateLimiter<NotKeyed, InMemoryState, Clock, NoOpMiddleware<governor::nanos::Nanos>>;

struct Gateway {
    requests: Limit,
    tokens: Limit,
}

impl Gateway {
    fn call(&self, prompt_tokens: u32, max_tokens: u32) -> Result<u32, Box<dyn Error>> {
        self.requests.check().map_err(|_| "too many requests")?;
        let estimate = NonZeroU32::new(prompt_tokens + max_tokens).ok_or("an empty call")?;
        let tokens = self.tokens.check_n(estimate)?;
        tokens.map_err(|_| "too many tokens")?; // the request counts, although the call is not made
        Ok(prompt_tokens + answer(max_tokens)) // the estimate counts, not the actual use
    }
}

/// Returns the length of the model's answer in tokens.
fn answer(max_tokens: u32) -> u32 {
    max_tokens / 4
}

fn main() -> Result<(), Box<dyn Error>> {
    let clock = Clock::default();
    let limit = |n| {
        let n = NonZeroU32::new(n).ok_or("no permits")?;
        let limit = RateLimiter::direct_with_clock(Quota::per_minute(n), clock.clone());
        Ok::<_, Box<dyn Error>>(limit)
    };
    let gateway = Gateway {
        requests: limit(60)?,
        tokens: limit(90_000)?,
    };
    let used: u32 = thread::scope(|scope| {
        let calls = || {
            (0..4)
                .filter_map(|_| gateway.call(500, 2_000).ok())
                .sum::<u32>()
        };
        let callers: Vec<_> = (0..16).map(|_| scope.spawn(calls)).collect();
        callers
            .into_iter()
            .map(|caller| caller.join().expect("no panic"))
            .sum()
    });
    println!("{used} tokens used");
    assert_eq!(used, 36_000);
    Ok(())
}
