//! How many decisions a second one client gets from a private server, next to scripts that others
//! use.
//!
//!     cargo bench -p tollgate-redis --bench speed [-- [--rounds N] [--check]]
//!
//! All scripts are called over one multiplexed TCP connection on this machine. A round measures
//! each of them once, so that a busy machine slows all of them alike. Each ratio is the median of
//! the rounds' ratios. With `--check` the program exits with 1 if a target is missed.

use std::cell::Cell;
use std::env;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tollgate::{Keyed, Quota, TokenBucket};
use tollgate_redis::client::Connection;
use tollgate_redis::client::connect_lazily;
use tollgate_redis::{Decider, Fallback, Keys, Leasing, RedisAll, RedisLimiter, RedisServer};

use scripts::Loaded;

mod key;
mod scripts;
#[allow(dead_code, reason = "shared with the tests")]
#[path = "../../tests/support/server.rs"]
mod server;
mod steady;

/// Tasks that use the connection at the same time.
const TASKS: usize = 64;

/// Decisions that one task waits for at once.
const BATCH: usize = 32;

/// How long each subject is measured in a round.
const SLICE: Duration = Duration::from_millis(250);

type Limiter = Arc<RedisLimiter<Connection>>;
type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

fn main() -> ExitCode {
    let args: Vec<_> = env::args().collect();
    let rounds = args.iter().position(|arg| arg == "--rounds");
    let rounds = rounds.and_then(|at| args.get(at + 1)?.parse().ok());
    println!("making a key: {:.0} ns", key::nanoseconds());
    let missed = Cell::new(false);
    server::on_each_server(|mut server| {
        server.start(false);
        println!("\n{}", version(&server));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let met = runtime.block_on(measure(&server, rounds.unwrap_or(15)));
        if !runtime.block_on(steady::measure(&server)) || !met {
            missed.set(true);
        }
    });
    let fails = args.iter().any(|arg| arg == "--check") && missed.get();
    ExitCode::from(u8::from(fails))
}

/// Returns the name and the version of the server. Valkey says first which Redis it is like.
fn version(server: &server::Server) -> String {
    let info: String = server.run("INFO server");
    let find = |name| info.lines().find(|line| line.starts_with(name));
    let version = find("valkey_version").or_else(|| find("redis_version"));
    version.unwrap_or("unknown version").to_owned()
}

/// Measures all subjects, prints the figures, and returns whether they meet the targets.
async fn measure(server: &server::Server, rounds: usize) -> bool {
    let mut subjects = subjects(server).await;
    // The first call of a script sends its text too.
    for subject in &subjects {
        (subject.run)(Instant::now() + Duration::from_millis(50)).await;
    }
    for _ in 0..rounds {
        for subject in &mut subjects {
            subject.measure(server).await;
        }
    }
    println!(
        "{:40} {:>10} {:>10} {:>12} {:>10}",
        "", "best /s", "median /s", "us in server", "calls each"
    );
    for subject in &subjects {
        println!("{subject}");
    }
    let find = |name: &str, tasks| {
        let mut found = subjects.iter().filter(|s| s.name == name);
        found.find(|s| s.tasks == tasks).expect("a subject")
    };
    let one = find("one limit, granted", TASKS);
    let single = find("one limit, granted", 1);
    let targets = [
        ("one limit / base", one, find("base", TASKS), 0.85),
        (
            "one limit in parts / base",
            find("one limit in parts, granted", TASKS),
            find("base", TASKS),
            0.85,
        ),
        ("one limit / Spring", one, find("Spring", TASKS), 1.0),
        ("one limit / ShenYu", one, find("ShenYu", TASKS), 1.0),
        ("three limits / one", find("three limits", TASKS), one, 0.6),
        (
            "batches of 32 / one by one",
            find("batches of 32", 1),
            single,
            5.0,
        ),
        (
            // The server answers many in one turn.
            "remembered / denied, 64 tasks",
            find("one limit, denied, remembered", TASKS),
            find("one limit, denied", TASKS),
            50.0,
        ),
        (
            "remembered / denied, 1 task",
            find("one limit, denied, remembered", 1),
            find("one limit, denied", 1),
            100.0,
        ),
        (
            "leased / one limit, 1 task",
            find("one limit, leased", 1),
            single,
            100.0,
        ),
        (
            "leased / the core's Keyed",
            find("one limit, leased", 1),
            find("one limit, the core's Keyed", 1),
            0.5,
        ),
    ];
    println!("\n{:40} {:>10} {:>10}", "ratio", "measured", "target");
    let mut met = true;
    for (name, above, below, target) in targets {
        let ratio = above.ratio(below);
        let says = if ratio < target { "  missed" } else { "" };
        println!("{name:40} {ratio:>10.3} {target:>10.2}{says}");
        met &= ratio >= target;
    }
    let most = subjects.iter().map(Subject::calls_each).fold(0.0, f64::max);
    println!("{:40} {most:>10.3} {:>10}", "round trips a decision", 1);
    met && most <= 1.0
}

