//! An algorithm's name, and its parameters as numbers.

use super::MAX_NAME;
use super::error::RestoreError;
use crate::algorithm::{MAX_SETTINGS, Settings};

/// The parameters of an algorithm, as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parameters {
    numbers: [u64; MAX_SETTINGS],
    count: usize,
}

impl Parameters {
    pub(crate) const NONE: Self = Self {
        numbers: [0; MAX_SETTINGS],
        count: 0,
    };

    pub(crate) fn of<A: Settings>(algorithm: &A) -> Self {
        // An algorithm with too many parameters does not compile.
        const { MAX_SETTINGS - A::WORDS };
        let mut all = Self::NONE;
        algorithm.save(&mut |number| all.push(number));
        all
    }

    pub(crate) fn push(&mut self, number: u64) {
        if let Some(place) = self.numbers.get_mut(self.count) {
            *place = number;
            self.count += 1;
        }
    }

    pub(crate) fn numbers(&self) -> &[u64] {
        self.numbers.get(..self.count).unwrap_or_default()
    }

    /// Returns the numbers, and zeros in place of the unused ones.
    pub(crate) const fn padded(&self) -> &[u64; MAX_SETTINGS] {
        &self.numbers
    }

    /// Returns the algorithm with exactly these parameters, or `None` if `now` has them.
    ///
    /// # Errors
    ///
    /// [`RestoreError::OtherParameters`] if no constructor makes these parameters, or if the
    /// algorithm can't check them.
    pub(crate) fn unless_of<A: Settings>(
        &self,
        now: &A,
        plan: Option<usize>,
    ) -> Result<Option<A>, RestoreError> {
        if Self::of(now) == *self {
            return Ok(None);
        }
        let mut numbers = self.numbers().iter();
        let was = A::restore(&mut || numbers.next().copied().unwrap_or(0));
        let was = was.filter(|was| was.is_sound() && Self::of(was) == *self);
        match was {
            None => Err(RestoreError::OtherParameters { plan }),
            was => Ok(was),
        }
    }
}

/// Returns the algorithm's name as snapshots contain it.
pub(crate) fn name_of<A: Settings>() -> &'static [u8] {
    let name = A::NAME.as_bytes();
    name.get(..MAX_NAME).unwrap_or(name)
}
