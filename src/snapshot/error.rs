use core::error::Error;
use core::fmt;
#[cfg(feature = "std")]
use std::{io, string::String};

/// The reason why a snapshot was not restored. A limiter or table is unchanged after this error.
///
/// ```
/// use tollgate::error::RestoreError;
/// use tollgate::{Limiter, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Limiter::token_bucket(Quota::per_hour(10))?;
/// limiter.try_acquire()?;
/// let error = limiter.restore(b"not a snapshot").unwrap_err();
/// assert!(matches!(error, RestoreError::NotASnapshot));
/// assert_eq!(limiter.available(), 9);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum RestoreError {
    /// The snapshot can't be read.
    #[cfg(feature = "std")]
    Io(io::Error),
    /// The snapshot ends too early.
    Truncated,
    /// More bytes follow the end of the snapshot.
    TooLong,
    /// The first bytes are not those of a snapshot.
    NotASnapshot,
    /// The snapshot is of a table of keys and must be of a limiter, or the reverse.
    OtherKind {
        /// `true` if the snapshot is of a table of keys.
        is_of_table: bool,
    },
    /// The snapshot is damaged: its checksum does not match its content.
    Checksum {
        /// The checksum of the content.
        computed: u64,
        /// The checksum in the snapshot.
        found: u64,
    },
    /// A field holds a number that is out of range: the snapshot is damaged, or its version is
    /// another.
    Invalid {
        /// The field.
        field: &'static str,
        /// The number that it holds.
        found: u64,
        /// The lowest number that is allowed.
        min: u64,
        /// The highest number that is allowed.
        max: u64,
    },
    /// The snapshot is of a limiter with another kind of algorithm.
    #[non_exhaustive]
    OtherAlgorithm {
        /// The algorithm of the snapshot.
        #[cfg(feature = "std")]
        found: String,
        /// The algorithm of this limiter.
        expected: &'static str,
    },
    /// The snapshot's parameters differ from those of the algorithm that would continue, and its
    /// words can't be carried over. No constructor of the algorithm makes such parameters, or the
    /// algorithm can't check them ([`Settings::is_sound`](crate::algorithm::Settings::is_sound)).
    OtherParameters {
        /// The plan in the snapshot of a table. `None` if it is a limiter's algorithm, or one of a
        /// key of the table.
        plan: Option<usize>,
    },
    /// Keys of the table have algorithms of their own, and the snapshot's hasher has another seed.
    /// With that seed the table would no longer find these keys. Set their algorithms after the
    /// restore, or give the table a `SeededHasher` with the snapshot's seed.
    OverridesOfAnotherSeed {
        /// How many keys have algorithms of their own.
        overrides: usize,
    },
    /// Only the snapshot or only the table has names of plans, so plans are matched by position.
    /// This plan of the snapshot differs from the table's plan at the same position, so the right
    /// plan is unknown.
    PlanNamesMissing {
        /// The plan, by its position in the snapshot.
        plan: usize,
        /// `true` if the snapshot has no names. `false` if the table has none.
        in_snapshot: bool,
    },
    /// The snapshot is of a table with a hasher that gives other hashes. A hasher that can't be
    /// rebuilt from its seed gives other hashes in each process.
    OtherHasher,
    /// There is not enough memory for another table.
    NoMemory,
}

/// The lowest and the highest number that a field may hold.
pub(crate) type Range = (u64, u64);

impl RestoreError {
    /// Returns the number if it is within the range, and an error otherwise.
    pub(crate) fn unless_within(
        field: &'static str,
        found: u64,
        (min, max): Range,
    ) -> Result<u64, Self> {
        let invalid = Self::Invalid {
            field,
            found,
            min,
            max,
        };
        (min..=max).contains(&found).then_some(found).ok_or(invalid)
    }

    /// Returns the error for a snapshot whose algorithm has another name than the limiter's.
    pub(crate) fn other_algorithm(found: &[u8], expected: &'static str) -> Self {
        #[cfg(not(feature = "std"))]
        let _ = found;
        Self::OtherAlgorithm {
            #[cfg(feature = "std")]
            found: String::from_utf8_lossy(found).into_owned(),
            expected,
        }
    }
}

#[cfg(feature = "std")]
impl From<io::Error> for RestoreError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Truncated,
            _ => Self::Io(error),
        }
    }
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(feature = "std")]
            Self::Io(error) => write!(f, "the snapshot can't be read: {error}"),
            Self::Truncated => f.write_str("the snapshot ends too early"),
            Self::TooLong => f.write_str("more bytes follow the end of the snapshot"),
            Self::NotASnapshot => f.write_str("this is not a snapshot"),
            Self::OtherKind { is_of_table } => {
                let (found, right) = match is_of_table {
                    true => ("a table of keys", "a limiter"),
                    false => ("a limiter", "a table of keys"),
                };
                write!(f, "the snapshot is of {found}, but must be of {right}")
            }
            Self::Checksum { computed, found } => write!(
                f,
                "checksum is {found:#018x}, but must be {computed:#018x}: the snapshot is damaged"
            ),
            Self::Invalid {
                field,
                found,
                min,
                max,
            } => {
                write!(f, "in the snapshot, {field} is {found}, but must be ")?;
                if min < max {
                    write!(f, "from {min} to ")?;
                }
                write!(f, "{max}")
            }
            Self::OtherAlgorithm {
                #[cfg(feature = "std")]
                found,
                expected,
            } => {
                f.write_str("algorithm of the snapshot ")?;
                #[cfg(feature = "std")]
                write!(f, "is {found:?}, but ")?;
                write!(f, "must be {expected:?}, that of the limiter")
            }
            Self::OtherParameters { plan } => {
                f.write_str("parameters ")?;
                if let Some(plan) = plan {
                    write!(f, "of plan {plan} ")?;
                }
                f.write_str("of the snapshot must be those of the limiter, since its algorithm ")?;
                f.write_str("rejects them, or can't check them")
            }
            Self::OverridesOfAnotherSeed { overrides } => {
                write!(
                    f,
                    "{overrides} keys have algorithms of their own, set with another seed "
                )?;
                f.write_str("than the snapshot's: set them after the restore, or give the ")?;
                f.write_str("table's hasher the snapshot's seed")
            }
            Self::PlanNamesMissing { plan, in_snapshot } => {
                let without = if *in_snapshot { "snapshot" } else { "table" };
                write!(
                    f,
                    "plans of the {without} have no names, so plan {plan} of the snapshot "
                )?;
                write!(f, "must be plan {plan} of the table, with the same quota")
            }
            Self::OtherHasher => f.write_str(
                "the snapshot is of a table with another hasher, so its keys would not be found",
            ),
            Self::NoMemory => f.write_str("there is not enough memory for the snapshot's keys"),
        }
    }
}

impl Error for RestoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            #[cfg(feature = "std")]
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}
