//! Measures how long a decision through a policy takes, compared with the keyed table alone.
//!
//!     cargo bench -p tollgate-policy --bench decision -- [--check] [ROW]
//!
//! The policy has 10 rules. The sixth applies to the requests, which come from 1000 addresses, on
//! the system's clock. The table alone has the same limit and capacity, and the same addresses.
//! The table shows nanoseconds. With `--check` the program exits with 1 if the policy takes more
//! than 250 ns longer than the table, in the rows of one limit without a ban.
//!
//! Policy and table take turns, and the best of many rounds counts: only their difference matters,
//! and other work on the machine would disturb it.

use std::env;
use std::hint::black_box;
use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tollgate::clock::SystemClock;
use tollgate::{AnyAlgorithm, Keyed};
use tollgate_policy::{Decision, FactKind, FactName, FactValue, Facts, Outcome, Policy};

const ROUNDS: usize = 300;
const ADDRESSES: u32 = 1000;
/// How often each address asks in a round.
const TURNS: usize = 5;
const CAPACITY: usize = 100_000;
const MOST: f64 = 250.0;
/// A limit that the requests do not reach.
const WIDE: &str = "1000000/s";
/// A limit that each address reaches with its first request.
const NARROW: &str = "1/d";

/// A request, read as a program with typed requests reads it.
#[derive(Debug, Clone, Copy)]
struct Request {
    from: IpAddr,
}

impl Facts for Request {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        Some(match name.kind() {
            FactKind::Method => "GET".into(),
            FactKind::Path => "/search".into(),
            FactKind::Host => "www.example.com".into(),
            FactKind::ClientIp => self.from.into(),
            FactKind::Header("x-api-key") => "key-7".into(),
            _ => return None,
        })
    }
}

/// A policy of 10 rules. The sixth one has the key `client-ip`, and these fields.
fn policy(fields: &str) -> Arc<Policy> {
    let others = [
        "when = { method = 'POST', path = '/login' }\nkey = 'client-ip'",
        "when = { path = '/signup' }\nkey = 'client-ip'",
        "when = { path = '/v1/users/{user}/orders' }\nkey = 'path:user'",
        "when = { host = 'admin.example.com' }\nkey = 'client-ip'",
        "when = { header = { x-internal = 'yes' } }",
        "when = { path = '/export' }\nkey = 'header:x-api-key'",
        "when = { method = 'POST', path = '/v1/orders' }\nkey = 'header:x-api-key'",
        "when = { path = '/v1/**' }\nkey = 'header:x-api-key'",
        "when = { path = '/health' }",
    ];
    let mut rules: Vec<_> = others
        .map(|rule| format!("{rule}\nlimit = '{WIDE}'"))
        .into();
    rules.insert(
        5,
        format!("when = {{ path = '/search' }}\nkey = 'client-ip'\n{fields}"),
    );
    let rules = rules.iter().enumerate();
    let text: String = rules
        .map(|(index, rule)| {
            format!("[[rule]]\nname = 'rule {index}'\n{rule}\ncapacity = {CAPACITY}\n")
        })
        .collect();
    Arc::new(Policy::from_toml(&text).expect("a policy"))
}

/// What is compared with the table.
#[derive(Debug)]
struct Row {
    name: &'static str,
    /// The fields of the rule.
    fields: String,
    /// The limit of the table.
    limit: &'static str,
    end: End,
    is_checked: bool,
}

/// What becomes of a decision.
#[derive(Debug, Clone, Copy)]
enum End {
    Dropped,
    Finished,
    /// Made by `decide_owned`, and dropped.
    Owned,
}

fn rows() -> Vec<Row> {
    let row = |name, fields: String, end, is_checked| Row {
        name,
        fields,
        limit: WIDE,
        end,
        is_checked,
    };
    let wide = || format!("limit = '{WIDE}'");
    let ban = "ban = { after = 3, for = '10min' }";
    vec![
        row("by address", wide(), End::Dropped, true),
        row("by address, finished", wide(), End::Finished, false),
        row("by address, owned", wide(), End::Owned, true),
        row(
            "two limits",
            format!("limit = ['{WIDE}', '100000000/d']"),
            End::Dropped,
            false,
        ),
        row(
            "with a ban",
            format!("{}\n{ban}", wide()),
            End::Dropped,
            false,
        ),
        Row {
            limit: NARROW,
            ..row("denied", format!("limit = '{NARROW}'"), End::Dropped, true)
        },
    ]
}

