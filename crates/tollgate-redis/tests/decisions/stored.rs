//! What is under a key: values that tollgate did not write, denials, and the server's own clock.

use redis::Commands;

use super::{Episode, SOME_DAY, bucket, reply, server};
use crate::client::Reply;
use crate::limit::Limit;
use crate::limit::kind::Kind;
use crate::script;
use crate::server::call::{self, Call, Part};

fn kind(text: &str) -> Kind {
    bucket(text.parse().expect("a quota"))
}

/// Sends a call as it is, on the server's own clock.
fn send(call: &Call, connection: &mut redis::Connection) -> redis::RedisResult<Reply> {
    let mut command = redis::cmd("EVAL");
    command.arg(call.script.text()).arg(call.keys.len());
    for bytes in call.keys.iter().chain(&call.args) {
        command.arg(bytes.as_slice());
    }
    command.query(connection).map(reply)
}

#[test]
fn only_the_clock_of_a_script_is_replaced() {
    for script in script::all() {
        let clock = include_str!("../../src/lua/time.lua");
        let (text, controlled) = (script.text(), script.controlled());
        match text.strip_prefix(clock) {
            Some(rest) => {
                assert_eq!(
                    controlled.lines().next(),
                    Some("local now = tonumber(ARGV[#ARGV])")
                );
                assert_eq!(
                    controlled.split_once('\n').map(|(_, rest)| rest),
                    Some(rest)
                );
                assert!(!rest.contains("'TIME'"));
            }
            None => panic!("a script without a clock"),
        }
        assert_eq!(script.sha().len(), 40);
    }
}

#[test]
fn unreadable_values_are_refused_with_the_name_of_the_key_and_left_alone() {
    let kind = kind("100/s burst 20");
    server::on_each_server(|connection| {
        let state = |format: u32, n: u32, part: u32, idle: f64, written: f64| {
            let mut value = [n + (format << 27), part].map(u32::to_le_bytes).concat();
            value.extend([idle, written].map(f64::to_le_bytes).concat());
            value
        };
        let with_d = |format, n, part, idle, written, d: f64| {
            [
                state(format, n, part, idle, written),
                d.to_le_bytes().to_vec(),
            ]
            .concat()
        };
        let right = state(1, 1, 0, 5.0, 0.0);
        let last = 3.0 * 1_577_880_000_000_000.0;
        for value in [
            Vec::new(),
            b"1".to_vec(),
            right[..23].to_vec(),
            [right.as_slice(), b" "].concat(),
            b"something of another program".to_vec(),
            state(0, 1, 0, 5.0, 0.0),
            state(2, 1, 0, 5.0, 0.0),
            state(1, 0, 0, 5.0, 0.0),
            state(1, 1, 1, 5.0, 0.0),
            state(1, (1 << 26) + 1, 0, 5.0, 0.0),
            state(1, 1, 0, last + 1.0, 0.0),
            state(1, 1, 0, f64::INFINITY, 0.0),
            state(1, 1, 0, f64::NAN, 0.0),
            state(1, 1, 0, 5.0, -6.0),
            state(1, 1, 0, 5.0, f64::NAN),
            state(1, 1, 0, 5.0, f64::NEG_INFINITY),
            with_d(2, 1, 0, 5.0, 0.0, 1.0)[..31].to_vec(),
            with_d(1, 1, 0, 5.0, 0.0, 1.0),
            with_d(0, 1, 0, 5.0, 0.0, 1.0),
            with_d(3, 1, 0, 5.0, 0.0, 1.0),
            with_d(2, 0, 0, 5.0, 0.0, 1.0),
            with_d(2, 1, 1, 5.0, 0.0, 1.0),
            with_d(2, 1, 0, 5.0, 6.0, 1.0),
            with_d(2, 1, 0, 5.0, -6.0, 1.0),
            with_d(2, 1, 0, 5.0, 0.0, 0.0),
            with_d(2, 1, 0, 5.0, 0.0, -1.0),
            with_d(2, 1, 0, 5.0, 0.0, 1.5),
            with_d(2, 1, 0, 5.0, 0.0, last / 3.0 + 1.0),
            with_d(2, 1, 0, 5.0, 0.0, f64::INFINITY),
            with_d(2, 1, 0, 5.0, 0.0, f64::NAN),
        ] {
            refused_and_left(&kind, connection, |connection| {
                connection.set("{t}bad", value.as_slice()).expect("set")
            });
        }
        refused_and_left(&kind, connection, |connection| {
            connection.lpush("{t}bad", "1:5:0/1").expect("a list")
        });
    });
}

