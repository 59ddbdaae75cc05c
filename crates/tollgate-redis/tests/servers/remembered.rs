//! Denials that a process remembers, by a private server: which calls a flood makes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tollgate::{Denied, Quota};
use tollgate_redis::client::{Connection, connect_lazily};
use tollgate_redis::{Decider, Denial, Fallback, Keys, Limit, RedisAll, RedisLimiter, RedisServer};

use crate::ask::run;
use crate::server::{Server, on_each_server};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn connect(server: &Server) -> Arc<RedisServer<Connection>> {
    let client = connect_lazily(server.url()).expect("an address");
    Arc::new(RedisServer::new(client).with_budget(Duration::from_secs(30)))
}

fn limiter(
    connected: &Arc<RedisServer<Connection>>,
    name: &str,
    limit: Limit,
) -> RedisLimiter<Connection> {
    let keys = Keys::new("test").expect("a namespace");
    let server = Arc::clone(connected);
    let limiter = RedisLimiter::new(server, &keys, name, limit, Fallback::Closed);
    limiter.expect("a limit").remember_denials()
}

fn wait(denial: Denial) -> Duration {
    assert_eq!(denial.decider(), Decider::Server);
    denial.denied().retry_after().expect("a wait")
}

#[test]
fn a_flood_of_denials_makes_at_most_one_call_a_second() {
    on_each_server(|mut private| {
        private.start(false);
        let connected = connect(&private);
        let two = Quota::per(2, DAY);
        let limits = [
            ("bucket", Limit::token_bucket(two)),
            ("queue", Limit::leaky_queue(two, 2)),
            ("fixed", Limit::first_hit_window(two)),
            ("sliding", Limit::sliding_window(two)),
            ("log", Limit::sliding_log(two)),
        ];
        run(async {
            for (name, limit) in limits {
                let limiter = limiter(&connected, name, limit.expect("a limit"));
                let alice = limiter.key("alice");
                let _ = alice.try_acquire_n(2).await.expect("permits");
                let (before, start) = (private.scripts(), Instant::now());
                let due = start + wait(alice.try_acquire().await.expect_err("a denial"));
                for _ in 0..3000 {
                    let now = Instant::now();
                    let told = now + wait(alice.try_acquire().await.expect_err("a denial"));
                    assert!(told >= due, "{name}: {:?} too short", due - told);
                    assert!(alice.check_n(1).await.is_err());
                }
                let (calls, took) = (private.scripts() - before, start.elapsed());
                // The end of a second is rounded down by up to a millisecond.
                let most = took.as_millis() / 998 + 1;
                assert!(
                    u128::from(calls) <= most,
                    "{name}: {calls} calls in {took:?}"
                );
            }
        });
    });
}

#[test]
fn a_ban_is_remembered_as_a_ban_and_a_reset_ends_it_at_once() {
    on_each_server(|mut private| {
        private.start(false);
        run(async {
            let connected = connect(&private);
            let limit = Limit::token_bucket(Quota::per(2, DAY)).expect("a limit");
            let limiter = limiter(&connected, "limit", limit);
            let alice = limiter.key("alice");
            let _ = alice.ban_for(DAY).await.expect("a ban");
            // Even a slow machine remembers one of these.
            let mut asked = 0;
            while connected.stats().remembered == 0 {
                let denied = alice.try_acquire().await.expect_err("a ban").denied();
                assert!(matches!(denied, Denied::Banned { .. }), "{denied:?}");
                asked += 1;
                assert!(asked < 10_000);
            }
            alice.reset().await.expect("an answer");
            assert!(alice.try_acquire().await.is_ok());
        });
    });
}

/// Two limits of a user are one call, and a denial of one of them is remembered for both.
#[test]
fn a_composition_makes_no_call_while_one_of_its_limits_is_known_to_deny() {
    on_each_server(|mut private| {
        private.start(false);
        run(async {
            let connected = connect(&private);
            let of = |name, n| {
                let limit = Limit::token_bucket(Quota::per(n, DAY)).expect("a limit");
                limiter(&connected, name, limit)
            };
            let (loose, tight) = (of("loose", 9), of("tight", 1));
            let all = || RedisAll::new(vec![loose.key("alice"), tight.key("alice")]).expect("two");
            let _ = all().try_acquire().await.expect("permits");
            let mut asked = 0;
            while connected.stats().remembered == 0 {
                assert_eq!(all().try_acquire().await.expect_err("a denial").index(), 1);
                asked += 1;
                assert!(asked < 10_000);
            }
            assert_eq!(
                connected.stats().server + connected.stats().remembered,
                1 + asked
            );
            assert_eq!(loose.key("alice").available().await, Ok(8));
        });
    });
}
