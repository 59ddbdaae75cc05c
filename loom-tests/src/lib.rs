//! Models of tollgate's protocols, and the harness that any algorithm gets them from.
//!
//! A `Subject` is an algorithm with its verbs. `suite` puts them on threads, against each
//! other, under loom: whatever the threads did, their answers and the last word must be those of
//! *some* order of the same verbs, one after the other, and each of these orders must have been
//! seen. `tests/limits` of the crate shows that the verbs are right one after the other; the
//! models show that threads make no difference.
//!
//! ```text
//!  Subject ──► suite ──► WordScenario (who does what, when) ──► loom, in every Layout ──► Outcome
//!                          └──► orders (the same, one after the other) ──► allowed ──┘ compared
//! ```
//!
//! Nothing is here without `--cfg tollgate_loom`; `scripts/loom` sets it.

#![cfg(tollgate_loom)]
// They hold closures and places, and nobody prints them.
#![allow(missing_debug_implementations)]

mod action;
mod expected;
mod faults;
mod layout;
pub mod logged;
mod orders;
pub mod races;
mod rules;
mod run;
pub mod samples;
mod scenario;
mod schedule;
mod subject;
pub mod suite;
pub mod tables;
pub mod total;
mod traced_word;
mod verb;
mod word_scenario;
pub mod words;

pub use action::Action;
pub use expected::Expected;
pub use faults::{Site, relaxed, stored, with_fault};
pub use layout::{Actor, Depth, Layout, actor};
pub use run::{Run, broken, deep, model};
pub use scenario::{Scenario, ScenarioOutcome, Told};
pub use subject::Subject;
pub use traced_word::{SharedWord, TracedWord};
pub use verb::{Answer, Kind, Scope, Verb};
pub use word_scenario::{Outcome, Turn, WordScenario};
