//! A limit that counts exactly, in nanoseconds: what the simulation compares with.

use super::scene::{Kind, Scene};

/// A limit of one key.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Exact {
    /// Of a bucket, in nanoseconds times permits. Of a window, its number and count.
    idle: u128,
    window: u64,
    count: u64,
}

impl Exact {
    /// Takes permits if they fit, or always. Returns whether they fit.
    pub(super) fn take(&mut self, scene: &Scene, now: u64, always: bool) -> bool {
        let Scene {
            kind, quota, each, ..
        } = *scene;
        let period = quota.period().as_nanos();
        match kind {
            Kind::Bucket => {
                let n = u128::from(quota.permits());
                let idle = self.idle.max(u128::from(now) * n) + period * u128::from(each);
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
                let fits = self.count + each <= quota.permits();
                self.count += if fits || always { each } else { 0 };
                fits
            }
        }
    }
}
