//! What can't be read, or is not all there, is an error that says where, and is not skipped.

use crate::traces_support::sources;
use tollgate_replay::run_text;

const HEADER: &str = r#"{"source":"governor 0.10.4","algorithm":"gcra","trace":"made up","config":{"replenish_interval_ns":1000,"burst":2},"ops":1}"#;
const OP: &str = r#"{"t":0,"op":"check","n":1,"result":{"ok":true,"remaining":1}}"#;

/// The one failure of these lines: at which op, and what it says.
fn failure(lines: &[&str]) -> (u64, String) {
    let report = run_text("made up.jsonl", &lines.join("\n"), sources::all());
    match &report.failures[..] {
        [failure] => (failure.op, failure.what.clone()),
        failures => panic!("{lines:?}: {failures:?}"),
    }
}

/// [`HEADER`] and [`OP`], with one piece of text replaced.
fn replaced(from: &str, to: &str) -> (u64, String) {
    assert!(HEADER.contains(from) || OP.contains(from));
    failure(&[&HEADER.replace(from, to), &OP.replace(from, to)])
}

#[test]
fn the_lines_pass_as_they_are() {
    let report = run_text("made up.jsonl", &[HEADER, OP].join("\n"), sources::all());
    assert_eq!(report.failures, []);
    assert_eq!((report.traces, report.ops, report.fields), (1, 1, 4));
}

#[test]
fn a_line_that_is_no_json_fails() {
    let (op, what) = failure(&[HEADER, &OP[..40]]);
    assert_eq!(op, 1);
    assert!(what.starts_with("line 2 is malformed: no JSON: "), "{what}");
    for line in ["", "[]", "7", "null"] {
        assert!(
            failure(&[HEADER, line, OP])
                .1
                .starts_with("line 2 is malformed: ")
        );
    }
    // In a trace that nobody knows too.
    let unknown = HEADER.replace("governor", "nobody");
    assert!(
        failure(&[&unknown, "{"])
            .1
            .starts_with("line 2 is malformed: ")
    );
}

#[test]
fn a_key_that_is_missing_or_of_another_kind_fails() {
    for (from, to, names) in [
        (
            r#""ok":true,"#,
            "",
            "`ok` should be true or false, found nothing",
        ),
        (
            r#""remaining":1"#,
            r#""remaining":"1""#,
            "`remaining` should be a whole number",
        ),
        (
            r#""n":1,"#,
            r#""n":-1,"#,
            "`n` should be a whole number from 0, found -1",
        ),
        (r#""t":0,"#, "", "`t` should be a number"),
        (r#""op":"check","#, "", "`op` should be a string"),
        (
            r#","result":{"ok":true,"remaining":1}"#,
            "",
            "`result` is no object: null",
        ),
        (
            r#""op":"check""#,
            r#""op":"peek""#,
            "there is no operation `peek`",
        ),
    ] {
        let (op, what) = replaced(from, to);
        assert_eq!(op, 1);
        assert!(what.contains(names), "{what}");
    }
}

#[test]
fn a_header_that_says_too_little_fails() {
    for (from, to, names) in [
        (
            r#""burst":2"#,
            r#""burst":0"#,
            "`burst` should be a whole number from 1",
        ),
        ("1000,", "0,", "can't be built: "),
        (
            r#""config":{"replenish_interval_ns":1000,"burst":2},"#,
            "",
            "`config` is no object",
        ),
    ] {
        let report = replaced_header(from, to);
        assert!(report.iter().any(|what| what.contains(names)), "{report:?}");
    }
}

fn replaced_header(from: &str, to: &str) -> Vec<String> {
    let text = [&HEADER.replace(from, to), OP].join("\n");
    let report = run_text("made up.jsonl", &text, sources::all());
    assert_eq!(report.ops, 0);
    report
        .failures
        .into_iter()
        .map(|failure| failure.what)
        .collect()
}

#[test]
fn a_result_that_nobody_compares_fails() {
    let (op, what) = replaced(r#""remaining":1"#, r#""remaining":1,"debt":0"#);
    assert_eq!(
        (op, what.as_str()),
        (1, r#"recorded, but not compared: ["debt"]"#)
    );
    let (_, what) = replaced(r#""n":1"#, r#""n":1,"timeout":5"#);
    assert_eq!(what, r#"recorded, but not compared: ["timeout"]"#);
}

#[test]
fn a_trace_that_is_cut_short_or_too_long_fails() {
    let (_, what) = failure(&[HEADER]);
    assert_eq!(what, "0 ops, but its header says 1");
    let (_, what) = failure(&[HEADER, HEADER, OP]);
    assert_eq!(what, "0 ops, but its header says 1");
    let last = OP.replace(r#""remaining":1"#, r#""remaining":0"#);
    let (_, what) = failure(&[HEADER, OP, &last]);
    assert_eq!(what, "2 ops, but its header says 1");
    assert_eq!(failure(&[OP]).1, "an op before the first header");
    assert_eq!(failure(&[]).1, "no trace in the file");
}
