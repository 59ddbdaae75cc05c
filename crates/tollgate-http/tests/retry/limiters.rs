//! One limit: of all callers, or of each key.

use std::time::Duration;

use tollgate::algorithm::ChangeQuota;
use tollgate::outcome::GrantInfo;
use tollgate::{AnyAlgorithm, Denied, Keyed, Limiter, ManualClock, Quota, TryAcquire};
use tollgate_http::{LimitState, Refusal};

use crate::random::Random;
use crate::{ANSWERS, REQUESTS, advance, algorithm, granted, refused};

/// One request: its permits, and the answer.
trait Ask {
    fn ask(&self, n: u64) -> Result<GrantInfo, Denied>;
    fn available(&self) -> u64;
}

impl<T: TryAcquire<Clock = ManualClock>> Ask for T {
    fn ask(&self, n: u64) -> Result<GrantInfo, Denied> {
        self.try_acquire_n(n).map(|granted| granted.info())
    }

    fn available(&self) -> u64 {
        TryAcquire::available(self)
    }
}

/// Asks a limit and checks its answer.
fn check(text: &str, limit: &impl Ask, quota: Quota, clock: &ManualClock, random: &mut Random) {
    // Sometimes more than there can be.
    let n = 1 + random.skewed(quota.burst_size() + 1);
    let state = LimitState::of_rate("a", quota);
    match limit.ask(n) {
        Ok(info) => {
            let seconds = granted(&[state.granted(info)])[0].expect("a rate has a reset");
            if random.one_in(8) {
                let time = Duration::from_secs(seconds);
                let reset = info.reset_after();
                assert!(
                    time >= reset && time < reset + Duration::from_secs(1),
                    "{text}"
                );
                clock.advance(reset);
                assert_eq!(
                    limit.available(),
                    quota.burst_size(),
                    "{text}: whole after {reset:?}"
                );
            }
        }
        Err(denied) => {
            let limits = [state.denied(&denied, limit.available())];
            let refusal = Refusal::of_denied(&denied).limits(&limits);
            let Some(retry_after) = refused(&refusal) else {
                assert!(n > quota.burst_size(), "{text}: {denied:?}");
                return;
            };
            clock.advance(retry_after);
            let again = limit.ask(n);
            assert!(
                again.is_ok(),
                "{text}: {n} after {retry_after:?}: {again:?}"
            );
        }
    }
}

/// Checks random states of limits that are made of an algorithm and a clock.
fn check_all<L: Ask>(seed: u64, make: impl Fn(AnyAlgorithm, ManualClock, &mut Random) -> L) {
    let mut random = Random(seed);
    for _ in 0..ANSWERS / REQUESTS {
        let (text, algorithm) = algorithm(&mut random);
        let quota = algorithm.quota();
        let clock = ManualClock::new();
        let limit = make(algorithm, clock.clone(), &mut random);
        for _ in 0..REQUESTS {
            advance(&clock, &mut random, quota.period());
            check(&text, &limit, quota, &clock, &mut random);
        }
    }
}

#[test]
fn a_retry_at_retry_after_is_granted() {
    check_all(1, |algorithm, clock, _| {
        Limiter::with_clock(algorithm, clock)
    });
}

#[test]
fn a_retry_of_a_key_at_retry_after_is_granted() {
    struct Key(Keyed<AnyAlgorithm, ManualClock>, u64);

    impl Ask for Key {
        fn ask(&self, n: u64) -> Result<GrantInfo, Denied> {
            self.0.key(&self.1).ask(n)
        }

        fn available(&self) -> u64 {
            self.0.key(&self.1).available()
        }
    }
    check_all(2, |algorithm, clock, random| {
        let table = Keyed::with_clock(algorithm, 64, clock).expect("a table");
        Key(table, random.next())
    });
}
