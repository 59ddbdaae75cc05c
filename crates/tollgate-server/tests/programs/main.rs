//! Programs ask over HTTP, in JSON, and are answered as a policy decides.

mod asks;
mod documented;
mod holds;
mod refused;
mod same_as_policy;
#[path = "../support/mod.rs"]
mod support;

use support::Running;
