//! Limits in several slots and on several servers, which grant together.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tollgate::Quota;
use tollgate_redis::client::Connection;
use tollgate_redis::client::connect_lazily;
use tollgate_redis::{Decider, Fallback, Grant, Keys, RedisAll, RedisLimiter};

use crate::server::{Server, on_each_server};

type Connected = Arc<tollgate_redis::RedisServer<Connection>>;
type Limiter = RedisLimiter<Connection>;

fn connect(server: &Server) -> Connected {
    let client = connect_lazily(server.url()).expect("an address");
    let server = tollgate_redis::RedisServer::new(client).with_budget(Duration::from_secs(30));
    Arc::new(server.with_probe_every(Duration::from_millis(20)))
}

/// Returns a limit whose permits come back after a day: no test is slow enough to see one.
fn limiter(server: &Connected, name: &str, burst: u64) -> Limiter {
    limiter_with(server, name, burst, Fallback::Closed)
}

fn limiter_with(server: &Connected, name: &str, burst: u64, fallback: Fallback) -> Limiter {
    let keys = Keys::new("test").expect("a namespace");
    let quota = Quota::per(1, Duration::from_secs(24 * 3600)).burst(burst);
    RedisLimiter::new(Arc::clone(server), &keys, name, quota, fallback).expect("a limit")
}

/// Runs a test on two servers.
fn on_two_servers<F: Future<Output = ()>>(test: impl Fn([Server; 2]) -> F) {
    on_each_server(|mut one| {
        let mut other = one.another();
        one.start(false);
        other.start(false);
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(test([one, other]));
    });
}

fn deciders(grants: &[Grant]) -> Vec<Decider> {
    grants.iter().map(Grant::decider).collect()
}

#[test]
fn limits_with_other_tags_grant_together_or_leave_all_as_they_were() {
    on_two_servers(|[server, _]| async move {
        let server = connect(&server);
        let (loose, tight) = (limiter(&server, "loose", 10), limiter(&server, "tight", 4));
        let (alice, bob) = (loose.key("alice"), tight.key("bob"));
        // Two of the keys have the same tag, so there are two calls.
        let keys = vec![loose.key("alice"), tight.key("bob"), tight.key("alice")];
        let all = RedisAll::new(keys).expect("three keys");
        let grants = all.try_acquire_n(3).await.expect("grants");
        assert_eq!(deciders(&grants), [Decider::Server; 3]);
        let left = grants.iter().map(|grant| grant.granted().remaining());
        assert_eq!(left.collect::<Vec<_>>(), [7, 1, 1]);
        assert_eq!(server.stats().server, 2);

        // Only the second call denies, and the first is undone.
        tight.key("alice").reset().await.expect("an answer");
        assert_eq!(all.try_acquire_n(3).await.unwrap_err().index(), 1);
        assert_eq!(server.stats().server, 2 + 1 + 3);
        assert_eq!(alice.available().await, Ok(7));
        assert_eq!(tight.key("alice").available().await, Ok(4));
        assert_eq!(bob.available().await, Ok(1));
        // A denial of the first call takes no other call.
        let before = server.stats().server;
        assert_eq!(all.try_acquire_n(4).await.unwrap_err().index(), 1);
        assert_eq!(alice.try_acquire_n(7).await.map(|_| ()), Ok(()));
        assert_eq!(all.try_acquire().await.unwrap_err().index(), 0);
        assert_eq!(server.stats().server, before + 3 + 1 + 1);
        // What is never granted takes no call at all.
        let before = server.stats().server;
        let two = vec![loose.key("carol"), tight.key("bob")];
        let two = RedisAll::new(two).expect("two keys");
        let never = two.try_acquire_n(5).await.unwrap_err();
        assert!(never.denied().is_permanent() && never.index() == 1);
        assert_eq!(server.stats().server, before);

        // The last limit was reset, so it has nothing to take back.
        assert_eq!(all.undo(grants).await, Ok(vec![3, 3, 0]));
        assert_eq!(bob.available().await, Ok(4));
        assert_eq!(server.stats().lost, 0);
    });
}

