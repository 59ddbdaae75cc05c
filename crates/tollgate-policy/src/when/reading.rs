//! What conditions mean for a fact that has several values.

/// How conditions are read for a fact that has several values: whether one value has to fulfill
/// them, or each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Each value has to fulfill a condition.
    pub(super) each: bool,
    /// Values that are not known are left out.
    pub(super) only_known: bool,
}

impl Reading {
    /// Conditions hold if they can hold for any value.
    pub(crate) const ANY: Self = Self {
        each: false,
        only_known: false,
    };
    /// Conditions hold if they hold for any value that is known.
    pub(crate) const ANY_KNOWN: Self = Self {
        each: false,
        only_known: true,
    };
    /// Conditions hold if they hold for each value.
    pub(crate) const EACH: Self = Self {
        each: true,
        only_known: false,
    };

    /// The reading within `not`: what must not hold for each value can hold for some, and the other
    /// way around.
    pub(super) const fn negated(self) -> Self {
        Self {
            each: !self.each,
            ..self
        }
    }
}
