//! Threads that start together.

use std::panic::resume_unwind;
use std::sync::Barrier;
use std::thread;

/// Runs `work` on one thread for each input, all started together, and returns the results.
pub(crate) fn on_threads<I: Send, T: Send>(
    each: impl IntoIterator<Item = I>,
    work: impl Fn(I) -> T + Sync,
) -> Vec<T> {
    on_threads_while(each, work, |_| false)
}

/// The same. In the meantime it passes `go_on` the number of threads that have ended, until that
/// returns false.
pub(crate) fn on_threads_while<I: Send, T: Send>(
    each: impl IntoIterator<Item = I>,
    work: impl Fn(I) -> T + Sync,
    mut go_on: impl FnMut(u64) -> bool,
) -> Vec<T> {
    let each: Vec<_> = each.into_iter().collect();
    let (start, work) = (&Barrier::new(each.len() + 1), &work);
    thread::scope(|scope| {
        let begin = |one| {
            scope.spawn(move || {
                start.wait();
                work(one)
            })
        };
        let workers: Vec<_> = each.into_iter().map(begin).collect();
        start.wait();
        let ended = || workers.iter().filter(|worker| worker.is_finished()).count();
        while go_on(ended() as u64) {}
        let results = workers.into_iter().map(|worker| worker.join());
        let results = results.map(|result| result.unwrap_or_else(|panic| resume_unwind(panic)));
        results.collect()
    })
}
