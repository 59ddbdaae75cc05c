//! Half of ten thousand who wait are dropped, at any moment, on runtimes with several threads: the account
//! closes to the permit, and who stayed was served.

#![cfg(feature = "tokio")]

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tollgate::primitive::{AtomicU64, Ordering};
use tollgate::{Clock, Gate, Limiter, ManualClock, On, Quota, TokenBucket};

use crate::counting::Audited;

const WAITERS: u64 = 10_000;

type Gated = Arc<Audited<Limiter<TokenBucket, ManualClock>>>;

/// What both runtimes have: something that runs, and can be dropped.
trait Task {
    fn is_finished(&self) -> bool;
    fn cancel(self);
}

impl Task for tokio::task::JoinHandle<()> {
    fn is_finished(&self) -> bool {
        self.is_finished()
    }

    fn cancel(self) {
        self.abort();
        // Until it is dropped.
        while !self.is_finished() {
            std::thread::yield_now();
        }
    }
}

impl Task for async_executor::Task<()> {
    fn is_finished(&self) -> bool {
        self.is_finished()
    }

    fn cancel(self) {
        futures_lite::future::block_on(async_executor::Task::cancel(self));
    }
}

struct Storm {
    clock: ManualClock,
    gate: Gated,
    admitted: Arc<AtomicU64>,
    seed: u64,
}

impl Storm {
    fn new() -> Self {
        let clock = ManualClock::new();
        let bucket = TokenBucket::new(Quota::per_second(1000).burst(5)).expect("a quota");
        let gate = Limiter::with_clock(bucket, clock.clone());
        Self {
            clock,
            gate: Arc::new(Audited::new(gate)),
            admitted: Arc::default(),
            seed: 88_172_645_463_325_252,
        }
    }

    /// One who waits for some permits, and counts them when they are there.
    fn waiter(&self, i: u64) -> impl Future<Output = ()> + Send + use<> {
        let (gate, clock, admitted) = (
            Arc::clone(&self.gate),
            self.clock.clone(),
            Arc::clone(&self.admitted),
        );
        async move {
            let on = On::new(gate, clock);
            if let Ok(granted) = on.acquire_n(i % 3 + 1).await {
                assert!(on.gate().clock().now() >= granted.at(), "early");
                admitted.fetch_add(granted.n(), Ordering::Relaxed);
            }
        }
    }

    fn below(&mut self, end: usize) -> usize {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        (self.seed % end as u64) as usize
    }

    /// Drops every other one, while the clock goes on.
    fn rage<T: Task>(&mut self, mut tasks: Vec<T>) {
        let mut to_drop = tasks.len() / 2;
        while !tasks.is_empty() {
            if to_drop > 0 && self.below(3) > 0 {
                let place = self.below(tasks.len());
                tasks.swap_remove(place).cancel();
                to_drop -= 1;
            } else if to_drop == 0 || self.below(8) == 0 {
                match self.clock.next_sleeper() {
                    Some(tick) => self.clock.set(tick.max(self.clock.now())),
                    None => std::thread::yield_now(),
                }
            }
            if to_drop == 0 || self.below(64) == 0 {
                tasks.retain(|task| !task.is_finished());
            }
        }
    }

    fn check(&self) {
        let account = self.gate.account();
        let admitted = self.admitted.load(Ordering::SeqCst);
        assert_eq!(
            admitted + account.came_back + account.lost,
            account.reserved
        );
        // All that stayed were served: 5000 of one to three permits.
        assert!(admitted >= WAITERS / 2 && account.came_back + account.lost > 0);
        assert_eq!(self.clock.sleepers(), 0);
        // And the bucket is as full as ever when it has had the time.
        self.clock.advance(Duration::from_secs(60));
        assert_eq!(self.gate.gate.available(), 5);
    }
}

#[test]
fn on_tokio() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .expect("a runtime");
    let mut storm = Storm::new();
    let tasks = (0..WAITERS).map(|i| runtime.spawn(storm.waiter(i)));
    let tasks: Vec<_> = tasks.collect();
    storm.rage(tasks);
    storm.check();
}

/// What smol is made of.
#[test]
fn on_another_runtime() {
    let executor = Arc::new(async_executor::Executor::new());
    let stopped = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let (executor, stopped) = (Arc::clone(&executor), Arc::clone(&stopped));
            std::thread::spawn(move || {
                while stopped.load(Ordering::Relaxed) == 0 {
                    if !executor.try_tick() {
                        std::thread::yield_now();
                    }
                }
            })
        })
        .collect();
    let mut storm = Storm::new();
    let tasks = (0..WAITERS).map(|i| executor.spawn(storm.waiter(i)));
    let tasks: Vec<_> = tasks.collect();
    storm.rage(tasks);
    stopped.store(1, Ordering::Relaxed);
    for thread in threads {
        thread.join().expect("nobody panicked");
    }
    storm.check();
}
