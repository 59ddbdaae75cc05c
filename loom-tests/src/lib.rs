//! Models of tollgate's protocols, and a harness that runs them for any algorithm.
//!
//! A `Subject` is an algorithm with the verbs it supports. A verb is a method of a limiter, such as
//! `try_acquire_n`. `suite` runs verbs on several threads at once, under loom. In every execution
//! the answers and the final value of the word must be those of *some* sequential order of the same
//! verbs, and the outcome of each such order must occur. `tests/limits` of the crate shows that the
//! verbs are right on one thread. The models show that concurrent calls are linearizable.
//!
//! ```text
//!  Subject ──► suite ──► WordScenario (actors, verbs, ticks) ──► loom, in every Layout ──► outcome
//!                          └──► orders (the same, one after the other) ──► allowed ──┘ compared
//! ```
//!
//! The crate is empty without `--cfg tollgate_loom`, which `scripts/loom` sets.

#![cfg(tollgate_loom)]
// The types hold closures and atomic words, and are never printed.
#![allow(missing_debug_implementations)]

mod action;
pub mod calls;
mod expected;
mod faults;
mod layout;
pub mod logged;
mod orders;
pub mod prelude;
pub mod races;
pub mod rules;
mod run;
pub mod samples;
mod scenario;
mod schedule;
pub mod source;
mod subject;
pub mod suite;
pub mod tables;
pub mod total;
mod traced_word;
mod verb;
#[path = "../../tests/support/verbs.rs"]
pub mod verbs;
mod wake_flag;
mod word_scenario;
pub mod words;
mod wrong;

pub use action::Action;
pub use expected::Expected;
pub use layout::{Actor, Depth, Layout, actor};
pub use orders::pairs;
pub use run::{Model, Run, broken, deep, deep_model, deeper, model, on_broken};
pub use scenario::{AnswerTexts, Limits, Memory, Scenario, ScenarioOutcome};
pub use source::{Operation, Source};
pub use subject::Subject;
pub use traced_word::{SharedWord, TracedWord};
pub use verb::{Scope, Verb};
pub use verbs::{Answer, Kind};
pub use wake_flag::{Polled, WakeFlag};
pub use word_scenario::{OnWord, OneWord, Turn, WordScenario};
pub use wrong::Wrong;
