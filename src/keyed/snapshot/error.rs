use core::error::Error;
use core::fmt;
use std::io;
use std::string::String;

/// Why a snapshot was not restored: the table is as it was before.
///
/// ```
/// use tollgate::keyed::RestoreError;
/// use tollgate::{Keyed, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut limiter = Keyed::token_bucket(Quota::per_second(10), 1000)?;
/// limiter.try_acquire("alice")?;
/// let error = limiter.restore(&mut &b"something else altogether"[..]).unwrap_err();
/// assert!(matches!(error, RestoreError::NotASnapshot));
/// assert_eq!(limiter.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum RestoreError {
    /// It can't be read.
    Io(io::Error),
    /// It ends before it is complete.
    Truncated,
    /// It goes on where it should end.
    TooLong,
    /// It begins as no snapshot does.
    NotASnapshot,
    /// It is written in a way that this version of the crate does not know.
    Version {
        /// The version of the format in which it is written.
        found: u64,
        /// The latest version that is known.
        known: u64,
    },
    /// Its checksum is not that of what it holds: it is damaged.
    Checksum {
        /// The checksum of what was read.
        computed: u64,
        /// The checksum that is written.
        found: u64,
    },
    /// A number that no snapshot has there: it is damaged.
    Invalid {
        /// The field that has the number.
        field: &'static str,
        /// The number.
        found: u64,
        /// The least that it may be.
        min: u64,
        /// The most that it may be.
        max: u64,
    },
    /// It is of a table with another kind of algorithm.
    OtherAlgorithm {
        /// The algorithm of the snapshot's table.
        found: String,
        /// The algorithm of this table.
        expected: &'static str,
    },
    /// One of its plans has parameters that no such algorithm has; or its algorithm is one of which
    /// the parameters can't be checked
    /// ([`Settings::is_sound`](crate::algorithm::Settings::is_sound)), and they are not those of
    /// the table.
    OtherParameters {
        /// The plan.
        plan: usize,
    },
    /// The parameters of a key's own algorithm are none that such an algorithm has; or they can't be
    /// checked ([`Settings::is_sound`](crate::algorithm::Settings::is_sound)), and they are not
    /// those of the key's algorithm in the table.
    OtherOwnParameters,
    /// Keys of the table have algorithms of their own, and the hasher would take over another seed,
    /// with which these keys could not be found. Set them after the restore, or give the table a
    /// [`SeededHasher`](super::super::SeededHasher) with the seed of the snapshot's.
    OverridesOfAnotherSeed {
        /// How many keys have algorithms of their own.
        overrides: usize,
    },
    /// Either the snapshot or the table has names of plans, and the other has none; and this plan
    /// of the snapshot has another quota than the plan in the same place of the table, or is
    /// another algorithm, or there is none. Which plan it is can't be known.
    PlanNamesMissing {
        /// The plan, by its place in the snapshot.
        plan: usize,
        /// Whether the snapshot has no names; if not, the table has none.
        in_snapshot: bool,
    },
    /// It is of a table whose hasher had other hashes for the same keys. A hasher that can't be
    /// made again from [its seed](super::super::KeyHasher::seed) has, in another process.
    OtherHasher,
    /// There is no memory to make it another table.
    NoMemory,
}

impl RestoreError {
    /// A number in a field where only these may be; else the error.
    pub(super) fn unless_within(
        field: &'static str,
        found: u64,
        (min, max): (u64, u64),
    ) -> Result<u64, Self> {
        if (min..=max).contains(&found) {
            return Ok(found);
        }
        Err(Self::Invalid {
            field,
            found,
            min,
            max,
        })
    }
}

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
            Self::Io(error) => write!(f, "the snapshot can't be read: {error}"),
            Self::Truncated => f.write_str("the snapshot ends before it is complete"),
            Self::TooLong => f.write_str("the snapshot goes on where it should end"),
            Self::NotASnapshot => f.write_str("this is not a snapshot of a table"),
            Self::Version { found, known } => write!(
                f,
                "version of the snapshot is {found}, but must be from 1 to {known}"
            ),
            Self::Checksum { computed, found } => write!(
                f,
                "checksum is {found:#018x}, but must be {computed:#018x}: the snapshot is damaged"
            ),
            Self::Invalid {
                field,
                found,
                min,
                max,
            } if min == max => write!(
                f,
                "{field} is {found}, but must be {min}: the snapshot is damaged"
            ),
            Self::Invalid {
                field,
                found,
                min,
                max,
            } => write!(
                f,
                "{field} is {found}, but must be from {min} to {max}: the snapshot is damaged"
            ),
            Self::OtherAlgorithm { found, expected } => write!(
                f,
                "algorithm of the snapshot is {found:?}, but must be {expected:?}, that of the table"
            ),
            Self::OtherParameters { plan } => write!(
                f,
                "parameters of plan {plan} of the snapshot can't be those of such an algorithm, and are not those of \
                 the table"
            ),
            Self::OtherOwnParameters => f.write_str(
                "parameters of a key's own algorithm in the snapshot can't be those of such an algorithm, and are \
                 not those of the key's algorithm in the table",
            ),
            Self::OverridesOfAnotherSeed { overrides } => write!(
                f,
                "{overrides} keys have algorithms of their own, set with another seed than the snapshot's: set \
                 them after the restore, or give the table's hasher the same seed"
            ),
            Self::PlanNamesMissing { plan, in_snapshot } => {
                let without = if *in_snapshot { "snapshot" } else { "table" };
                write!(
                    f,
                    "plans of the {without} have no names, so plan {plan} of the snapshot must be plan {plan} of the \
                     table, with the same quota"
                )
            }
            Self::OtherHasher => f.write_str(
                "the snapshot is of a table with another hasher: its keys would not be found",
            ),
            Self::NoMemory => f.write_str("there is no memory for the snapshot's keys"),
        }
    }
}

impl Error for RestoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}
