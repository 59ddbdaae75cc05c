//! What happens while the server does not answer: the breaker.
//!
//! The breaker is a state machine without a clock: callers pass the time, in microseconds.
//!
//! ```text
//!        too many calls fail               a probe fails
//!  up ─────────────────────► down (an outage) ───────┐
//!   ▲                         │  ▲                   │
//!   └─────────────────────────┘  └───────────────────┘
//!        a probe succeeds
//! ```

pub(crate) mod fallback;
pub(crate) mod report;
pub(crate) mod stats;

use std::fmt;
use std::mem;
use std::time::Duration;

use crate::client::ClientError;
use crate::outage::report::Lasting;

pub(crate) use stats::{Decider, Stats};

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
    /// The call was not sent: the client was still connecting when the call's budget was over.
    NotConnected {
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
            Self::NotConnected { .. } | Self::Outage { .. } => false,
        }
    }

    /// Returns what a failure says about the server.
    fn sign(&self) -> Sign {
        match self {
            Self::Client(error @ ClientError::Refused { .. }) => {
                let codes = ["BADSTATE", "WRONGTYPE", "TRYAGAIN"];
                match codes.into_iter().any(|code| error.is_code(code)) {
                    true => Sign::KeyAlone,
                    false => Sign::Refusal,
                }
            }
            Self::Client(ClientError::NotSent(_) | ClientError::Url(_)) => Sign::NoServer,
            Self::Client(ClientError::Unknown(_))
            | Self::TimedOut { .. }
            | Self::NotConnected { .. }
            | Self::Outage { .. } => Sign::NoAnswer,
            Self::BadReply => Sign::Refusal,
        }
    }
}

/// What the failure of a call says about the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// The key of this call can't be decided. Others can.
    KeyAlone,
    /// The server has answered, but has not decided.
    Refusal,
    NoAnswer,
    /// A client can't connect.
    NoServer,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(error) => error.fmt(f),
            Self::TimedOut { budget } => {
                write!(f, "the server did not answer within {budget:?}")
            }
            Self::NotConnected { budget } => {
                write!(
                    f,
                    "the command was not sent: there is no connection after {budget:?}"
                )
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
/// use tollgate_redis::{OutageEvent, RedisServer};
///
/// let server = RedisServer::new(()).on_outage(|event| match event {
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

/// An outage as a fallback sees it, or a failure without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outage {
    /// The node that has failed: see [`Client::node_of`](crate::client::Client::node_of).
    pub(crate) node: u64,
    /// The number of the outage, if there is one. A later outage has a greater number, unless
    /// another node was down when it began, or its node granted nothing since its previous outage.
    /// Numbers begin with 0.
    pub(crate) number: Option<u64>,
    /// The time since the server was created.
    pub(crate) now: Duration,
    /// How long it is until the next probe, or an interval if there is no outage.
    pub(crate) probe_in: Duration,
    /// When the caller should come back: behind the next probe, spread over an interval.
    pub(crate) retry_after: Duration,
}

/// What a server knows of its other nodes when a call to one fails.
#[derive(Debug)]
pub(crate) struct Others<'a> {
    /// The number of the server's latest outage, over all nodes.
    pub(crate) latest: &'a mut u64,
    /// Whether another node is down.
    pub(crate) is_down: bool,
}

/// This many calls in a row without an answer begin an outage.
const IN_A_ROW: u32 = 3;

/// This many failures in a second begin an outage, if they are at least half of its calls.
const IN_A_SECOND: u32 = 5;

const TENTH: u64 = 100_000;

/// The calls of the last second, in tenths.
#[derive(Debug, Default)]
struct Recent([Tenth; 10]);

#[derive(Debug, Default)]
struct Tenth {
    number: u64,
    calls: u32,
    failed: u32,
}

impl Recent {
    /// Notes a call, and returns whether too many have failed.
    fn add(&mut self, now: u64, failed: bool) -> bool {
        let number = now / TENTH;
        let Self(tenths) = self;
        let index = usize::try_from(number % 10).unwrap_or_default();
        if let Some(tenth) = tenths.get_mut(index) {
            if tenth.number < number {
                *tenth = Tenth {
                    number,
                    ..Tenth::default()
                };
            }
            tenth.calls = tenth.calls.saturating_add(1);
            tenth.failed = tenth.failed.saturating_add(failed.into());
        }
        let recent = tenths
            .iter()
            .filter(|tenth| number.saturating_sub(tenth.number) < 10);
        let (calls, failures) = recent.fold((0, 0), |(calls, failures), tenth| {
            let calls = u64::from(tenth.calls).saturating_add(calls);
            (calls, u64::from(tenth.failed).saturating_add(failures))
        });
        failures >= IN_A_SECOND.into() && failures.saturating_mul(2) >= calls
    }
}

