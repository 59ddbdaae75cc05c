//! Requests that wait: in order, until exactly when they are due, and within their bounds.

mod bounds;
mod line;
mod served;
