//! Each verb on a real server.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tollgate::{Denied, Quota};
use tollgate_redis::client::{Connection, connect_lazily};
use tollgate_redis::{AllError, Decider, Fallback, Keys, Limit, RedisAll, RedisLimiter};

use crate::server::{Server, on_each_server};

/// The time in which a permit comes back: no test is slow enough to see one.
const PERIOD: Duration = Duration::from_secs(24 * 3600);

type Connected = Arc<tollgate_redis::RedisServer<Connection>>;
type Limiter = RedisLimiter<Connection>;

fn connect(server: &Server) -> Connected {
    let client = connect_lazily(server.url()).expect("an address");
    Arc::new(tollgate_redis::RedisServer::new(client).with_budget(Duration::from_secs(30)))
}

fn limiter(server: &Connected, name: &str, burst: u64) -> Limiter {
    let keys = Keys::new("test").expect("a namespace");
    let quota = Quota::per(1, PERIOD).burst(burst);
    RedisLimiter::new(Arc::clone(server), &keys, name, quota, Fallback::Closed).expect("a quota")
}

fn on_servers<F: Future<Output = ()>>(test: impl Fn(Connected) -> F) {
    on_each_server(|mut server| {
        server.start(false);
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async { test(connect(&server)).await });
    });
}

#[test]
fn a_key_has_its_burst_and_then_waits() {
    on_servers(|server| async move {
        let limiter = limiter(&server, "limit", 10);
        let alice = limiter.key("alice");
        assert_eq!(alice.check_n(10).await, Ok(()));
        let grant = alice.try_acquire_n(4).await.expect("a grant");
        assert_eq!(grant.decider(), Decider::Server);
        assert_eq!((grant.granted().n(), grant.granted().remaining()), (4, 6));
        assert_eq!(alice.available().await, Ok(6));
        let denial = alice.try_acquire_n(7).await.expect_err("a denial");
        assert_eq!(denial.decider(), Decider::Server);
        let wait = denial.denied().retry_after().expect("a wait");
        assert!(PERIOD - Duration::from_secs(3600) < wait && wait <= PERIOD);
        assert!(alice.check_n(7).await.is_err());
        let never = alice.try_acquire_n(11).await.expect_err("a denial");
        assert!(never.denied().is_permanent());
        // A denial takes nothing, and another key has a burst of its own.
        assert_eq!(alice.available().await, Ok(6));
        assert_eq!(limiter.key("bob").available().await, Ok(10));
    });
}

#[test]
fn permits_are_given_back_charged_and_settled() {
    on_servers(|server| async move {
        let limiter = limiter(&server, "limit", 10);
        let alice = limiter.key("alice");
        let grant = alice.try_acquire_n(4).await.expect("a grant");
        assert_eq!(alice.undo(grant).await, Ok(4));
        assert_eq!(alice.available().await, Ok(10));
        let grant = alice.try_acquire_n(6).await.expect("a grant");
        let settled = alice.settle(grant, 2).await.expect("an answer");
        assert_eq!((settled.returned, settled.charged), (4, 0));
        let grant = alice.try_acquire_n(3).await.expect("a grant");
        assert_eq!(alice.settle(grant, 5).await.map(|s| s.charged), Ok(2));
        assert_eq!(alice.available().await, Ok(3));
        assert_eq!(alice.refund(2).await, Ok(2));
        let charged = alice.charge(8).await.expect("an answer");
        assert_eq!((charged.n(), charged.debt()), (8, 3));
        assert_eq!(alice.available().await, Ok(0));
        alice.reset().await.expect("an answer");
        assert_eq!(alice.available().await, Ok(10));
        let stats = server.stats();
        assert_eq!((stats.failed, stats.fallbacks()), (0, 0));
    });
}

#[test]
fn a_queue_gets_nothing_back_while_others_wait_behind_the_grant() {
    on_servers(|server| async move {
        let keys = Keys::new("test").expect("a namespace");
        let queue = |name| {
            let limit = Limit::leaky_queue(Quota::per(1, PERIOD).burst(10), 0).expect("a quota");
            RedisLimiter::new(Arc::clone(&server), &keys, name, limit, Fallback::Closed)
                .expect("a limit")
        };
        let (one, other) = (queue("one"), queue("other"));
        let alice = one.key("alice");
        let mut line = Vec::new();
        for n in [1, 3, 1] {
            line.push(alice.try_acquire_n(n).await.expect("a place"));
        }
        let last = line.pop().expect("three");
        let settled = alice.settle(line.remove(1), 1).await.expect("an answer");
        assert_eq!((settled.returned, settled.lost), (0, 2));
        assert_eq!(alice.undo(line.remove(0)).await, Ok(0));
        assert_eq!(alice.undo(last).await, Ok(1));
        assert_eq!(alice.available().await, Ok(6));

        let all = RedisAll::new(vec![one.key("bob"), other.key("bob")]).expect("one slot");
        let first = all.try_acquire().await.expect("places");
        let second = all.try_acquire_n(2).await.expect("places");
        assert_eq!(all.undo(first).await, Ok(vec![0, 0]));
        let settled = all.settle(second, 1).await.expect("an answer");
        assert_eq!(settled.iter().map(|one| one.returned).sum::<u64>(), 2);
        assert_eq!(one.key("bob").available().await, Ok(8));
    });
}

