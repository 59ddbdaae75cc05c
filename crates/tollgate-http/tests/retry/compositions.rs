//! Several limits, all of which must grant a request.

use std::time::Duration;

use tollgate::compose::All;
use tollgate::{AnyAlgorithm, Limiter, ManualClock};
use tollgate_http::{LimitState, Refusal};

use crate::random::Random;
use crate::{ANSWERS, REQUESTS, advance, algorithm, granted, refused};

type Limits = [Limiter<AnyAlgorithm, ManualClock>; 3];

/// What each limit says of a request that is denied.
fn states<'s>(limits: &Limits, names: &'s [String; 3], n: u64) -> Vec<LimitState<'s>> {
    let states = limits.iter().zip(names).map(|(limit, name)| {
        let state = LimitState::of_rate(name, limit.quota());
        match limit.check_n(n) {
            Err(denied) => state.denied(&denied, limit.available()),
            Ok(()) => state.untouched(n, limit.available()),
        }
    });
    states.collect()
}

#[test]
fn a_retry_at_retry_after_is_granted_by_all_limits() {
    let mut random = Random(3);
    for _ in 0..ANSWERS / REQUESTS {
        let algorithms: [_; 3] = std::array::from_fn(|_| algorithm(&mut random));
        let names = algorithms.clone().map(|(text, _)| text);
        let clock = ManualClock::new();
        let limits = algorithms.map(|(_, it)| Limiter::with_clock(it, clock.clone()));
        let all = All::new(limits.each_ref()).expect("they have one clock");
        let quotas = limits.each_ref().map(Limiter::quota);
        let burst = quotas.iter().map(|quota| quota.burst_size()).min();
        let burst = burst.expect("three quotas");
        for _ in 0..REQUESTS {
            let period = quotas[random.below(3) as usize].period();
            advance(&clock, &mut random, period);
            let n = 1 + random.skewed(burst + 1);
            match all.try_acquire_n(n) {
                Ok(taken) => {
                    let infos = [0, 1, 2].map(|member| taken.member(member).expect("a grant"));
                    let states: Vec<_> = (0..3)
                        .map(|at| LimitState::of_rate(&names[at], quotas[at]).granted(infos[at]))
                        .collect();
                    let times = granted(&states);
                    if random.one_in(8) {
                        let last = times.into_iter().flatten().max().unwrap_or(0);
                        clock.advance(Duration::from_secs(last));
                        for (limit, quota) in limits.iter().zip(quotas) {
                            assert_eq!(limit.available(), quota.burst_size(), "{names:?}");
                        }
                    }
                }
                Err(denied) => {
                    let states = states(&limits, &names, n);
                    let denied = denied.denied().expect("a limit denies");
                    let refusal = Refusal::of_denied(&denied).limits(&states);
                    let Some(retry_after) = refused(&refusal) else {
                        assert!(n > burst, "{names:?}: {denied:?}");
                        continue;
                    };
                    clock.advance(retry_after);
                    assert!(
                        all.try_acquire_n(n).is_ok(),
                        "{names:?}: {n} after {retry_after:?}"
                    );
                }
            }
        }
    }
}
