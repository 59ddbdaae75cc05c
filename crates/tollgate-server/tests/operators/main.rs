//! Operators look, change things with a token, and restart without a loss.

mod changes;
mod encrypted;
mod hostile;
mod reloads;
mod state;
#[path = "../support/mod.rs"]
mod support;

use support::Running;
