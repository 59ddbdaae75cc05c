//! The types around [`Keyed`], a table of fixed size with a limit for each key: key views, hashers,
//! concurrency limits and restore reports.

mod ban;
mod batch;
mod changes;
mod claimable;
mod concurrency;
mod concurrency_key;
mod core;
mod counted;
mod first_attempt;
mod hasher;
mod insert;
#[cfg(any(
    all(tollgate_loom, feature = "loom"),
    all(tollgate_shuttle, feature = "shuttle")
))]
mod inspect;
mod key;
mod leaving;
pub(crate) mod limiter;
mod overflow;
mod overrides;
mod own;
mod places;
mod plans;
mod probe;
mod probe_seq;
mod quota;
mod second_attempt;
mod slot;
mod snapshot;
pub(crate) mod stats;
mod table;
mod verbs;

pub use concurrency::{KeyedConcurrency, KeyedGuard};
pub use concurrency_key::ConcurrencyKey;
pub use hasher::{KeyHasher, SeededHasher};
pub use key::Key;
pub(crate) use limiter::Keyed;
pub use overflow::Overflow;
pub use snapshot::{PlanMatch, Restored, RestoredOverrides, RestoredPlan};
