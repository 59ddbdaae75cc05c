//! What becomes of the state of rules: over a reload, and from one process to the next.

mod kept;
mod saved;

pub(crate) use kept::{Change, Reuse};
pub use saved::StateError;
pub(crate) use saved::{BANS, STRIKES, Saved};

/// What a reload did with the state of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RuleState {
    /// The rule keeps its state: no change concerned the state. Or its state was restored.
    Kept,
    /// Its quota or its overrides changed. Each key keeps what it used
    /// ([`Keep::Used`](tollgate::Keep::Used)): a limit that is raised from 100 to 1000 adds 900
    /// permits, and one that is lowered takes them away.
    Migrated,
    /// The state of at least one of its limits starts anew, for this reason.
    Fresh(&'static str),
    /// There was no rule of this name.
    New,
    /// The rule is gone.
    Removed,
}
