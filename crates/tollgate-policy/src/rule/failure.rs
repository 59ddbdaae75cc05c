//! Which answers are failures, and how many requests of a key may fail.

use std::time::Duration;

use tollgate::error::QuotaError;
use tollgate::{AnyAlgorithm, FixedWindow, Quota};

use super::outcome::Outcome;
use crate::facts::{FactName, Facts};
use crate::file::{Ban, Failure, Rule};

/// How long a ban of failures lasts, and the period in which they count, if a rule does not say it.
pub(crate) const BAN_OF_FAILURES: Duration = Duration::from_secs(15 * 60);

/// The codes of gRPC that are not `OK`, from 1 on.
pub(crate) const GRPC: [&str; 16] = [
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The answers that a rule names as failures.
#[derive(Debug)]
pub(crate) struct Named {
    failures: Vec<Failure>,
    status: FactName,
    grpc: FactName,
}

impl Named {
    /// Returns what a rule names, if it does.
    pub(crate) fn of(rule: &Rule) -> Option<Self> {
        let failures: Vec<_> = rule.failures.iter().map(|failure| failure.value).collect();
        (!failures.is_empty()).then(|| Self {
            failures,
            status: FactName::new("response-status"),
            grpc: FactName::new("response-grpc-status"),
        })
    }

    /// Returns the outcome of a request by its answer. `None` if the answer has no status.
    pub(crate) fn outcome(&self, answer: &impl Facts) -> Option<Outcome> {
        let number = |name| answer.fact(name).and_then(|value| value.as_number());
        let (status, grpc) = (number(&self.status), number(&self.grpc));
        let is_named = |failure: &Failure| match *failure {
            Failure::Status(known) => status == Some(known.into()),
            Failure::Class(class) => status.is_some_and(|it| it / 100 == u64::from(class)),
            Failure::Grpc(code) => grpc == Some(code.into()),
        };
        let succeeds = status.is_none_or(|it| it < 400) && grpc.is_none_or(|code| code == 0);
        match self.failures.iter().any(is_named) {
            true => Some(Outcome::Failure),
            false if status.is_none() && grpc.is_none() => None,
            false if succeeds => Some(Outcome::Success),
            false => Some(Outcome::Neither),
        }
    }
}

/// Returns the period in which failures count towards a ban.
pub(crate) fn within(ban: &Ban) -> Duration {
    let within = ban.within.as_ref().map(|within| within.value);
    within.unwrap_or(BAN_OF_FAILURES)
}

/// Returns the window in which denials or failures count towards a ban.
pub(crate) fn window(after: u64, within: Duration) -> Result<AnyAlgorithm, QuotaError> {
    let window = FixedWindow::new(Quota::per(after, within))?;
    Ok(window.opened_by_first_hit()?.into())
}
