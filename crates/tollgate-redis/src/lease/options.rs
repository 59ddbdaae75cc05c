//! How a limit leases permits.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use tollgate::error::LimiterError;

use crate::lease::held::MOST_HELD;
use crate::lease::terms::{LONGEST_PAUSE_NS, Terms};
use crate::limit::Limit;
use crate::limit::fallback_error::FallbackError;
use crate::limit::kind::{Kind, Shape};

/// How the processes of a limit lease permits.
///
/// ```
/// use std::time::Duration;
/// use tollgate_redis::Leasing;
///
/// let leasing = Leasing::new().with_life(Duration::from_secs(2)).with_keys(100_000);
/// assert_ne!(leasing, Leasing::new());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Leasing {
    /// If it is not the usual one.
    life: Option<Duration>,
    keys: usize,
    percent: u32,
    asks_at_the_edge: bool,
    allowance: Option<Allowance>,
}

impl Default for Leasing {
    fn default() -> Self {
        Self::new()
    }
}

/// The permits of each key that a process grants without the server: see
/// [`Leasing::with_allowance`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Allowance {
    /// Which part of a limit the allowances of all processes are: from 1 to 99 percent. The permits
    /// of each are rounded down, and must be at least one, or two in each window.
    pub percent: u32,
    /// How many processes use the limit at a time, at most. In a deployment that starts new
    /// processes before it ends the old ones, both count.
    pub processes: u32,
    /// How many keys are in use at the same time, in this process. The table for them has a fixed
    /// size: see [`tollgate::Keyed`]. The server decides the keys that find no room.
    pub keys: usize,
}

/// The shortest life of a lease.
const SHORTEST_MICROS: u64 = 200_000;

const SHORTEST: Duration = Duration::from_micros(SHORTEST_MICROS);

const LONGEST: Duration = Duration::from_secs(60);

/// Idle slots are looked at this often, so that others get those that are not used.
const SLOTS_REVIEW_NS: u64 = 250_000_000;

impl Leasing {
    /// Leases last a second, at most 10 000 keys have one at a time in each process, a process
    /// holds at most a quarter of a burst, and a process with nothing left denies. For a limit on
    /// concurrency, leases last as long as those of its slots, but at most a minute.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            life: None,
            keys: 10_000,
            percent: 25,
            asks_at_the_edge: false,
            allowance: None,
        }
    }

    /// Sets how long a lease lasts: from 200 ms to a minute. A window's leases last no longer than
    /// the window, and those of a limit on concurrency no longer than those of its slots. What a
    /// process that is killed holds is lost: buckets refill it after this time, and slots are free.
    /// A process that loses the server spends what it holds for this long, and then its guards are
    /// lost.
    #[must_use]
    pub const fn with_life(self, life: Duration) -> Self {
        Self {
            life: Some(life),
            ..self
        }
    }

    /// Sets how many keys have a lease at a time, in each process. The others are decided by the
    /// [allowance](Self::with_allowance), if there is one, and by the server.
    #[must_use]
    pub const fn with_keys(self, keys: usize) -> Self {
        Self { keys, ..self }
    }

    /// Sets which part of a burst, or of a window, a process holds at most: from 1 to 100 percent.
    /// Of slots, those that are in use don't count. A request for more than this is decided by the
    /// server, unless the process holds as much.
    #[must_use]
    pub const fn with_share(self, percent: u32) -> Self {
        Self { percent, ..self }
    }

    /// Lets a process with nothing left ask the server, and wait for it, in place of a denial. So
    /// a request is denied only if the permits are spent, or if other processes hold them.
    #[must_use]
    pub const fn asking_at_the_edge(self) -> Self {
        Self {
            asks_at_the_edge: true,
            ..self
        }
    }

    /// Gives each process an allowance: permits of each key that it grants without the server, also
    /// of keys that are asked for seldom. Only when the allowance of a key is spent, the server is
    /// asked, and a key for which this happens often gets a lease. Limits on concurrency have none.
    ///
    /// The allowances of all processes are a part of the limit, and the server has the rest. So the
    /// bound stays exact, if no more processes run at a time than the allowance says. After its
    /// first request, a process does not use its allowances for burst / rate of the limit, or for a
    /// window's period, because the process that it replaces may have spent its own just before.
    /// [Many machines](crate::guide::distributed) has more.
    ///
    /// - A key that is asked for at one process alone gets the server's part and one allowance: of
    ///   20 percent among 4 processes, 85 percent of the limit. And no request takes more permits
    ///   than the server's part has.
    /// - A ban by another process is known here when the server decides a request for the key: when
    ///   the key's allowance is spent. So a key that is asked for less often than the allowance
    ///   refills is never denied here. A reset by another process neither refills the allowance
    ///   here, nor ends a ban that is known here.
    /// - `settle` charges the part that granted the request. `charge` charges the server's part.
    /// - Two limiters of one name in a process count as two processes.
    /// - All processes must have the same allowance. To change it, choose another name for the
    ///   limit, or let all processes end.
    ///
    /// ```
    /// use tollgate_redis::{Allowance, Leasing};
    ///
    /// let allowance = Allowance { percent: 20, processes: 4, keys: 100_000 };
    /// assert_ne!(Leasing::new().with_allowance(allowance), Leasing::new());
    /// ```
    #[must_use]
    pub const fn with_allowance(self, allowance: Allowance) -> Self {
        Self {
            allowance: Some(allowance),
            ..self
        }
    }

    pub(crate) const fn allowance(&self) -> Option<Allowance> {
        self.allowance
    }

    pub(crate) const fn keys(&self) -> usize {
        self.keys
    }

    pub(crate) const fn asks(&self) -> bool {
        self.asks_at_the_edge
    }

    /// Returns the numbers of a limit's leases.
    pub(crate) fn terms(&self, limit: &Limit) -> Result<Terms, LeaseError> {
        let life = match self.life {
            Some(life) if !(SHORTEST..=LONGEST).contains(&life) => {
                return Err(LeaseError::Life { life });
            }
            life => life.map(|life| u64::try_from(life.as_micros()).unwrap_or(u64::MAX)),
        };
        let second = life.unwrap_or(1_000_000);
        let (life, cost_ns, slots) = match &limit.kind {
            Kind::Bucket(bucket) if bucket.free.is_none() => {
                let (n, period) = (bucket.rate.n(), bucket.rate.period());
                (second, cost_ns(n, period), None)
            }
            Kind::Window(window) if window.shape != Shape::FirstHit => {
                // A permit of a window is not spent in the one after the next.
                let life = second.min(window.period);
                if life < SHORTEST_MICROS {
                    let period = Duration::from_micros(window.period);
                    return Err(LeaseError::Window { period });
                }
                (life, cost_ns(window.limit, window.period), None)
            }
            Kind::Slots(slots) => {
                let longest = u64::try_from(LONGEST.as_micros()).unwrap_or(u64::MAX);
                let life = life.unwrap_or(longest).min(slots.lease);
                if life < SHORTEST_MICROS {
                    let lease = Duration::from_micros(slots.lease);
                    return Err(LeaseError::Slots { lease });
                }
                // No time frees a slot.
                (life, LONGEST_PAUSE_NS, Some(slots.lease))
            }
            _ => return Err(LeaseError::Limit),
        };
        if self.keys == 0 {
            return Err(LeaseError::NoKeys);
        }
        if !(1..=100).contains(&self.percent) {
            return Err(LeaseError::Share {
                percent: self.percent,
            });
        }
        let share = u128::from(limit.permits()) * u128::from(self.percent) / 100;
        let most = u64::try_from(share).unwrap_or(u64::MAX);
        let life_ns = life.saturating_mul(1000);
        let review_ns = life_ns / 4;
        Ok(Terms {
            life_ns,
            most: most.clamp(1, MOST_HELD / 2),
            cost_ns,
            is_window: matches!(limit.kind, Kind::Window(_)),
            review_ns: match slots {
                Some(_) => review_ns.min(SLOTS_REVIEW_NS),
                None => review_ns,
            },
            slots_ns: slots.map(|lease| lease.saturating_mul(1000)),
        })
    }
}

