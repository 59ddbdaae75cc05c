//! One word and its retry loop, with four threads of up to eight calls. At different ticks the
//! bound holds; at one tick the permits add up exactly, also when some are returned.

use tollgate_shuttle_tests::prelude::*;

use crate::verbs::*;

const THREADS: u64 = 4;
const CALLS: u64 = 8;
/// Three permits in ten nanoseconds, with a burst of five. Only every third permit arrives on a
/// whole nanosecond.
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

/// Each thread has its own time, which advances by itself.
fn at_different_ticks() {
    let limiter = limiter();
    let grants = on_threads(THREADS, &limiter, |limiter, _| {
        let mut now = 20 + below(8);
        let mut grants = Vec::new();
        for _ in 0..CALLS {
            now += below(4);
            let view = limiter.at(Tick::from_nanos(now));
            grants.extend(view.try_acquire_n(1 + below(2)));
        }
        grants
    });
    let grants = grants.concat();
    if grants.len() > 8 {
        reached("more than a burst");
    }
    PROMISE.check(&grants);
}

/// At one tick, the permits kept and the permits that remain add up to the burst.
fn at_one_tick() {
    let (limiter, now) = (limiter(), Tick::from_nanos(1000));
    let kept = on_threads(THREADS, &limiter, move |limiter, _| {
        keep_or_give_back(limiter, now)
    });
    let kept: u64 = kept.into_iter().sum();
    let left = limiter.at(now).available();
    if left > 0 {
        reached("permits remain");
    }
    assert_eq!(
        kept + left,
        PROMISE.burst,
        "permits do not add up: {kept} kept, {left} left"
    );
}

/// Takes permits and returns some of them. Returns how many the thread holds at its end.
fn keep_or_give_back(limiter: &Tested, now: Tick) -> u64 {
    let mut held: Vec<Granted> = Vec::new();
    let mut kept = 0;
    for _ in 0..CALLS {
        let view = limiter.at(now);
        match below(5) {
            0 => {
                let answer = ask!(view, one_of(&Verb::taking(2)), &mut None);
                held.extend(answer.outcome());
            }
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

/// Without returns, exactly the burst is granted: no request is denied while permits remain.
fn exactly_the_burst() {
    let (limiter, now) = (limiter(), Tick::from_nanos(1000));
    let told = on_threads(THREADS, &limiter, move |limiter, _| {
        let calls = 1 + below(3);
        let granted = (0..calls).filter(|_| limiter.at(now).try_acquire().is_ok());
        (calls, granted.count() as u64)
    });
    let (calls, granted) = told
        .into_iter()
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    reached(match calls < PROMISE.burst {
        true => "fewer requests than permits",
        false => "at least as many requests as permits",
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
    model(name, 10_000, &["permits remain"], at_one_tick);
    stored(name, "permits do not add up", at_one_tick);
}

#[test]
fn exactly_the_burst_at_one_tick() {
    let name = "cell::exactly_the_burst_at_one_tick";
    let both = [
        "fewer requests than permits",
        "at least as many requests as permits",
    ];
    model(name, 10_000, &both, exactly_the_burst);
    stored(name, "of ", exactly_the_burst);
}
