//! An algorithm's name, and its parameters as numbers.

use crate::algorithm::{MAX_SETTINGS, Settings};

/// The most bytes of an algorithm's name.
pub(crate) const MAX_NAME: usize = 64;

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

    /// Returns the algorithm with exactly these parameters. Returns `None` if no constructor makes
    /// them, or if the algorithm can't check them.
    pub(crate) fn algorithm<A: Settings>(&self) -> Option<A> {
        let mut numbers = self.numbers().iter();
        let algorithm = A::restore(&mut || numbers.next().copied().unwrap_or(0))?;
        let is_same = algorithm.is_sound() && Self::of(&algorithm) == *self;
        is_same.then_some(algorithm)
    }
}

/// Returns the algorithm's name as snapshots contain it.
pub(crate) fn name_of<A: Settings>() -> &'static [u8] {
    let name = A::NAME.as_bytes();
    name.get(..MAX_NAME).unwrap_or(name)
}