/// Decides about each request, and returns how many are allowed. It is not inlined, so that
/// callgrind can count it alone.
#[inline(never)]
fn ask_policy(policy: &Arc<Policy>, requests: &[Request], end: End) -> usize {
    let decide = |request: &&Request| {
        let request = black_box(*request);
        match end {
            End::Dropped => policy.decide(request).is_allowed(),
            End::Owned => policy.decide_owned(request).is_allowed(),
            End::Finished => {
                let decision: Decision<_> = policy.decide(request);
                let is_allowed = decision.is_allowed();
                let _ = black_box(decision.finish(Outcome::Success, &()));
                is_allowed
            }
        }
    };
    requests.iter().filter(decide).count()
}

/// Asks the table about each request, and returns how many are allowed.
#[inline(never)]
fn ask_table(table: &Keyed<AnyAlgorithm>, requests: &[Request]) -> usize {
    let is_allowed = |request: &&Request| table.try_acquire(black_box(&request.from)).is_ok();
    requests.iter().filter(is_allowed).count()
}

/// Nanoseconds of one decision: of the policy, and of the table.
fn measure(row: &Row, rounds: usize) -> (f64, f64) {
    let policy = policy(&row.fields);
    let algorithm: AnyAlgorithm = row.limit.parse().expect("a limit");
    let table = Keyed::with_clock(algorithm, CAPACITY, SystemClock).expect("a table");
    let requests: Vec<_> = (0..ADDRESSES)
        .map(|index| Request {
            from: IpAddr::from((0x0A00_0000 + index).to_be_bytes()),
        })
        .collect();
    // The first requests of all keys are not measured.
    for request in &requests {
        assert!(policy.decide(request).is_allowed());
        assert!(table.try_acquire(&request.from).is_ok());
    }
    let allowed = if row.limit == NARROW {
        0
    } else {
        requests.len() * TURNS
    };
    let time = |ask: &dyn Fn() -> usize| {
        let start = Instant::now();
        let sum: usize = (0..TURNS).map(|_| ask()).sum();
        let time = start.elapsed();
        assert_eq!(sum, allowed);
        time
    };
    let mut best = (Duration::MAX, Duration::MAX);
    for _ in 0..rounds {
        best.0 = best
            .0
            .min(time(&|| ask_policy(&policy, &requests, row.end)));
        best.1 = best.1.min(time(&|| ask_table(&table, &requests)));
    }
    let each = |best: Duration| best.as_nanos() as f64 / (requests.len() * TURNS) as f64;
    (each(best.0), each(best.1))
}

fn main() -> ExitCode {
    let has = |wanted| env::args().any(|argument| argument == wanted);
    // `cargo test` only checks that it runs.
    let rounds = if has("--bench") { ROUNDS } else { 1 };
    let wanted = env::args()
        .skip(1)
        .find(|argument| !argument.starts_with("--"));
    let is_wanted = |row: &Row| wanted.as_ref().is_none_or(|wanted| row.name == wanted);
    let mut is_missed = false;
    println!("a decision has {} bytes", size_of::<Decision<&Policy>>());
    println!(
        "{:22} {:>8} {:>8} {:>10}",
        "nanoseconds", "policy", "table", "difference"
    );
    for row in rows().into_iter().filter(is_wanted) {
        let (policy, table) = measure(&row, rounds);
        let difference = policy - table;
        let missed = row.is_checked && difference > MOST;
        is_missed |= missed;
        let verdict = if missed { "  missed" } else { "" };
        println!(
            "{:22} {policy:>8.1} {table:>8.1} {difference:>10.1}{verdict}",
            row.name
        );
    }
    ExitCode::from(u8::from(has("--check") && is_missed))
}
