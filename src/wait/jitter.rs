use core::hash::{BuildHasher, Hasher};
use core::time::Duration;
use std::hash::RandomState;

/// A random delay, drawn anew for each caller that has to wait.
///
/// [`AsyncLimiter::jitter`](crate::wait::AsyncLimiter::jitter) says when callers are delayed.
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
    /// The longest delay is this much longer than the shortest.
    range_ns: u64,
}

impl Jitter {
    /// No delay.
    pub const NONE: Self = Self {
        least_ns: 0,
        range_ns: 0,
    };

    /// Makes a jitter with delays from zero to `most`, uniformly distributed. `most` is capped at
    /// 584 years (`u64::MAX` nanoseconds).
    #[must_use]
    pub const fn up_to(most: Duration) -> Self {
        Self::between(Duration::ZERO, most)
    }

    /// Makes a jitter with delays between `one` and `other`, in either order, uniformly
    /// distributed. Both are capped at 584 years (`u64::MAX` nanoseconds).
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

    /// Draws one delay.
    #[must_use]
    pub fn draw(&self) -> Duration {
        if self.range_ns == 0 {
            return Duration::from_nanos(self.least_ns);
        }
        // Each hasher has random keys, so hashing nothing gives a random number.
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
