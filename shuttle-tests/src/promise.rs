//! The bound that a bucket keeps over every interval, computed from its definition without the
//! crate's code.

use tollgate::Granted;

/// A bound: at most `burst` permits at once, and `permits` more in each `period` nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Promise {
    /// The most permits at one tick.
    pub burst: u64,
    /// The permits that become available in each period.
    pub permits: u64,
    /// The period in nanoseconds.
    pub period: u64,
}

impl Promise {
    /// Returns how many permits an interval of this length may grant, both ends included.
    fn allows(&self, length: u64) -> u128 {
        let made = u128::from(length) * u128::from(self.permits) / u128::from(self.period);
        u128::from(self.burst) + made
    }

    /// Returns how often, at the least, a limiter with this bound was replaced by a fresh one to
    /// make all of these grants.
    ///
    /// Each limiter starts fresh, and its ticks may overlap with those of the others. The ticks are
    /// those at which grants were counted.
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

    /// Checks that the grants keep the bound over every interval.
    pub fn check(&self, grants: &[Granted]) {
        let losses = self.losses(grants);
        assert!(losses == 0, "more than was promised: {grants:?}");
    }
}
