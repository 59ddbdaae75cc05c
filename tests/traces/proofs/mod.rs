//! Proofs that the runner can fail, reads what it should, and skips nothing.

mod any_result;
mod changes;
mod folders;
mod lines;

use tollgate_replay::FileReport;
use tollgate_replay::proof::Cut;

use super::{own_copy, sources};

/// Returns all traces of a recorded file.
fn cuts(file: &str) -> Vec<Cut> {
    Cut::all(&own_copy().join(file))
}

fn run(cut: &Cut) -> FileReport {
    cut.run(sources::all())
}
