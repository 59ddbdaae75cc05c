//! What a bucket promises of every interval, by its definition. It shares nothing with the crate's.

use tollgate::Granted;

/// At most `burst` permits at once, and `permits` more in each `period` nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Promise {
    /// At once.
    pub burst: u64,
    /// In each period.
    pub permits: u64,
    /// The period.
    pub period: u64,
}

impl Promise {
    /// What may be granted in an interval of this length, both ends included.
    fn allows(&self, length: u64) -> u128 {
        let made = u128::from(length) * u128::from(self.permits) / u128::from(self.period);
        u128::from(self.burst) + made
    }

    /// How many limiters that promise it, one after the other, could at least have granted all
    /// this, less one. Each is fresh when it begins, and its ticks may overlap with those of the
    /// others. The ticks are those at which grants were counted.
    pub fn losses(&self, grants: &[Granted]) -> u64 {
        let at = |granted: &Granted| (granted.at().as_nanos(), granted.n());
        let mut grants: Vec<_> = grants.iter().map(at).collect();
        grants.sort_unstable();
        let mut limiters = 1;
        for (first, &(from, _)) in grants.iter().enumerate() {
            let mut granted = 0;
            for &(to, n) in &grants[first..] {
                granted += u128::from(n);
                limiters = limiters.max(granted.div_ceil(self.allows(to - from)));
            }
        }
        limiters as u64 - 1
    }

    /// Checks that every interval keeps it.
    ///
    /// # Panics
    ///
    /// If one does not.
    pub fn check(&self, grants: &[Granted]) {
        let losses = self.losses(grants);
        assert!(losses == 0, "more than was promised: {grants:?}");
    }
}
