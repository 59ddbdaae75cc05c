//! The types around [`KeyedMap`], a map that stores its keys with a limit for each: key views,
//! iterators and restore reports.

// `entry.rs` explains how keys leave, `rank.rs` which of them leave first, and `entries.rs` where
// they are stored.

mod all;
mod bans;
mod counted;
mod decide;
#[cfg(not(all(tollgate_loom, feature = "loom")))]
mod entries;
#[cfg(all(tollgate_loom, feature = "loom"))]
#[path = "entries_modeled.rs"]
mod entries;
mod entry;
mod evict;
mod horizon;
mod latest;
pub(crate) mod limiter;
mod moving;
#[cfg(not(all(tollgate_loom, feature = "loom")))]
mod newest;
mod owned;
#[cfg(not(all(tollgate_loom, feature = "loom")))]
mod published;
#[cfg(all(tollgate_loom, feature = "loom"))]
#[path = "published_modeled.rs"]
mod published;
mod quota;
mod rank;
mod retire;
mod room;
mod snapshot;
pub(crate) mod stats;
mod stored;
mod view;

pub use all::{PinnedMap, TrackedKey};
pub(crate) use limiter::KeyedMap;
pub use owned::OwnedMapKey;
pub use snapshot::{RestoredMap, SnapshotKey};
pub use view::MapKey;
