//! Rate limits from a file: which limits apply to a request, with their keys, plans and costs.

pub mod explain;
mod fact;
pub mod file;
mod problem;
mod text;
mod warn;
pub mod when;

pub use explain::explain;
pub use fact::{FactKind, FactName, Facts, Value};
pub use problem::{Position, Problem, Problems, Severity};
pub use warn::warnings;
