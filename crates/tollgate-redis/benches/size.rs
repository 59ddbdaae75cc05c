//! How much memory keys take: the growth of the `used_memory` of a server, and for leases also of
//! this process, divided by their number.
//!
//!     cargo bench -p tollgate-redis --bench size

use std::sync::Arc;
use std::time::Duration;

use tollgate::Quota;
use tollgate_redis::client::{Connection, connect_lazily};
use tollgate_redis::{Fallback, Keys, Leasing, Limit, RedisKey, RedisLimiter};

#[allow(dead_code, reason = "shared with the tests")]
#[path = "../tests/support/server.rs"]
mod server;

use server::{DEADLINE, Server, on_each_server};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The keys of a bucket, and those that have many permits or slots.
const KEYS: usize = 300_000;
const LARGE_KEYS: usize = 100;
const PERMITS: u64 = 1000;
const LEASED_KEYS: usize = 1000;

/// Tasks that use the connection at the same time.
const TASKS: usize = 64;

#[derive(Debug, Clone, Copy)]
enum Verb {
    Take(u64),
    Ban,
}

fn main() {
    on_each_server(|server| {
        println!("\n{}", server.program());
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let keys = Keys::new("api").expect("a namespace");
            let readable = keys.clone().with_readable_users();
            let bucket = || Limit::token_bucket(Quota::per_day(1).burst(10)).expect("a limit");
            let per_key = KEYS as u64;
            let taken = LARGE_KEYS as u64 * PERMITS;
            let log = Limit::sliding_log(Quota::per_day(PERMITS)).expect("a limit");
            let slots = Limit::concurrency(PERMITS, DAY).expect("a limit");
            let take = |limit, keys: &Keys, count, verb, each| {
                let (server, keys) = (server.another(), keys.clone());
                async move { grown(server, limit, &keys, count, verb).await / each }
            };
            let one = Verb::Take(1);
            let row = |name, bytes: u64| println!("{name:30} {bytes:>5} bytes");
            row("a key", take(bucket(), &keys, KEYS, one, per_key).await);
            row(
                "a banned key",
                take(bucket(), &keys, KEYS, Verb::Ban, per_key).await,
            );
            let small = take(bucket(), &readable, KEYS, one, per_key).await;
            row("a key with a readable user", small);
            let all = Verb::Take(PERMITS);
            row(
                "a permit of a log",
                take(log, &keys, LARGE_KEYS, all, taken).await,
            );
            row("a slot", take(slots, &keys, LARGE_KEYS, all, taken).await);
            let (there, here) = leased(server.another(), &keys).await;
            row("a leased key and its leases", there);
            row("a leased key in the process", here);
        });
    });
}

/// Uses as many keys of a limit on a server of their own, and returns by how many bytes its memory
/// grows.
async fn grown(mut server: Server, limit: Limit, keys: &Keys, count: usize, verb: Verb) -> u64 {
    server.start(false);
    let client = connect_lazily(server.url()).expect("an address");
    let shared = Arc::new(tollgate_redis::RedisServer::new(client).with_budget(DEADLINE));
    let limiter =
        RedisLimiter::new(shared, keys, "login", limit, Fallback::Closed).expect("a limit");
    let limiter = Arc::new(limiter);
    // The first call sends the script too.
    call(&limiter.key("first"), verb).await;
    let before = server.info("used_memory");
    let tasks = (0..TASKS).map(|task| {
        let limiter = Arc::clone(&limiter);
        tokio::spawn(async move {
            for user in (task..count).step_by(TASKS) {
                call(&limiter.key(format!("u{user:07}")), verb).await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("a task");
    }
    server.info("used_memory") - before
}

/// Leases many keys, and returns by how many bytes the server's memory grows for each, and this
/// process's.
async fn leased(mut server: Server, keys: &Keys) -> (u64, u64) {
    server.start(false);
    let client = connect_lazily(server.url()).expect("an address");
    let shared = Arc::new(tollgate_redis::RedisServer::new(client).with_budget(DEADLINE));
    let quota = Quota::per_second(1000);
    let limiter = RedisLimiter::new(shared, keys, "login", quota, Fallback::Closed);
    let leasing = Leasing::new().with_life(Duration::from_secs(60));
    let limiter = limiter.expect("a limit").leased(leasing).expect("leases");
    let stats = || limiter.lease_stats().expect("leases");
    call(&limiter.key("first"), Verb::Take(1)).await;
    let before = (server.info("used_memory"), resident());
    // In turns, so that each is asked for often enough.
    while stats().keys < LEASED_KEYS || stats().draws < LEASED_KEYS as u64 {
        for user in 0..LEASED_KEYS {
            let _ = limiter.key(format!("u{user:07}")).try_acquire().await;
        }
    }
    assert_eq!(stats().keys, LEASED_KEYS);
    let each = |before: u64, after: u64| after.saturating_sub(before) / LEASED_KEYS as u64;
    (
        each(before.0, server.info("used_memory")),
        each(before.1, resident()),
    )
}

/// Returns how many bytes of memory this process has, or 0 where that is not known.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kib.unwrap_or(0) * 1024
}

async fn call(key: &RedisKey<'_, Connection>, verb: Verb) {
    match verb {
        Verb::Take(n) => drop(key.try_acquire_n(n).await.expect("a grant")),
        Verb::Ban => drop(key.ban_for(DAY).await.expect("a ban")),
    }
}