#[test]
fn the_largest_values_that_scripts_write_are_read() {
    const SPAN: u64 = 1_577_880_000_000_000;
    let pack = |numbers: &[f64]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    let (three, four) = (3.0 * SPAN as f64, 4.0 * SPAN as f64 - 1.0);
    let most = ((1_u64 << 52) - 1) as f64;
    server::on_each_server(|connection| {
        let look = |limit: &str, connection: &mut redis::Connection| {
            let parts = [Part {
                key: b"most",
                kind: &limit.parse::<Limit>().expect("accepted").kind,
                n: 1,
            }];
            let reply = send(&call::look(&parts), connection).expect("a value of this limit");
            let seen = call::seen(&parts, &reply).expect("a state")[0];
            let () = connection.del("most").expect("del");
            (parts[0].kind.available(&seen), seen.banned_for().is_some())
        };
        for (written, is_banned) in [(0.0, false), (-three, true)] {
            // 2^26 permits, the format, and the largest part.
            let value = |format: u32, numbers: &[f64]| {
                let head = [(1_u32 << 26) + format, (1 << 26) - 1].map(u32::to_le_bytes);
                let numbers: Vec<u8> = pack(numbers);
                [head.concat(), numbers].concat()
            };
            for value in [
                value(1 << 27, &[three, written]),
                value(1 << 28, &[three, written, 1.0]),
                value(1 << 28, &[three, written, SPAN as f64]),
            ] {
                let () = connection.set("most", value).expect("set");
                assert_eq!(look("5/s", connection), (0, is_banned));
            }
        }
        for written in [0.0, -four] {
            let mut value = vec![2];
            value.extend::<Vec<u8>>(pack(&[most, most, four, written]));
            let () = connection.set("most", value).expect("set");
            assert_eq!(look("sliding-window 5/s", connection), (0, written < 0.0));
        }
        for (ban, seen) in [(0, (4, false)), (2 * SPAN as i64, (0, true))] {
            let log = [format!("!{ban}"), SPAN.to_string()];
            let () = connection.rpush("most", &log).expect("a list");
            assert_eq!(look("sliding-log 5/s", connection), seen);
            let slots = [(-ban, "!"), (2 * SPAN as i64, "a")];
            let () = connection.zadd_multiple("most", &slots).expect("a set");
            assert_eq!(look("concurrency 5 lease 1s", connection), seen);
        }
    });
}

pub(super) fn refused_and_left(
    kind: &Kind,
    connection: &mut redis::Connection,
    write: impl FnOnce(&mut redis::Connection),
) {
    let () = connection.del(&["{t}bad", "{t}good"]).expect("del");
    write(connection);
    let before: Vec<u8> = redis::cmd("DUMP")
        .arg("{t}bad")
        .query(connection)
        .expect("dump");
    let part = |key: &'static str| Part {
        key: key.as_bytes(),
        kind,
        n: 3,
    };
    let parts = [part("{t}good"), part("{t}bad")];
    let marked = parts.map(|part| (part, None));
    let calls = [
        call::take(&parts).expect("not never"),
        call::look(&parts),
        call::give(&marked),
        call::charge(&parts),
        call::ban(&parts, std::time::Duration::from_secs(1)),
        call::reset(&parts),
    ];
    for call in calls {
        let error = send(&call, connection).expect_err("refused");
        match error.code() {
            Some("WRONGTYPE") => {}
            code => {
                assert_eq!(code, Some("BADSTATE"), "{error}");
                assert!(error.to_string().contains("{t}bad"), "{error}");
            }
        }
        let after: Vec<u8> = redis::cmd("DUMP")
            .arg("{t}bad")
            .query(connection)
            .expect("dump");
        assert_eq!(after, before);
        let other: bool = connection.exists("{t}good").expect("exists");
        assert!(!other, "a refused call must write nothing");
    }
}

