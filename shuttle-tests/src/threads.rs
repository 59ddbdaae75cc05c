//! Who acts at the same time.

use shuttle::thread;

/// What one thread does.
pub type Actor<T> = Box<dyn FnOnce() -> T + Send>;

/// Makes an [`Actor`].
pub fn actor<T>(act: impl FnOnce() -> T + Send + 'static) -> Actor<T> {
    Box::new(act)
}

/// Gives each actor a thread, and returns what each returned when all have come to their end.
///
/// # Panics
///
/// If an actor does.
pub fn act<T: Send + 'static>(actors: Vec<Actor<T>>) -> Vec<T> {
    let threads: Vec<_> = actors.into_iter().map(|act| thread::spawn(act)).collect();
    let done = threads.into_iter().map(|thread| match thread.join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    });
    done.collect()
}