/// Something that decides, and what was measured of it.
struct Subject {
    name: &'static str,
    tasks: usize,
    /// Decides in a loop until a time, and returns how often.
    run: Box<dyn Fn(Instant) -> Boxed<usize>>,
    /// Decisions a second, in each round.
    rates: Vec<f64>,
    decisions: u64,
    calls: u64,
    micros: u64,
}

impl Subject {
    async fn measure(&mut self, server: &server::Server) {
        let before = calls(server);
        let start = Instant::now();
        let until = start + SLICE;
        let tasks: Vec<_> = (0..self.tasks)
            .map(|_| tokio::spawn((self.run)(until)))
            .collect();
        let mut decisions = 0;
        for task in tasks {
            decisions += task.await.expect("a task");
        }
        self.rates
            .push(decisions as f64 / start.elapsed().as_secs_f64());
        let after = calls(server);
        self.decisions += decisions as u64;
        self.calls += after.0 - before.0;
        self.micros += after.1 - before.1;
    }

    fn calls_each(&self) -> f64 {
        self.calls as f64 / self.decisions as f64
    }

    fn ratio(&self, other: &Self) -> f64 {
        let pairs = self.rates.iter().zip(&other.rates);
        median(pairs.map(|(rate, other)| rate / other).collect())
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.tasks {
            1 => format!("{}, 1 task", self.name),
            tasks => format!("{}, {tasks} tasks", self.name),
        };
        let best = self.rates.iter().copied().fold(0.0, f64::max);
        write!(
            f,
            "{name:40} {best:>10.0} {:>10.0} {:>12.2} {:>10.3}",
            median(self.rates.clone()),
            self.micros as f64 / self.calls.max(1) as f64,
            self.calls_each(),
        )
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns how many calls of scripts the server has run, and how many microseconds they took in it.
fn calls(server: &server::Server) -> (u64, u64) {
    let info: String = server.run("INFO commandstats");
    let mut sums = (0, 0);
    for line in info.lines() {
        let Some((name, fields)) = line.split_once(':') else {
            continue;
        };
        if !name.starts_with("cmdstat_eval") {
            continue;
        }
        for field in fields.split(',') {
            match field.split_once('=') {
                Some(("calls", n)) => sums.0 += n.parse::<u64>().expect("a count"),
                Some(("usec", n)) => sums.1 += n.parse::<u64>().expect("a time"),
                _ => {}
            }
        }
    }
    sums
}

/// Lets the server listen on a TCP port too, and returns its address.
fn tcp(server: &server::Server) -> String {
    let port = server::free_port();
    let _: String = server.run(&format!("CONFIG SET port {port}"));
    format!("redis://127.0.0.1:{port}")
}

/// Returns the subjects. All use the same connection to the server.
async fn subjects(server: &server::Server) -> Vec<Subject> {
    let client = connect_lazily(tcp(server)).expect("an address");
    let [base, spring, shenyu] = [
        Loaded::load(&client, scripts::BASE).await,
        Loaded::load(&client, scripts::SPRING).await,
        Loaded::load(&client, scripts::SHENYU).await,
    ];
    let server = RedisServer::new(client).with_budget(Duration::from_secs(30));
    let server = Arc::new(server);
    let limiter = |name, quota| -> Limiter {
        let keys = Keys::new("api").expect("a namespace");
        let limiter = RedisLimiter::new(Arc::clone(&server), &keys, name, quota, Fallback::Closed);
        Arc::new(limiter.expect("a quota"))
    };
    // More than any server grants. A permit costs whole microseconds, as of 100/s or 1000/min.
    let [one, two, three] = ["one", "two", "three"]
        .map(|name| limiter(name, Quota::per_second(500_000).burst(10_000_000)));
    // A permit costs a part of a microsecond too.
    let fine = limiter("fine", Quota::per_second(700_000).burst(10_000_000));
    let none = limiter("none", Quota::per_day(1));
    let _ = none.key("alice").try_acquire().await;

    let base = move || {
        let base = base.clone();
        async move {
            let value = "1:27000000000000:3/7";
            let _ = base.run(&["api:{alice}:base"], &[value, "20000"]).await;
        }
    };
    let spring = move || {
        let spring = spring.clone();
        async move {
            let keys = ["spring.{alice}.tokens", "spring.{alice}.timestamp"];
            let reply = spring.run(&keys, &["700000", "10000000", "", "1"]).await;
            assert_granted(&reply);
        }
    };
    let shenyu = move || {
        let shenyu = shenyu.clone();
        async move {
            let keys = ["shenyu.{alice}.tokens", "shenyu.{alice}.timestamp"];
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let now = now.expect("a time after 1970").as_secs().to_string();
            let reply = shenyu.run(&keys, &["700000", "10000000", &now, "1"]).await;
            assert_granted(&reply);
        }
    };
    let remembering = RedisLimiter::new(
        Arc::clone(none.server()),
        &Keys::new("api").expect("a namespace"),
        "none",
        Quota::per_day(1),
        Fallback::Closed,
    );
    let remembering = Arc::new(remembering.expect("a quota").remember_denials());
    let [denied, remembered] = [(none, 1), (remembering, BATCH)].map(|(none, each)| {
        move || {
            let none = Arc::clone(&none);
            async move {
                for _ in 0..each {
                    let denial = none.key("alice").try_acquire().await.expect_err("a denial");
                    assert_eq!(denial.decider(), Decider::Server);
                }
            }
        }
    });
    // More than one core spends.
    let often = Quota::per_second(50_000_000).burst(400_000_000);
    let leasing = RedisLimiter::new(
        Arc::clone(one.server()),
        &Keys::new("api").expect("a namespace"),
        "leased",
        often,
        Fallback::Closed,
    );
    let leasing = leasing.expect("a quota").leased(Leasing::new());
    let leasing = Arc::new(leasing.expect("leases"));
    let leased = move || {
        let leasing = Arc::clone(&leasing);
        async move {
            for _ in 0..BATCH {
                let _ = leasing.key("alice").try_acquire().await;
            }
        }
    };
    let core = Keyed::new(TokenBucket::new(often).expect("a quota"), 10_000);
    let core = Arc::new(core.expect("a table"));
    let core = move || {
        let core = Arc::clone(&core);
        async move {
            for _ in 0..BATCH {
                let _ = core.key("alice").try_acquire();
            }
        }
    };
    let all = [Arc::clone(&one), two, three];
    let all = move || {
        let all = all.clone();
        async move {
            let all = all.iter().map(|limiter| limiter.key("alice")).collect();
            let all = RedisAll::new(all).expect("one slot");
            let grants = all.try_acquire().await.expect("grants");
            assert!(
                grants
                    .iter()
                    .all(|grant| grant.decider() == Decider::Server)
            );
        }
    };
    let batched = Arc::clone(&one);
    let batch = move || {
        let one = Arc::clone(&batched);
        async move {
            let batch = (0..BATCH).map(|_| Box::pin(acquire(&one)));
            join_all(batch.collect()).await;
        }
    };
    let one = move || {
        let one = Arc::clone(&one);
        async move { acquire(&one).await }
    };
    let fine = move || {
        let fine = Arc::clone(&fine);
        async move { acquire(&fine).await }
    };
    vec![
        subject("base", TASKS, 1, base.clone()),
        subject("one limit, granted", TASKS, 1, one.clone()),
        subject("one limit in parts, granted", TASKS, 1, fine),
        subject("one limit, denied", TASKS, 1, denied.clone()),
        subject(
            "one limit, denied, remembered",
            TASKS,
            BATCH,
            remembered.clone(),
        ),
        subject("three limits", TASKS, 1, all.clone()),
        subject("Spring", TASKS, 1, spring.clone()),
        subject("ShenYu", TASKS, 1, shenyu.clone()),
        subject("base", 1, 1, base),
        subject("one limit, granted", 1, 1, one),
        subject("batches of 32", 1, BATCH, batch),
        subject("one limit, denied", 1, 1, denied),
        subject("one limit, denied, remembered", 1, BATCH, remembered),
        subject("one limit, leased", 1, BATCH, leased),
        subject("one limit, the core's Keyed", 1, BATCH, core),
        subject("three limits", 1, 1, all),
        subject("Spring", 1, 1, spring),
        subject("ShenYu", 1, 1, shenyu),
    ]
}

/// Takes one permit, as a program does that makes a key for each request.
async fn acquire(limiter: &RedisLimiter<Connection>) {
    let grant = limiter.key("alice").try_acquire().await.expect("a grant");
    assert_eq!(grant.decider(), Decider::Server);
}

fn assert_granted(reply: &redis::Value) {
    match reply {
        redis::Value::Array(list) => assert_eq!(list.first(), Some(&redis::Value::Int(1))),
        other => panic!("{other:?}"),
    }
}

fn subject<F: Future<Output = ()> + Send>(
    name: &'static str,
    tasks: usize,
    each: usize,
    decide: impl Fn() -> F + Clone + Send + 'static,
) -> Subject {
    let run = move |until| -> Boxed<usize> {
        let decide = decide.clone();
        Box::pin(async move {
            let mut decisions = 0;
            while Instant::now() < until {
                decide().await;
                decisions += each;
            }
            decisions
        })
    };
    Subject {
        name,
        tasks,
        run: Box::new(run),
        rates: Vec::new(),
        decisions: 0,
        calls: 0,
        micros: 0,
    }
}

/// Waits for all futures. Each wake polls all that are pending.
async fn join_all<F: Future + Unpin>(mut futures: Vec<F>) -> Vec<F::Output> {
    let mut outputs = Vec::with_capacity(futures.len());
    poll_fn(|cx| {
        futures.retain_mut(|future| match Pin::new(future).poll(cx) {
            Poll::Ready(output) => {
                outputs.push(output);
                false
            }
            Poll::Pending => true,
        });
        match futures.is_empty() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    outputs
}
