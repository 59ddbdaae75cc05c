//! Values that tollgate did not write, and states of another kind of limit. Each verb about such a
//! key fails for this key alone, and leaves the value and its expiry as they were.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use tollgate_redis::client::{Connection, connect_lazily};
use tollgate_redis::{
    Decider, Denial, Fallback, Grant, Keys, Limit, RedisAll, RedisKey, RedisLimiter, Unavailable,
};

use crate::ask::{run, take};
use crate::server::{Server, on_each_server};

/// The key that has the foreign value, as [`Keys`] names it.
const KEY: &str = "test:{alice}:limit";

/// One limit of each kind, and of each shape of windows and buckets. Nothing comes back while a
/// test runs.
const LIMITS: [&str; 7] = [
    "token-bucket 20/h",
    "leaky-queue 20/h",
    "fixed-window 20/18250d",
    "fixed-window 20/h first-hit",
    "sliding-window 20/18250d",
    "sliding-log 20/h",
    "concurrency 20 lease 1h",
];

type Limiter = RedisLimiter<Connection>;

/// A command that writes a value under [`KEY`], and what the value is.
type Write = (String, redis::Cmd);

fn write(what: impl Debug, name: &str, args: &[&[u8]]) -> Write {
    let mut command = redis::cmd(name);
    command.arg(KEY).arg(args);
    (format!("{name} {what:?}"), command)
}

fn string(value: &[u8]) -> Write {
    write(String::from_utf8_lossy(value), "SET", &[value])
}

fn list(entries: &[&str]) -> Write {
    let args: Vec<_> = entries.iter().map(|entry| entry.as_bytes()).collect();
    write(entries, "RPUSH", &args)
}

/// A sorted set, as scores and members.
fn sorted(members: &[&str]) -> Write {
    let args: Vec<_> = members.iter().map(|part| part.as_bytes()).collect();
    write(members, "ZADD", &args)
}

/// What looks like a bucket at a first look: 1 permit each microsecond, without a part.
fn bucket(idle: f64, written: f64) -> Write {
    let head = [(1 << 27) + 1, 0_u32].map(u32::to_le_bytes).concat();
    let value = [head, [idle, written].map(f64::to_le_bytes).concat()].concat();
    write((idle, written), "SET", &[&value])
}

/// The same, with the microseconds in which a permit comes back.
fn bucket_of(idle: f64, written: f64, d: f64) -> Write {
    let head = [(1 << 28) + 1, 0_u32].map(u32::to_le_bytes).concat();
    let numbers = [idle, written, d].map(f64::to_le_bytes).concat();
    write((idle, written, d), "SET", &[&[head, numbers].concat()])
}

/// What looks like a window at a first look.
fn window(numbers: [f64; 4]) -> Write {
    let value = [vec![2], numbers.map(f64::to_le_bytes).concat()].concat();
    write(numbers, "SET", &[&value])
}

/// A tick of the next years, at which much is due.
const LATER: f64 = 1e15;

