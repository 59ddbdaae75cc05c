//! Snapshots of a table, in the format of [`snapshot`](crate::snapshot).

mod file;
mod fill;
mod report;
mod restore;
mod verbs;
mod write;

pub use report::{PlanMatch, Restored, RestoredOverrides, RestoredPlan};

use super::KeyHasher;
use super::find::PLANS;
use super::plans::OVERRIDE;
use crate::snapshot::{MAX_PLANS, OVERRIDE_PLAN};

const _: () = assert!(PLANS == MAX_PLANS as u64 && OVERRIDE as u64 == OVERRIDE_PLAN);

/// Hashes a fixed key, with which a reader checks the hasher. The key has parts of several types,
/// so it also detects a hasher that differs only for slices or long keys, for example because
/// addresses have another size.
fn known_hash<S: KeyHasher>(hasher: &S) -> u64 {
    let slice = [0x0123_u16; 40].as_slice();
    hasher.hash_key(&(0x0123_4567_89AB_CDEF_u64, "tollgate", slice, 1_u128 << 64))
}
