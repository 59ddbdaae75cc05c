//! Requests that wait: in order, until exactly when they are due, and within their bounds.

mod bounds;
#[path = "../support/clock.rs"]
mod clock;
mod line;
mod served;