#[test]
fn what_is_refused_or_only_read_is_not_written() {
    let kind = kind("1/d burst 2");
    server::on_each_server(|connection| {
        let part = |key: &'static str, n| Part {
            key: key.as_bytes(),
            kind: &kind,
            n,
        };
        let (one, two) = (part("{t}1", 1), part("{t}2", 2));
        let take = |parts: &[Part<'_>]| call::take(parts).expect("not never");
        send(&take(&[two]), connection).expect("granted");
        let calls = [
            take(&[one, two]),
            take(&[two, one]),
            take(&[part("{t}1", 0)]),
            call::look(&[one, two]),
            call::give(&[(one, None)]),
            call::charge(&[part("{t}2", 0)]),
            call::ban(&[one, two], std::time::Duration::ZERO),
        ];
        for call in calls {
            // A transaction fails if a watched key was written, even with the same value.
            let watched = redis::cmd("WATCH").arg(&["{t}1", "{t}2"]).exec(connection);
            watched.expect("watched");
            send(&call, connection).expect("a reply");
            let mut transaction = redis::pipe();
            transaction.atomic().cmd("EXISTS").arg("{t}1");
            let done: Option<(bool,)> = transaction.query(connection).expect("a reply");
            assert_eq!(done, Some((false,)), "{call:?}");
        }
    });
}

#[test]
fn a_permit_that_costs_one_tick_is_taken_beside_none_of_another_key() {
    let kind = kind("1/us burst 2");
    server::on_each_server(|connection| {
        let parts = [("{t}tick", 1), ("{t}none", 0)].map(|(key, n)| Part {
            key: key.as_bytes(),
            kind: &kind,
            n,
        });
        send(&call::take(&parts).expect("not never"), connection).expect("granted");
        let exist = |key: &str| -> bool { connection.exists(key).expect("exists") };
        assert_eq!(["{t}tick", "{t}none"].map(exist), [true, false]);
    });
}

#[test]
fn a_ban_holds_for_a_rate_that_was_raised_since() {
    let (small, large) = (kind("1/s"), kind("1/s burst 1000"));
    server::on_each_server(|connection| {
        let part = |kind| Part {
            key: b"raised".as_slice(),
            kind,
            n: 1,
        };
        let mut episode = Episode::new();
        let long = std::time::Duration::from_secs(60);
        episode.call(&call::ban(&[part(&small)], long), SOME_DAY);
        let raised = [part(&large)];
        episode.call(&call::take(&raised).expect("not never"), SOME_DAY);
        let Some((replies, _)) = episode.run(connection) else {
            return;
        };
        let denied = call::taken(&raised, &replies.last().expect("a reply"));
        let denied = denied
            .expect("a reply")
            .map(drop)
            .map_err(|(_, denied)| denied);
        assert_eq!(denied, Err(tollgate::Denied::banned(1, Some(long))));
    });
}

#[test]
fn a_queue_delays_what_is_ahead_of_its_rate_and_of_what_is_free() {
    server::on_each_server(|connection| {
        for (free, delays) in [(0, [0, 1, 2, 3]), (2, [0, 0, 0, 1])] {
            let quota = tollgate::Quota::per_second(1).burst(5);
            let kind = Limit::leaky_queue(quota, free).expect("accepted").kind;
            let key = format!("queue{free}");
            let parts = [Part {
                key: key.as_bytes(),
                kind: &kind,
                n: 1,
            }];
            for delay in delays {
                let take = call::take(&parts).expect("not never");
                let reply = super::logs::send(&take, SOME_DAY, connection);
                let taken = call::taken(&parts, &reply).expect("a reply");
                let delayed = taken.expect("a grant")[0].granted.delay();
                assert_eq!(delayed.as_secs_f64(), f64::from(delay));
            }
        }
    });
}

