//! What conditions mean for a fact that has several values.

use crate::fact::FactName;

use super::condition::Test;
use super::input::{Input, Inputs};

/// How conditions are read for a fact that has several values: whether one value has to fulfill
/// them, or each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Each value has to fulfill a condition.
    each: bool,
    /// Values that are not known are left out.
    only_known: bool,
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

impl Test {
    pub(super) fn accepts(&self, fact: &FactName, inputs: &Inputs<'_>, reading: Reading) -> bool {
        let (known, more) = match inputs {
            Inputs::None => return matches!(self, Self::Absent),
            Inputs::One(input) => return self.accepts_one(fact, input),
            Inputs::Several { known, more } => (known, *more && !reading.only_known),
        };
        let accepts = |input| self.accepts_one(fact, input);
        match (reading.each, known.is_empty()) {
            // There may be a value, or none.
            (each, true) if more => !each,
            (_, true) => matches!(self, Self::Absent),
            (true, false) if matches!(self, Self::Present) => true,
            (true, false) => !more && known.iter().all(accepts),
            // It is there, whatever else is.
            (false, false) if matches!(self, Self::Absent) => false,
            (false, false) => more || known.iter().any(accepts),
        }
    }

    fn accepts_one(&self, fact: &FactName, input: &Input<'_>) -> bool {
        match self {
            Self::Present => true,
            Self::Absent => false,
            Self::OneOf(patterns) => patterns.iter().any(|pattern| pattern.accepts(fact, input)),
        }
    }
}
