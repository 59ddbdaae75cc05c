//! Algorithms with a step of their own: broken ones, which the models must find.

use tollgate::algorithm::Algorithm;
use tollgate::{Denied, Granted, Tick};

type Stepped = Result<(u64, Granted), Denied>;

/// An algorithm whose step is a closure's. It answers queries as the algorithm inside.
pub struct Wrong<A, F>(pub A, pub F);

impl<A: Algorithm, F: Fn(&A, u64, Tick, u64) -> Stepped> Algorithm for Wrong<A, F> {
    fn step(&self, word: u64, now: Tick, n: u64) -> Stepped {
        (self.1)(&self.0, word, now, n)
    }

    fn available(&self, word: u64, now: Tick) -> u64 {
        self.0.available(word, now)
    }

    fn is_idle(&self, word: u64, now: Tick) -> bool {
        self.0.is_idle(word, now)
    }
}