#[test]
fn a_grant_from_before_a_change_of_the_quota_is_given_back_to_the_new_quota() {
    on_servers(|server| async move {
        let keys = Keys::new("test").expect("a namespace");
        // A permit takes 7/1000 of a microsecond, so its tick has a part that days do not have.
        let fine = Quota::per(1000, Duration::from_micros(7)).burst(1_000_000_000_000);
        let before = RedisLimiter::new(Arc::clone(&server), &keys, "limit", fine, Fallback::Closed);
        let before = before.expect("a quota");
        let now = limiter(&server, "limit", 10);
        let grant = before.key("alice").try_acquire_n(999_999_999_999).await;
        let grant = grant.expect("a grant");
        assert_eq!(now.key("alice").undo(grant).await.map(|n| n > 0), Ok(true));
        assert_eq!(now.key("alice").try_acquire_n(9).await.map(|_| ()), Ok(()));
        assert_eq!(server.stats().failed, 0);
    });
}

#[test]
fn a_banned_key_is_denied_until_it_is_reset() {
    on_servers(|server| async move {
        let limiter = limiter(&server, "limit", 10);
        let alice = limiter.key("alice");
        assert_eq!(alice.banned_for().await, Ok(None));
        assert_eq!(alice.ban_for(PERIOD).await, Ok(PERIOD));
        let denial = alice.try_acquire().await.expect_err("a denial");
        assert!(matches!(denial.denied(), Denied::Banned { .. }));
        assert!(alice.banned_for().await.expect("an answer").is_some());
        assert!(limiter.key("bob").try_acquire().await.is_ok());
        alice.reset().await.expect("an answer");
        assert!(alice.try_acquire().await.is_ok());
    });
}

#[test]
fn several_limits_grant_all_or_nothing_in_one_call() {
    on_servers(|server| async move {
        let (short, long) = (limiter(&server, "short", 5), limiter(&server, "long", 8));
        let all = RedisAll::new(vec![short.key("alice"), long.key("alice")]).expect("one slot");
        let grants = all.try_acquire_n(5).await.expect("grants");
        assert_eq!(server.stats().server, 1);
        assert_eq!(all.try_acquire_n(4).await.expect_err("a denial").index(), 0);
        assert_eq!(long.key("alice").available().await, Ok(3));
        assert_eq!(all.undo(grants).await, Ok(vec![5, 5]));
        assert!(long.key("alice").try_acquire_n(6).await.is_ok());
        assert_eq!(all.try_acquire_n(3).await.expect_err("a denial").index(), 1);
        assert_eq!(short.key("alice").available().await, Ok(5));

        let twice = RedisAll::new(vec![short.key("alice"), short.key("alice")]);
        assert_eq!(twice.unwrap_err(), AllError::Twice { index: 1 });
        let none = RedisAll::<Connection>::new(Vec::new());
        assert_eq!(none.unwrap_err(), AllError::Empty);
    });
}

#[test]
fn many_tasks_get_exactly_the_burst() {
    on_servers(|server| async move {
        let limiter = Arc::new(limiter(&server, "limit", 100));
        let tasks: Vec<_> = (0..16)
            .map(|_| {
                let limiter = Arc::clone(&limiter);
                tokio::spawn(async move {
                    let mut granted = 0;
                    for _ in 0..20 {
                        granted += u64::from(limiter.key("alice").try_acquire().await.is_ok());
                    }
                    granted
                })
            })
            .collect();
        let mut granted = 0;
        for task in tasks {
            granted += task.await.expect("a task");
        }
        assert_eq!(granted, 100);
        assert_eq!(server.stats().server, 320);
    });
}

#[test]
fn an_invalid_url_is_an_error_without_the_password() {
    for (url, why) in [
        ("redis://user:secret@[", "Redis URL did not parse"),
        ("redis://h/?protocol=secret", "Invalid protocol version"),
        ("redis://h/secret", "Invalid database number"),
        ("unix:///socket?db=secret", "Invalid database number"),
    ] {
        let error = connect_lazily(url).expect_err("an error");
        assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
        let starts = format!("url is not accepted: {why}. It must be like `redis://user:");
        assert!(error.to_string().starts_with(&starts), "{error}");
    }
}

#[test]
fn the_documented_commands_show_when_a_bucket_is_full_and_delete_it() {
    let document = include_str!("../../docs/OPERATING.md");
    let (_, command) = document.split_once("redis-cli EVAL \"").expect("EVAL");
    let (script, _) = command.split_once("\" 1 \"$key\"\n").expect("a script");
    assert!(document.contains("`redis-cli DEL \"$key\"`"));
    assert!(document.contains("`redis-cli PTTL \"$key\"`"));
    let keys = Keys::new("api").expect("a namespace");
    let name = keys.key("login", b"alice");
    let name = name.as_slice();
    on_each_server(|mut server| {
        server.start(false);
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let mut connection = server.connection();
            let mut show = || -> Option<String> {
                let mut eval = redis::cmd("EVAL");
                eval.arg(script).arg(1).arg(name);
                eval.query(&mut connection).expect("an answer")
            };
            assert_eq!(show(), None);

            let quota = Quota::per(1, PERIOD).burst(10);
            let login =
                RedisLimiter::new(connect(&server), &keys, "login", quota, Fallback::Closed);
            let login = login.expect("a quota");
            let alice = login.key("alice");
            let _grant = alice.try_acquire_n(3).await.expect("a grant");
            let full: f64 = show().expect("a state").parse().expect("seconds");
            let three = 3.0 * PERIOD.as_secs_f64();
            assert!(full > three - 3600.0 && full <= three, "{full}");

            let mut connection = server.connection();
            let left: u64 = redis::cmd("PTTL").arg(name).query(&mut connection).unwrap();
            assert!(left > 2 * 24 * 3_600_000, "{left}");
            let deleted: u64 = redis::cmd("DEL").arg(name).query(&mut connection).unwrap();
            assert_eq!((deleted, alice.available().await), (1, Ok(10)));
        });
    });
}
