use core::error::Error;
use core::fmt;

use crate::limiter_error::LimiterError;
use crate::quota::QuotaError;

/// The reason why a composition can't be made. Each variant except [`Limiter`](Self::Limiter) is
/// about the list of members or about one of them. It holds what is wrong and the allowed range,
/// unless these are always the same.
///
/// ```
/// use tollgate::compose::All;
/// use tollgate::error::{ComposeError, QuotaError};
/// use tollgate::{Limiter, Quota, TokenBucket};
///
/// fn all(quotas: &[Quota]) -> Result<All<Vec<Limiter<TokenBucket>>>, ComposeError> {
///     let limiters = quotas.iter().map(|quota| Limiter::token_bucket(*quota));
///     All::new(limiters.collect::<Result<_, _>>()?)
/// }
///
/// let error = all(&[]).unwrap_err();
/// assert_eq!(error, ComposeError::ZeroMembers);
/// assert_eq!(error.field(), "members");
/// // `?` has converted the error of a member.
/// assert_eq!(all(&[Quota::per_second(0)]).unwrap_err(), QuotaError::ZeroPermits.into());
/// ```
///
/// `Debug` shows the variant and its fields, also where `main` returns this error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ComposeError {
    /// A member can't be made. The inner error says why.
    Limiter(LimiterError),
    /// A composition has no members.
    ZeroMembers,
    /// A composition has too many members.
    TooManyMembers {
        /// The requested number of members.
        members: usize,
        /// The most members that are possible.
        max: usize,
    },
    /// Two members of a composition have different clocks.
    ClocksDiffer {
        /// The later member.
        member: usize,
        /// The earlier member, or the same one if it is made of limits on different clocks.
        other: usize,
    },
    /// A member of a composition is made of too many limits, each inside the other.
    NestedTooDeep {
        /// The member.
        member: usize,
        /// How deep it is nested.
        depth: u32,
        /// The deepest that is possible.
        max: u32,
    },
    /// Two members of a composition can't undo a grant.
    SecondWithoutUndo {
        /// The later member.
        member: usize,
        /// The earlier member.
        other: usize,
    },
}

impl ComposeError {
    /// Returns the name of the field that is wrong.
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Limiter(error) => error.field(),
            Self::ZeroMembers | Self::TooManyMembers { .. } => "members",
            Self::ClocksDiffer { .. } => "clock",
            Self::SecondWithoutUndo { .. } | Self::NestedTooDeep { .. } => "member",
        }
    }
}

impl fmt::Display for ComposeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = self.field();
        match self {
            Self::Limiter(error) => fmt::Display::fmt(error, f),
            Self::ZeroMembers => write!(f, "{field} is 0, but must be at least 1"),
            Self::TooManyMembers { members, max } => {
                write!(f, "{field} are {members}, but must be from 1 to {max}")
            }
            Self::ClocksDiffer { member, other } if member == other => {
                write!(
                    f,
                    "{field} of member {member} must be a single clock, but its limits have several"
                )
            }
            Self::ClocksDiffer { member, other } => write!(
                f,
                "{field} of member {member} must be the same as that of member {other}"
            ),
            Self::NestedTooDeep { member, depth, max } => write!(
                f,
                "{field} {member} is nested {depth} deep, but must be at most {max}"
            ),
            Self::SecondWithoutUndo { member, other } => write!(
                f,
                "{field} {member} can't undo a grant, and neither can member {other}: at most one \
                 member may be like this"
            ),
        }
    }
}

// `source` is `None` for a wrapped error too: its text is already that of this error.
impl Error for ComposeError {}

impl From<LimiterError> for ComposeError {
    fn from(error: LimiterError) -> Self {
        Self::Limiter(error)
    }
}

impl From<QuotaError> for ComposeError {
    fn from(error: QuotaError) -> Self {
        Self::Limiter(LimiterError::Quota(error))
    }
}
