//! Runs closures on concurrent threads.

use shuttle::thread;

/// The work of one thread.
pub type Actor<T> = Box<dyn FnOnce() -> T + Send>;

/// Makes an [`Actor`].
pub fn actor<T>(act: impl FnOnce() -> T + Send + 'static) -> Actor<T> {
    Box::new(act)
}

/// Runs each actor on a thread, and returns their results when all have ended.
pub fn act<T: Send + 'static>(actors: Vec<Actor<T>>) -> Vec<T> {
    let threads: Vec<_> = actors.into_iter().map(|act| thread::spawn(act)).collect();
    let done = threads.into_iter().map(|thread| match thread.join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    });
    done.collect()
}
