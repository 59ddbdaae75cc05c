//! What happens while the server does not answer: the breaker and the policies.
//!
//! The breaker is a state machine without a clock: callers pass the time, in microseconds.
//!
//! ```text
//!        a call fails                      a probe fails
//!  up ─────────────────► down (an outage) ───────┐
//!   ▲                     │  ▲                   │
//!   └─────────────────────┘  └───────────────────┘
//!        a probe succeeds
//! ```

use std::fmt;
use std::time::Duration;

use tollgate::{ConfigError, Denied};

use crate::client::ClientError;

pub(crate) use crate::stats::{Decider, Stats};

/// What a limit decides while the server does not answer.
///
/// In a cluster, each node has outages of its own, in which only the keys of this node fall back.
///
/// ```
/// use tollgate_redis::Fallback;
///
/// // Four processes share the limit. Each grants a quarter of it to each of its keys.
/// let fallback = Fallback::Local { processes: 4, keys: 10_000 };
/// assert_ne!(fallback, Fallback::Closed);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Fallback {
    /// Deny everything.
    #[default]
    Closed,
    /// Grant at most this many permits in a whole outage, over all keys of the limit in this
    /// process, and then deny. The next outage shares the count if the server has granted nothing
    /// between the two.
    Open {
        /// The most permits in one outage, however long it is.
        at_most: u64,
    },
    /// Grant each key a share of the limit, which a limiter in this process enforces. Limits on
    /// concurrency have none.
    ///
    /// A bucket's share has the rate and the burst divided by `processes`. A window's share has the
    /// permits divided by it, and that of a log is a sliding window. Bursts and permits are rounded
    /// down, but are at least one.
    Local {
        /// How many processes share the limit: at least 1.
        processes: u32,
        /// How many keys are in use at the same time, in this process. The table for them has a
        /// fixed size: see [`tollgate::Keyed`].
        keys: usize,
    },
}

/// The reason why a fallback was not accepted.
///
/// ```
/// use tollgate_redis::FallbackError;
///
/// let error = FallbackError::NoProcesses;
/// assert_eq!(error.to_string(), "processes is 0, but must be at least 1");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FallbackError {
    /// The number of processes is 0.
    NoProcesses,
    /// The limit is one on concurrency, which has no local share. [`Fallback::Open`] bounds how
    /// many slots are granted in an outage.
    Concurrency,
    /// The local limiter does not accept its share of the quota, or the number of keys.
    Local(ConfigError),
}

impl fmt::Display for FallbackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProcesses => f.write_str("processes is 0, but must be at least 1"),
            Self::Concurrency => f.write_str(
                "fallback is Local, but must be Closed or Open for a limit on concurrency",
            ),
            Self::Local(ConfigError::ZeroCapacity) => {
                f.write_str("keys is 0, but must be at least 1")
            }
            Self::Local(ConfigError::CapacityTooLarge { capacity, max, .. }) => write!(
                f,
                "keys is {capacity}, but must be from 1 to {max}, and there must be memory for them"
            ),
            Self::Local(error) => write!(f, "the local share: {error}"),
        }
    }
}

impl std::error::Error for FallbackError {}

/// The reason why the server did not do what it was asked to do.
///
/// ```
/// use std::time::Duration;
/// use tollgate_redis::Unavailable;
///
/// let late = Unavailable::TimedOut { budget: Duration::from_millis(50) };
/// assert!(late.may_have_taken_effect());
/// assert_eq!(late.to_string(), "the server did not answer within 50ms");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unavailable {
    /// The command was not sent, its answer is lost, or the server refused it.
    Client(ClientError),
    /// No reply came within the budget of the call.
    TimedOut {
        /// The budget.
        budget: Duration,
    },
    /// The reply is not one that the script gives: something else answers, or has written the key.
    BadReply,
    /// There is an outage, and nothing was sent. The next probe is due after this time.
    Outage {
        /// When the server is asked again.
        retry_after: Duration,
    },
}

impl Unavailable {
    /// Returns whether the command may have taken effect on the server all the same.
    #[must_use]
    pub const fn may_have_taken_effect(&self) -> bool {
        match self {
            Self::Client(error) => error.may_have_taken_effect(),
            Self::TimedOut { .. } | Self::BadReply => true,
            Self::Outage { .. } => false,
        }
    }

