//! Measures a composition of two buckets beside two governor limiters, one after the other.
//! governor can't undo: if its second limiter denies, the permit of the first is lost. Both read
//! their clocks.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Duration;

use criterion::Criterion;
use governor::DefaultDirectRateLimiter as Governor;
use tollgate::compose::All;
use tollgate::{Limiter, Quota, TokenBucket};

/// A limiter that does not run dry, or one that has spent its only permit.
fn governor(full: bool) -> Governor {
    if full {
        return Governor::direct(governor::Quota::per_second(NonZeroU32::MAX));
    }
    let hour = governor::Quota::with_period(Duration::from_secs(3600)).expect("a period");
    let limiter = Governor::direct(hour.allow_burst(NonZeroU32::MIN));
    assert!(limiter.check().is_ok());
    limiter
}

/// The same of tollgate.
fn bucket(full: bool) -> Limiter<TokenBucket> {
    let quota = match full {
        true => Quota::per_second(1_000_000_000).burst(1 << 40),
        false => Quota::per_hour(1).initial(0),
    };
    Limiter::token_bucket(quota).expect("a quota that can be represented")
}

fn main() {
    let mut criterion = Criterion::default()
        .measurement_time(Duration::from_secs(1))
        .warm_up_time(Duration::from_millis(300))
        .configure_from_args();
    for (kind, full) in [("allowed", true), ("denied", false)] {
        let mut group = criterion.benchmark_group(format!("composed_{kind}"));
        let all = All::new((bucket(true), bucket(full))).expect("limits");
        group.bench_function("all_two", |bencher| {
            bencher.iter(|| assert_eq!(black_box(&all).try_acquire().is_ok(), full));
        });
        let (first, second) = (governor(true), governor(full));
        group.bench_function("governor_two_which_can_not_undo", |bencher| {
            bencher.iter(|| {
                let (first, second) = black_box((&first, &second));
                assert_eq!(first.check().is_ok() && second.check().is_ok(), full);
            });
        });
        group.finish();
    }
    criterion.final_summary();
}
