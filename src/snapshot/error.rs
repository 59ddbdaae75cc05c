use core::error::Error;
use core::fmt;
#[cfg(feature = "std")]
use std::{io, string::String};

/// Why a snapshot of a limiter, or of a table of keys, was not restored. Nothing has changed then.
///
/// ```
/// use tollgate::error::RestoreError;
/// use tollgate::{Limiter, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Limiter::token_bucket(Quota::per_hour(10))?;
/// limiter.try_acquire()?;
/// let error = limiter.restore(b"something else altogether").unwrap_err();
/// assert!(matches!(error, RestoreError::NotASnapshot));
/// assert_eq!(limiter.available(), 9);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum RestoreError {
    /// It can't be read.
    #[cfg(feature = "std")]
    Io(io::Error),
    /// It ends before it is complete.
    Truncated,
    /// It goes on where it should end.
    TooLong,
    /// It does not begin as such a snapshot does. A limiter and a table of keys have different ones.
    NotASnapshot,
    /// This version of the crate does not know the snapshot's format.
    Version {
        /// The version of the format in which it is written.
        found: u64,
        /// The latest version that is known.
        known: u64,
    },
    /// Its checksum does not match its content: it is damaged.
    Checksum {
        /// The checksum of what was read.
        computed: u64,
        /// The checksum that is written.
        found: u64,
    },
    /// A field has a number that is not allowed there: it is damaged.
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
    /// It is of a limiter with another kind of algorithm.
    #[non_exhaustive]
    OtherAlgorithm {
        /// The algorithm of the snapshot.
        #[cfg(feature = "std")]
        found: String,
        /// The algorithm of this limiter.
        expected: &'static str,
    },
    /// The parameters in the snapshot are not those of the limiter, and its words can't be carried
    /// over: no such algorithm has these parameters, or the algorithm can't check them
    /// ([`Settings::is_sound`](crate::algorithm::Settings::is_sound)).
    OtherParameters {
        /// The plan in the snapshot, if it is of a table of keys.
        plan: Option<usize>,
    },
    /// The parameters of a key's own algorithm are none that such an algorithm has; or they can't be
    /// checked ([`Settings::is_sound`](crate::algorithm::Settings::is_sound)), and they are not
    /// those of the key's algorithm in the table.
    OtherOwnParameters,
    /// Keys of the table have algorithms of their own, and the hasher would take over another seed,
    /// with which these keys could not be found. Set them after the restore, or give the table a
    /// `SeededHasher` with the seed of the snapshot's.
    OverridesOfAnotherSeed {
        /// How many keys have algorithms of their own.
        overrides: usize,
    },
    /// Of the snapshot and the table of keys, only one has names of plans, and this plan of the
    /// snapshot has no equal in the same place of the table. Which plan it is can't be known.
    PlanNamesMissing {
        /// The plan, by its place in the snapshot.
        plan: usize,
        /// Whether the snapshot has no names; if not, the table has none.
        in_snapshot: bool,
    },
    /// It is of a table whose hasher had other hashes for the same keys. A hasher that can't be
    /// made again from its seed has, in another process.
    OtherHasher,
    /// The bytes of a key are none that
    /// [`SnapshotKey`](https://docs.rs/tollgate/latest/tollgate/keyed_map/trait.SnapshotKey.html)
    /// can read.
    InvalidKey {
        /// Which key of the snapshot it is, from 1 on.
        key: u64,
    },
    /// There is no memory for another table.
    NoMemory,
}

impl RestoreError {
    /// A number in a field where only these may be; else the error.
    pub(crate) fn unless_within(
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

    /// The algorithm of the snapshot has this name and not that of the limiter.
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
            Self::Truncated => f.write_str("the snapshot ends before it is complete"),
            Self::TooLong => f.write_str("the snapshot goes on where it should end"),
            Self::NotASnapshot => f.write_str(
                "this is not such a snapshot (a limiter and a table of keys have different ones)",
            ),
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
            #[cfg(feature = "std")]
            Self::OtherAlgorithm { found, expected } => write!(
                f,
                "algorithm of the snapshot is {found:?}, but must be {expected:?}, that of the limiter"
            ),
            #[cfg(not(feature = "std"))]
            Self::OtherAlgorithm { expected } => write!(
                f,
                "algorithm of the snapshot must be {expected:?}, that of the limiter"
            ),
            Self::OtherParameters { plan } => {
                f.write_str("parameters ")?;
                if let Some(plan) = plan {
                    write!(f, "of plan {plan} ")?;
                }
                f.write_str(
                    "of the snapshot must be those of the limiter, since its algorithm can't have \
                     them, or can't check them",
                )
            }
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
            Self::InvalidKey { key } => write!(
                f,
                "bytes of key {key} of the snapshot must be those of a key of this map's type, and are not"
            ),
            Self::NoMemory => f.write_str("there is no memory for the snapshot's keys"),
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
