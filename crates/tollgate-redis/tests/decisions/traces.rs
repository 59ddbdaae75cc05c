//! The recorded calls of Spring Cloud Gateway's and ShenYu's scripts, decided by ours.
//!
//! The core's replay of the recordings judges each difference. Here the scripts get the calls of
//! that replay, and the states that it takes over, at the same times. They must decide each call as
//! the core does, so their differences from the recordings are the core's.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use tollgate_replay::{
    Class, Comparison, Header, Malformed, Op, Replay, Source, quota, read_text, run_text,
};

use super::{Episode, SOME_DAY, server};
use crate::call::{self, Part};
use crate::kind::Kind;
use crate::limit::Limit;

#[allow(dead_code, unexpected_cfgs, reason = "those of other recordings")]
#[path = "../../../../tests/traces/sources/classes.rs"]
mod classes;
#[path = "../../../../tests/traces/sources/redis_bucket.rs"]
mod redis_bucket;
#[path = "../../../../tests/traces/sources/shenyu_leaky.rs"]
mod shenyu_leaky;

// What the adapters take from their parent.
type Begun = Result<Box<dyn Replay>, Malformed>;
const SECOND: u64 = 1_000_000_000;

const FILES: [&str; 3] = [
    "redis_spring_gateway_token_bucket.jsonl.gz",
    "redis_shenyu_token_bucket.jsonl.gz",
    "redis_shenyu_leaky_bucket.jsonl.gz",
];

#[test]
fn recorded_calls_are_decided_as_by_the_core() {
    let expected = include_str!("../../../../tests/traces/expected.txt");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces");
    let recorder = Recorder::default();
    for file in FILES {
        let text = read_text(&folder.join(file)).expect("a recording");
        let report = run_text(file, &text, &[&recorder]);
        assert!(expected.contains(&format!("\n{report}\n")), "{report}");
    }
    let traces = recorder.traces.take();
    server::on_each_server(|connection| {
        let (mut calls, mut denied, mut held) = (0, 0, 0);
        for (name, trace) in &traces {
            let trace = trace.borrow();
            let asks = trace.steps.iter();
            calls += asks.clone().filter(|step| step.ok.is_some()).count();
            denied += asks.clone().filter(|step| step.ok == Some(false)).count();
            held += asks.filter(|step| step.ok.is_none()).count();
            // Again if it took so long that a key may have expired.
            while !trace.are_decided_by_scripts(name, connection) {}
        }
        println!("{calls} calls, {denied} denied, {held} states taken over");
        // All but those of the buckets of capacity 0, which ours does not have.
        assert_eq!(calls, 5250 + 5250 + 6900 - 460);
        assert!(denied > 1000 && held > 50, "{denied} {held}");
    });
}

/// The steps of all traces, by their names.
#[derive(Default)]
struct Recorder {
    traces: RefCell<BTreeMap<String, Rc<RefCell<Steps>>>>,
}

impl Source for Recorder {
    fn knows(&self, _: &Header) -> bool {
        true
    }

    fn begin(&self, header: &Header) -> Begun {
        let spring = header.source.starts_with("spring");
        let is_bucket = header.algorithm == "token_bucket";
        let replay = match (spring, is_bucket) {
            (true, _) => redis_bucket::spring(header)?,
            (false, true) => redis_bucket::shenyu(header)?,
            (false, false) => shenyu_leaky::begin(header)?,
        };
        let quota = quota(&header.config)?;
        let steps = Rc::new(RefCell::new(Steps {
            kind: Limit::token_bucket(quota).ok().map(|limit| limit.kind),
            permits: quota.permits() as f64 / quota.period().as_secs_f64(),
            is_bucket,
            capacity: quota.burst_size() as f64,
            ..Steps::default()
        }));
        let name = format!("{}:{}", header.source, header.trace);
        let before = self.traces.borrow_mut().insert(name, Rc::clone(&steps));
        assert!(before.is_none(), "each trace has a name of its own");
        Ok(Box::new(Recorded { replay, steps }))
    }
}

/// The calls of a trace, and the states that the replay took over.
#[derive(Default)]
struct Steps {
    /// `None` if the limit can't be created.
    kind: Option<Kind>,
    /// Permits a second.
    permits: f64,
    /// A level is what is left. In a leaky bucket it is what is missing.
    is_bucket: bool,
    capacity: f64,
    /// The permits that were missing in their script's last state, and its second.
    missing: f64,
    missing_at: u64,
    steps: Vec<Step>,
}

