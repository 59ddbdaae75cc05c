//! Snapshots of a map, for the next process.
//!
//! All numbers have 64 bits, and are little-endian.
//!
//! ```text
//! ┌──────────────────────────────────────────────────────────────┐
//! │ magic │ version of the format │ tick │ time of day           │
//! │ length of the algorithm's name │ the name                    │
//! ├──────────────────────────────────────────────────────────────┤
//! │ 1 │ numbers │ parameters of the algorithm of the next keys   │  any number of
//! │ 2 │ number (62), banned (1), protected (1) │ word            │  these
//! │   │ length of the key │ its bytes                            │
//! ├──────────────────────────────────────────────────────────────┤
//! │ 0 │ horizon │ keys in all │ checksum of all that is above    │
//! └──────────────────────────────────────────────────────────────┘
//! ```
//!
//! - The **tick** is that of the map's clock, and the **time of day** is the same moment in
//!   nanoseconds since 1970.
//! - The **parameters** are written again before a key with another algorithm: its own, or another
//!   quota that was set while the snapshot was being written.
//! - A key that was inserted later has a larger **number**.
//! - The **horizon** is read after all keys. It is no earlier than the tick at which any key that
//!   had left by then became idle. It is also no earlier than the tick of the last change of
//!   algorithm, quota or ban of a key that is left out because it is idle.
//!
//! The checksum is CRC-64/XZ.

mod key;
mod restore;
mod verbs;
mod write;

pub use key::SnapshotKey;
pub use restore::RestoredMap;

/// A transfer as text would change the last four bytes.
const MAGIC: [u8; 8] = *b"\x89TGM\r\n\x1a\n";
const VERSION: u64 = 1;

/// The maximum length of a key in bytes.
const MAX_KEY: u64 = u32::MAX as u64;

/// The kinds of blocks.
const END: u64 = 0;
const ALGORITHM: u64 = 1;
const KEY: u64 = 2;

const PROTECTED: u64 = 1 << 62;
const BANNED: u64 = 1 << 63;
const NUMBER: u64 = PROTECTED - 1;
