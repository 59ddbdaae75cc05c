//! Threads without an async runtime use limits on a real server.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tollgate::Quota;
use tollgate_redis::client::Connection;
use tollgate_redis::client::connect_lazily;
use tollgate_redis::{Blocking, Decider, Fallback, Keys, RedisAll, RedisLimiter};

use crate::deadline::deadline;
use crate::server::{DEADLINE, Server, on_each_server};

type Limiter = RedisLimiter<Connection>;

/// Returns a limit of 100 permits, of which none comes back while a test runs.
fn limiter(blocking: &Blocking, server: &Server, budget: Duration, fallback: Fallback) -> Limiter {
    let client = blocking.wait(async { connect_lazily(server.url()) });
    let server = tollgate_redis::Server::new(client.expect("an address"))
        .with_budget(budget)
        .with_probe_every(Duration::from_millis(20));
    let keys = Keys::new("test").expect("a namespace");
    let quota = Quota::per_day(1).burst(100);
    let limiter = RedisLimiter::new(Arc::new(server), &keys, "limit", quota, fallback);
    limiter.expect("a limit")
}

#[test]
fn threads_get_exactly_the_burst() {
    on_each_server(|mut server| {
        server.start(false);
        let blocking = Blocking::new().expect("a thread");
        let limiter = limiter(&blocking, &server, DEADLINE, Fallback::Closed);
        // The key borrows from the limiter, and the threads from this one.
        let alice = limiter.key("alice");
        let take = || {
            let taken = (0..20).map(|_| blocking.wait(alice.try_acquire()));
            taken.filter(Result::is_ok).count()
        };
        let granted: usize = thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
            let counts = threads.into_iter().map(|thread| thread.join());
            counts.map(|count| count.expect("a thread")).sum()
        });
        assert_eq!(granted, 100);
        assert_eq!(limiter.server().stats().server, 160);
        let all = RedisAll::new(vec![alice]).expect("one slot");
        assert!(blocking.wait(all.try_acquire()).is_err());
        let bob = limiter.key("bob");
        let grant = blocking.wait(bob.try_acquire_n(7)).expect("a grant");
        assert_eq!(blocking.wait(bob.undo(grant)), Ok(7));
    });
}

#[test]
fn in_an_outage_threads_wait_for_the_budget_and_then_fall_back() {
    on_each_server(|mut server| {
        server.start(false);
        let blocking = Blocking::new().expect("a thread");
        let budget = Duration::from_millis(100);
        let fallback = Fallback::OpenAtMost {
            at_most: 5,
            per: None,
        };
        let limiter = limiter(&blocking, &server, budget, fallback);
        let alice = limiter.key("alice");
        until_the_server_decides(&blocking, &limiter);
        server.signal("STOP");
        let take = || {
            let mut granted = 0;
            for _ in 0..1000 {
                if let Ok(grant) = blocking.wait(alice.try_acquire()) {
                    granted += u64::from(grant.decider() == Decider::Open);
                }
            }
            granted
        };
        let granted: u64 = thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
            let counts = threads.into_iter().map(|thread| thread.join());
            counts.map(|count| count.expect("a thread")).sum()
        });
        // In the outage, and before it in one minute or two.
        assert!((5..=15).contains(&granted), "{granted}");
        assert!(limiter.server().is_down());
        server.signal("CONT");
        until_the_server_decides(&blocking, &limiter);
        assert!(!limiter.server().is_down());
    });
}

fn until_the_server_decides(blocking: &Blocking, limiter: &Limiter) {
    let start = Instant::now();
    while blocking.wait(limiter.key("alice").available()).is_err() {
        assert!(start.elapsed() < DEADLINE, "the server answers");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The runtime that this thread blocks would be the one to wake it.
#[test]
fn inside_of_async_code_a_future_that_yields_ends() {
    deadline("a future that yields inside of async code", || {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(async {
            let blocking = Blocking::new().expect("a thread");
            blocking.wait(tokio::task::yield_now());
        });
    });
}

/// A task there, such as that of a guard, may call a function of the program that waits.
#[test]
fn on_its_own_thread_it_ends() {
    deadline("a wait on the thread of the same runtime", || {
        let blocking = Arc::new(Blocking::new().expect("a thread"));
        let own = Arc::clone(&blocking);
        let inner = async move {
            own.wait(async {
                let slow = std::future::pending::<()>();
                tokio::time::timeout(Duration::from_millis(1), slow).await
            })
        };
        let ended = blocking.wait(async { tokio::spawn(inner).await });
        assert!(ended.expect("it does not panic").is_err());
    });
}

#[test]
fn inside_of_async_code_it_blocks_and_does_not_panic() {
    on_each_server(|mut server| {
        server.start(false);
        let url = server.url();
        deadline("an answer inside of async code", move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            runtime.expect("a runtime").block_on(async {
                let blocking = Blocking::new().expect("a thread");
                let client = blocking.wait(async { connect_lazily(url) });
                let server = tollgate_redis::Server::new(client.expect("an address"));
                let keys = Keys::new("test").expect("a namespace");
                let quota = Quota::per_day(1).burst(1000);
                let server = Arc::new(server.with_budget(DEADLINE));
                let limiter = RedisLimiter::new(server, &keys, "limit", quota, Fallback::Closed);
                let limiter = limiter.expect("a quota");
                // More than a task of tokio may do before it yields.
                for _ in 0..200 {
                    let grant = blocking.wait(limiter.key("alice").try_acquire());
                    assert_eq!(grant.expect("a grant").decider(), Decider::Server);
                }
            });
        });
    });
}