fn foreign_values() -> Vec<Write> {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let mut values = vec![
        string(b""),
        string(b"0"),
        string(b"job:1 job:2 900000000000000"),
        string(b"\x02345678901234567890123456789012"),
        string(b"\x02job:1 job:2 job:3 job:4 job:5 00"),
        write("24 bytes of bits", "SETBIT", &[b"191", b"1"]),
        write("33 bytes of bits", "SETBIT", &[b"263", b"1"]),
        write("a HyperLogLog", "PFADD", &[b"ann", b"bob"]),
        write("a hash", "HSET", &[b"n", b"5"]),
        write("a set", "SADD", &[b"1", b"2"]),
        write("a stream", "XADD", &[b"*", b"n", b"5"]),
        write("places", "GEOADD", &[b"13.4", b"52.5", b"ann"]),
    ];
    // Around the lengths of states.
    for length in [8, 23, 24, 25, 32, 33, 34, 1000] {
        values.push(string(&b"0123456789".repeat(100)[..length]));
        values.push(string(&vec![0; length]));
    }
    values.extend([
        bucket_of(LATER + 0.5, 0.0, 1.0),
        bucket_of(5.0, 6.0, 1.0),
        bucket_of(4.0 * LATER, -LATER - 0.5, 1.0),
        bucket_of(LATER, 0.0, 0.0),
        bucket_of(LATER, 0.0, 1.5),
        bucket_of(LATER, 0.0, 2.0 * LATER),
        bucket_of(LATER, 0.0, nan),
        bucket(5.5, 0.0),
        bucket(LATER + 0.5, 0.0),
        bucket(-5.0, 10.0),
        bucket(-inf, inf),
        bucket(5.0, inf),
        bucket(5.0, nan),
        bucket(nan, 0.0),
        bucket(9_007_199_254_740_994.0, 0.0),
        bucket(5.0, 0.5),
        bucket(5.0, 6.0),
        bucket(4.0 * LATER, -LATER - 0.5),
        window([1.5, 0.0, LATER, 0.0]),
        window([-1.0, 0.0, LATER, 0.0]),
        window([nan, 0.0, LATER, 0.0]),
        window([9_007_199_254_740_994.0, 0.0, LATER, 0.0]),
        window([1.0, 0.5, LATER, 0.0]),
        window([1.0, -inf, LATER, 0.0]),
        window([1.0, 0.0, LATER + 0.5, 0.0]),
        window([1.0, 0.0, -1.0, 2.0]),
        window([1.0, 0.0, inf, 0.0]),
        window([1.0, 0.0, LATER, 0.5]),
        window([1.0, 0.0, LATER, -LATER + 0.5]),
        window([1.0, 0.0, LATER, 2.0 * LATER]),
        window([1.0, 0.0, LATER, nan]),
        list(&["job:1", "job:2"]),
        list(&["job:1", "job:2", "900000000000000"]),
        list(&["900000000000000", "job:1"]),
        list(&["1", "2", "3"]),
        list(&["5"]),
        list(&["5", "b9"]),
        list(&["b900000000000000"]),
        list(&["-1", "-2"]),
        list(&["1.5", "2.5"]),
        list(&["1e300", "inf", "nan"]),
        list(&["9007199254740993", "9007199254740994"]),
        list(&["900000000000000", "1", "b0"]),
        list(&["!"]),
        list(&["!1.5"]),
        list(&["!-1", "5"]),
        list(&["!9007199254740993", "5"]),
        list(&["!0", "job:1"]),
        list(&["!0", "5", "1.5"]),
        list(&["!0", "job:1", "900000000000000"]),
        list(&["!0", "1577880000000001"]),
        sorted(&["1", "a", "2", "b"]),
        sorted(&["0", "a"]),
        sorted(&["-5", "a", "-4", "b"]),
        sorted(&["1.5", "a"]),
        sorted(&["1000000000000000.5", "a"]),
        sorted(&["900000000000000", "a"]),
        sorted(&["1e300", "a"]),
        sorted(&["-inf", "a", "inf", "b"]),
        sorted(&["5", "!"]),
        sorted(&["-1.5", "!"]),
        sorted(&["-1e300", "!"]),
        sorted(&["0", "!", "1000000000000000.5", "a"]),
        sorted(&["0", "!", "inf", "a"]),
        sorted(&["0", "!", "-7", "a"]),
    ]);
    values
}

/// A value and when it expires, as the server has them.
fn stored(connection: &mut redis::Connection) -> (Vec<u8>, i64) {
    let mut pipeline = redis::pipe();
    pipeline.cmd("DUMP").arg(KEY);
    pipeline.cmd("PEXPIRETIME").arg(KEY);
    pipeline.query(connection).expect("a value")
}

fn connected(server: &Server) -> Arc<tollgate_redis::RedisServer<Connection>> {
    let client = connect_lazily(server.url()).expect("an address");
    Arc::new(tollgate_redis::RedisServer::new(client).with_budget(Duration::from_secs(30)))
}

/// Returns a limit whose keys all have the same tag, so that one call can be about several.
fn limiter(
    server: &Arc<tollgate_redis::RedisServer<Connection>>,
    name: &str,
    limit: &str,
) -> Limiter {
    let keys = Keys::new("test")
        .expect("a namespace")
        .with_readable_users();
    let limit: Limit = limit.parse().expect("a limit");
    RedisLimiter::new(Arc::clone(server), &keys, name, limit, Fallback::Closed).expect("a limit")
}

fn assert_refused<T: Debug>(answer: Result<T, Unavailable>, what: &str) {
    match answer {
        Err(why) => {
            let text = why.to_string();
            let is_of_the_key = text.contains("BADSTATE") && text.contains(KEY);
            assert!(is_of_the_key || text.contains("WRONGTYPE"), "{what}: {why}");
            assert!(!why.may_have_taken_effect(), "{what}: {why}");
        }
        Ok(answer) => panic!("{what}: {answer:?}"),
    }
}

/// Nothing is granted without the server, as the fallback is closed.
fn assert_fell_back<T: Debug>(answer: Result<T, Denial>, what: &str) {
    match answer {
        Err(denial) => assert_eq!(denial.decider(), Decider::Closed, "{what}"),
        Ok(answer) => panic!("{what}: {answer:?}"),
    }
}

/// Grants of the key from before it had the foreign value.
async fn some_grants(key: &RedisKey<'_, Connection>) -> Vec<Grant> {
    let mut grants = Vec::new();
    for n in [2, 2, 2, 2] {
        grants.push(key.try_acquire_n(n).await.expect("a grant"));
    }
    grants
}