#[test]
fn a_ban_is_rounded_up_to_a_microsecond() {
    let kind = kind("1/s");
    server::on_each_server(|connection| {
        let parts = [Part {
            key: b"short",
            kind: &kind,
            n: 0,
        }];
        let ban = call::ban(&parts, std::time::Duration::from_nanos(1001));
        let reply = super::logs::send(&ban, SOME_DAY, connection);
        let banned = call::banned(&parts, &reply).expect("a reply");
        assert_eq!(banned, [std::time::Duration::from_micros(2)]);
    });
}

#[test]
fn the_clock_is_the_servers_own_since_2026() {
    let kind = kind("1/s");
    server::on_each_server(|connection| {
        let mut clock = || {
            let (seconds, micros): (u64, u64) =
                redis::cmd("TIME").query(connection).expect("a time");
            let now = (seconds - 1_767_225_600) * 1_000_000 + micros;
            let parts = [Part {
                key: b"c",
                kind: &kind,
                n: 1,
            }];
            let seen = send(&call::look(&parts), connection).expect("a reply");
            (now, call::seen(&parts, &seen).expect("a state")[0].now)
        };
        let ((before, seen), (after, _)) = (clock(), clock());
        assert!(
            before <= seen && seen <= after,
            "{before} <= {seen} <= {after}"
        );
    });
}

#[test]
fn a_clock_outside_of_the_50_years_stands_still() {
    let kind = kind("1/s burst 3");
    server::on_each_server(|connection| {
        for (number, (clock, stands)) in [
            (-1, 0),
            (-1 << 60, 0),
            (1_577_880_000_000_001, 1_577_880_000_000_000),
            (1 << 60, 1_577_880_000_000_000),
            (SOME_DAY, SOME_DAY as u64),
        ]
        .into_iter()
        .enumerate()
        {
            let name = format!("still{number}");
            let parts = [Part {
                key: name.as_bytes(),
                kind: &kind,
                n: 3,
            }];
            let take = call::take(&parts).expect("not never");
            let mut episode = Episode::new();
            episode.call(&take, clock);
            episode.call(&take, clock);
            episode.call(&call::look(&parts), clock);
            let Some((mut replies, _)) = episode.run(connection) else {
                return;
            };
            let mut next = || replies.next().expect("a reply");
            assert!(call::taken(&parts, &next()).is_ok_and(|taken| taken.is_ok()));
            assert!(call::taken(&parts, &next()).is_ok_and(|taken| taken.is_err()));
            let seen = call::seen(&parts, &next()).expect("a state")[0];
            assert_eq!((seen.now, kind.available(&seen)), (stands, 0));
        }
    });
}

#[test]
fn a_key_is_kept_for_a_second_after_the_last_tick_that_counts() {
    server::on_each_server(|connection| {
        for (limit, life) in [
            ("token-bucket 1/s", 2001),
            ("token-bucket 1/1000001us", 9001),
            ("token-bucket 1/8s", 9001),
            ("token-bucket 1/8000001us", 65001),
            ("token-bucket 1/64s", 65001),
            ("token-bucket 1/65s", 66001),
            ("fixed-window 1/5s", 6001),
            ("fixed-window 1/5s first-hit", 6001),
            ("sliding-window 1/5s", 11001),
            ("sliding-log 1/5s", 6001),
            ("concurrency 1 lease 5s", 6001),
        ] {
            let kind = limit.parse::<Limit>().expect("accepted").kind;
            // The clock that a key expires by goes on, so most keys have this life, but not all.
            let is_right = (0..1000).any(|number| {
                let name = format!("life {limit} {number}");
                let parts = [Part {
                    key: name.as_bytes(),
                    kind: &kind,
                    n: 1,
                }];
                let mut episode = Episode::new();
                episode.call(&call::take(&parts).expect("not never"), SOME_DAY);
                episode.pipeline.cmd("PTTL").arg(&name);
                let Some((replies, _)) = episode.run(connection) else {
                    return false;
                };
                let Some(Reply::Int(left)) = replies.last() else {
                    panic!("no time to live");
                };
                assert!(left <= life, "{limit}: {left} ms");
                left == life
            });
            assert!(is_right, "{limit}: no key was kept for {life} ms");
        }
    });
}