    /// Returns whether other keys would fail too, so that an outage begins.
    fn is_general(&self) -> bool {
        let is_alone = |error: &ClientError| {
            let codes = ["BADSTATE", "WRONGTYPE", "TRYAGAIN"];
            codes.into_iter().any(|code| error.is_code(code))
        };
        !matches!(self, Self::Client(error) if is_alone(error))
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(error) => error.fmt(f),
            Self::TimedOut { budget } => {
                write!(f, "the server did not answer within {budget:?}")
            }
            Self::BadReply => f.write_str("the server's reply is not one that the script gives"),
            Self::Outage { retry_after } => write!(
                f,
                "nothing was sent, because there is an outage: the next probe is due in \
                 {retry_after:?}"
            ),
        }
    }
}

impl std::error::Error for Unavailable {}

/// The beginning or the end of an outage, for one line in a log.
///
/// ```
/// use tollgate_redis::{OutageEvent, Server};
///
/// let server = Server::new(()).on_outage(|event| match event {
///     OutageEvent::Began { why, .. } => eprintln!("limits fall back: {why}"),
///     event => println!("{event}"),
/// });
/// # drop(server);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutageEvent {
    /// The server failed. The fallbacks decide from now on.
    #[non_exhaustive]
    Began {
        /// The first failure.
        why: Unavailable,
    },
    /// The server has answered a probe. It decides from now on.
    #[non_exhaustive]
    Ended {
        /// How long the outage was.
        lasted: Duration,
        /// How many decisions the fallbacks made in it.
        fallbacks: u64,
    },
}

impl fmt::Display for OutageEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Began { why } => write!(f, "limits fall back: {why}"),
            Self::Ended { lasted, fallbacks } => write!(
                f,
                "the server decides again after {lasted:?}, in which fallbacks made {fallbacks} \
                 decisions"
            ),
        }
    }
}

/// Permission to send one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pass {
    /// The period, up or down, in which the call was sent.
    period: u64,
}

/// Which outage it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct OutageId {
    /// The node that is down: see [`Client::node_of`](crate::client::Client::node_of).
    pub(crate) node: u64,
    /// Greater than the numbers of earlier outages of this node. The time before the first is 0. An
    /// outage without a grant of the server since the one before has the same number.
    pub(crate) number: u64,
}

/// An outage as a fallback sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outage {
    pub(crate) id: OutageId,
    /// How long it is until the next probe, or an interval if there is no outage.
    pub(crate) retry_after: Duration,
}

/// Stops calls to a node that failed, but for one probe in each interval.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    node: u64,
    /// Grows with each beginning and each end of an outage. A call that was sent in an earlier
    /// period says nothing about this one.
    period: u64,
    /// The number of the latest outage.
    number: u64,
    /// Whether the server has not granted anything since the latest outage began. It may answer
    /// what writes nothing, and refuse the rest: a replica, or a server that is out of memory.
    has_not_granted: bool,
    /// `None` while the server is up.
    down: Option<Down>,
    pub(crate) stats: Stats,
}

#[derive(Debug)]
struct Down {
    since: u64,
    probe_at: u64,
    /// [`Stats::fallbacks`] at the beginning.
    fallbacks: u64,
}

impl Breaker {
    pub(crate) fn of(node: u64) -> Self {
        Self {
            node,
            ..Self::default()
        }
    }

    pub(crate) const fn node(&self) -> u64 {
        self.node
    }

    /// Returns the latest outage.
    const fn id(&self) -> OutageId {
        OutageId {
            node: self.node,
            number: self.number,
        }
    }

    /// Returns whether a call may be sent at `now`. In an outage one call may, as a probe, and then
    /// none for `interval`. So a probe that is dropped does not prevent the next one.
    pub(crate) fn ask(&mut self, now: u64, interval: u64) -> Result<Pass, Outage> {
        let pass = Pass {
            period: self.period,
        };
        match &mut self.down {
            None => Ok(pass),
            Some(down) if now >= down.probe_at => {
                down.probe_at = now.saturating_add(interval.max(1));
                Ok(pass)
            }
            Some(_) => Err(self.outage(now, interval)),
        }
    }

