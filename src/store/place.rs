//! Where a limiter's state is.

/// Identifies the state of a limiter: its address, and the key if one state holds many keys.
///
/// A [composition](crate::compose::All) takes from its members in the order of their places, and
/// recognizes a member that appears twice.
///
/// ```
/// use tollgate::store::{Place, WordCell};
///
/// let (a, b) = (WordCell::new(0), WordCell::new(0));
/// assert!(Place::of(&a).is_same(&Place::of(&a)));
/// assert!(!Place::of(&a).is_same(&Place::of(&b)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    address: usize,
    key: u64,
    is_exact: bool,
}

impl Place {
    /// Returns the place of this value in memory. The place of a value of size zero is not
    /// recognized as the same, because other values may have its address.
    #[inline]
    pub fn of<T: ?Sized>(state: &T) -> Self {
        Self {
            address: core::ptr::from_ref(state).cast::<()>().addr(),
            key: 0,
            is_exact: size_of_val(state) > 0,
        }
    }

    /// Returns the place of a key in this state, by a number that no other key has.
    #[inline]
    #[must_use]
    pub const fn with_key(self, key: u64) -> Self {
        Self { key, ..self }
    }

    /// Returns the place of a key in this state, by a hash that other keys may share. Such a place
    /// is not recognized as the same.
    #[inline]
    #[must_use]
    pub const fn with_hash(self, hash: u64) -> Self {
        Self {
            key: hash,
            is_exact: false,
            ..self
        }
    }

    /// Returns the same place, but it is not recognized as the same.
    #[inline]
    pub(crate) const fn inexact(self) -> Self {
        Self {
            is_exact: false,
            ..self
        }
    }

    /// Returns whether both are certainly the place of the same state.
    #[inline]
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.is_exact && self == other
    }
}
