use core::time::Duration;

/// Returns a wait in whole seconds, rounded up: at least 1 for any wait above zero. HTTP headers
/// use whole seconds, and after a wait that was rounded down a client would retry too early.
///
/// ```
/// use std::time::Duration;
/// use tollgate::outcome::ceil_secs;
///
/// assert_eq!(ceil_secs(Duration::ZERO), 0);
/// assert_eq!(ceil_secs(Duration::from_nanos(1)), 1);
/// assert_eq!(ceil_secs(Duration::from_millis(1900)), 2);
/// ```
#[must_use]
pub const fn ceil_secs(wait: Duration) -> u64 {
    wait.as_secs()
        .saturating_add((wait.subsec_nanos() > 0) as u64)
}
