//! How long a server is busy with one call about the largest sliding log, and about the largest
//! limit on concurrency.
//!
//!     cargo bench -p tollgate-redis --bench largest [-- --check]
//!
//! A server decides one call after the other, so each verb must be done in a small part of a call's
//! budget. Each time is the median of several rounds, as the server counts it. With `--check` the
//! program exits with 1 if one is above the target.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::env;
use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tollgate::Quota;
use tollgate_redis::client::{Connection, connect_lazily};
use tollgate_redis::{Fallback, Keys, Limit, LimitError, RedisLimiter, RedisServer};

#[allow(dead_code, reason = "shared with the tests")]
#[path = "../tests/support/server.rs"]
mod server;

const ROUNDS: usize = 15;

/// The most microseconds that a call may take in the server.
const TARGET: u64 = 10_000;

const HOUR: Duration = Duration::from_secs(3600);

/// Permits and leases of this length have ended when the next call is made.
const SHORT: Duration = Duration::from_millis(1);

type Times = BTreeMap<(&'static str, &'static str), Vec<u64>>;

fn main() -> ExitCode {
    let missed = Cell::new(false);
    server::on_each_server(|mut server| {
        server.start(false);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        let times = runtime.block_on(measure(&server));
        println!("\n{}", server.program());
        for ((limit, verb), mut micros) in times {
            micros.sort_unstable();
            let median = micros[micros.len() / 2];
            let says = if median > TARGET { "  too long" } else { "" };
            println!("{limit:24} {verb:24} {:>8.2} ms{says}", median as f64 / 1e3);
            missed.set(missed.get() || median > TARGET);
        }
    });
    let fails = missed.get() && env::args().any(|arg| arg == "--check");
    ExitCode::from(u8::from(fails))
}

/// Returns the most permits of a log.
fn most_logged() -> u64 {
    match Limit::sliding_log(Quota::per(u64::MAX, HOUR)) {
        Err(LimitError::TooManyLogged { max, .. }) => max,
        other => panic!("{other:?}"),
    }
}

/// Returns the most slots.
fn most_slots() -> u64 {
    match Limit::concurrency(u64::MAX, HOUR) {
        Err(LimitError::Slots { max, .. }) => max,
        other => panic!("{other:?}"),
    }
}

async fn measure(private: &server::Server) -> Times {
    let client = connect_lazily(private.url()).expect("an address");
    let server = Arc::new(RedisServer::new(client).with_budget(Duration::from_secs(30)));
    let mut times = Times::new();
    let (logged, slots) = (most_logged(), most_slots());
    let log = |period| Limit::sliding_log(Quota::per(logged, period));
    let of_slots = |lease| Limit::concurrency(slots, lease);
    for (name, limits, most) in [
        ("sliding log", [log(HOUR), log(SHORT)], logged),
        ("concurrency", [of_slots(HOUR), of_slots(SHORT)], slots),
    ] {
        println!("{name}: {most}");
        let keys = Keys::new("largest").expect("a namespace");
        let [long, short] = limits.map(|limit| {
            let limit = limit.expect("a limit");
            RedisLimiter::new(Arc::clone(&server), &keys, name, limit, Fallback::Closed)
                .expect("a limit")
        });
        for round in 0..=ROUNDS {
            let mut timed = Timed {
                private,
                name,
                // The first round also sends the texts of the scripts.
                times: if round > 0 { Some(&mut times) } else { None },
            };
            verbs(&long, &short, most, &mut timed).await;
        }
    }
    assert_eq!(server.stats().failed, 0);
    times
}

/// Measures each verb at the bound. A charge takes up to twice the limit.
async fn verbs(
    long: &RedisLimiter<Connection>,
    short: &RedisLimiter<Connection>,
    most: u64,
    timed: &mut Timed<'_>,
) {
    let alice = long.key("alice");
    let grant = timed.call("take all", alice.try_acquire_n(most)).await;
    let grant = grant.expect("a grant");
    let denied = timed.call("denied", alice.try_acquire_n(most)).await;
    assert!(denied.is_err());
    let available = timed.call("available", alice.available()).await;
    assert_eq!(available, Ok(0));
    let held = timed.call("renew all", alice.renew(&grant)).await;
    assert!(held.is_ok());
    let back = timed.call("undo all", alice.undo(grant)).await;
    assert_eq!(back, Ok(most));
    let charged = timed.call("charge twice all", alice.charge(2 * most)).await;
    assert_eq!(charged.expect("an answer").n(), 2 * most);
    let refunded = timed.call("refund all", alice.refund(most)).await;
    assert!(refunded.is_ok());
    let banned = timed.call("ban", alice.ban_for(HOUR)).await;
    assert_eq!(banned, Ok(HOUR));
    timed.call("reset", alice.reset()).await.expect("a reset");

    let bob = short.key("bob");
    bob.charge(2 * most).await.expect("an answer");
    thread::sleep(10 * SHORT);
    let grant = timed.call("take all after twice all", bob.try_acquire_n(most));
    let _ = grant.await.expect("a grant");
}

struct Timed<'a> {
    private: &'a server::Server,
    name: &'static str,
    times: Option<&'a mut Times>,
}

impl Timed<'_> {
    /// Notes how long the server is busy with the scripts of a call.
    async fn call<T>(&mut self, verb: &'static str, call: impl Future<Output = T>) -> T {
        let before = micros(self.private);
        let answer = call.await;
        let took = micros(self.private) - before;
        if let Some(times) = &mut self.times {
            times.entry((self.name, verb)).or_default().push(took);
        }
        answer
    }
}

/// Returns how many microseconds scripts took in the server.
fn micros(server: &server::Server) -> u64 {
    let info: String = server.run("INFO commandstats");
    let scripts = info.lines().filter(|line| line.starts_with("cmdstat_eval"));
    let fields = scripts.flat_map(|line| line.split(','));
    let micros = fields.filter_map(|field| field.strip_prefix("usec="));
    micros
        .map(|text| text.parse::<u64>().expect("a time"))
        .sum()
}
