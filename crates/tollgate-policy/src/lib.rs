//! Rate limits from a file: which limits apply to a request, with their keys, plans and costs.

mod asked;
mod asks;
mod builder;
mod compile;
mod decide;
mod decision;
mod fact;
pub mod file;
mod keep;
mod key;
mod limit;
mod live;
mod make;
mod policy;
mod problem;
mod registry;
mod rule;
mod text;
mod visits;
mod warn;
pub mod when;

pub use asked::Asked;
pub use builder::Builder;
pub use decision::{Decision, Outcome, Reason};
pub use fact::{FactKind, FactName, Facts, Value};
pub use keep::RuleState;
pub use limit::{DynLimit, Hashed, KeyRef, OwnLimit};
pub use live::{Current, LivePolicy, Reloaded};
pub use policy::{Policy, PolicyClock};
pub use problem::{Position, Problem, Problems, Severity};
pub use registry::LimitSpec;
pub use warn::warnings;
