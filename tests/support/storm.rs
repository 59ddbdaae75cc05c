//! Storms: thousands of futures wait on two threads, and half of them are dropped at random times.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use futures::channel::oneshot;
use futures_lite::future::block_on;

use super::*;

/// The number of waiters.
pub(crate) const WAITERS: u64 = debug_or_release(2_000, 10_000);

pub(crate) type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A task on one of the runtimes.
pub(crate) enum Task {
    Tokio(tokio::task::JoinHandle<()>),
    Smol(async_executor::Task<()>),
}

impl Task {
    fn has_ended(&self) -> bool {
        match self {
            Self::Tokio(task) => task.is_finished(),
            Self::Smol(task) => task.is_finished(),
        }
    }

    /// Cancels the task. Returns when its future has been dropped.
    fn cancel(self) {
        match self {
            Self::Tokio(task) => {
                task.abort();
                while !task.is_finished() {
                    thread::yield_now();
                }
            }
            Self::Smol(task) => drop(block_on(task.cancel())),
        }
    }
}

/// Runs a storm on tokio, and on the executor of smol.
pub(crate) fn on_both_runtimes(storm: impl Fn(&dyn Fn(Job) -> Task)) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .expect("a runtime");
    storm(&|job| Task::Tokio(runtime.spawn(job)));

    let executor = Arc::new(async_executor::Executor::new());
    let begin = |_| {
        let executor = Arc::clone(&executor);
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::spawn(move || block_on(executor.run(stopped)).is_err());
        (stop, thread)
    };
    let (stops, threads): (Vec<_>, Vec<_>) = (0..2).map(begin).unzip();
    storm(&|job| Task::Smol(executor.spawn(job)));
    drop(stops);
    for thread in threads {
        assert!(thread.join().expect("no panic"));
    }
}

/// Spawns the jobs and lets all but an eighth of them wait. Then drops half of all jobs, most of
/// them while `go_on` lets waiting ones continue. Returns when all have ended.
pub(crate) fn rage(
    spawn: &dyn Fn(Job) -> Task,
    jobs: impl Iterator<Item = Job>,
    waiting: impl Fn() -> usize,
    mut go_on: impl FnMut(),
) {
    let panics = Arc::new(AtomicU64::new(0));
    let mut tasks: Vec<_> = jobs
        .map(|job| {
            let panics = Arc::clone(&panics);
            let ended = AssertUnwindSafe(job).catch_unwind();
            spawn(Box::pin(ended.map(move |ended| {
                panics.fetch_add(u64::from(ended.is_err()), SeqCst);
            })))
        })
        .collect();
    let all = tasks.len();
    while waiting() < all - all / 8 {
        thread::yield_now();
    }
    let (mut dropped, mut random) = (0, Random(7));
    while !tasks.is_empty() {
        // The first quarter includes more jobs than the ones that do not wait, so some of the
        // dropped jobs wait.
        if dropped < all / 4 || dropped < all / 2 && !random.one_in(24) {
            let place = random.below(tasks.len() as u64) as usize;
            tasks.swap_remove(place).cancel();
            dropped += 1;
        } else {
            go_on();
        }
        if random.one_in(64) {
            tasks.retain(|task| !task.has_ended());
        }
        assert_eq!(panics.load(SeqCst), 0, "a task has panicked");
    }
}
