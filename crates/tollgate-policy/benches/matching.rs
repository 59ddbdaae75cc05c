//! Measures how long it takes to find the rules of a request, among 10 to 10 000 rules.
//!
//!     cargo bench -p tollgate-policy --bench matching [-- --check]
//!
//! 40 % of the rules have a literal path, 30 % a path with captures or `**`, 10 % a host, 10 % a
//! header, and 10 % a network. The table shows nanoseconds, and how much longer 10 000 rules take
//! than 10. With `--check` the program exits with 1 if that is more than 3 times as long. Measured
//! on two busy cores: 98 to 109 ns with 10 rules, and 1.04 to 1.24 times as long with 10 000.
//!
//! The sizes take turns, and the best of many rounds counts: only their ratio matters, and other
//! work on the machine would disturb it.

use std::env;
use std::hint::black_box;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tollgate_policy::when::{Condition, Matcher, Pattern, Test, When};
use tollgate_policy::{FactKind, FactName, FactValue, Facts};

const SIZES: [usize; 4] = [10, 100, 1000, 10_000];
const GLOBS: usize = 64;
const ROUNDS: usize = 60;
/// Requests in a round.
const TURNS: usize = 10_000;
const MOST: f64 = 3.0;

/// A request, read as a program with typed requests reads it.
#[derive(Debug, Clone)]
struct Request {
    path: String,
    host: String,
    key: String,
    agent: &'static str,
    from: IpAddr,
}

impl Facts for Request {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        Some(match name.kind() {
            FactKind::Method => "GET".into(),
            FactKind::Path => (&self.path).into(),
            FactKind::Host => (&self.host).into(),
            FactKind::ClientIp => self.from.into(),
            FactKind::Header("x-api-key") => (&self.key).into(),
            FactKind::Header("user-agent") => self.agent.into(),
            _ => return None,
        })
    }
}

/// A request that no rule matches, but that comes near many.
fn none() -> Request {
    Request {
        path: "/v1/tenants/t-none/orders/list".to_owned(),
        host: "none.example.com".to_owned(),
        key: "key-none".to_owned(),
        agent: "Mozilla/5.0 (X11; Linux x86_64)",
        from: [10, 255, 255, 7].into(),
    }
}

/// The rule of this number, and a request that only this rule matches.
fn rule(index: usize) -> (When, Request) {
    let mut request = none();
    let (fact, text) = match index % 10 {
        0..=3 => {
            request.path = format!("/v1/tenants/t{index}/orders/list");
            ("path", request.path.clone())
        }
        4 => {
            request.path = format!("/v1/apps/a{index}/users/alice");
            ("path", format!("/v1/apps/a{index}/users/{{user}}"))
        }
        5 => {
            request.path = format!("/files/f{index}/a/b/c");
            ("path", format!("/files/f{index}/**"))
        }
        6 => {
            request.path = format!("/shops/shop7/items/i{index}/buy");
            ("path", format!("/shops/{{shop}}/items/i{index}/*"))
        }
        7 if index % 20 == 7 => {
            request.host = format!("h{index}.example.com");
            ("host", request.host.clone())
        }
        7 => {
            request.host = format!("www.h{index}.example.com");
            ("host", format!("*.h{index}.example.com"))
        }
        8 => {
            request.key = format!("key{index}");
            ("header:x-api-key", request.key.clone())
        }
        _ => {
            let (high, low) = ((index / 2560) as u8, (index / 10 % 256) as u8);
            request.from = [10, high, low, 7].into();
            ("client-ip", format!("10.{high}.{low}.0/24"))
        }
    };
    (when(fact, &text), request)
}

fn when(fact: &str, text: &str) -> When {
    let fact = FactName::new(fact);
    let pattern = Pattern::parse(&fact, text).expect("a pattern");
    let condition = Condition {
        fact,
        test: Test::OneOf(vec![pattern]),
    };
    When {
        all: vec![condition],
        ..When::default()
    }
}

/// Which requests are asked.
#[derive(Debug, Clone, Copy)]
enum Hit {
    First,
    Last,
    None,
    /// Each kind of rule in turn, 100 rules of the whole set.
    Mixed,
}

impl Hit {
    fn requests(self, size: usize) -> Vec<Request> {
        match self {
            Self::First => vec![rule(0).1],
            Self::Last => vec![rule(size - 1).1],
            Self::None => vec![none()],
            // 9 and any power of 10 have no common factor: each last digit occurs.
            Self::Mixed => (0..100).map(|turn| rule(turn * 9091 % size).1).collect(),
        }
    }
}

fn matcher(size: usize, globs: usize) -> Matcher {
    let globs = (0..globs).map(|index| when("header:user-agent", &format!("*bot{index}*")));
    let rules: Vec<_> = (0..size).map(|index| rule(index).0).chain(globs).collect();
    Matcher::new(rules.iter().map(Some))
}

/// Asks about requests, and returns the number of rules that were found.
fn ask(matcher: &Matcher, requests: &[Request], turns: usize, first: bool) -> usize {
    let mut count = 0;
    for request in requests.iter().cycle().take(turns) {
        let found = matcher.each(black_box(request), |index| {
            black_box(index);
            count += 1;
            if first {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        let _ = black_box(found);
    }
    count
}

/// Nanoseconds for one request, for each size.
fn measure(matchers: &[Matcher], hit: Hit, first: bool, rounds: usize) -> Vec<f64> {
    let requests: Vec<_> = SIZES.iter().map(|size| hit.requests(*size)).collect();
    for (matcher, requests) in matchers.iter().zip(&requests) {
        let expected = if matches!(hit, Hit::None) {
            0
        } else {
            requests.len()
        };
        assert_eq!(ask(matcher, requests, requests.len(), first), expected);
    }
    let mut best = vec![Duration::MAX; matchers.len()];
    for _ in 0..rounds {
        for ((matcher, requests), best) in matchers.iter().zip(&requests).zip(&mut best) {
            let start = Instant::now();
            black_box(ask(matcher, requests, TURNS, first));
            *best = (*best).min(start.elapsed());
        }
    }
    let each = |best: Duration| best.as_nanos() as f64 / TURNS as f64;
    best.into_iter().map(each).collect()
}

fn main() -> ExitCode {
    let has = |wanted| env::args().any(|argument| argument == wanted);
    // `cargo test` only checks that it runs.
    let rounds = if has("--bench") { ROUNDS } else { 1 };
    let check = has("--check");
    let mut missed = false;
    println!(
        "{:32} {:>8} {:>8} {:>8} {:>8} {:>7}",
        "nanoseconds", 10, 100, 1000, "10 000", "ratio"
    );
    for globs in [0, GLOBS] {
        let matchers = SIZES.map(|size| matcher(size, globs));
        for first in [true, false] {
            for hit in [Hit::First, Hit::Last, Hit::None, Hit::Mixed] {
                let times = measure(&matchers, hit, first, rounds);
                let ratio = times[times.len() - 1] / times[0];
                missed |= ratio > MOST;
                let matches = if first { "first match" } else { "all matches" };
                let name = format!("{matches}, {hit:?}, {globs} globs").to_lowercase();
                print!("{name:32}");
                for time in &times {
                    print!(" {time:>8.1}");
                }
                println!(
                    " {ratio:>7.2}{}",
                    if ratio > MOST { "  missed" } else { "" }
                );
            }
        }
    }
    ExitCode::from(u8::from(check && missed))
}
