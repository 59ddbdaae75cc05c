//! Shows that tollgate decides as recorded limiters did, call by call, and names each difference.
//!
//! It runs every trace in this folder, or in the folder in the environment variable
//! `TOLLGATE_TRACES`, and prints what it compared. README.md describes the files, tests/replay is
//! the runner, `sources` has the adapters, `proofs` shows that the runner can fail, and
//! docs/dev/TRACES.md says how to add a source.

#[path = "../support/deadline.rs"]
mod deadline;
mod proofs;
mod sources;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use tollgate_replay::{Report, proof, run_folder};

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
    proof::recorded_decisions_are_reproduced(&OWN_COPY, sources::all());
}

#[test]
fn the_differences_are_exactly_the_expected_ones() {
    let expected = include_str!("expected.txt");
    proof::the_differences_are_exactly_the_expected_ones(&OWN_COPY, expected);
}
