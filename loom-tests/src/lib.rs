//! Models of tollgate's protocols, and the harness that any algorithm gets them from.
//!
//! A `Subject` is an algorithm with its verbs. `suite` puts them on threads, against each
//! other, under loom: whatever the threads did, their answers and the last word must be those of
//! *some* order of the same verbs, one after the other, and each of these orders must have been
//! seen. `tests/limits` of the crate shows that the verbs are right one after the other; the
//! models show that threads make no difference.
//!
//! ```text
//!  Subject ──► suite ──► Scene (who does what, when) ──► loom, in every Layout ──► Outcome
//!                          └──► orders (the same, one after the other) ──► allowed ──┘ compared
//! ```
//!
//! Nothing is here without `--cfg tollgate_loom`; `scripts/loom` sets it.

#![cfg(tollgate_loom)]
// They hold closures and places, and nobody prints them.
#![allow(missing_debug_implementations)]

mod deed;
mod expected;
mod hand;
mod layout;
pub mod logged;
mod orders;
pub mod places;
mod play;
pub mod races;
mod rules;
mod run;
mod sabotage;
pub mod samples;
mod scene;
mod script;
mod subject;
pub mod suite;
pub mod tables;
pub mod total;
mod verb;

pub use deed::Deed;
pub use expected::Expected;
pub use hand::{Hand, Home};
pub use layout::{Actor, Depth, Layout, actor};
pub use play::{Play, Played, Told};
pub use run::{Run, broken, deep, model};
pub use sabotage::{Site, mistaken, relaxed, stored};
pub use scene::{Outcome, Scene, Turn};
pub use subject::Subject;
pub use verb::{Answer, Kind, Scope, Verb};