#[test]
fn grants_of_several_servers_are_settled_by_each() {
    on_two_servers(|servers| async move {
        let [one, other] = servers.each_ref().map(connect);
        let (here, there) = (limiter(&one, "limit", 10), limiter(&other, "limit", 20));
        let keys = vec![here.key("alice"), there.key("alice")];
        let all = RedisAll::new(keys).expect("two servers");
        for (actual, returned, charged) in [(2, 4, 0), (6, 0, 0), (8, 0, 2)] {
            let grants = all.try_acquire_n(6).await.expect("grants");
            for settled in all.settle(grants, actual).await.expect("answers") {
                assert_eq!((settled.returned, settled.charged), (returned, charged));
            }
            let left = here.key("alice").available().await;
            assert_eq!(left, Ok(10 - actual));
            here.key("alice").reset().await.expect("an answer");
        }
        assert_eq!(there.key("alice").available().await, Ok(20 - 2 - 6 - 8));
    });
}

#[test]
fn a_server_that_is_gone_denies_or_falls_back_for_its_limits_alone() {
    on_two_servers(|[one, mut other]| async move {
        let connected = [&one, &other].map(connect);
        let here = limiter(&connected[0], "limit", 10);
        let closed = limiter(&connected[1], "closed", 10);
        let fallback = Fallback::OpenAtMost {
            at_most: 5,
            per: None,
        };
        let open = limiter_with(&connected[1], "open", 10, fallback);
        let with_closed = vec![here.key("alice"), closed.key("alice")];
        let with_closed = RedisAll::new(with_closed).expect("two servers");
        let with_open = vec![open.key("alice"), here.key("alice")];
        let with_open = RedisAll::new(with_open).expect("two servers");
        assert!(with_closed.try_acquire_n(2).await.is_ok());
        other.kill();
        for _ in 0..20 {
            let denial = with_closed.try_acquire_n(2).await.unwrap_err();
            assert_eq!((denial.index(), denial.decider()), (1, Decider::Closed));
            assert_eq!(here.key("alice").available().await, Ok(8));
        }
        let grants = with_open.try_acquire_n(2).await.expect("grants");
        assert_eq!(deciders(&grants), [Decider::Open, Decider::Server]);
        assert_eq!(with_open.undo(grants).await, Ok(vec![2, 2]));
        assert!(with_open.try_acquire_n(4).await.is_ok());
        // The fallback has one permit left, and the server four.
        assert_eq!(with_open.try_acquire_n(2).await.unwrap_err().index(), 0);
        assert_eq!(here.key("alice").available().await, Ok(4));
        here.key("alice").charge(4).await.expect("an answer");
        // A denial by the server gives the fallback its permit back.
        for _ in 0..3 {
            let denial = with_open.try_acquire().await.unwrap_err();
            assert_eq!((denial.index(), denial.decider()), (1, Decider::Server));
        }
        assert!(open.key("alice").try_acquire().await.is_ok());
        assert_eq!(connected[0].stats().lost, 0);
    });
}

#[test]
fn many_tasks_get_what_the_tightest_of_two_servers_has_and_take_no_more() {
    on_two_servers(|servers| async move {
        const LOOSE: u64 = 1000;
        const TIGHT: u64 = 100;
        let [one, other] = servers.each_ref().map(connect);
        let loose = Arc::new(limiter(&one, "loose", LOOSE));
        let tight = Arc::new(limiter(&other, "tight", TIGHT));
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let (loose, tight) = (Arc::clone(&loose), Arc::clone(&tight));
                tokio::spawn(async move {
                    let keys = vec![loose.key("alice"), tight.key("alice")];
                    let all = RedisAll::new(keys).expect("two servers");
                    let mut granted = 0;
                    for _ in 0..50 {
                        granted += u64::from(all.try_acquire().await.is_ok());
                    }
                    granted
                })
            })
            .collect();
        let mut granted = 0;
        for task in tasks {
            granted += task.await.expect("no panic");
        }
        assert_eq!(granted, TIGHT);
        assert_eq!(loose.key("alice").available().await, Ok(LOOSE - TIGHT));
        assert_eq!(tight.key("alice").available().await, Ok(0));
        assert_eq!((one.stats().lost, other.stats().lost), (0, 0));
    });
}
