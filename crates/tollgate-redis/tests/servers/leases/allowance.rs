//! Processes that have an allowance, by a private server: keys that are asked for seldom need no
//! call, and a ban is seen by all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tollgate::{Denied, Quota};
use tollgate_redis::client::{Connection, connect_lazily};
use tollgate_redis::{
    Allowance, Decider, Denial, Fallback, Keys, Leasing, RedisAll, RedisLimiter, RedisServer,
};

use crate::ask::run;
use crate::server::{DEADLINE, Server, on_each_server};

/// A limiter as in a process of its own: of 100 permits, two processes have 10 each.
fn node(server: &Server) -> RedisLimiter<Connection> {
    node_with(server, Leasing::new())
}

fn node_with(server: &Server, leasing: Leasing) -> RedisLimiter<Connection> {
    let client = connect_lazily(server.url()).expect("an address");
    let server = RedisServer::new(client).with_budget(Duration::from_secs(5));
    let (keys, quota) = (
        Keys::new("test").expect("a namespace"),
        Quota::per_second(100),
    );
    let limiter = RedisLimiter::new(Arc::new(server), &keys, "a", quota, Fallback::Closed);
    let leasing = leasing.with_allowance(Allowance {
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

/// A limiter whose other keys get no lease for a while, because one key may have one.
async fn without_leases(server: &Server) -> RedisLimiter<Connection> {
    let node = node_with(server, Leasing::new().with_keys(1));
    until_allowed(&node).await;
    let start = Instant::now();
    while node.lease_stats().expect("leases").keys == 0 {
        assert!(start.elapsed() < DEADLINE, "{node:?}");
        let _ = node.key("the only one").try_acquire().await;
    }
    node
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
                let start = Instant::now();
                let key = node.key(format!("user {user}"));
                let granted = key.try_acquire_n(3).await.expect("an allowance");
                assert_eq!(granted.decider(), Decider::Lease);
                assert!(key.check_n(7).await.is_ok());
                let settled = key.settle(granted, 1).await.expect("no call");
                let granted = key.try_acquire_n(9).await.expect("what came back");
                let undone = key.undo(granted).await;
                // Nothing comes back that was refilled since: a permit each 100 ms.
                if start.elapsed() < Duration::from_millis(50) {
                    assert_eq!((settled.returned, settled.lost), (2, 0));
                    assert_eq!(undone, Ok(9));
                }
            }
            assert_eq!(node.server().stats().server, calls);
            let allowed = node.lease_stats().expect("leases").allowed;
            assert!((1200..1300).contains(&allowed), "{allowed}");
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

/// Asks until a key is denied because it is banned.
async fn until_banned(node: &RedisLimiter<Connection>, key: &str) {
    let start = Instant::now();
    while start.elapsed() < DEADLINE {
        let denied = until_denied(node, key).await.denied();
        if matches!(denied, Denied::Banned { .. }) {
            return;
        }
    }
    panic!("no ban: {node:?}");
}

async fn assert_banned(node: &RedisLimiter<Connection>, key: &str) {
    for n in [1, 2, 10, 50] {
        for _ in 0..50 {
            let denied = node.key(key).try_acquire_n(n).await;
            let denied = denied.expect_err("a banned key").denied();
            assert!(matches!(denied, Denied::Banned { .. }), "{n}: {denied:?}");
        }
        let checked = node.key(key).check_n(n).await;
        let denied = checked.expect_err("a banned key").denied();
        assert!(matches!(denied, Denied::Banned { .. }), "{n}: {denied:?}");
    }
}

const HOUR: Duration = Duration::from_secs(3600);

/// The process has heard of the ban when it asked for a lease, and asks for none any more.
#[test]
fn a_ban_is_known_when_the_lease_has_ended_that_told_it() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let (one, other) = (node(&server), node(&server));
            until_allowed(&other).await;
            let start = Instant::now();
            while other.lease_stats().expect("leases").draws == 0 {
                assert!(start.elapsed() < DEADLINE, "{other:?}");
                let _ = other.key("often").try_acquire().await;
            }
            one.key("often").ban_for(HOUR).await.expect("an answer");
            until_banned(&other, "often").await;
            let start = Instant::now();
            while other.lease_stats().expect("leases").keys > 0 {
                assert!(start.elapsed() < DEADLINE, "{other:?}");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert_banned(&other, "often").await;
        });
    });
}

