//! Which answers and errors are retried, and when.

use std::time::{Duration, SystemTime};

use http::StatusCode;
use tollgate::wait::Jitter;

use super::message::ClientResponse;
use super::server_limits::ServerLimits;

/// The wait before the first retry, if the server does not say one. It doubles with each retry.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);

/// The longest wait before a retry, if the server does not say one.
const LONGEST_BACKOFF: Duration = Duration::from_secs(10);

/// What an answer says about sending again.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) said: ServerLimits,
    /// The status is 429.
    pub(super) is_refused: bool,
    /// The status is 503.
    pub(super) is_unavailable: bool,
    /// The wait that the server names. None is named by `Retry-After: 0`.
    pub(super) hold: Option<Duration>,
    /// Whether the request may be sent again.
    pub(super) retry: Retry,
}

/// Whether an answer is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    /// It is an answer.
    No,
    /// If the server may get the request twice.
    IfRepeatable,
    /// The server did not begin with the request.
    Yes,
}

impl Verdict {
    /// Reads an answer.
    pub(super) fn of(answer: &impl ClientResponse) -> Self {
        let said = ServerLimits::read(answer.headers(), SystemTime::now());
        let status = answer.status();
        let is_refused = status == StatusCode::TOO_MANY_REQUESTS;
        let is_unavailable = status == StatusCode::SERVICE_UNAVAILABLE;
        let hold = match (is_refused, is_unavailable) {
            (true, _) => said.retry_after.or_else(|| reset_of_empty(&said)),
            (_, true) => said.retry_after,
            _ => None,
        };
        let hold = hold.filter(|wait| !wait.is_zero());
        let retry = match (is_refused, is_unavailable) {
            (true, _) => Retry::Yes,
            // The server may have begun with the request.
            (_, true) => Retry::IfRepeatable,
            _ => Retry::No,
        };
        Self {
            said,
            is_refused,
            is_unavailable,
            hold,
            retry,
        }
    }
}

/// Returns the longest time until a limit without permits resets.
fn reset_of_empty(said: &ServerLimits) -> Option<Duration> {
    let empty = said
        .limits
        .iter()
        .filter(|limit| limit.remaining == Some(0));
    empty.filter_map(|limit| limit.reset).max()
}

/// Returns the wait after an attempt that failed: random, from half of the whole wait to all of it.
pub(super) fn backoff(attempt: u32) -> Duration {
    let doublings = attempt.saturating_sub(1).min(16);
    let most = FIRST_BACKOFF.saturating_mul(1 << doublings);
    let most = most.min(LONGEST_BACKOFF);
    Jitter::between(most / 2, most).draw()
}