/// Calls each verb about a key, and calls `look` after each.
async fn each_verb(limiter: &Limiter, good: &Limiter, grants: Vec<Grant>, look: impl Fn(&str)) {
    let alice = limiter.key("alice");
    let beside = good.key("alice");
    let mut grants = grants.into_iter();
    let mut grant = || grants.next().expect("a grant");
    let minute = Duration::from_secs(60);

    assert_fell_back(alice.try_acquire().await, "one");
    look("one");
    assert_fell_back(alice.try_acquire_n(0).await, "none");
    look("none");
    assert_fell_back(alice.try_acquire_n(3).await, "three");
    look("three");
    assert_fell_back(alice.reserve_within(3, minute).await, "reserve");
    look("reserve");
    assert_fell_back(alice.check_n(1).await, "check");
    look("check");
    assert_refused(alice.available().await, "available");
    look("available");
    assert_refused(alice.banned_for().await, "banned_for");
    look("banned_for");
    assert_refused(alice.refund(1).await, "refund");
    look("refund");
    assert_refused(alice.charge(1).await, "charge");
    look("charge");
    assert_refused(alice.ban_for(minute).await, "ban");
    look("ban");
    assert_refused(alice.undo(grant()).await, "undo");
    look("undo");
    assert_refused(alice.settle(grant(), 1).await, "settle with less");
    look("settle with less");
    assert_refused(alice.settle(grant(), 3).await, "settle with more");
    look("settle with more");
    let slots = grant();
    match limiter_has_slots(limiter) {
        true => assert_refused(alice.renew(&slots).await, "renew"),
        false => assert_eq!(alice.renew(&slots).await, Ok(0)),
    }
    look("renew");
    assert_refused(alice.reset().await, "reset");
    look("reset");

    let before = beside.available().await;
    for keys in [
        vec![good.key("alice"), limiter.key("alice")],
        vec![limiter.key("alice"), good.key("alice")],
    ] {
        let both = RedisAll::new(keys).expect("one slot");
        assert_fell_back(both.try_acquire().await, "several");
        look("several");
    }
    assert_eq!(beside.available().await, before, "all or nothing");
    assert!(before.is_ok());
}

fn limiter_has_slots(limiter: &Limiter) -> bool {
    format!("{limiter:?}").contains("Slots")
}

#[test]
fn each_verb_leaves_a_foreign_value_as_it_is_and_falls_back_for_its_key_alone() {
    let values = foreign_values();
    let distinct: BTreeSet<_> = values.iter().map(|(what, _)| what).collect();
    assert!(distinct.len() >= 30 && distinct.len() == values.len());
    on_each_server(|mut private| {
        private.start(false);
        run(async {
            let mut connection = private.connection();
            for limit in LIMITS {
                let server = connected(&private);
                let (of_alice, good) = (
                    limiter(&server, "limit", limit),
                    limiter(&server, "good", limit),
                );
                for (number, (what, write)) in values.iter().enumerate() {
                    let () = private.run("FLUSHALL");
                    let grants = some_grants(&of_alice.key("alice")).await;
                    let _: i64 = private.run(&format!("DEL {KEY}"));
                    write.exec(&mut connection).expect("it is written");
                    if number % 2 == 0 {
                        let _: i64 = private.run(&format!("PEXPIRE {KEY} 7000000"));
                    }
                    let before = stored(&mut connection);
                    let look = |verb: &str| {
                        let after = stored(&mut private.connection());
                        assert_eq!(after, before, "{limit}: {verb}: {what}");
                        assert!(!server.is_down(), "{limit}: {verb}: {what}");
                    };
                    println!("{limit}: {what}");
                    each_verb(&of_alice, &good, grants, look).await;
                    assert_eq!(take(&good.key("alice")).await, (true, Decider::Server));
                    assert_eq!(take(&of_alice.key("bob")).await, (true, Decider::Server));
                }
                assert_eq!(server.stats().outages, 0, "{limit}");
            }
        });
    });
}

#[test]
fn the_state_of_another_kind_of_limit_is_as_foreign() {
    let kinds = [
        "token-bucket 20/h",
        "fixed-window 20/18250d",
        "sliding-log 20/h",
        "concurrency 20 lease 1h",
    ];
    on_each_server(|mut private| {
        private.start(false);
        run(async {
            let server = connected(&private);
            let mut connection = private.connection();
            for (theirs, ours) in kinds
                .iter()
                .flat_map(|one| kinds.map(|other| (*one, other)))
            {
                if theirs == ours {
                    continue;
                }
                for is_banned in [false, true] {
                    let () = private.run("FLUSHALL");
                    let limit = limiter(&server, "limit", ours);
                    let grants = some_grants(&limit.key("alice")).await;
                    let _: i64 = private.run(&format!("DEL {KEY}"));
                    let other = limiter(&server, "limit", theirs);
                    let _grant = other.key("alice").try_acquire_n(5).await.expect("a grant");
                    if is_banned {
                        let long = Duration::from_secs(60);
                        other.key("alice").ban_for(long).await.expect("a ban");
                    }
                    let before = stored(&mut connection);
                    let look = |verb: &str| {
                        let after = stored(&mut private.connection());
                        assert_eq!(after, before, "{theirs}, {ours}: {verb}");
                    };
                    println!("{theirs}, {ours}");
                    each_verb(&limit, &limiter(&server, "good", ours), grants, look).await;
                    let left = if is_banned { 0 } else { 15 };
                    assert_eq!(other.key("alice").available().await, Ok(left), "{theirs}");
                }
            }
            assert_eq!((server.is_down(), server.stats().outages), (false, 0));
        });
    });
}
