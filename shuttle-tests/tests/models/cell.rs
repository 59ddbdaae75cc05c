//! The word and its loop, with four threads of eight calls: the bound at ticks that differ, and not
//! a permit more or less at one tick, whatever comes back meanwhile.

use std::sync::Arc;
use std::time::Duration;

use tollgate::clock::NoClock;
use tollgate::{Granted, Limiter, Quota, Tick, TokenBucket};
use tollgate_shuttle_tests::{Promise, act, actor, below, model, reached, stored};

const THREADS: u64 = 4;
const CALLS: u64 = 8;
/// Three permits in ten nanoseconds, five at once: no permit comes at a whole nanosecond but every
/// third.
const PROMISE: Promise = Promise {
    burst: 5,
    permits: 3,
    period: 10,
};

type Tested = Limiter<TokenBucket, NoClock>;

fn limiter() -> Arc<Tested> {
    let quota = Quota::per(PROMISE.permits, Duration::from_nanos(PROMISE.period));
    let bucket = TokenBucket::new(quota.burst(PROMISE.burst)).expect("a quota");
    Arc::new(Limiter::unstarted(bucket, NoClock))
}

/// Each thread has a time of its own, which moves on by itself.
fn at_different_ticks() {
    let limiter = limiter();
    let actors = (0..THREADS).map(|_| {
        let limiter = Arc::clone(&limiter);
        actor(move || {
            let mut now = 20 + below(8);
            let mut grants = Vec::new();
            for _ in 0..CALLS {
                now += below(4);
                grants.extend(limiter.try_acquire_n_at(1 + below(2), Tick::from_nanos(now)));
            }
            grants
        })
    });
    let grants = act(actors.collect()).concat();
    if grants.len() > 8 {
        reached("more than a burst");
    }
    PROMISE.check(&grants);
}

/// At one tick: what there was, less what was taken, and what came back, is there.
fn at_one_tick() {
    let (limiter, now) = (limiter(), Tick::from_nanos(1000));
    let actors = (0..THREADS).map(|_| {
        let limiter = Arc::clone(&limiter);
        actor(move || keep_or_give_back(&limiter, now))
    });
    let kept: u64 = act(actors.collect()).into_iter().sum();
    let left = limiter.at(now).available();
    if left > 0 {
        reached("permits left");
    }
    assert_eq!(
        kept + left,
        PROMISE.burst,
        "permits do not add up: {kept} kept, {left} left"
    );
}

/// How many permits a thread has after all.
fn keep_or_give_back(limiter: &Tested, now: Tick) -> u64 {
    let mut held: Vec<Granted> = Vec::new();
    let mut kept = 0;
    for _ in 0..CALLS {
        let view = limiter.at(now);
        match below(5) {
            0 => held.push(view.take_up_to(2)),
            1 if kept > 0 => kept -= view.refund(1),
            2 => {
                if let Some(granted) = held.pop() {
                    kept += granted.n() - view.undo(granted);
                }
            }
            _ => held.extend(view.try_acquire_n(1 + below(2))),
        }
    }
    kept + held.iter().map(Granted::n).sum::<u64>()
}

/// Nothing comes back: exactly the burst, and as long as there is any, nobody who asks for one is
/// denied.
fn exactly_the_burst() {
    let (limiter, now) = (limiter(), Tick::from_nanos(1000));
    let actors = (0..THREADS).map(|_| {
        let limiter = Arc::clone(&limiter);
        actor(move || {
            let calls = 1 + below(3);
            let granted = (0..calls).filter(|_| limiter.try_acquire_at(now).is_ok());
            (calls, granted.count() as u64)
        })
    });
    let told = act(actors.collect());
    let (calls, granted) = told
        .into_iter()
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    reached(match calls < PROMISE.burst {
        true => "fewer than there are",
        false => "more than there are",
    });
    assert_eq!(granted, calls.min(PROMISE.burst), "of {calls}");
}

#[test]
fn the_bound_at_different_ticks() {
    let name = "cell::the_bound_at_different_ticks";
    model(name, 10_000, &["more than a burst"], at_different_ticks);
    stored(name, "more than was promised", at_different_ticks);
}

#[test]
fn permits_add_up_at_one_tick() {
    let name = "cell::permits_add_up_at_one_tick";
    model(name, 10_000, &["permits left"], at_one_tick);
    stored(name, "permits do not add up", at_one_tick);
}

#[test]
fn exactly_the_burst_at_one_tick() {
    let name = "cell::exactly_the_burst_at_one_tick";
    let both = ["fewer than there are", "more than there are"];
    model(name, 10_000, &both, exactly_the_burst);
    stored(name, "of ", exactly_the_burst);
}
