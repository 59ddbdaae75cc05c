//! Processes that have an allowance, by a private server: keys that are asked for seldom need no
//! call, and a ban is seen by all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tollgate::{Denied, Quota};
use tollgate_redis::client::{Connection, connect_lazily};
use tollgate_redis::{
    Allowance, Decider, Denial, Fallback, Keys, Leasing, RedisLimiter, RedisServer,
};

use crate::ask::run;
use crate::server::{DEADLINE, Server, on_each_server};

/// A limiter as in a process of its own: of 100 permits, two processes have 10 each.
fn node(server: &Server) -> RedisLimiter<Connection> {
    let client = connect_lazily(server.url()).expect("an address");
    let server = RedisServer::new(client).with_budget(Duration::from_secs(5));
    let (keys, quota) = (
        Keys::new("test").expect("a namespace"),
        Quota::per_second(100),
    );
    let limiter = RedisLimiter::new(Arc::new(server), &keys, "a", quota, Fallback::Closed);
    let leasing = Leasing::new().with_allowance(Allowance {
        percent: 20,
        processes: 2,
        keys: 1000,
    });
    limiter.expect("a limit").leased(leasing).expect("leases")
}

/// Asks until the allowance may be used, because a predecessor's would be refilled.
async fn until_allowed(node: &RedisLimiter<Connection>) {
    let start = Instant::now();
    for another in 0.. {
        // A key that is asked for once has no lease.
        let granted = node.key(format!("another {another}")).try_acquire().await;
        if granted.is_ok_and(|grant| grant.decider() == Decider::Lease) {
            return;
        }
        if start.elapsed() > DEADLINE {
            break;
        }
    }
    panic!("no allowance: {node:?}");
}

/// Asks until a request is denied.
async fn until_denied(node: &RedisLimiter<Connection>, key: &str) -> Denial {
    let start = Instant::now();
    while start.elapsed() < DEADLINE {
        if let Err(denial) = node.key(key).try_acquire().await {
            return denial;
        }
    }
    panic!("always granted: {node:?}");
}

#[test]
fn keys_that_are_asked_for_seldom_need_no_call() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let node = node(&server);
            until_allowed(&node).await;
            let calls = node.server().stats().server;
            for user in 0..100 {
                let key = node.key(format!("user {user}"));
                let granted = key.try_acquire_n(3).await.expect("an allowance");
                assert_eq!(granted.decider(), Decider::Lease);
                assert!(key.check_n(7).await.is_ok());
                let settled = key.settle(granted, 1).await.expect("no call");
                assert_eq!((settled.returned, settled.lost), (2, 0));
                let granted = key.try_acquire_n(9).await.expect("what came back");
                assert_eq!(key.undo(granted).await, Ok(9));
            }
            assert_eq!(node.server().stats().server, calls);
            // More than the allowance has.
            let granted = node.key("user 0").try_acquire_n(11).await;
            assert_eq!(granted.expect("a call").decider(), Decider::Server);
            let denied = node.key("user 0").try_acquire_n(81).await;
            let denied = denied.expect_err("more than the server's part").denied();
            assert!(denied.is_permanent(), "{denied:?}");
        });
    });
}

/// The other process learns of the ban when its allowance of the key is spent, also if it has a
/// lease of the key.
#[test]
fn a_banned_key_gets_nothing_of_any_allowance() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let (one, other) = (node(&server), node(&server));
            until_allowed(&other).await;
            // Of one key it has a lease, because the key is asked for often.
            for _ in 0..200 {
                let _ = other.key("often").try_acquire().await;
            }
            let hour = Duration::from_secs(3600);
            for key in ["often", "seldom"] {
                one.key(key).ban_for(hour).await.expect("an answer");
                let start = Instant::now();
                while start.elapsed() < DEADLINE {
                    let denied = until_denied(&other, key).await.denied();
                    if matches!(denied, Denied::Banned { .. }) {
                        break;
                    }
                }
                for _ in 0..200 {
                    let denied = other.key(key).try_acquire().await;
                    let denied = denied.expect_err("a banned key").denied();
                    assert!(matches!(denied, Denied::Banned { .. }), "{denied:?}");
                }
                let wait = other.key(key).try_acquire().await.map_err(|denial| {
                    let wait = denial.denied().retry_after();
                    wait.unwrap_or_default()
                });
                assert!(wait.expect_err("a banned key") > hour / 2);
            }
        });
    });
}
