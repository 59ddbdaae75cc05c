//! Real threads on one limiter. `scripts/sanitize` runs these tests under Miri and ThreadSanitizer,
//! so they need no other crate, and are small where Miri runs them.

#[path = "../../support/deadline.rs"]
mod deadline;
#[cfg(feature = "history")]
mod history;
mod limiter;
#[cfg(feature = "history")]
#[path = "../../support/random.rs"]
mod random;
mod stranded;
mod support;
#[cfg(feature = "keyed")]
mod table;
mod windows;
