//! What is under a key: values that tollgate did not write, denials, and the server's own clock.

use redis::Commands;

use super::{Episode, SOME_DAY, reply, server};
use crate::bucket::{self, Call, Part};
use crate::client::Reply;
use crate::rate::Rate;
use crate::script;

fn rate(text: &str) -> Rate {
    Rate::new(text.parse().expect("a quota")).expect("accepted")
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
            None => assert_eq!(script, script::reset(), "a reset needs no clock"),
        }
        assert_eq!(script.sha().len(), 40);
    }
}

#[test]
fn unreadable_values_are_refused_with_the_name_of_the_key_and_left_alone() {
    let rate = rate("100/s burst 20");
    server::on_each_server(|connection| {
        for value in [
            "",
            "1",
            "2:5:0/1",
            "1:5:0",
            "1:5:0/0",
            "1:5:1/1",
            "1:5:0/67108865",
            "1:5:0/1:",
            "1:5:0/1:7:7",
            "1:5:0/1:x",
            "1:5:0/1 ",
            "1:-5:0/1",
            "1:5.5:0/1",
            "1:1e3:0/1",
            "1:0x10:0/1",
            "1:5:0/1:6",
            "1:5:0/1:3155760000000001",
            "1:6311520000000000:0/1",
            "1:99999999999999999999999999:0/1",
            "1:5:0/1\n",
            "\u{0}1:5:0/1",
        ] {
            refused_and_left(&rate, connection, |connection| {
                connection.set("{t}bad", value).expect("set")
            });
        }
        refused_and_left(&rate, connection, |connection| {
            connection.lpush("{t}bad", "1:5:0/1").expect("a list")
        });
    });
}

fn refused_and_left(
    rate: &Rate,
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
        rate,
        n: 3,
    };
    let parts = [part("{t}good"), part("{t}bad")];
    let marked = parts.map(|part| (part, None));
    let calls = [
        bucket::take(&parts).expect("not never"),
        bucket::look(&parts),
        bucket::give(&marked),
        bucket::charge(&parts),
        bucket::ban(&parts, std::time::Duration::from_secs(1)),
    ];
    for call in calls {
        let error = send(&call, connection).expect_err("refused");
        assert_eq!(error.code(), Some("BADSTATE"), "{error}");
        assert!(error.to_string().contains("{t}bad"), "{error}");
        let after: Vec<u8> = redis::cmd("DUMP")
            .arg("{t}bad")
            .query(connection)
            .expect("dump");
        assert_eq!(after, before);
        let other: bool = connection.exists("{t}good").expect("exists");
        assert!(!other, "a refused call must write nothing");
    }
    assert_eq!(send(&bucket::reset(&parts), connection), Ok(Reply::Int(1)));
}

#[test]
fn what_is_refused_or_only_read_is_not_written() {
    let rate = rate("1/d burst 2");
    server::on_each_server(|connection| {
        let part = |key: &'static str, n| Part {
            key: key.as_bytes(),
            rate: &rate,
            n,
        };
        let (one, two) = (part("{t}1", 1), part("{t}2", 2));
        let take = |parts: &[Part<'_>]| bucket::take(parts).expect("not never");
        send(&take(&[two]), connection).expect("granted");
        let calls = [
            take(&[one, two]),
            take(&[two, one]),
            take(&[part("{t}1", 0)]),
            bucket::look(&[one, two]),
            bucket::give(&[(one, None)]),
            bucket::charge(&[part("{t}2", 0)]),
            bucket::ban(&[one, two], std::time::Duration::ZERO),
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
fn a_ban_holds_for_a_rate_that_was_raised_since() {
    let (small, large) = (rate("1/s"), rate("1/s burst 1000"));
    server::on_each_server(|connection| {
        let part = |rate| Part {
            key: b"raised".as_slice(),
            rate,
            n: 1,
        };
        let mut episode = Episode::new();
        let long = std::time::Duration::from_secs(60);
        episode.call(&bucket::ban(&[part(&small)], long), SOME_DAY);
        let raised = [part(&large)];
        episode.call(&bucket::take(&raised).expect("not never"), SOME_DAY);
        let Some((replies, _)) = episode.run(connection) else {
            return;
        };
        let denied = bucket::taken(&raised, &replies.last().expect("a reply"));
        let denied = denied
            .expect("a reply")
            .map(drop)
            .map_err(|(_, denied)| denied);
        assert_eq!(denied, Err(tollgate::Denied::banned(1, Some(long))));
    });
}

#[test]
fn the_clock_is_the_servers_own_since_2026() {
    let rate = rate("1/s");
    server::on_each_server(|connection| {
        let mut clock = || {
            let (seconds, micros): (u64, u64) =
                redis::cmd("TIME").query(connection).expect("a time");
            let now = (seconds - 1_767_225_600) * 1_000_000 + micros;
            let parts = [Part {
                key: b"c",
                rate: &rate,
                n: 1,
            }];
            let seen = send(&bucket::look(&parts), connection).expect("a reply");
            (now, bucket::seen(&parts, &seen).expect("a state")[0].now)
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
    let rate = rate("1/s burst 3");
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
                rate: &rate,
                n: 3,
            }];
            let take = bucket::take(&parts).expect("not never");
            let mut episode = Episode::new();
            episode.call(&take, clock);
            episode.call(&take, clock);
            episode.call(&bucket::look(&parts), clock);
            let Some((mut replies, _)) = episode.run(connection) else {
                return;
            };
            let mut next = || replies.next().expect("a reply");
            assert!(bucket::taken(&parts, &next()).is_ok_and(|taken| taken.is_ok()));
            assert!(bucket::taken(&parts, &next()).is_ok_and(|taken| taken.is_err()));
            let seen = bucket::seen(&parts, &next()).expect("a state")[0];
            assert_eq!((seen.now, seen.available(&rate)), (stands, 0));
        }
    });
}
