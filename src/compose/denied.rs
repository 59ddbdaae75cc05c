use core::cmp::Reverse;
use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::outcome::{Denied, ceil_secs};

/// A denied request to a composition. It took nothing from any member, except after some
/// [lost races](super::All#all-or-nothing).
///
/// ```
/// use std::time::Duration;
/// use tollgate::compose::All;
/// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = ManualClock::new();
/// let second = TokenBucket::new(Quota::per_second(10))?;
/// let minute = TokenBucket::new(Quota::per_minute(1))?;
/// let limiters = [second, minute].map(|bucket| Limiter::with_clock(bucket, clock.clone()));
/// let limits = All::new(limiters)?;
/// limits.try_acquire()?;
/// let denied = limits.try_acquire().unwrap_err();
/// assert_eq!(denied.member(), Some(1));
/// assert_eq!(denied.retry_after(), Some(Duration::from_secs(60)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
#[non_exhaustive]
pub enum AllDenied {
    /// A member denies. If several do, this is the one that denies for longest, or on a tie the
    /// first of them.
    #[non_exhaustive]
    Member {
        /// The member's number.
        member: usize,
        /// The member's name, if it has one.
        name: Option<&'static str>,
        /// The member's answer.
        denied: Denied,
    },
    /// The request had too few or too many costs: there must be one for each member.
    #[non_exhaustive]
    CostsLength {
        /// The number of costs.
        costs: usize,
        /// The number of members.
        members: usize,
    },
    /// All members would grant, but other callers wait in the line of the composition.
    Line,
    /// A member denies now or other callers wait, and the line of the composition is full: see
    /// `Line::max_waiting_permits`.
    #[non_exhaustive]
    LineFull {
        /// The largest cost of the request.
        requested: u64,
        /// The number of permits that callers in line wait for.
        waiting_permits: u64,
        /// The most permits that callers in line can wait for.
        max_waiting_permits: u64,
    },
}

impl AllDenied {
    pub(super) const fn of(member: usize, name: Option<&'static str>, denied: Denied) -> Self {
        Self::Member {
            member,
            name,
            denied,
        }
    }

    /// Returns this denial with `wait` as its `retry_after`.
    pub(super) const fn too_late_by(self, wait: Duration) -> Self {
        match self {
            Self::Member {
                member,
                name,
                denied,
            } => Self::of(member, name, Denied::later(denied.requested(), wait)),
            other => other,
        }
    }

    /// Returns the number of the member that denies for longest.
    #[must_use]
    pub const fn member(&self) -> Option<usize> {
        match self {
            Self::Member { member, .. } => Some(*member),
            Self::CostsLength { .. } | Self::Line | Self::LineFull { .. } => None,
        }
    }

    /// Returns the name of the member that denies for longest, if it has one.
    #[must_use]
    pub const fn name(&self) -> Option<&'static str> {
        match self {
            Self::Member { name, .. } => *name,
            Self::CostsLength { .. } | Self::Line | Self::LineFull { .. } => None,
        }
    }

    /// Returns the denial of the member that denies for longest.
    #[must_use]
    pub const fn denied(&self) -> Option<Denied> {
        match self {
            Self::Member { denied, .. } => Some(*denied),
            Self::CostsLength { .. } | Self::Line | Self::LineFull { .. } => None,
        }
    }

    /// Returns how long until all members would grant the request, if no other caller takes any
    /// permits. `None` if waiting does not help, or if the wait is not known.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Member { denied, .. } => denied.retry_after(),
            Self::CostsLength { .. } | Self::Line | Self::LineFull { .. } => None,
        }
    }

    /// Returns [`retry_after`](Self::retry_after) in whole seconds, rounded up, for the HTTP header
    /// `Retry-After`.
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bucket = TokenBucket::new("2 per 3s".parse()?)?; // one in 1.5 s
    /// let limits = All::new([Limiter::with_clock(bucket, ManualClock::new())])?;
    /// let _ = limits.try_acquire_n(2)?;
    /// let denied = limits.try_acquire().unwrap_err();
    /// assert_eq!(denied.retry_after_secs(), Some(2));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn retry_after_secs(&self) -> Option<u64> {
        match self.retry_after() {
            Some(wait) => Some(ceil_secs(wait)),
            None => None,
        }
    }

    /// Returns whether the same request can never be granted, even after a wait.
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), tollgate::error::ComposeError> {
    /// let limits = All::new([Limiter::token_bucket(Quota::per_hour(5))?])?;
    /// assert!(limits.try_acquire_n(6).unwrap_err().is_permanent());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn is_permanent(&self) -> bool {
        match self {
            Self::Member { denied, .. } => denied.is_permanent(),
            Self::CostsLength { .. } => true,
            Self::Line | Self::LineFull { .. } => false,
        }
    }

    /// Returns the denial that lasts longer: a permanent one, then one of unknown length, then the
    /// longer wait. On a tie, returns that of the member with the lower number.
    // Always inlined: where the denial is not read, the waits are not computed.
    #[inline(always)]
    pub(super) fn longer(self, other: Self) -> Self {
        match self.rank() >= other.rank() {
            true => self,
            false => other,
        }
    }

    #[inline(always)]
    const fn rank(&self) -> (u8, Duration, Reverse<Option<usize>>) {
        let member = Reverse(self.member());
        match (self.is_permanent(), self.retry_after()) {
            (true, _) => (2, Duration::ZERO, member),
            (false, None) => (1, Duration::ZERO, member),
            (false, Some(wait)) => (0, wait, member),
        }
    }
}

impl fmt::Display for AllDenied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member {
                name: Some(name),
                denied,
                ..
            } => write!(f, "{name}: {denied}"),
            Self::Member { member, denied, .. } => write!(f, "member {member}: {denied}"),
            Self::Line => f.write_str("other callers wait in line"),
            Self::LineFull {
                requested,
                waiting_permits,
                max_waiting_permits,
            } => Denied::line_full(*requested, *waiting_permits, *max_waiting_permits).fmt(f),
            Self::CostsLength { costs, members } => {
                write!(
                    f,
                    "number of costs is {costs}, but must be {members}: one for each member"
                )
            }
        }
    }
}

impl Error for AllDenied {}
