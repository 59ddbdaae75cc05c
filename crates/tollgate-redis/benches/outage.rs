//! How long decisions take while a private server is stopped or missing, and what it runs when it
//! goes on.
//!
//!     cargo bench -p tollgate-redis --bench outage [-- --check]
//!
//! The targets: 99.9 % of the decisions take at most the budget and 2 ms, and the server runs no
//! more scripts than were answered or counted as lost, so nothing was queued. On a machine where
//! timers with the budget of 5 ms take longer than a budget, that time replaces the budget. With
//! `--check` the program exits with 1 if a target is missed.

use std::cell::Cell;
use std::env;
use std::future::{Future, pending};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::timeout;
use tollgate::Quota;
use tollgate_redis::client::Connection;
use tollgate_redis::client::connect_lazily;
use tollgate_redis::{Decider, Fallback, Keys, RedisLimiter, RedisServer};

#[allow(dead_code, reason = "shared with the tests")]
#[path = "../tests/support/server.rs"]
mod server;

/// Decisions in each case.
const DECISIONS: usize = 100_000;

/// How much longer than its budget a decision may take.
const ALLOWANCE: Duration = Duration::from_millis(2);

type Limiter = Arc<RedisLimiter<Connection>>;

/// What happens to the server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It stops after it has decided.
    Stops,
    /// It is stopped when the client connects.
    Stopped,
    /// It does not run.
    Missing,
    /// There are no decisions: a timer alone shows what the machine adds.
    Timer,
}

#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    fault: Fault,
    tasks: usize,
    /// In milliseconds, as the others are.
    budget: u64,
    /// How long a task pauses after each decision, so that the outage lasts for many probes.
    pause: u64,
    probe_every: u64,
}

const CASES: [Case; 8] = {
    use Fault::{Missing, Stopped, Stops, Timer};
    [
        Case {
            budget: 5,
            pause: 0,
            ..case("a timer alone", Timer, 64)
        },
        Case {
            budget: 5,
            pause: 0,
            probe_every: 0,
            ..case("stops, each decision asks", Stops, 64)
        },
        case("stops", Stops, 64),
        case("stops", Stops, 1),
        case("stopped at first", Stopped, 64),
        case("stopped at first", Stopped, 1),
        case("no server", Missing, 64),
        case("no server", Missing, 1),
    ]
};

const fn case(name: &'static str, fault: Fault, tasks: usize) -> Case {
    Case {
        name,
        fault,
        tasks,
        budget: 20,
        pause: if tasks > 1 { 1 } else { 0 },
        probe_every: 50,
    }
}

fn main() -> ExitCode {
    let missed = Cell::new(false);
    server::on_each_server(|server| {
        println!(
            "\n{:35} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6} {:>6}",
            "milliseconds", "decisions", "budget", "median", "p99.9", "slowest", "lost", "ran"
        );
        let mut timer = Duration::ZERO;
        for case in CASES {
            if !measure(server.another(), case, &mut timer) {
                missed.set(true);
            }
        }
    });
    let fails = env::args().any(|arg| arg == "--check") && missed.get();
    ExitCode::from(u8::from(fails))
}

/// Measures one case, prints it, and returns whether it meets the targets. `timer` is the p99.9 of
/// a timer alone.
fn measure(mut server: server::Server, case: Case, timer: &mut Duration) -> bool {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let budget = Duration::from_millis(case.budget);
    if case.fault == Fault::Timer {
        let took = runtime.block_on(repeat(case, move || async move {
            let _ = timeout(budget, pending::<()>()).await;
        }));
        *timer = print(case, took, "");
        return true;
    }
    if case.fault != Fault::Missing {
        server.start(false);
    }
    let limiter = runtime.block_on(async { limiter(&server, case, budget) });
    if case.fault == Fault::Stops {
        runtime.block_on(until_it_decides(&limiter));
    }
    if case.fault != Fault::Missing {
        server.signal("STOP");
    }
    let shared = Arc::clone(&limiter);
    let took = runtime.block_on(repeat(case, move || {
        let limiter = Arc::clone(&shared);
        async move { assert_eq!(decision(&limiter).await, Decider::Closed) }
    }));
    let lost = limiter.server().stats().lost;
    match case.fault {
        Fault::Missing => server.start(false),
        _ => server.signal("CONT"),
    }
    runtime.block_on(until_it_decides(&limiter));
    // The client's connection ends with its runtime. The server has then read all that was sent.
    let stats = limiter.server().stats();
    drop((limiter, runtime));
    let start = Instant::now();
    while server.info("connected_clients") > 1 {
        assert!(start.elapsed() < server::DEADLINE, "the connection ends");
    }
    let (scripts, answered) = (server.scripts(), stats.server);

    let ran = scripts.saturating_sub(answered);
    let most = print(case, took, &format!("{lost:>6} {ran:>6}"));
    let slow = most > budget.max(*timer) + ALLOWANCE;
    let queued = scripts > answered + stats.lost;
    for (missed, what) in [(slow, "p99.9 is too long"), (queued, "calls were queued")] {
        if missed {
            println!("  missed: {what}");
        }
    }
    !slow && !queued
}

/// Prints how long decisions took, and returns the p99.9.
fn print(case: Case, mut took: Vec<Duration>, counts: &str) -> Duration {
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
    let millis = |time: Duration| format!("{:.3}", time.as_secs_f64() * 1000.0);
    let tasks = if case.tasks == 1 { "task" } else { "tasks" };
    println!(
        "{:35} {:>9} {:>9} {:>9} {:>9} {:>9} {counts}",
        format!("{}, {} {tasks}", case.name, case.tasks),
        took.len(),
        case.budget,
        millis(at(0.5)),
        millis(at(0.999)),
        millis(at(1.0)),
    );
    at(0.999)
}

fn limiter(server: &server::Server, case: Case, budget: Duration) -> Limiter {
    let client = connect_lazily(server.url()).expect("an address");
    let server = RedisServer::new(client)
        .with_budget(budget)
        .with_probe_every(Duration::from_millis(case.probe_every));
    let keys = Keys::new("api").expect("a namespace");
    let limiter = RedisLimiter::new(
        Arc::new(server),
        &keys,
        "limit",
        Quota::per_second(1000),
        Fallback::Closed,
    );
    Arc::new(limiter.expect("a quota"))
}

async fn until_it_decides(limiter: &Limiter) {
    let start = Instant::now();
    while decision(limiter).await != Decider::Server {
        assert!(start.elapsed() < server::DEADLINE, "the server decides");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Decides once for a key that many share, and returns what decided.
async fn decision(limiter: &Limiter) -> Decider {
    match limiter.key("alice").try_acquire().await {
        Ok(grant) => grant.decider(),
        Err(denial) => denial.decider(),
    }
}

/// Runs a future again and again in many tasks, and returns how long it took each time.
async fn repeat<F: Future<Output = ()> + Send>(
    case: Case,
    run: impl Fn() -> F + Clone + Send + 'static,
) -> Vec<Duration> {
    let each = DECISIONS.div_ceil(case.tasks);
    let tasks: Vec<_> = (0..case.tasks)
        .map(|_| {
            let run = run.clone();
            tokio::spawn(async move {
                let mut took = Vec::with_capacity(each);
                for _ in 0..each {
                    let start = Instant::now();
                    run().await;
                    took.push(start.elapsed());
                    if case.pause > 0 {
                        tokio::time::sleep(Duration::from_millis(case.pause)).await;
                    }
                }
                took
            })
        })
        .collect();
    let mut took = Vec::with_capacity(DECISIONS);
    for task in tasks {
        took.extend(task.await.expect("a task"));
    }
    took
}
