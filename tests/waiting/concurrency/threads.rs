//! Many threads with weights, panics and a changing limit never exceed what is allowed.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::{assert_empty, limiter};
use crate::support::*;

const TURNS: u64 = debug_or_release(1_000, 20_000);

/// Enters in one of four ways, and counts the weight inside after entering and before leaving.
fn turn(limiter: &Concurrency, counted: &AtomicU64, most: u64, random: &mut Random) {
    let n = random.below(4);
    let entered = match random.below(5) {
        0 => limiter.try_enter_n(n),
        1 => limiter.try_enter_ahead(n),
        2 => limiter
            .enter_n(n)
            .wait_timeout(Duration::from_micros(random.below(50))),
        _ => limiter.enter_n(n).wait(),
    };
    let Ok(guard) = entered else { return };
    assert_eq!(guard.n(), n);
    let inside = counted.fetch_add(n, SeqCst) + n;
    assert!(inside <= most, "{inside} inside, of {most}");
    if random.one_in(4) {
        thread::yield_now();
    }
    counted.fetch_sub(n, SeqCst);
    // A panic drops some of the guards.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let _guard = guard;
        if random.one_in(16) {
            resume_unwind(Box::new("out"));
        }
    }));
}

#[test]
fn threads_never_exceed_the_largest_limit_that_was_set() {
    deadline("threads that enter and leave", || {
        for limits in [&[1][..], &[5], &[3, 4, 7]] {
            for threads in [2, 3, 16] {
                let (limiter, most) = (limiter(limits[0]), limits[limits.len() - 1]);
                let counted = AtomicU64::new(0);
                on_threads(0..threads, |id| {
                    let mut random = Random(id);
                    for turn_number in 0..TURNS / threads {
                        turn(&limiter, &counted, most, &mut random);
                        if limits.len() > 1 && turn_number % 8 == id % 8 {
                            let limit = limits[random.below(limits.len() as u64) as usize];
                            limiter.set_limit(limit).expect("a limit");
                        }
                    }
                });
                assert!((1..=most).contains(&limiter.peak()));
                assert_empty(&limiter);
            }
        }
    });
}