/// Returns how long a permit takes to refill.
fn cost_ns(permits: u64, period: u64) -> u64 {
    period.saturating_mul(1000) / permits.max(1)
}

/// The reason why a limit can't lease permits.
///
/// ```
/// use tollgate_redis::LeaseError;
///
/// let error = LeaseError::Share { percent: 0 };
/// assert_eq!(error.to_string(), "the share is 0 percent, but must be from 1 to 100");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LeaseError {
    /// The limit is a queue, a log or a first-hit window.
    Limit,
    /// The life is out of bounds.
    Life {
        /// The life.
        life: Duration,
    },
    /// A window is shorter than the shortest lease.
    Window {
        /// The period of the windows.
        period: Duration,
    },
    /// The lease of a slot is shorter than the shortest lease of a process.
    Slots {
        /// The lease of a slot.
        lease: Duration,
    },
    /// `percent` is not from 1 to 99, `processes` is 0, or an allowance would have no permit.
    Allowance {
        /// Which part of the limit they are.
        percent: u32,
        /// Among how many processes.
        processes: u32,
    },
    /// A limit on concurrency has no allowance.
    AllowanceOfSlots,
    /// A part of the rate can't be counted exactly.
    AllowanceRate,
    /// The table of allowances can't be made.
    AllowanceKeys(LimiterError),
    /// The fallback has no local share of the server's part.
    Fallback(FallbackError),
    /// No key could have a lease.
    NoKeys,
    /// The share is out of bounds.
    Share {
        /// The share.
        percent: u32,
    },
}

impl fmt::Display for LeaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit => f.write_str(
                "the limit has no leases: only token buckets, fixed windows, sliding windows and \
                 concurrency do",
            ),
            Self::Life { life } => {
                write!(f, "the life is {life:?}, but must be from 200ms to 60s")
            }
            Self::Window { period } => {
                write!(f, "a window is {period:?}, but must be at least 200ms")
            }
            Self::Slots { lease } => write!(
                f,
                "the lease of a slot is {lease:?}, but must be at least 200ms"
            ),
            Self::Allowance { percent, processes } => write!(
                f,
                "the allowance is {percent} percent of the limit among {processes} processes, but \
                 must be from 1 to 99 percent, and at least one permit of a burst, or two of a \
                 window, for each process"
            ),
            Self::Fallback(error) => write!(f, "the server's part: {error}"),
            Self::AllowanceOfSlots => f.write_str(
                "a limit on concurrency has no allowance: only token buckets, fixed windows and \
                 sliding windows do",
            ),
            Self::AllowanceRate => f.write_str(
                "a part of the rate can't be counted exactly: the limit and the percentage must \
                 have rounder numbers, or the period must be shorter",
            ),
            Self::AllowanceKeys(error) => write!(f, "the allowance's keys: {error}"),
            Self::NoKeys => f.write_str("keys is 0, but must be at least 1"),
            Self::Share { percent } => {
                write!(
                    f,
                    "the share is {percent} percent, but must be from 1 to 100"
                )
            }
        }
    }
}

impl Error for LeaseError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::AllowanceKeys(error) => Some(error),
            Self::Fallback(error) => Some(error),
            _ => None,
        }
    }
}
