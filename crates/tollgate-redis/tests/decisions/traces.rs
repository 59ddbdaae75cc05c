//! The recorded calls of Spring Cloud Gateway's and ShenYu's scripts, decided by ours.
//!
//! The core's replay of the recordings judges each difference. Here the scripts get the calls of
//! that replay, and the states that it takes over, at the same times. They must decide each call as
//! the core does, so their differences from the recordings are the core's.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use tollgate::Quota;

use tollgate_replay::{
    Class, Comparison, Header, Malformed, Op, Replay, Source, quota, read_text, run_text,
};

use super::{Episode, SOME_DAY, classes, server};
use crate::limit::Limit;
use crate::limit::kind::Kind;
use crate::server::call::{self, Part};

#[allow(dead_code, reason = "for other recordings")]
#[path = "../../../../tests/traces/sources/log_limiter.rs"]
mod log_limiter;
#[path = "../../../../tests/traces/sources/redis_bucket.rs"]
mod redis_bucket;
#[path = "../../../../tests/traces/sources/shenyu_leaky.rs"]
mod shenyu_leaky;
#[path = "../../../../tests/traces/sources/shenyu_log.rs"]
mod shenyu_log;

// What the adapters take from their parent.
type Begun = Result<Box<dyn Replay>, Malformed>;
const SECOND: u64 = 1_000_000_000;

const FILES: [&str; 4] = [
    "redis_spring_gateway_token_bucket.jsonl.gz",
    "redis_shenyu_token_bucket.jsonl.gz",
    "redis_shenyu_leaky_bucket.jsonl.gz",
    "redis_shenyu_sliding_window.jsonl.gz",
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
            let count =
                |counts: fn(&Step) -> bool| asks.clone().filter(|step| counts(step)).count();
            calls += count(|step| matches!(step, Step::Ask { .. }));
            denied += count(|step| matches!(step, Step::Ask { ok: false, .. }));
            held += count(|step| matches!(step, Step::Reset));
            // Again if it took so long that a key may have expired.
            while !trace.are_decided_by_scripts(name, connection) {}
        }
        println!("{calls} calls, {denied} denied, {held} states taken over");
        // All but those of the buckets of capacity 0, which ours does not have.
        assert_eq!(calls, 5250 + 5250 + 6900 - 460 + 3960);
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
        let (is_bucket, is_log) = match header.algorithm.as_str() {
            "token_bucket" => (true, false),
            algorithm => (false, algorithm == "sliding_window"),
        };
        let replay = match (spring, is_bucket) {
            (true, _) => redis_bucket::spring(header)?,
            (false, true) => redis_bucket::shenyu(header)?,
            (false, false) if is_log => shenyu_log::begin(header)?,
            (false, false) => shenyu_leaky::begin(header)?,
        };
        let quota = quota(&header.config)?;
        let limit = match is_log {
            true => {
                let window = quota.period().as_secs_f64() / quota.permits() as f64;
                let window = window * quota.burst_size() as f64;
                // In whole microseconds. The recordings have whole seconds, so it does not matter.
                let window = Duration::from_micros((window * 1e6).ceil() as u64);
                Limit::sliding_log(Quota::per(quota.burst_size(), window))
            }
            false => Limit::token_bucket(quota),
        };
        let steps = Rc::new(RefCell::new(Steps {
            kind: limit.ok().map(|limit| limit.kind),
            is_log,
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
    is_log: bool,
    /// Of a log: the seconds of the permits that they admitted.
    admitted: Vec<u64>,
    capacity: f64,
    /// The permits that were missing in their script's last state, and its second.
    missing: f64,
    missing_at: u64,
    steps: Vec<Step>,
}

/// What the scripts must do.
#[derive(Debug)]
enum Step {
    /// `n` permits were asked for at a microsecond.
    Ask {
        n: u64,
        at: i128,
        /// Whether the core granted them.
        ok: bool,
        /// What the core had left, where that was compared.
        left: Option<u64>,
    },
    /// A state is taken over.
    Reset,
    /// In that state, `n` permits were taken at a microsecond.
    Taken { n: u64, at: i128 },
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
        if steps.is_log && theirs {
            steps.admitted.push(t);
        }
        if steps.kind.is_some() {
            steps.steps.push(Step::Ask {
                n,
                at: micros(t),
                ok,
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
            steps.steps.push(Step::Reset);
            if steps.is_log {
                let window = (steps.capacity / steps.permits).ceil() as u64;
                let kept = steps.admitted.iter().filter(|&&then| then + window >= t);
                let kept: Vec<_> = kept
                    .map(|then| Step::Taken {
                        n: 1,
                        at: micros(*then),
                    })
                    .collect();
                steps.steps.extend(kept);
                return Ok(true);
            }
            let since = t.saturating_sub(steps.missing_at) as f64;
            let missing = (steps.missing - since * steps.permits).max(0.0);
            // Whole permits, so long ago that the rest is refilled.
            let whole = missing.ceil();
            let refilled = ((whole - missing) / steps.permits * 1e6).round();
            steps.steps.push(Step::Taken {
                n: whole as u64,
                at: micros(t) - refilled as i128,
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
            match *step {
                Step::Ask { n, at, .. } => {
                    if let Ok(take) = call::take(&part(n)) {
                        episode.call(&take, at);
                    }
                    episode.call(&call::look(&part(0)), at);
                }
                Step::Reset => episode.call(&call::reset(&part(0)), SOME_DAY),
                Step::Taken { n, at } => episode.call(&call::charge(&part(n)), at),
            }
        }
        let Some((mut replies, _)) = episode.run(connection) else {
            return false;
        };
        let mut reply = || replies.next().expect("a reply to each call");
        reply();
        for (index, step) in self.steps.iter().enumerate() {
            let what = || format!("{key}, step {index}: {step:?}");
            let Step::Ask { n, ok, left, .. } = *step else {
                reply();
                continue;
            };
            let part = part(n);
            let granted = match call::take(&part) {
                Ok(_) => call::taken(&part, &reply()).expect("a reply").is_ok(),
                // More than a burst.
                Err(_) => false,
            };
            assert_eq!(granted, ok, "{}", what());
            let seen = call::seen(&part, &reply()).expect("a reply")[0];
            if let Some(cores) = left {
                assert_eq!(kind.available(&seen), cores, "{}", what());
            }
        }
        true
    }
}
