//! Facts of an answer.

use std::fmt;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use tollgate_policy::{FactKind, FactName, FactValue, FactValues, Facts};

use super::text;

/// The facts of an answer, for costs that are settled when it is known.
///
/// | fact | value |
/// |---|---|
/// | `response-header:NAME` | a header; a cost is the largest of several lines |
/// | `response-status` | the status, such as 200 |
/// | `response-grpc-status` | the status that was set with [`grpc_status`](Self::grpc_status) |
/// | `response-bytes` | the size that was set with [`bytes`](Self::bytes) |
/// | `response-time-ms` | the time that was set with [`time`](Self::time), rounded up |
///
/// ```
/// use std::time::Duration;
/// use http::{HeaderMap, StatusCode};
/// use tollgate_http::AnswerFacts;
/// use tollgate_policy::{FactName, Facts};
///
/// let headers = HeaderMap::from_iter([("x-tokens".parse().unwrap(), "640".parse().unwrap())]);
/// let facts = AnswerFacts::new(StatusCode::OK, &headers).time(Duration::from_micros(2500));
/// let number = |name| facts.fact(&FactName::new(name)).and_then(|value| value.as_number());
/// assert_eq!(number("response-header:x-tokens"), Some(640));
/// assert_eq!(number("response-status"), Some(200));
/// assert_eq!(number("response-time-ms"), Some(3));
/// assert_eq!(number("response-bytes"), None);
/// ```
#[derive(Clone, Copy)]
#[must_use]
pub struct AnswerFacts<'a> {
    status: StatusCode,
    headers: &'a HeaderMap,
    grpc_status: Option<u16>,
    bytes: Option<u64>,
    time: Option<Duration>,
}

impl<'a> AnswerFacts<'a> {
    /// The names of these facts, apart from headers.
    pub const NAMES: [&'static str; 4] = [
        "response-status",
        "response-grpc-status",
        "response-bytes",
        "response-time-ms",
    ];

    /// Facts of an answer with this status and these headers.
    pub const fn new(status: StatusCode, headers: &'a HeaderMap) -> Self {
        Self {
            status,
            headers,
            grpc_status: None,
            bytes: None,
            time: None,
        }
    }

    /// Sets the status of gRPC, such as 16 for `UNAUTHENTICATED`.
    pub const fn grpc_status(mut self, status: u16) -> Self {
        self.grpc_status = Some(status);
        self
    }

    /// Sets the size of the body.
    pub const fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// Sets how long the request took.
    pub const fn time(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self
    }
}

impl Facts for AnswerFacts<'_> {
    fn fact(&self, name: &FactName) -> Option<FactValue<'_>> {
        self.values(name).single()
    }

    fn values(&self, name: &FactName) -> FactValues<'_> {
        let number = match name.kind() {
            FactKind::ResponseHeader(name) => return text::header(self.headers, name).into(),
            FactKind::Other("response-status") => Some(self.status.as_u16().into()),
            FactKind::Other("response-grpc-status") => self.grpc_status.map(u64::from),
            FactKind::Other("response-bytes") => self.bytes,
            FactKind::Other("response-time-ms") => self.time.map(|time| {
                let millis = time.as_nanos().div_ceil(1_000_000);
                u64::try_from(millis).unwrap_or(u64::MAX)
            }),
            _ => None,
        };
        number.map(FactValue::from).into()
    }
}

impl fmt::Debug for AnswerFacts<'_> {
    /// Does not show headers, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerFacts")
            .field("status", &self.status)
            .field("bytes", &self.bytes)
            .field("time", &self.time)
            .finish_non_exhaustive()
    }
}
