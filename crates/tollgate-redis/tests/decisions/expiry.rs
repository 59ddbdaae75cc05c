//! When a key expires after each verb: a second to a minute after it is idle, so that the server
//! keeps nothing that says the same as no key.

use std::time::{Duration, Instant};

use super::logs::send;
use super::{SOME_DAY, server};
use crate::limit::Limit;
use crate::limit::kind::Mark;
use crate::server::call::{self, Part};

/// A verb, its permits, and the second at which it is called.
#[derive(Debug, Clone, Copy)]
enum Step {
    Take(u64, i128),
    /// Gives the last grant back.
    Undo(i128),
    Refund(u64, i128),
    Charge(u64, i128),
    /// Renews the last grant.
    Renew(i128),
    /// Bans the key for this number of seconds.
    Ban(u64, i128),
}

use Step::{Ban, Charge, Refund, Renew, Take, Undo};

impl Step {
    const fn at(self) -> i128 {
        match self {
            Take(_, at) | Undo(at) | Refund(_, at) | Charge(_, at) | Renew(at) | Ban(_, at) => at,
        }
    }
}

/// What is done to a key, and the second at which it is idle then.
type Case = (&'static str, &'static [Step], i128);

/// Periods are 300 s. A window that is not opened by its first permit ends at 200 s.
const CASES: &[Case] = &[
    ("token-bucket 5/300s", &[Take(2, 0)], 120),
    ("token-bucket 5/300s", &[Take(2, 0), Undo(50)], 50),
    ("token-bucket 5/300s", &[Take(5, 0), Refund(1, 10)], 240),
    ("token-bucket 5/300s", &[Take(5, 0), Charge(5, 0)], 600),
    ("token-bucket 5/300s", &[Ban(1000, 7)], 1307),
    ("fixed-window 5/300s", &[Take(2, 0)], 200),
    ("fixed-window 5/300s", &[Take(2, 0), Undo(50)], 50),
    ("fixed-window 5/300s", &[Take(2, 0), Refund(1, 50)], 200),
    ("fixed-window 5/300s", &[Charge(9, 0), Refund(9, 50)], 50),
    ("fixed-window 5/300s", &[Ban(1000, 7)], 1100),
    ("fixed-window 5/300s first-hit", &[Take(2, 0)], 300),
    ("fixed-window 5/300s first-hit", &[Take(2, 0), Undo(50)], 50),
    (
        "fixed-window 5/300s first-hit",
        &[Take(2, 0), Refund(9, 50)],
        50,
    ),
    (
        "fixed-window 5/300s first-hit",
        &[Take(2, 0), Refund(1, 50)],
        300,
    ),
    (
        "fixed-window 5/300s first-hit",
        &[Take(2, 0), Undo(50), Take(1, 60)],
        360,
    ),
    ("sliding-window 5/300s", &[Take(2, 0)], 500),
    ("sliding-window 5/300s", &[Take(2, 0), Undo(50)], 50),
    (
        "sliding-window 5/300s",
        &[Take(2, 0), Take(1, 250), Undo(250)],
        500,
    ),
    ("sliding-log 5/300s", &[Take(2, 0), Take(1, 100)], 400),
    (
        "sliding-log 5/300s",
        &[Take(2, 0), Take(1, 100), Undo(100)],
        300,
    ),
    ("sliding-log 5/300s", &[Take(2, 0), Undo(50)], 50),
    (
        "sliding-log 5/300s",
        &[Take(2, 0), Take(1, 100), Refund(2, 200)],
        400,
    ),
    (
        "sliding-log 5/300s",
        &[Take(2, 0), Take(1, 100), Refund(3, 200)],
        200,
    ),
    ("sliding-log 5/300s", &[Take(2, 0), Charge(9, 100)], 400),
    ("sliding-log 5/300s", &[Take(2, 0), Ban(1000, 7)], 1007),
    ("sliding-log 5/300s", &[Take(2, 0), Ban(1, 7)], 300),
    ("concurrency 5 lease 300s", &[Take(2, 0), Take(1, 100)], 400),
    (
        "concurrency 5 lease 300s",
        &[Take(2, 0), Take(1, 100), Undo(100)],
        300,
    ),
    ("concurrency 5 lease 300s", &[Take(2, 0), Undo(50)], 50),
    ("concurrency 5 lease 300s", &[Take(2, 0), Renew(100)], 400),
    ("concurrency 5 lease 300s", &[Take(2, 0), Charge(9, 9)], 309),
    (
        "concurrency 5 lease 300s",
        &[Take(2, 0), Ban(1000, 7), Undo(8)],
        1007,
    ),
];

#[test]
fn a_key_expires_a_second_to_a_minute_after_it_is_idle() {
    server::on_each_server(|connection| {
        for (number, case) in CASES.iter().enumerate() {
            // A key can expire on the server's own clock while a busy machine is slow.
            let mut tries = 0;
            while !is_right(&format!("{{{number}}}{tries}"), case, connection) {
                tries += 1;
            }
        }
    });
}

/// Returns `false` if it takes so long that the key may have expired.
fn is_right(name: &str, case: &Case, connection: &mut redis::Connection) -> bool {
    let (limit, steps, idle) = *case;
    let kind = limit.parse::<Limit>().expect("accepted").kind;
    let part = |n| Part {
        key: name.as_bytes(),
        kind: &kind,
        n,
    };
    let start = Instant::now();
    let mut grant = (0, Mark::default());
    for step in steps {
        let undo = [(part(grant.0), Some(grant.1))];
        let call = match *step {
            Take(n, _) => call::take(&[part(n)]).expect("not never"),
            Undo(_) => call::give(&undo),
            Refund(n, _) => call::give(&[(part(n), None)]),
            Charge(n, _) => call::charge(&[part(n)]),
            Renew(_) => call::renew(part(grant.0), grant.1),
            Ban(long, _) => call::ban(&[part(0)], Duration::from_secs(long)),
        };
        let reply = send(&call, SOME_DAY + step.at() * 1_000_000, connection);
        if let Take(n, _) = *step {
            let taken = call::taken(&[part(n)], &reply).expect("a reply");
            let at = taken.expect("a grant")[0].mark;
            let is_reserved = false;
            grant = (
                n,
                Mark {
                    at,
                    is_reserved,
                    ..Mark::default()
                },
            );
        }
    }
    let mut ttl = redis::cmd("PTTL");
    let left: i128 = ttl.arg(name).query(connection).expect("a time to live");
    if start.elapsed() > Duration::from_millis(900) {
        return false;
    }
    let idle_in = (idle - steps.last().map_or(0, |step| step.at())) * 1000;
    let (least, most) = (idle_in + 1000 - 900, idle_in + 61_000);
    assert!(
        (least..=most).contains(&left),
        "{case:?}: it is idle in {idle_in} ms, and expires in {left} ms"
    );
    true
}
