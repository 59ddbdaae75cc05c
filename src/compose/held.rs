use crate::outcome::Granted;

/// A member's grant, and which limit inside the member made it.
///
/// A limit of your own returns `granted.into()`, and gets the same value back to undo or settle it.
/// See [`Member`](super::Member) for an example.
///
/// ```
/// use tollgate::compose::Held;
/// use tollgate::{Granted, Tick};
///
/// let held = Held::from(Granted::new(3, Tick::from_nanos(7)));
/// assert_eq!(held.granted.n(), 3);
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct Held {
    /// The grant.
    pub granted: Granted,
    /// Which limit of each [`OrElse`](super::OrElse) made the grant: one bit for each level, the
    /// outermost in the lowest bit.
    branches: u32,
}

impl From<Granted> for Held {
    #[inline(always)]
    fn from(granted: Granted) -> Self {
        let branches = 0;
        Self { granted, branches }
    }
}

impl Held {
    /// Notes that the grant came from the first or the second of two limits.
    #[inline]
    pub(super) const fn of_branch(self, is_second: bool) -> Self {
        let branches = self.branches << 1 | is_second as u32;
        Self { branches, ..self }
    }

    /// Returns whether the grant came from the second of two limits, and the grant as that limit
    /// made it.
    #[inline]
    pub(super) const fn branch(self) -> (bool, Self) {
        let branches = self.branches >> 1;
        (self.branches & 1 == 1, Self { branches, ..self })
    }

    /// Returns a copy. The caller must give back only one of the two.
    #[inline]
    pub(super) const fn again(&self) -> Self {
        Self {
            granted: self.granted.again(),
            branches: self.branches,
        }
    }
}