#[test]
fn a_ban_for_ever_is_one_of_the_allowance_too() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let (one, other) = (node(&server), without_leases(&server).await);
            let ban = one.key("alice").ban_for(Duration::MAX).await;
            ban.expect("an answer");
            until_banned(&other, "alice").await;
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(300) {
                assert!(other.key("alice").try_acquire().await.is_err());
            }
        });
    });
}

#[test]
fn a_shorter_ban_does_not_end_a_longer_one() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let (one, other) = (node(&server), without_leases(&server).await);
            one.key("alice").ban_for(HOUR).await.expect("an answer");
            let short = Duration::from_millis(1);
            let left = other.key("alice").ban_for(short).await;
            assert!(left.expect("an answer") > HOUR / 2);
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(300) {
                assert!(other.key("alice").try_acquire().await.is_err());
            }
            other.key("alice").reset().await.expect("an answer");
            let granted = other.key("alice").try_acquire().await;
            assert_eq!(granted.expect("no ban").decider(), Decider::Lease);
        });
    });
}

/// What a request costs in addition is a debt of the part that granted it.
#[test]
fn a_request_that_costs_more_is_charged_to_the_allowance() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let node = node(&server);
            until_allowed(&node).await;
            for together in [false, true] {
                let user = format!("together: {together}");
                let (alice, mut deciders) = (node.key(&user), Vec::new());
                for _ in 0..200 {
                    let Ok(grant) = alice.try_acquire().await else {
                        continue;
                    };
                    deciders.push(grant.decider());
                    let settled = match together {
                        false => alice.settle(grant, 1_000_000).await.expect("settled"),
                        true => {
                            let all = RedisAll::new(vec![node.key(&user)]).expect("one limit");
                            let settled = all.settle(vec![grant], 1_000_000).await;
                            settled.expect("settled")[0]
                        }
                    };
                    assert_eq!(settled.charged, 999_999);
                }
                assert_eq!(deciders, [Decider::Lease, Decider::Server]);
            }
        });
    });
}

/// If another limit denies the request, or its future is dropped, the allowance is as before.
#[test]
fn what_an_allowance_grants_comes_back_if_another_limit_denies() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let node = node(&server);
            until_allowed(&node).await;
            let keys = Keys::new("test").expect("a namespace");
            let quota = Quota::per_hour(1);
            let shared = Arc::clone(node.server());
            let other = RedisLimiter::new(shared, &keys, "b", quota, Fallback::Closed);
            let other = other.expect("a limit");
            let _ = other.key("alice").try_acquire().await.expect("a permit");
            let calls = node.server().stats().server;
            let all = RedisAll::new(vec![node.key("alice"), other.key("alice")]).expect("limits");
            for _ in 0..100 {
                let denied = all.try_acquire_each(&[10, 1]).await;
                assert_eq!(denied.expect_err("the other denies").index(), 1);
            }
            // Each of them was one call, to the other limit.
            assert_eq!(node.server().stats().server, calls + 100);
        });
    });
}

#[test]
fn a_reset_that_fails_fills_no_allowance() {
    on_each_server(|mut server| {
        server.start(false);
        run(async {
            let node = node(&server);
            until_allowed(&node).await;
            server.kill();
            let (alice, mut granted) = (node.key("alice"), 0);
            let start = Instant::now();
            for _ in 0..200 {
                granted += u64::from(alice.try_acquire().await.is_ok());
                assert!(alice.reset().await.is_err());
            }
            // The allowance refills 10 permits a second.
            let most = 11 + 10 * (start.elapsed().as_secs() + 1);
            assert!(granted <= most, "{granted} of {most}");
        });
    });
}
