//! Shows that the limiters decide as Guava's did, call by call, and names each difference.
//!
//! It runs every trace in this folder, or in the folder in the environment variable
//! `TOLLGATE_TRACES`, and prints what it compared. `tests/traces/README.md` in the repository
//! describes the files, and `tests/replay` is the runner.

#[path = "../../../../tests/support/deadline.rs"]
mod deadline;
mod guava;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::json;
use tollgate_replay::proof::{self, Cut};
use tollgate_replay::{Report, Source, run_folder};

const SOURCES: &[&dyn Source] = &[&guava::Guava];

/// The project's own recordings.
fn own_copy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces")
}

static OWN_COPY: LazyLock<Report> = LazyLock::new(|| {
    let run = || run_folder(&own_copy(), SOURCES);
    deadline::deadline("an answer to a recorded call", run).expect("tests/traces")
});

#[test]
fn recorded_decisions_are_reproduced() {
    proof::recorded_decisions_are_reproduced(&OWN_COPY, SOURCES);
}

#[test]
fn the_differences_are_exactly_the_expected_ones() {
    let expected = include_str!("expected.txt");
    proof::the_differences_are_exactly_the_expected_ones(&OWN_COPY, expected);
}

#[test]
fn each_change_fails() {
    let changes = include_str!("changes.txt");
    proof::each_change_fails(&own_copy(), &OWN_COPY, SOURCES, changes);
}

#[test]
fn every_changed_result_is_noticed() {
    let (changed, failed) = proof::changed_results_are_noticed(&own_copy(), &OWN_COPY, SOURCES);
    assert!(changed > 800, "{changed} changes");
    assert_eq!(failed, changed, "there are no ties");
}

#[test]
fn the_initial_state_depends_on_the_configuration() {
    for file in [
        "guava_smooth_bursty.jsonl.gz",
        "guava_smooth_warming_up.jsonl.gz",
    ] {
        let mut cut = Cut::all(&own_copy().join(file)).remove(1);
        cut.change(0, |header| header["config"]["rate"] = json!(2));
        assert_eq!(cut.run(SOURCES).failures[0].op, 0);
    }
}