/// `n` permits at a microsecond: asked for, or missing in a state that was taken over.
#[derive(Debug)]
struct Step {
    n: u64,
    at: i128,
    /// Whether the core granted them. `None` if they are missing.
    ok: Option<bool>,
    /// What the core had left, where that was compared.
    left: Option<u64>,
}

/// A replay by the core.
struct Recorded {
    replay: Box<dyn Replay>,
    steps: Rc<RefCell<Steps>>,
}

impl Replay for Recorded {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let comparison = self.replay.call(op)?;
        let (n, t) = redis_bucket::asked(op)?;
        // An error of theirs admits.
        let theirs = op.result.flag("ok").unwrap_or(true);
        let ok = theirs == comparison.agrees_on("ok");
        let left = comparison.numbers("tokens_left");
        let mut steps = self.steps.borrow_mut();
        let stored = op.result.get("stored").and(op.result.f64("stored").ok());
        match stored {
            Some(level) if steps.is_bucket => steps.missing = steps.capacity - level,
            Some(level) if theirs => steps.missing = level,
            _ => {}
        }
        if steps.is_bucket || theirs {
            steps.missing_at = t;
        }
        if steps.kind.is_some() {
            steps.steps.push(Step {
                n,
                at: micros(t),
                ok: Some(ok),
                left: left.and_then(|(_, ours)| u64::try_from(ours).ok()),
            });
        }
        Ok(comparison)
    }

    fn class(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        self.replay.class(op, comparison, field)
    }

    fn take_over(&mut self, op: &Op) -> Result<bool, Malformed> {
        let does = self.replay.take_over(op)?;
        if does {
            let (_, t) = redis_bucket::asked(op)?;
            let mut steps = self.steps.borrow_mut();
            let since = t.saturating_sub(steps.missing_at) as f64;
            let missing = (steps.missing - since * steps.permits).max(0.0);
            // Whole permits, so long ago that the rest is refilled.
            let whole = missing.ceil();
            let refilled = ((whole - missing) / steps.permits * 1e6).round();
            steps.steps.push(Step {
                n: whole as u64,
                at: micros(t) - refilled as i128,
                ok: None,
                left: None,
            });
        }
        Ok(does)
    }
}

/// Returns the microsecond at which a second of the recordings begins.
fn micros(second: u64) -> i128 {
    SOME_DAY + i128::from(second) * 1_000_000
}

impl Steps {
    /// Checks that the scripts decide as the core does. Returns false if that took so long that a
    /// key may have expired.
    fn are_decided_by_scripts(&self, key: &str, connection: &mut redis::Connection) -> bool {
        let Some(kind) = &self.kind else { return true };
        let part = |n| {
            [Part {
                key: key.as_bytes(),
                kind,
                n,
            }]
        };
        let mut episode = Episode::new();
        episode.call(&call::reset(&part(0)), SOME_DAY);
        for step in &self.steps {
            match step.ok {
                Some(_) => {
                    if let Ok(take) = call::take(&part(step.n)) {
                        episode.call(&take, step.at);
                    }
                    episode.call(&call::look(&part(0)), step.at);
                }
                None => {
                    episode.call(&call::reset(&part(0)), step.at);
                    episode.call(&call::charge(&part(step.n)), step.at);
                }
            }
        }
        let Some((mut replies, _)) = episode.run(connection) else {
            return false;
        };
        let mut reply = || replies.next().expect("a reply to each call");
        reply();
        for (index, step) in self.steps.iter().enumerate() {
            let what = || format!("{key}, step {index}: {step:?}");
            let Some(ok) = step.ok else {
                reply();
                reply();
                continue;
            };
            let part = part(step.n);
            let granted = match call::take(&part) {
                Ok(_) => call::taken(&part, &reply()).expect("a reply").is_ok(),
                // More than a burst.
                Err(_) => false,
            };
            assert_eq!(granted, ok, "{}", what());
            let seen = call::seen(&part, &reply()).expect("a reply")[0];
            let left = kind.available(&seen);
            if let Some(cores) = step.left {
                assert_eq!(left, cores, "{}", what());
            }
        }
        true
    }
}
