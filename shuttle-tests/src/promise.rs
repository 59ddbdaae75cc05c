//! What a bucket promises of every interval, by its definition. It shares nothing with the crate's.

use tollgate::{Granted, Tick};

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

    /// Checks every interval between two grants, at the ticks at which they were counted. `bursts` more are
    /// allowed: one for each time that the state was lost.
    ///
    /// # Panics
    ///
    /// If one holds more than was promised.
    pub fn check(&self, grants: impl IntoIterator<Item = Granted>, bursts: u64) {
        let mut grants: Vec<(Tick, u64)> = grants
            .into_iter()
            .map(|granted| (granted.at(), granted.n()))
            .collect();
        grants.sort_unstable();
        for (first, &(from, _)) in grants.iter().enumerate() {
            let mut granted = 0;
            for &(to, n) in &grants[first..] {
                granted += u128::from(n);
                let length = to.as_nanos() - from.as_nanos();
                let allowed = self.allows(length) + u128::from(bursts) * u128::from(self.burst);
                assert!(
                    granted <= allowed,
                    "more than was promised: {granted} from {from:?} to {to:?}, not {allowed}, of {grants:?}"
                );
            }
        }
    }
}
