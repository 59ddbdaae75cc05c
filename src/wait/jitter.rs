use core::hash::{BuildHasher, Hasher};
use core::time::Duration;
use std::hash::RandomState;

/// A random extra wait, drawn anew for each caller.
///
/// ```
/// use std::time::Duration;
/// use tollgate::wait::Jitter;
///
/// let jitter = Jitter::up_to(Duration::from_millis(5));
/// assert!((0..1000).all(|_| jitter.draw() <= Duration::from_millis(5)));
/// assert_eq!(Jitter::NONE.draw(), Duration::ZERO);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Jitter {
    most_ns: u64,
}

impl Jitter {
    /// No time.
    pub const NONE: Self = Self { most_ns: 0 };

    /// Any time from none to this one, each as likely. (At most 584 years.)
    #[must_use]
    pub const fn up_to(most: Duration) -> Self {
        let most = most.as_nanos();
        let most_ns = if most > u64::MAX as u128 {
            u64::MAX
        } else {
            most as u64
        };
        Self { most_ns }
    }

    /// Draws one of these times.
    #[must_use]
    pub fn draw(&self) -> Duration {
        if self.most_ns == 0 {
            return Duration::ZERO;
        }
        // Each has keys of its own; what such a hasher gives of nothing is as random as they are.
        let random = RandomState::new().build_hasher().finish();
        let scaled = u128::from(random) * (u128::from(self.most_ns) + 1);
        Duration::from_nanos((scaled >> 64) as u64)
    }
}
