//! A limit that counts exactly, in nanoseconds: what the simulation compares with.

use tollgate::Quota;

use super::Kind;

/// A limit of one key.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Exact {
    /// Of a bucket, in nanoseconds times permits. Of a window, its number and count.
    idle: u128,
    window: u64,
    count: u64,
}

impl Exact {
    /// Takes a permit if it fits, or always. Returns whether it fits.
    pub(super) fn take(&mut self, kind: Kind, quota: Quota, now: u64, always: bool) -> bool {
        let period = quota.period().as_nanos();
        match kind {
            Kind::Bucket => {
                let n = u128::from(quota.permits());
                let idle = self.idle.max(u128::from(now) * n) + period;
                // A microsecond more, because the server counts in whole ones.
                let reach = u128::from(quota.burst_size()) * period + 1000 * n;
                let fits = idle <= u128::from(now) * n + reach;
                if fits || always {
                    self.idle = idle;
                }
                fits
            }
            Kind::Window => {
                let window = now / period as u64;
                if window > self.window {
                    (self.window, self.count) = (window, 0);
                }
                let fits = self.count < quota.permits();
                self.count += u64::from(fits || always);
                fits
            }
        }
    }
}
