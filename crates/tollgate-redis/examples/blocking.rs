//! Threads without an async runtime share a limit on a private server, which is then killed.
//!
//!     cargo run -p tollgate-redis --example blocking
//!
//! One thread of a runtime in the background reads and writes the connections, and keeps the time
//! for budgets and leases. `Runtime::block_on` waits in any other thread, and in many at once. Keep
//! the runtime as long as the limits are used. In async code, await the futures instead: there
//! `block_on` panics.

mod private_server;

use std::error::Error;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use private_server::PrivateServer;
use tokio::runtime::{Builder, Runtime};
use tollgate::Quota;
use tollgate_redis::client::{Connection, connect_lazily};
use tollgate_redis::{Decider, Fallback, Keys, Limit, RedisAll, RedisLimiter, RedisServer};

/// Takes 20 permits of a user in each of 8 threads, and returns who decided those that were
/// granted.
fn take(runtime: &Runtime, limiter: &RedisLimiter<Connection>, user: &str) -> Vec<Decider> {
    // The key borrows from the limiter, and the threads from this one.
    let key = limiter.key(user);
    let take = || {
        let taken = (0..20).map(|_| runtime.block_on(key.try_acquire()).ok());
        taken.flatten().map(|grant| grant.decider()).collect()
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
        let granted = threads.into_iter().map(|thread| thread.join());
        let granted = granted.map(|each: thread::Result<Vec<_>>| each.expect("a thread"));
        granted.flatten().collect()
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(mut private) = PrivateServer::start()? else {
        println!("skipped: redis-server can't be started; TOLLGATE_REDIS_SERVER can name another");
        return Ok(());
    };
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let server = RedisServer::new(connect_lazily(private.url())?)
        .with_budget(Duration::from_secs(5))
        .with_probe_every(Duration::from_millis(20));
    let (server, keys) = (Arc::new(server), Keys::new("example")?);
    let (quota, fallback) = (
        Quota::per_day(1).burst(100),
        Fallback::OpenAtMost {
            at_most: 5,
            per: Some(Duration::from_secs(3600)),
        },
    );
    let requests = RedisLimiter::new(Arc::clone(&server), &keys, "requests", quota, fallback)?;
    let slots: Limit = "concurrency 1 lease 30s".parse()?;
    let uploads = RedisLimiter::new(
        Arc::clone(&server),
        &keys,
        "uploads",
        slots,
        Fallback::Closed,
    )?;
    until_the_server_decides(&runtime, &requests);

    let granted = take(&runtime, &requests, "alice");
    println!("alice may send 100 requests: {} of 160", granted.len());
    assert_eq!(granted, [Decider::Server; 100]);
    assert_eq!(server.stats().server, 161);

    let bob = requests.key("bob");
    let grant = runtime.block_on(bob.try_acquire_n(7))?;
    assert_eq!(runtime.block_on(bob.undo(grant))?, 7);
    let all = RedisAll::new(vec![requests.key("alice"), uploads.key("alice")])?;
    assert!(runtime.block_on(all.try_acquire()).is_err());

    // The runtime renews the lease of a guard.
    let uploads = uploads.key("bob");
    let guard = runtime.block_on(uploads.try_enter())?;
    assert!(runtime.block_on(uploads.try_enter()).is_err());
    assert_eq!(runtime.block_on(guard.leave())?, 1);

    private.kill()?;
    let granted = take(&runtime, &requests, "carol");
    println!(
        "without the server, carol may send {} of 160",
        granted.len()
    );
    assert!(server.is_down());
    // The period counts the calls that fail before the outage begins, too.
    assert_eq!(granted, [Decider::Open; 5]);

    private.run()?;
    until_the_server_decides(&runtime, &requests);
    assert!(!server.is_down());
    Ok(())
}

fn until_the_server_decides(runtime: &Runtime, limiter: &RedisLimiter<Connection>) {
    while runtime.block_on(limiter.key("nobody").available()).is_err() {
        thread::sleep(Duration::from_millis(10));
    }
}
