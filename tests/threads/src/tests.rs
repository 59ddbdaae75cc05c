//! Real threads on one limiter. `scripts/sanitize` runs these tests under Miri and ThreadSanitizer,
//! so they need no other crate than these of tollgate, and are small where Miri runs them.

#[cfg(feature = "audit")]
mod audit;
#[path = "../../support/deadline.rs"]
mod deadline;
mod limiter;
#[cfg(feature = "audit")]
#[path = "../../support/random.rs"]
mod random;
mod stranded;
mod support;
#[cfg(feature = "keyed")]
mod table;
mod windows;
