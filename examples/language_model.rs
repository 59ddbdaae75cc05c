//! A gateway to a language model that allows 60 requests and 90 000 tokens a minute, and a million
//! tokens a day.
//!
//! ```text
//! cargo run --example language_model
//! ```
//!
//! The cost of a call is known only when it is over. The gateway takes an estimate from all limits
//! first and corrects it afterwards: `settle` returns tokens that were not used, or charges more if
//! the estimate was too low. A call that one limit denies takes nothing from the others.

use std::error::Error;
use std::thread;

use tollgate::compose::{All, AllDenied, Named};
use tollgate::{FixedWindow, Limiter, ManualClock, Quota, TokenBucket};

type Bucket = Named<Limiter<TokenBucket, ManualClock>>;
type Day = Named<Limiter<FixedWindow, ManualClock>>;

struct Gateway {
    limits: All<(Bucket, Bucket, Day), ManualClock>,
}

impl Gateway {
    fn call(&self, prompt_tokens: u64, max_tokens: u64) -> Result<u64, AllDenied> {
        let estimate = prompt_tokens + max_tokens;
        let mut granted = self.limits.try_acquire_each([1, estimate, estimate])?;
        let used = prompt_tokens + answer(max_tokens);
        granted.settle([1, used, used])?;
        Ok(used)
    }

    /// Returns how many requests and tokens are left, and how many tokens of the day.
    fn left(&self) -> [u64; 3] {
        let (requests, tokens, day) = self.limits.inner();
        let [requests, tokens] = [requests, tokens].map(|limit| limit.inner().available());
        [requests, tokens, day.inner().available()]
    }
}

/// Returns the length of the model's answer in tokens.
fn answer(max_tokens: u64) -> u64 {
    max_tokens / 4
}

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::new(); // `Limiter::token_bucket(quota)` reads the system's clock
    let bucket = |name, quota| {
        let limiter = Limiter::with_clock(TokenBucket::new(quota)?, clock.clone());
        Ok::<_, Box<dyn Error>>(Named::new(name, limiter))
    };
    let requests = bucket("requests a minute", Quota::per_minute(60))?;
    let tokens = bucket("tokens a minute", Quota::per_minute(90_000))?;
    let day = FixedWindow::new(Quota::per_day(1_000_000))?;
    let day = Named::new("tokens a day", Limiter::with_clock(day, clock.clone()));
    let limits = All::new((requests, tokens, day))?;
    let gateway = Gateway { limits };

    let denied = gateway.call(500, 100_000).unwrap_err();
    println!("{denied}");
    assert_eq!(
        (denied.name(), denied.is_permanent()),
        (Some("tokens a minute"), true)
    );
    assert_eq!(gateway.left(), [60, 90_000, 1_000_000]);

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
    let left = gateway.left();
    println!("{used} tokens used; requests, tokens and tokens of the day left: {left:?}");
    assert_eq!((used, left), (60_000, [0, 30_000, 940_000]));

    let denied = gateway.call(500, 2_000).unwrap_err();
    println!("{denied}");
    assert_eq!(denied.name(), Some("requests a minute"));
    assert_eq!(gateway.left(), left);
    Ok(())
}
