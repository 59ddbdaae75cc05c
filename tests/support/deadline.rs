//! A deadline for tests that wait. A fault that makes a test wait forever becomes a failure with a
//! message instead of a run that hangs.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Far longer than any of these tests takes, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// Runs `body` on its own thread and returns its result.
///
/// # Panics
///
/// Panics if `body` panics, or has not finished after two minutes. `waits_for` then names what it
/// waited for.
#[track_caller]
pub(crate) fn deadline<T: Send + 'static>(
    waits_for: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (done, ended) = mpsc::channel();
    let body = thread::spawn(move || done.send(body()));
    match ended.recv_timeout(DEADLINE) {
        Ok(outcome) => outcome,
        Err(RecvTimeoutError::Timeout) => {
            panic!(
                "still waiting for {waits_for} after {} s",
                DEADLINE.as_secs()
            )
        }
        Err(RecvTimeoutError::Disconnected) => match body.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(_) => unreachable!("it sends before it ends"),
        },
    }
}
