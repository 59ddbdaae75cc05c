//! Ten thousand wait, and half of them are dropped at random moments: on tokio, and on smol's executor. The
//! account closes exactly.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::thread;

use tollgate::primitive::{AtomicU64, Ordering::SeqCst};
use tollgate::{Concurrency, Enter};

use super::gate;
use super::random::Random;

const WAITERS: u64 = 10_000;
const LIMIT: u64 = 16;

/// What became of all who came.
struct Account {
    gate: Arc<Concurrency>,
    counted: AtomicU64,
    entered: AtomicU64,
    dropped: AtomicU64,
    /// Of these, how many were dropped in line, or had been let in and did not know.
    waiting: AtomicU64,
}

/// Asks for a while, and then is dropped, whatever became of it.
struct Fickle {
    enter: Option<Enter<Arc<Concurrency>>>,
    polls: u64,
}

impl Future for Fickle {
    type Output = bool;

    /// Whether it was in line when it was dropped; a guard is dropped unused.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        let Some(enter) = &mut self.enter else {
            return Poll::Ready(false);
        };
        let waits = Pin::new(enter).poll(context).is_pending();
        if waits && self.polls > 0 {
            self.polls -= 1;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.enter = None;
        Poll::Ready(waits)
    }
}

impl Account {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            gate: gate(LIMIT),
            counted: AtomicU64::new(0),
            entered: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
        })
    }

    /// One of the ten thousand.
    async fn one(self: Arc<Self>, seed: u64) {
        let mut random = Random(seed);
        let n = 1 + random.below(5);
        let enter = self.gate.enter_owned(n);
        if seed & 1 == 0 {
            let polls = random.below(6);
            let enter = Some(enter);
            let waited = Fickle { enter, polls }.await;
            self.waiting.fetch_add(u64::from(waited), SeqCst);
            self.dropped.fetch_add(1, SeqCst);
            return;
        }
        let guard = enter.await.expect("less than the limit");
        let inside = self.counted.fetch_add(n, SeqCst) + n;
        assert!(inside <= LIMIT, "{inside} inside");
        Yield(random.below(3)).await;
        self.counted.fetch_sub(n, SeqCst);
        self.entered.fetch_add(1, SeqCst);
        drop(guard);
    }

    fn close(&self) {
        assert_eq!((self.gate.inside(), self.gate.waiting()), (0, 0));
        let read = |count: &AtomicU64| count.load(SeqCst);
        let (entered, dropped) = (read(&self.entered), read(&self.dropped));
        assert_eq!((entered, dropped), (WAITERS / 2, WAITERS / 2));
        assert!(read(&self.waiting) > 0, "nobody was dropped in line");
        assert!(self.gate.peak() <= LIMIT);
        let all: Vec<_> = (0..LIMIT)
            .map(|_| self.gate.try_enter().expect("room"))
            .collect();
        assert!(self.gate.try_enter().is_err());
        drop(all);
    }
}

/// Lets others run so many times.
struct Yield(u64);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.0.checked_sub(1) {
            None => Poll::Ready(()),
            Some(left) => {
                self.0 = left;
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

#[test]
fn the_account_closes_on_tokio() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .build()
        .expect("a runtime");
    let account = Account::new();
    runtime.block_on(async {
        let one = |seed| tokio::spawn(Arc::clone(&account).one(seed));
        let tasks: Vec<_> = (0..WAITERS).map(one).collect();
        for task in tasks {
            task.await.expect("no panic");
        }
    });
    account.close();
}

/// tokio drops the future of a task that is aborted, wherever it stands.
#[test]
fn the_account_closes_when_tasks_are_aborted() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .build()
        .expect("a runtime");
    let gate = gate(LIMIT);
    let (done, aborted) = runtime.block_on(async {
        let one = |seed: u64| {
            let enter = gate.enter_owned(1 + seed % 5);
            tokio::spawn(async move { Yield(enter.await.map_or(0, |guard| guard.n())).await })
        };
        let tasks: Vec<_> = (0..WAITERS).map(one).collect();
        let mut random = Random(7);
        for task in &tasks {
            if random.one_in(2) {
                task.abort();
            }
        }
        let (mut done, mut aborted) = (0, 0);
        for task in tasks {
            match task.await {
                Ok(()) => done += 1,
                Err(error) if error.is_cancelled() => aborted += 1,
                Err(error) => panic!("{error}"),
            }
        }
        (done, aborted)
    });
    assert_eq!(done + aborted, WAITERS);
    assert!(done > WAITERS / 4);
    assert_eq!((gate.inside(), gate.waiting()), (0, 0));
    assert!(gate.try_enter_n(LIMIT).is_ok());
}

#[test]
fn the_account_closes_on_smols_executor() {
    let executor = async_executor::Executor::new();
    let account = Account::new();
    let one = |seed| executor.spawn(Arc::clone(&account).one(seed));
    let tasks: Vec<_> = (0..WAITERS).map(one).collect();
    let tasks = Mutex::new(tasks);
    thread::scope(|scope| {
        for _ in 0..4 {
            // Each thread runs the executor until the tasks that it took are done.
            scope.spawn(|| {
                futures_lite::future::block_on(executor.run(async {
                    loop {
                        let task = tasks.lock().expect("no panic").pop();
                        match task {
                            Some(task) => task.await,
                            None => return,
                        }
                    }
                }));
            });
        }
    });
    account.close();
}
