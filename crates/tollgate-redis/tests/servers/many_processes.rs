//! Four processes of eight tasks each share one limit. Their grants are merged by the server's
//! time, and checked over every interval.
//!
//! The processes are this test program again, which runs one test alone.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tollgate::Quota;
use tollgate_redis::client::connect_lazily;
use tollgate_redis::{Decider, Fallback, Keys, RedisLimiter};

use crate::server::{DEADLINE, Server, on_each_server};

const PROCESSES: usize = 4;
const TASKS: u64 = 8;

/// A permit costs 10 000 units of 1/7 microsecond.
const RATE: u64 = 700;
const BURST: u64 = 100;
const UNITS: u128 = 7;
const COST: u128 = 10_000;

/// The variables by which a process is told the server and how long it takes permits.
const URL: &str = "TOLLGATE_TEST_URL";
const MILLIS: &str = "TOLLGATE_TEST_MILLIS";

/// Permits that the server granted at this microsecond of its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Taken {
    at: u128,
    n: u128,
}

#[test]
fn four_processes_keep_the_bound_of_one_limit() {
    on_each_server(|mut server| {
        server.start(false);
        let taken = take_in_processes(&server, Duration::from_secs(2));
        assert_eq!(first_excess(&taken), None);
    });
}

#[test]
#[ignore = "takes 20 s on each server: see scripts/deep"]
fn four_processes_use_99_percent_of_one_limit() {
    on_each_server(|mut server| {
        server.start(false);
        let taken = take_in_processes(&server, Duration::from_secs(20));
        assert_eq!(first_excess(&taken), None);
        let (granted, most) = used(&taken);
        let share = granted as f64 / most as f64;
        println!(
            "{} grants have {share:.4} of what the limit allows",
            taken.len()
        );
        assert!(share >= 0.99, "{granted} of {most}");
    });
}

#[test]
fn a_grant_too_early_is_found() {
    let at = |micros, n| Taken { at: micros, n };
    // A permit refills in 1428.6 microseconds.
    let exact = [at(0, 60), at(0, 40), at(1429, 1), at(2858, 1), at(4286, 1)];
    assert_eq!(first_excess(&exact), None);
    let mut early = exact;
    early[3].at -= 1;
    assert_eq!(first_excess(&early), Some(3));
    early[3] = at(2858, 2);
    assert_eq!(first_excess(&early), Some(3));
    assert_eq!(
        used(&exact),
        (103 * COST, (BURST as u128) * COST + 4286 * UNITS)
    );
}

/// Replays grants, in order of time, through an exact bucket, and returns the first that it does
/// not have. If it has them all, no interval from `a` to `b` has more than burst + rate x (b - a).
fn first_excess(taken: &[Taken]) -> Option<usize> {
    let mut idle = 0;
    taken.iter().position(|&Taken { at, n }| {
        idle = idle.max(at * UNITS) + n * COST;
        idle > at * UNITS + u128::from(BURST) * COST
    })
}

/// Returns what was granted from the first grant to the last, and the most that the limit allows
/// for that, in units.
fn used(taken: &[Taken]) -> (u128, u128) {
    let span = match taken {
        [first, .., last] => last.at - first.at,
        _ => 0,
    };
    let granted: u128 = taken.iter().map(|taken| taken.n * COST).sum();
    (granted, u128::from(BURST) * COST + span * UNITS)
}

/// A process, killed when it is dropped, also by a test that panics.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lets processes take permits for a time, and returns all that they took, in order of time.
fn take_in_processes(server: &Server, long: Duration) -> Vec<Taken> {
    let start = || {
        let mut command = Command::new(env::current_exe().expect("this program"));
        command.args(["--exact", "--ignored", "--nocapture"]);
        command.arg("many_processes::take_in_this_process");
        command.env(URL, server.url());
        command.env(MILLIS, long.as_millis().to_string());
        command.stdout(Stdio::piped());
        Process(command.spawn().expect("a process"))
    };
    let mut processes: Vec<_> = (0..PROCESSES).map(|_| start()).collect();
    let mut all = Vec::new();
    for Process(child) in &mut processes {
        let stdout = child.stdout.take().expect("the output");
        let before = all.len();
        for line in BufReader::new(stdout).lines() {
            let line = line.expect("a line");
            let Some(taken) = line.strip_prefix("taken ") else {
                continue;
            };
            let (at, n) = taken.split_once(' ').expect("two numbers");
            all.push(Taken {
                at: at.parse().expect("a time"),
                n: n.parse().expect("permits"),
            });
        }
        assert!(child.wait().expect("a status").success());
        assert!(all.len() > before, "each process takes permits");
    }
    all.sort_unstable();
    all
}

#[test]
#[ignore = "the tests above run it in processes of their own"]
fn take_in_this_process() {
    let (Ok(url), Ok(millis)) = (env::var(URL), env::var(MILLIS)) else {
        return;
    };
    let long = Duration::from_millis(millis.parse().expect("a time"));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let taken = runtime.block_on(async {
        let client = connect_lazily(url).expect("an address");
        let server = tollgate_redis::RedisServer::new(client).with_budget(DEADLINE);
        let keys = Keys::new("test").expect("a namespace");
        let quota = Quota::per_second(RATE).burst(BURST);
        let limiter = RedisLimiter::new(Arc::new(server), &keys, "limit", quota, Fallback::Closed);
        let limiter = Arc::new(limiter.expect("a quota"));
        let start = Instant::now();
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let limiter = Arc::clone(&limiter);
                tokio::spawn(async move {
                    let mut taken = Vec::new();
                    // At least once, so that a process that starts late takes permits too.
                    while taken.is_empty() || start.elapsed() < long {
                        assert!(start.elapsed() < DEADLINE, "permits come back");
                        // From 1 to 3.
                        let n = 1 + task % 3;
                        match limiter.key("alice").try_acquire_n(n).await {
                            Ok(grant) => {
                                assert_eq!(grant.decider(), Decider::Server);
                                let nanos = grant.granted().at().as_nanos();
                                assert_eq!(nanos % 1000, 0);
                                taken.push((nanos / 1000, n));
                            }
                            Err(denial) => {
                                assert_eq!(denial.decider(), Decider::Server);
                                let wait = denial.denied().retry_after().expect("a wait");
                                tokio::time::sleep(wait).await;
                            }
                        }
                    }
                    taken
                })
            })
            .collect();
        let mut taken = Vec::new();
        for task in tasks {
            taken.extend(task.await.expect("a task"));
        }
        // So these are all grants that the server made.
        assert_eq!(limiter.server().stats().failed, 0);
        taken
    });
    // The first line follows the name of this test.
    println!();
    for (at, n) in taken {
        println!("taken {at} {n}");
    }
}
