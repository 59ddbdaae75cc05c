//! The service's page, in a real browser.
//!
//! Without Chromium the tests are skipped, with a line that says so.

#![cfg(target_os = "linux")]

mod accessible;
mod browser;
mod driver;
#[path = "../support/program.rs"]
mod program;
mod service;
#[path = "../support/mod.rs"]
mod support;
mod tab;
