//! Processes that lease permits, by a private server: nothing is granted twice, all is used, and
//! what a process holds is of use while the server is away.

mod allowance;
pub(crate) mod process;
mod tasks;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tollgate::Quota;
use tollgate_redis::client::{Connection, connect_lazily};
use tollgate_redis::{
    Decider, Denial, Fallback, Grant, Keys, Leasing, Limit, RedisAll, RedisLimiter, RedisServer,
};

use crate::ask::run;
use crate::server::{DEADLINE, Server, on_each_server};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A limiter as in a process of its own.
pub(crate) fn node(server: &Server, limit: Limit) -> RedisLimiter<Connection> {
    node_at(&server.url(), limit)
}

pub(crate) fn node_at(url: &str, limit: Limit) -> RedisLimiter<Connection> {
    node_with(url, limit, Duration::from_secs(60))
}

/// A limiter whose leases last for this long, of the server at `url`.
fn node_with(url: &str, limit: Limit, life: Duration) -> RedisLimiter<Connection> {
    let client = connect_lazily(url).expect("an address");
    let connected = RedisServer::new(client).with_budget(Duration::from_secs(5));
    let keys = Keys::new("test").expect("a namespace");
    let limiter = RedisLimiter::new(Arc::new(connected), &keys, "a", limit, Fallback::Closed);
    let leasing = Leasing::new().with_life(life);
    limiter.expect("a limit").leased(leasing).expect("leases")
}

/// Permits that are practically never refilled.
pub(crate) fn bucket(permits: u64) -> Limit {
    Limit::token_bucket(Quota::per(1, DAY / 24).burst(permits)).expect("a limit")
}

fn window(permits: u64) -> Limit {
    Limit::fixed_window(Quota::per(permits, 365 * DAY)).expect("a limit")
}

/// Asks until a grant comes from a lease. Returns how many were granted.
pub(crate) async fn until_leased(node: &RedisLimiter<Connection>) -> u64 {
    let start = Instant::now();
    let mut granted = 0;
    while start.elapsed() < DEADLINE {
        match node.key("alice").try_acquire().await {
            Ok(grant) => {
                granted += 1;
                if grant.decider() == Decider::Lease {
                    return granted;
                }
            }
            Err(_) => tokio::task::yield_now().await,
        }
    }
    panic!("no lease: {:?}", node.lease_stats())
}

pub(crate) fn poll_once<T>(future: impl Future<Output = T>) -> Poll<T> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn four_nodes_grant_all_permits_and_none_twice() {
    on_each_server(|mut server| {
        server.start(false);
        for limit in [bucket(20_000), window(20_000)] {
            let _: () = server.run("FLUSHALL");
            run(async {
                let nodes: Vec<_> = (0..4).map(|_| node(&server, limit)).collect();
                let (start, mut granted, mut leased) = (Instant::now(), 0_u64, 0_u64);
                while granted < 20_000 && start.elapsed() < DEADLINE {
                    for node in &nodes {
                        for _ in 0..10 {
                            match node.key("alice").try_acquire().await {
                                Ok(grant) => {
                                    granted += 1;
                                    leased += u64::from(grant.decider() == Decider::Lease);
                                }
                                Err(_) => tokio::task::yield_now().await,
                            }
                        }
                    }
                }
                assert_eq!(granted, 20_000);
                assert!(leased > 15_000, "{leased} were leased");
                for node in &nodes {
                    for _ in 0..100 {
                        assert!(node.key("alice").try_acquire().await.is_err());
                    }
                }
            });
        }
    });
}

#[test]
fn a_node_that_ends_gives_back_what_it_holds() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let (one, other) = (node(&server, bucket(1000)), node(&server, bucket(1000)));
            let mut granted = until_leased(&one).await;
            assert!(one.lease_stats().expect("leases").held > 0);
            drop(one);
            let start = Instant::now();
            while granted < 1000 && start.elapsed() < DEADLINE {
                match other.key("alice").try_acquire().await {
                    Ok(_) => granted += 1,
                    Err(_) => tokio::task::yield_now().await,
                }
            }
            assert_eq!(granted, 1000);
            assert!(other.key("alice").try_acquire().await.is_err());
        });
    });
}

#[test]
fn what_a_node_holds_is_spent_at_once_while_the_server_is_stopped_and_then_the_fallback_decides() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let node = node(&server, bucket(100_000));
            let _ = until_leased(&node).await;
            server.kill();
            let held = node.lease_stats().expect("leases").held;
            assert!(held > 0);
            let alice = node.key("alice");
            let mut spent = 0;
            // Without a budget, only a wait for the network is pending. The process knows that the
            // server is gone as soon as a message has failed.
            let take = || poll_once(tokio::task::unconstrained(alice.try_acquire()));
            while let Poll::Ready(Ok(grant)) = take() {
                assert_eq!(grant.decider(), Decider::Lease);
                spent += 1;
            }
            // An answer may have come later.
            assert!(spent >= held, "{spent} of {held}");
            // More than a process may hold is asked of the server, which is gone.
            let denial = alice.try_acquire_n(90_000).await.expect_err("a denial");
            assert_eq!(denial.decider(), Decider::Closed);
        });
    });
}

#[test]
fn grants_of_leases_are_put_back_and_settled_in_the_process() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let node = node(&server, bucket(1000));
            let mut granted = until_leased(&node).await;
            let alice = node.key("alice");
            // Draws may be under way, so only the bound is exact: see below.
            let take = || async {
                let taken: Result<Grant, Denial> = alice.try_acquire().await;
                taken.expect("a permit")
            };
            let grant = take().await;
            assert_eq!(grant.decider(), Decider::Lease);
            assert_eq!(alice.undo(grant).await, Ok(1));
            let grant = take().await;
            assert_eq!(grant.decider(), Decider::Lease);
            let settled = alice.settle(grant, 0).await.expect("settled");
            assert_eq!((settled.returned, settled.lost), (1, 0));
            let all = RedisAll::new(vec![node.key("alice"), node.key("bob")]).expect("all");
            let grants = all.try_acquire().await.expect("permits");
            assert_eq!(grants.first().map(Grant::decider), Some(Decider::Lease));
            assert_eq!(all.undo(grants).await, Ok(vec![1, 1]));
            let start = Instant::now();
            while granted < 1000 && start.elapsed() < DEADLINE {
                match alice.try_acquire().await {
                    Ok(_) => granted += 1,
                    Err(_) => tokio::task::yield_now().await,
                }
            }
            assert_eq!(granted, 1000, "what came back is granted again");
            for _ in 0..100 {
                assert!(alice.try_acquire().await.is_err());
            }
        });
    });
}

#[test]
fn a_ban_ends_leases() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let (one, other) = (node(&server, bucket(1000)), node(&server, bucket(1000)));
            for node in [&one, &other] {
                let _ = until_leased(node).await;
            }
            one.key("alice").ban_for(DAY).await.expect("a ban");
            // What a process holds it may spend until it asks. A draw may have been under way.
            for node in [&one, &other] {
                let (mut granted, mut denied, start) = (0, 0, Instant::now());
                while denied < 100 && start.elapsed() < DEADLINE {
                    match node.key("alice").try_acquire().await {
                        Ok(_) => (granted, denied) = (granted + 1, 0),
                        Err(_) => {
                            denied += 1;
                            tokio::task::yield_now().await;
                        }
                    }
                }
                assert!(denied == 100 && granted <= 500, "{granted} granted");
            }
            one.key("alice").reset().await.expect("a reset");
            let _ = until_leased(&one).await;
        });
    });
}
