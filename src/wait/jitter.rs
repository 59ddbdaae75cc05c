use core::hash::{BuildHasher, Hasher};
use core::time::Duration;
use std::hash::RandomState;

/// A random wait, drawn anew for each caller that has to wait.
///
/// See [`AsyncLimiter::jitter`](crate::AsyncLimiter::jitter) for when it is waited.
///
/// ```
/// use std::time::Duration;
/// use tollgate::wait::Jitter;
///
/// let [least, most] = [2, 5].map(Duration::from_millis);
/// assert!((0..1000).all(|_| Jitter::up_to(most).draw() <= most));
/// assert!((0..1000).all(|_| (least..=most).contains(&Jitter::between(least, most).draw())));
/// assert_eq!(Jitter::NONE.draw(), Duration::ZERO);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Jitter {
    least_ns: u64,
    /// The longest wait is this much longer.
    range_ns: u64,
}

impl Jitter {
    /// No wait.
    pub const NONE: Self = Self {
        least_ns: 0,
        range_ns: 0,
    };

    /// Any wait from zero to `most`, with equal probability. (At most 584 years.)
    #[must_use]
    pub const fn up_to(most: Duration) -> Self {
        Self::between(Duration::ZERO, most)
    }

    /// Any wait between these two, with equal probability. (At most 584 years.)
    #[must_use]
    pub const fn between(one: Duration, other: Duration) -> Self {
        let (one, other) = (nanos(one), nanos(other));
        let (least_ns, most_ns) = if one < other {
            (one, other)
        } else {
            (other, one)
        };
        Self {
            least_ns,
            range_ns: most_ns - least_ns,
        }
    }

    /// Draws one of these waits.
    #[must_use]
    pub fn draw(&self) -> Duration {
        if self.range_ns == 0 {
            return Duration::from_nanos(self.least_ns);
        }
        // Each hasher has random keys, so its hash of nothing is random.
        let random = RandomState::new().build_hasher().finish();
        let scaled = u128::from(random) * (u128::from(self.range_ns) + 1);
        Duration::from_nanos(self.least_ns + (scaled >> 64) as u64)
    }

    pub(super) const fn is_none(&self) -> bool {
        self.least_ns == 0 && self.range_ns == 0
    }
}

const fn nanos(time: Duration) -> u64 {
    let nanos = time.as_nanos();
    if nanos > u64::MAX as u128 {
        u64::MAX
    } else {
        nanos as u64
    }
}