    /// Notes that the server has answered, and whether it granted permits. A probe's answer ends
    /// the outage.
    pub(crate) fn answered(&mut self, pass: Pass, now: u64, granted: bool) -> Option<OutageEvent> {
        self.stats.server = self.stats.server.saturating_add(1);
        if pass.period != self.period {
            return None;
        }
        self.has_not_granted &= !granted;
        self.end(now)
    }

    /// Ends the outage, if there is one.
    pub(crate) fn end(&mut self, now: u64) -> Option<OutageEvent> {
        let down = self.down.take()?;
        self.period = self.period.saturating_add(1);
        Some(OutageEvent::Ended {
            lasted: Duration::from_micros(now.saturating_sub(down.since)),
            fallbacks: self.stats.fallbacks().saturating_sub(down.fallbacks),
        })
    }

    /// Notes that a call has failed. The first failure begins an outage. After a failed probe the
    /// next one waits for a whole interval, or a caller whose budget is longer than the interval
    /// would send nothing but probes. A probe that fails for its key alone ends the outage, or a
    /// busy key that always fails would take the probes of all others.
    pub(crate) fn failed(
        &mut self,
        pass: Pass,
        why: &Unavailable,
        now: u64,
        interval: u64,
    ) -> Option<OutageEvent> {
        self.stats.failed = self.stats.failed.saturating_add(1);
        if why.may_have_taken_effect() {
            self.stats.lost = self.stats.lost.saturating_add(1);
        }
        if pass.period != self.period {
            return None;
        }
        if !why.is_general() {
            return self.end(now);
        }
        let probe_at = now.saturating_add(interval.max(1));
        if let Some(down) = &mut self.down {
            down.probe_at = down.probe_at.max(probe_at);
            return None;
        }
        self.period = self.period.saturating_add(1);
        if !self.has_not_granted {
            self.number = self.number.saturating_add(1);
            self.has_not_granted = true;
        }
        self.stats.outages = self.stats.outages.saturating_add(1);
        self.down = Some(Down {
            since: now,
            probe_at,
            fallbacks: self.stats.fallbacks(),
        });
        Some(OutageEvent::Began { why: why.clone() })
    }

    /// Notes that a caller has dropped a call before its answer, and whether it was sent.
    pub(crate) fn dropped(&mut self, sent: bool) {
        self.stats.failed = self.stats.failed.saturating_add(1);
        if sent {
            self.lost();
        }
    }

    /// Notes that permits stay taken which no caller has.
    pub(crate) fn lost(&mut self) {
        self.stats.lost = self.stats.lost.saturating_add(1);
    }

    /// Returns the latest outage. A call that fails after its end, because it was sent before or
    /// because one key has failed, shares its bound for what is granted.
    pub(crate) fn outage(&self, now: u64, interval: u64) -> Outage {
        let soon = now.saturating_add(interval.max(1));
        let probe_at = self.down.as_ref().map_or(soon, |down| down.probe_at);
        Outage {
            id: self.id(),
            retry_after: Duration::from_micros(probe_at.saturating_sub(now)),
        }
    }

    pub(crate) const fn is_down(&self) -> bool {
        self.down.is_some()
    }
}

/// What [`Fallback::Open`] has granted in an outage of one node.
#[derive(Debug, Default)]
pub(crate) struct OpenBound {
    outage: u64,
    granted: u64,
}

impl OpenBound {
    /// Takes permits if the whole outage grants no more than `at_most`.
    pub(crate) fn take(&mut self, outage: Outage, n: u64, at_most: u64) -> Result<u64, Denied> {
        if outage.id.number > self.outage {
            self.outage = outage.id.number;
            self.granted = 0;
        }
        let left = at_most.saturating_sub(self.granted);
        match left.checked_sub(n) {
            Some(left) => {
                self.granted = at_most.saturating_sub(left);
                Ok(left)
            }
            None => Err(Denied::later(n, outage.retry_after)),
        }
    }

    /// Takes permits unconditionally.
    pub(crate) fn charge(&mut self, n: u64) {
        self.granted = self.granted.saturating_add(n);
    }

    /// Gives permits of an outage back. Those of an earlier one are of no use.
    pub(crate) fn give(&mut self, outage: u64, n: u64) -> u64 {
        if outage != self.outage {
            return 0;
        }
        let back = n.min(self.granted);
        self.granted = self.granted.saturating_sub(back);
        back
    }
}

#[cfg(test)]
#[path = "../tests/outage/mod.rs"]
mod tests;
