//! The state of a smooth limiter: 128 bits that change together.
//!
//! ```text
//!  127                            68    64                               0
//! ┌──────────────────────────────┬──────┬────────────────────────────────┐
//! │ next turn, in the unit       │ ver- │ stored permits, a double       │
//! │ (nanoseconds, 36 years)      │ sion │                                │
//! └──────────────────────────────┴──────┴────────────────────────────────┘
//! ```
//!
//! - **The next turn** is the first tick at which the next caller may go. It never decreases.
//! - **The version** selects the current rate: see `rates.rs`.
//! - **The stored permits** are those that accumulated while no caller came.

/// The width of the version, in bits.
const VERSION_BITS: u32 = 4;
const VERSIONS: u64 = 1 << VERSION_BITS;

/// A turn that never comes. Later turns become this one, so nothing wraps.
pub(crate) const NEVER: u64 = u64::MAX >> VERSION_BITS;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SmoothState {
    /// In the limiter's unit, at most [`NEVER`].
    pub(crate) next: u64,
    pub(crate) version: u64,
    pub(crate) stored: f64,
}

impl SmoothState {
    pub(crate) const fn pack(self) -> u128 {
        let high = (self.next << VERSION_BITS) | self.version;
        ((high as u128) << 64) | self.stored.to_bits() as u128
    }

    pub(crate) const fn unpack(word: u128) -> Self {
        let high = (word >> 64) as u64;
        Self {
            next: high >> VERSION_BITS,
            version: high % VERSIONS,
            stored: f64::from_bits(word as u64),
        }
    }

    /// Returns the state with the next version and this number of stored permits. When the versions
    /// wrap, the next turn also moves later by one unit, unless this change has `moved` it already.
    /// So no pair of a next turn and a version ever occurs twice.
    pub(crate) const fn next_version(self, stored: f64, moved: bool) -> Self {
        let version = (self.version + 1) % VERSIONS;
        let next = match version {
            0 if self.next < NEVER && !moved => self.next + 1,
            _ => self.next,
        };
        Self {
            next,
            version,
            stored,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpack_reverses_pack() {
        for next in [0, 1, 12_345, NEVER - 1, NEVER] {
            for version in [0, 1, VERSIONS - 1] {
                for stored in [0.0, 0.1, 1e12, f64::MAX] {
                    let state = SmoothState {
                        next,
                        version,
                        stored,
                    };
                    assert_eq!(SmoothState::unpack(state.pack()), state);
                }
            }
        }
    }

    #[test]
    fn no_pair_of_turn_and_version_occurs_twice() {
        let mut state = SmoothState {
            next: 7,
            version: 0,
            stored: 0.0,
        };
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..100 {
            assert!(seen.insert((state.next, state.version)));
            state = state.next_version(0.0, false);
        }
        assert_eq!(state.next, 7 + 100 / VERSIONS);
        let end = SmoothState {
            next: NEVER,
            version: VERSIONS - 1,
            stored: 0.0,
        };
        assert_eq!(end.next_version(0.0, false).next, NEVER);
    }
}
