//! An unreadable line, an uncompared value and an incomplete trace are errors that name their
//! position. A difference is an error unless it has a class that allows its direction.

use tollgate_replay::{
    Class, Comparison, Direction, FileReport, Header, Malformed, Op, Replay, Source, run_text,
};

use super::sources;

const HEADER: &str = r#"{"source":"governor 0.10.4","algorithm":"gcra","trace":"made up","config":{"replenish_interval_ns":1000,"burst":2},"ops":1}"#;
const OP: &str = r#"{"t":0,"op":"check","n":1,"result":{"ok":true,"remaining":1}}"#;

fn run(lines: &[&str]) -> FileReport {
    run_text("made up.jsonl", &lines.join("\n"), sources::all())
}

/// Returns the first failure of these lines: the op's number and the message.
fn failure(lines: &[&str]) -> (u64, String) {
    let report = run(lines);
    let first = report.failures.first();
    let first = first.unwrap_or_else(|| panic!("{lines:?}: no failure"));
    assert_eq!(report.failures.len(), 1, "{lines:?}: {:?}", report.failures);
    (first.op, first.what.clone())
}

#[test]
fn the_unchanged_lines_pass() {
    let report = run(&[HEADER, OP]);
    assert_eq!(report.failures, []);
    assert_eq!((report.traces, report.ops, report.fields), (1, 1, 4));
}

/// Changes a line as each case says, and returns the changed lines with the expected messages.
fn changed<'c>(line: &str, cases: &'c str) -> impl Iterator<Item = (String, &'c str)> {
    cases.lines().map(move |case| {
        let (change, says) = case.split_once(" => ").expect(case);
        let (from, to) = change.split_once(" ->").expect(case);
        (line.replace(from, to.trim_start()), says)
    })
}

#[test]
fn a_missing_mistyped_or_uncompared_key_fails() {
    let cases = r#""ok":true, -> => malformed: `ok` should be true or false, found nothing
1} -> "1"} => malformed: `remaining` should be a whole number from 0, found "1"
"n":1 -> "n":-1 => malformed: `n` should be a whole number from 0, found -1
"t":0, -> => line 2 is malformed: `t` should be a number, found nothing
"op":"check", -> => line 2 is malformed: `op` should be a string, found nothing
,"result":{"ok":true,"remaining":1} -> => line 2 is malformed: `result` is not an object: null
check -> peek => malformed: unknown operation `peek`
1} -> 1,"debt":0} => recorded, but not compared: ["debt"]
"n":1 -> "n":1,"timeout":5 => recorded, but not compared: ["timeout"]"#;
    for (op, says) in changed(OP, cases) {
        assert_eq!(failure(&[HEADER, &op]), (1, says.to_owned()));
    }
}

#[test]
fn a_line_that_is_not_json_fails() {
    // This also holds for a trace of an unknown source.
    for header in [HEADER, &HEADER.replace("governor", "another")] {
        for line in ["", "[]", "7", "null", &OP[..40]] {
            let (op, what) = failure(&[header, line, OP]);
            assert_eq!(op, 1);
            assert!(what.starts_with("line 2 is malformed: "), "{what}");
        }
    }
}

/// None of its ops is run.
#[test]
fn an_incomplete_header_fails() {
    let cases = r#""burst":2 -> "burst":0 => line 1, the header: `burst` should be a whole number from 1
1000, -> 0, => line 1, the header: can't be built:
"config":{"replenish_interval_ns":1000,"burst":2}, -> => line 1 is malformed: `config` is not an object"#;
    for (header, says) in changed(HEADER, cases) {
        let report = run(&[&header, OP]);
        assert_eq!(report.ops, 0);
        assert!(
            report.failures[0].what.starts_with(says),
            "{:?}",
            report.failures
        );
    }
}

#[test]
fn a_trace_with_too_few_or_too_many_ops_fails() {
    let last = OP.replace(r#""remaining":1"#, r#""remaining":0"#);
    let lines: [(&[&str], _); 5] = [
        (&[HEADER], "0 ops, but its header says 1"),
        (&[HEADER, HEADER, OP], "0 ops, but its header says 1"),
        (&[HEADER, OP, &last], "2 ops, but its header says 1"),
        (&[OP], "an op before the first header"),
        (&[], "no trace in the file"),
    ];
    for (lines, says) in lines {
        assert_eq!(failure(lines).1, says);
    }
}

/// A recorded decision beside another recorded decision.
struct Beside;

impl Source for Beside {
    fn knows(&self, _: &Header) -> bool {
        true
    }

    fn begin(&self, _: &Header) -> Result<Box<dyn Replay>, Malformed> {
        Ok(Box::new(Self))
    }
}

/// Accepts any difference, but only in the direction in which they admit more.
static GENEROUS: Class = Class {
    name: "generous",
    directions: &[Direction::TheyAdmitMore],
};

impl Replay for Beside {
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed> {
        let (ok, left) = (op.args.flag("ok")?, op.args.u64("left")?);
        let decision = Comparison::decision(op.result.flag("ok")?, ok);
        Ok(decision.and("left", op.result.u64("left")?, left))
    }

    fn class(&self, op: &Op, _: &Comparison, _: &str) -> Option<&'static Class> {
        (op.name == "generous").then_some(&GENEROUS)
    }
}

#[test]
fn a_class_applies_only_in_its_own_directions() {
    let run = |name: &str, ok: bool, result: &str| {
        let op = format!(r#"{{"t":1,"op":"{name}","ok":{ok},"left":3,"result":{{{result}}}}}"#);
        run_text("made up.jsonl", &[HEADER, &op].join("\n"), &[&Beside])
    };
    let more = run("generous", false, r#""ok":true,"left":0"#);
    assert_eq!(more.failures, []);
    // Two fields differ, which counts as one call.
    let counts: Vec<_> = more.counts().into_iter().collect();
    assert_eq!(counts, [(("generous", Direction::TheyAdmitMore), 1)]);
    for report in [
        run("generous", true, r#""ok":false,"left":0"#),
        run("generous", false, r#""ok":false,"left":0"#),
        run("mean", false, r#""ok":true,"left":0"#),
    ] {
        assert_eq!((report.failures.len(), report.differences.len()), (1, 0));
    }
    let failure = run("mean", false, r#""ok":true,"left":3"#)
        .failures
        .remove(0);
    assert_eq!(
        failure.to_string(),
        "made up.jsonl, trace \"made up\", op 1: `ok` differs: mean(left 3, ok false, t 1): \
         recorded [ok true, left 3], answered [ok false, left 3]"
    );
}
