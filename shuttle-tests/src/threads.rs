//! Runs work on concurrent threads.

use std::sync::Arc;

use shuttle::thread;
use tollgate::sync::model::{Stop, stopping};

use crate::draw::below;
use crate::run::reached;

/// Runs the work on this many threads, each with its number, and returns their results when all
/// have ended.
pub fn on_threads<S, T>(
    threads: u64,
    shared: &Arc<S>,
    work: impl Fn(&Arc<S>, u64) -> T + Copy + Send + 'static,
) -> Vec<T>
where
    S: Send + Sync + 'static,
    T: Send + 'static,
{
    let threads = (0..threads).map(|number| {
        let shared = Arc::clone(shared);
        thread::spawn(move || work(&shared, number))
    });
    let threads: Vec<_> = threads.collect();
    let done = threads.into_iter().map(|thread| match thread.join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    });
    done.collect()
}

/// Does work that stops forever before one of its operations, which is drawn below `before`.
/// Without that number it does not stop. Returns whether it stopped.
pub fn stops(before: Option<u64>, work: impl FnOnce()) -> bool {
    let stop = Stop::Operations(before.map_or(u64::MAX, below));
    let stopped = stopping(stop, work).is_none();
    if stopped {
        reached("a thread stops");
    }
    stopped
}
