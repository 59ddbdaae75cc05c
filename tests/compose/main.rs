//! Several limits as one: compositions, and the line before one.

#![allow(clippy::disallowed_types, reason = "no model runs these tests")]

mod all;
mod kinds;
mod line;
mod support;
