//! Thousands wait, and half of them are dropped at random times, on two runtimes.

use futures_lite::future::yield_now;

use super::{assert_empty, limiter};
use crate::support::storm::{WAITERS, on_both_runtimes, rage};
use crate::support::*;

const LIMIT: u64 = 16;

/// The weight inside, counted down by a value that is dropped together with a guard, and before it.
struct Inside(Arc<AtomicU64>, u64);

impl Inside {
    fn new(inside: &Arc<AtomicU64>, n: u64) -> Self {
        let sum = inside.fetch_add(n, SeqCst) + n;
        assert!(sum <= LIMIT, "{sum} inside");
        Self(Arc::clone(inside), n)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, SeqCst);
    }
}

#[test]
fn a_storm_admits_all_remaining_waiters_and_never_exceeds_the_limit() {
    deadline("a storm before a full limiter", || {
        on_both_runtimes(|spawn| {
            let limiter = limiter(LIMIT);
            let mut held = limiter.try_enter_owned(LIMIT).ok();
            let [inside, left] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
            let jobs = (0..WAITERS).map(|i| {
                let (inside, left) = (Arc::clone(&inside), Arc::clone(&left));
                let enter = limiter.enter_owned(1 + i % 5);
                Box::pin(async move {
                    let guard = enter.await.expect("less than the limit");
                    let counted = Inside::new(&inside, guard.n());
                    for _ in 0..i % 3 {
                        yield_now().await;
                    }
                    drop(counted);
                    left.fetch_add(1, SeqCst);
                }) as _
            });
            let go_on = || match held.take() {
                Some(held) => drop(held),
                None => std::thread::yield_now(),
            };
            rage(spawn, jobs, || limiter.waiting(), go_on);
            assert!(left.load(SeqCst) >= WAITERS / 2);
            assert_eq!(inside.load(SeqCst), 0);
            assert!(limiter.peak() <= LIMIT);
            assert_empty(&limiter);
        });
    });
}
