//! An algorithm that is written outside the crate gets the runner with one small adapter, and its
//! differences are judged as those of all others.

use tollgate::{Algorithm, Denied, Forecast, Granted, Tick};

use tollgate_replay::{
    Class, Comparison, Direction, Gate, Header, Malformed, Op, Replay, Source, run_text,
};

/// At most so many, ever.
#[derive(Debug)]
struct Total(u64);

impl Algorithm for Total {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        if n > self.available(word, now) {
            return Err(Denied::never(n, self.0));
        }
        let left = self.0 - word - n;
        let granted = Granted::new(n, now).with_room(left, std::num::NonZeroU64::MIN);
        Ok((word + n, granted.with_reset_at(Tick::MAX)))
    }

    fn available(&self, word: u64, _now: Tick) -> u64 {
        self.0.saturating_sub(word)
    }

    fn is_idle(&self, word: u64, _now: Tick) -> bool {
        word == 0
    }
}

impl Forecast for Total {
    fn due(&self, word: u64, now: Tick, n: u64) -> Option<Tick> {
        let full_again = n == self.0 && word > 0;
        (full_again || n <= self.available(word, now)).then_some(if full_again {
            Tick::MAX
        } else {
            now
        })
    }
}

/// Whatever differs, but only where they admit more.
static GENEROUS: Class = Class {
    name: "generous",
    directions: &[Direction::TheyAdmitMore],
};

struct Outside;

impl Source for Outside {
    fn knows(&self, header: &Header) -> bool {
        header.source == "outside"
    }

    fn begin(&self, header: &Header) -> Result<Box<dyn Replay>, Malformed> {
        let total = Total(header.config.u64("total")?);
        Ok(Box::new(OutsideTrace(Gate::new(Ok::<_, Malformed>(
            total,
        ))?)))
    }
}

struct OutsideTrace(Gate<Total>);

impl Replay for OutsideTrace {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let ours = self.0.ask(op.args.u64("n")?, op.args.u64("t")?);
        Ok(
            Comparison::decision(op, op.result.flag("ok")?, ours.ok()).and(
                "left",
                op.result.u64("left")?,
                ours.remaining,
            ),
        )
    }

    fn class(&self, op: &Op, _: &Comparison, _: &str) -> Option<&'static Class> {
        (op.name == "take generously").then_some(&GENEROUS)
    }
}

const TRACE: &str = r#"{"source":"outside","algorithm":"total","trace":"5","config":{"total":5},"ops":3}
{"t":1,"op":"take","n":2,"result":{"ok":true,"left":3}}
{"t":2,"op":"take","n":4,"result":{"ok":false,"left":3}}
{"t":3,"op":"take","n":3,"result":{"ok":true,"left":0}}
"#;

#[test]
fn an_algorithm_from_outside_is_replayed() {
    let sources: &[&dyn Source] = &[&Outside];
    let report = run_text("outside.jsonl", TRACE, sources);
    assert_eq!(report.failures, []);
    assert_eq!((report.traces, report.ops), (1, 3));
    let wrong = TRACE.replace(r#""ok":false"#, r#""ok":true"#);
    let failures = run_text("outside.jsonl", &wrong, sources).failures;
    assert_eq!(failures.len(), 1);
    assert_eq!(
        failures[0].to_string(),
        "outside.jsonl, trace \"5\", op 2: `ok` differs: take(n 4, t 2): \
         recorded [ok true, left 3], answered [ok false, left 3]"
    );
}

#[test]
fn a_class_counts_in_its_own_directions_alone() {
    let sources: &[&dyn Source] = &[&Outside];
    let generous = TRACE.replace("take", "take generously");
    let more = generous.replace(r#""ok":false,"left":3"#, r#""ok":true,"left":0"#);
    let report = run_text("outside.jsonl", &more, sources);
    assert_eq!(report.failures, []);
    // Two fields differ, and one call.
    let counts: Vec<_> = report.divergences.into_iter().collect();
    assert_eq!(counts, [(("generous", Direction::TheyAdmitMore), 1)]);
    assert_eq!((report.ops, report.taken_over), (3, 0));

    let less = generous.replacen(r#""ok":true"#, r#""ok":false"#, 1);
    let other = generous.replacen(r#""left":3"#, r#""left":4"#, 1);
    for text in [less, other] {
        let report = run_text("outside.jsonl", &text, sources);
        assert_eq!(report.failures.len(), 1);
        assert!(report.divergences.is_empty());
    }
}
