//! What is written is what http-sfv reads, the parser of PyPI.
//!
//! The test needs a Python that has the package: `scripts/http-sfv` prints one, for
//! `TOLLGATE_HTTP_SFV`. Without it, the test says so and checks nothing.

#[path = "../../../../tests/support/random.rs"]
mod random;
#[path = "../support/states.rs"]
mod states;

use std::env;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use serde_json::{Value, json};
use tollgate::{Denied, Quota};
use tollgate_http::{Answers, Fields, LimitState, Unit};

use crate::random::Random;
use crate::states::grant;

const FIELDS: usize = 10_000;

/// Returns a Python that has the package.
fn python() -> Option<String> {
    let python = env::var("TOLLGATE_HTTP_SFV").unwrap_or_else(|_| "python3".to_owned());
    let mut import = Command::new(&python);
    let import = import.args(["-c", "import http_sfv"]).stderr(Stdio::null());
    import
        .status()
        .is_ok_and(|status| status.success())
        .then_some(python)
}

/// A random name: often with what must be escaped.
fn name(random: &mut Random) -> String {
    let chars = [
        'a', 'b', ' ', '"', '\\', ',', ';', '=', '~', 'é', '\n', '-', '2', ':',
    ];
    (0..random.below(9))
        .map(|_| chars[random.below(14) as usize])
        .collect()
}

/// What a limit says.
fn state<'s>(name: &'s str, key: &'s [u8], random: &mut Random) -> LimitState<'s> {
    let left = random.upto(u64::MAX);
    let time = Duration::from_nanos(random.upto(u64::MAX));
    let state = if random.one_in(4) {
        LimitState::of_concurrency(name, random.upto(u64::MAX))
    } else {
        let quota = Quota::per(
            1 + random.upto(1 << 40),
            Duration::from_nanos(1 + random.upto(u64::MAX - 1)),
        );
        LimitState::of_rate(name, quota.burst(random.upto(u64::MAX)))
    };
    let state = match random.below(3) {
        0 => state.denied(&Denied::later(1, time), left),
        1 => state.untouched(1, left),
        _ => state.granted(grant(1, left, time)),
    };
    let state = if random.one_in(4) {
        state.unit(Unit::ContentBytes)
    } else {
        state
    };
    if random.one_in(3) {
        state.partition(key)
    } else {
        state
    }
}

fn number(number: u64) -> u64 {
    number.min(999_999_999_999_999)
}

fn seconds(time: Duration) -> u64 {
    number(tollgate::outcome::ceil_secs(time))
}

/// The members of the two lists, as they must be read.
fn expected(names: &[String], limits: &[LimitState<'_>]) -> (Value, Value) {
    let members = limits.iter().zip(names).map(|(limit, name)| {
        let mut policy = json!({ "q": number(limit.quota()) });
        let mut state = json!({ "r": number(limit.remaining()) });
        let unit = match limit.counts() {
            Unit::ContentBytes => Some("content-bytes"),
            Unit::ConcurrentRequests => Some("concurrent-requests"),
            _ => None,
        };
        if let Some(unit) = unit {
            policy["qu"] = json!(unit);
        }
        if let Some(window) = limit.window() {
            policy["w"] = json!(seconds(window).max(1));
        }
        if let Some(reset) = limit.reset() {
            state["t"] = json!(seconds(reset));
        }
        if let Some(key) = limit.partition_key() {
            let key = json!(format!("bytes {}", STANDARD.encode(key)));
            policy["pk"] = key.clone();
            state["pk"] = key;
        }
        (json!([name, policy]), json!([name, state]))
    });
    let (policies, states): (Vec<_>, Vec<_>) = members.unzip();
    (json!(policies), json!(states))
}

/// The names as they must be read: printable, and each different.
fn printable(names: &[String]) -> Vec<String> {
    let mut printable: Vec<String> = Vec::new();
    for name in names {
        let plain: String = name
            .chars()
            .map(|c| if (' '..='~').contains(&c) { c } else { '_' })
            .collect();
        let numbered = (2..).map(|number| format!("{plain}-{number}"));
        let mut candidates = std::iter::once(plain.clone()).chain(numbered);
        let free = candidates.find(|name| !printable.contains(name));
        printable.push(free.expect("a number is free"));
    }
    printable
}

/// Random fields, each as a line of JSON with its kind and what it must say.
fn lines() -> Vec<Value> {
    let mut random = Random(22);
    let mut lines = Vec::new();
    while lines.len() < FIELDS {
        let names: Vec<_> = (0..1 + random.below(4))
            .map(|_| name(&mut random))
            .collect();
        let key = random.next().to_le_bytes();
        let key = &key[..random.below(9) as usize];
        let limits: Vec<_> = names
            .iter()
            .map(|name| state(name, key, &mut random))
            .collect();
        let written = |fields| {
            let mut headers = HeaderMap::new();
            Answers::new()
                .fields(fields)
                .write(limits.iter().copied(), &mut headers);
            headers
        };
        let text = |headers: &HeaderMap, name: &str| {
            let value = headers.get(name)?.to_str().expect("visible text");
            Some(value.to_owned())
        };
        let headers = written(Fields::LIST | Fields::TRIPLE);
        let (policies, states) = expected(&printable(&names), &limits);
        lines.push(json!([
            "list",
            text(&headers, "ratelimit-policy"),
            policies
        ]));
        lines.push(json!(["list", text(&headers, "ratelimit"), states]));
        // The numbers of one limit are those of another test. Here they need only be the same.
        let numbers = ["limit", "remaining", "reset"].map(|name| {
            let number = text(&headers, &format!("ratelimit-{name}"))?;
            Some((name, number.parse::<u64>().expect("a number")))
        });
        for (name, number) in numbers.into_iter().flatten() {
            lines.push(json!([
                "item",
                text(&headers, &format!("ratelimit-{name}")),
                number
            ]));
        }
        let headers = written(Fields::DICTIONARY);
        let dictionary: serde_json::Map<_, _> = numbers
            .into_iter()
            .flatten()
            .map(|(name, number)| (name.to_owned(), json!(number)))
            .collect();
        lines.push(json!([
            "dictionary",
            text(&headers, "ratelimit"),
            dictionary
        ]));
    }
    lines
}

#[test]
fn ten_thousand_fields_are_read_as_they_were_meant() {
    let Some(python) = python() else {
        println!("skipped: no Python with http-sfv (scripts/http-sfv installs it)");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/http_sfv/check.py");
    let mut child = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python runs");
    let mut input = child.stdin.take().expect("a pipe");
    let lines = lines();
    let count = lines.len();
    // In a thread of its own, since Python may fill the other pipe meanwhile.
    let writer = std::thread::spawn(move || {
        for line in lines {
            writeln!(input, "{line}").expect("Python reads");
        }
    });
    let output = child.wait_with_output().expect("Python ends");
    writer.join().expect("all is written");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.trim_end(), format!("{count} same, 0 different"));
    assert!(output.status.success());
}