/// Stops calls to a node that fails, except for one probe in each interval.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    node: u64,
    /// Grows with each beginning and each end of an outage. A call that was sent in an earlier
    /// period says nothing about this one.
    period: u64,
    /// Whether the node has granted anything since its latest outage began. A replica, or a server
    /// that is out of memory, answers reads and refuses writes. This is false for a new node:
    /// otherwise a node that changes its address would have a new bound each time.
    has_granted: bool,
    /// How many calls in a row had no answer.
    unanswered: u32,
    recent: Recent,
    /// `None` while the server is up.
    down: Option<Down>,
    pub(crate) stats: Stats,
}

#[derive(Debug)]
struct Down {
    /// The number of the outage.
    number: u64,
    since: u64,
    probe_at: u64,
    /// [`Stats::fallbacks`] at the beginning.
    fallbacks: u64,
    _lasting: Lasting,
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

    /// As [`ask`](Self::ask), but the call is always sent. In an outage it is the probe of the next
    /// interval.
    pub(crate) fn ask_anyway(&mut self, now: u64, interval: u64) -> Result<Pass, Outage> {
        if let Some(down) = &mut self.down {
            down.probe_at = now;
        }
        self.ask(now, interval)
    }

    /// Notes that the server has answered, and whether it granted permits. A probe's answer ends
    /// the outage.
    pub(crate) fn answered(&mut self, pass: Pass, now: u64, granted: bool) -> Option<OutageEvent> {
        self.stats.server = self.stats.server.saturating_add(1);
        if pass.period != self.period {
            return None;
        }
        self.has_granted |= granted;
        self.unanswered = 0;
        self.recent.add(now, false);
        self.end(now)
    }

    /// Ends the outage, if there is one.
    pub(crate) fn end(&mut self, now: u64) -> Option<OutageEvent> {
        let down = self.down.take()?;
        self.period = self.period.saturating_add(1);
        self.unanswered = 0;
        self.recent = Recent::default();
        Some(OutageEvent::Ended {
            lasted: Duration::from_micros(now.saturating_sub(down.since)),
            fallbacks: self.stats.fallbacks().saturating_sub(down.fallbacks),
        })
    }

    /// Notes that a call has failed. An outage begins if there is no connection, after three calls
    /// in a row without an answer, or when at least 5 and at least half of the calls of a second
    /// have failed.
    ///
    /// After a failed probe the next one waits for a whole interval: otherwise a caller with a
    /// longer budget would send only probes. A probe that fails for its key alone ends the outage:
    /// otherwise a busy key that always fails would take all other keys' probes.
    pub(crate) fn failed(
        &mut self,
        pass: Pass,
        why: &Unavailable,
        now: u64,
        interval: u64,
        others: Others<'_>,
    ) -> Option<OutageEvent> {
        self.stats.failed = self.stats.failed.saturating_add(1);
        if why.may_have_taken_effect() {
            self.stats.lost = self.stats.lost.saturating_add(1);
        }
        let sign = why.sign();
        if pass.period != self.period {
            return None;
        }
        if sign == Sign::KeyAlone {
            return self.end(now);
        }
        let probe_at = now.saturating_add(interval.max(1));
        if let Some(down) = &mut self.down {
            down.probe_at = down.probe_at.max(probe_at);
            return None;
        }
        self.unanswered = match sign {
            Sign::NoAnswer => self.unanswered.saturating_add(1),
            _ => 0,
        };
        let too_many = self.recent.add(now, true) || self.unanswered >= IN_A_ROW;
        if !too_many && sign != Sign::NoServer {
            return None;
        }
        self.period = self.period.saturating_add(1);
        if mem::take(&mut self.has_granted) && !others.is_down {
            *others.latest = others.latest.saturating_add(1);
        }
        self.stats.outages = self.stats.outages.saturating_add(1);
        self.down = Some(Down {
            number: *others.latest,
            since: now,
            probe_at,
            fallbacks: self.stats.fallbacks(),
            _lasting: Lasting::begin(),
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

    /// Notes that permits stay taken although no caller has them.
    pub(crate) fn lost(&mut self) {
        self.stats.lost = self.stats.lost.saturating_add(1);
    }

    /// Returns the outage as a fallback sees it. Without an outage, it has no number.
    pub(crate) fn outage(&self, now: u64, interval: u64) -> Outage {
        let (number, probe_at) = match &self.down {
            Some(down) => (Some(down.number), down.probe_at),
            None => (None, now.saturating_add(interval.max(1))),
        };
        let probe_in = probe_at.saturating_sub(now);
        let spread = self.down.as_ref().map_or(0, |_| interval);
        Outage {
            node: self.node,
            number,
            now: Duration::from_micros(now),
            probe_in: Duration::from_micros(probe_in),
            retry_after: Duration::from_micros(probe_in.saturating_add(spread)),
        }
    }

    pub(crate) const fn is_down(&self) -> bool {
        self.down.is_some()
    }
}

#[cfg(test)]
#[path = "../../tests/outage/mod.rs"]
mod tests;
