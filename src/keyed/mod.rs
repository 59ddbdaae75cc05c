//! The types around [`Keyed`], a table of fixed size with a limit for each key: key views, hashers,
//! concurrency limits and restore reports.

// Parts: `decide` uses `admit`, which uses `plans`, which uses `find` (tests/limits/layers.rs).
mod admit;
mod decide;
mod find;
mod plans;

mod ban;
mod concurrency;
mod concurrency_key;
mod counted;
mod hasher;
#[cfg(any(
    all(tollgate_loom, feature = "loom"),
    all(tollgate_shuttle, feature = "shuttle")
))]
mod inspect;
mod key;
pub(crate) mod limiter;
mod overflow;
mod overrides;
mod places;
mod quota;
mod snapshot;
pub(crate) mod stats;
mod verbs;

pub use concurrency::{KeyedConcurrency, KeyedGuard};
pub use concurrency_key::ConcurrencyKey;
pub use hasher::{KeyHasher, SeededHasher};
pub use key::Key;
pub(crate) use limiter::Keyed;
pub use overflow::Overflow;
pub use snapshot::{PlanMatch, Restored, RestoredOverrides, RestoredPlan};
