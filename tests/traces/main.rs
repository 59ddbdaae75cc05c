//! Shows that tollgate decides as recorded limiters did, call by call, and names each difference.
//!
//! It runs every trace in this folder, or in the folder in the environment variable
//! `TOLLGATE_TRACES`, and prints what it compared. README.md describes the files, tests/replay is
//! the runner, `sources` has the adapters, `proofs` shows that the runner can fail, and
//! docs/TRACES.md says how to add a source.

#[path = "../support/deadline.rs"]
mod deadline;
mod proofs;
mod sources;

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use tollgate_replay::{Report, run_folder};

/// The project's own recordings.
fn own_copy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces")
}

static OWN_COPY: LazyLock<Report> = LazyLock::new(|| {
    let run = || run_folder(&own_copy(), sources::all());
    deadline::deadline("an answer to a recorded call", run).expect("tests/traces")
});

#[test]
fn recorded_decisions_are_reproduced() {
    let other = env::var_os("TOLLGATE_TRACES")
        .map(|folder| run_folder(&PathBuf::from(folder), sources::all()).expect("TOLLGATE_TRACES"));
    let report = other.as_ref().unwrap_or(&OWN_COPY);
    // Not with println, whose output the test harness hides when a test passes.
    write!(std::io::stdout().lock(), "\n{report}").expect("standard output");
    let failures = report.failures().len();
    assert_eq!(failures, 0, "{failures} failures, see above");
}

/// Compares the printed report with the expected one: every file with its calls and answers, and
/// the exact count of each class of differences. So no new difference can hide in an existing
/// class, and no call is left out.
#[test]
fn the_differences_are_exactly_the_expected_ones() {
    let expected = include_str!("expected.txt");
    for file in &OWN_COPY.files {
        let holds = expected.contains(&format!("\n{file}\n"));
        assert!(holds, "not expected: {file}");
    }
    let expected = expected
        .lines()
        .filter(|line| line.ends_with(" answers compared"));
    assert_eq!(expected.count(), OWN_COPY.files.len());
}
