//! How answers are written.

mod bodies;
mod field_values;
mod fields;
mod generations;
#[cfg(feature = "grpc")]
mod grpc;
mod names;
mod status;
mod value;

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderMap, Response, StatusCode};

pub use self::bodies::RefusalBody;
pub use self::field_values::FieldValues;
pub use self::fields::Fields;

use self::value::{insert_number, seconds_until};
use crate::{Cause, LimitState, Refusal};

/// How answers are written: fields, statuses and bodies.
///
/// ```
/// use http::HeaderMap;
/// use tollgate::{Limiter, Quota};
/// use tollgate_http::{Answers, Fields, LimitState};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let answers = Answers::new().fields(Fields::LIST);
/// let quota = Quota::per_minute(60).burst(10);
/// let limiter = Limiter::token_bucket(quota)?;
///
/// let granted = limiter.try_acquire()?;
/// let limit = LimitState::of_rate("api", quota).granted(granted.info());
/// let mut headers = HeaderMap::new();
/// answers.write([limit].into_iter(), &mut headers);
/// assert_eq!(headers["ratelimit-policy"], r#""api";q=10;w=10"#);
/// assert_eq!(headers["ratelimit"], r#""api";r=9;t=1"#);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use]
pub struct Answers {
    fields: Fields,
    body: RefusalBody,
    /// The status of each cause, if it is not the default.
    statuses: [Option<StatusCode>; CAUSES],
    /// The most that is added to a wait.
    jitter: Duration,
    edit: Option<Edit>,
}

type Edit = Arc<dyn Fn(&Refusal<'_>, &mut Response<Bytes>) + Send + Sync>;

const CAUSES: usize = Cause::Misconfigured as usize + 1;

impl Answers {
    /// Answers without fields, and with a line of text on a refusal.
    pub const fn new() -> Self {
        Self {
            fields: Fields::OFF,
            body: RefusalBody::Text,
            statuses: [None; CAUSES],
            jitter: Duration::ZERO,
            edit: None,
        }
    }

    /// Sets which fields say what a client has left.
    pub const fn fields(mut self, fields: Fields) -> Self {
        self.fields = fields;
        self
    }

    /// Sets the body of refusals.
    pub const fn body(mut self, body: RefusalBody) -> Self {
        self.body = body;
        self
    }

    /// Sets the status of refusals for this cause. A refusal's
    /// [own status](Refusal::status) takes precedence.
    pub fn status(mut self, cause: Cause, status: StatusCode) -> Self {
        if let Some(own) = self.statuses.get_mut(cause as usize) {
            *own = Some(status);
        }
        self
    }

    /// Adds a random time to the wait that a refusal names, of at most this long. So clients that
    /// are refused together do not come back together.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_http::{Answers, Cause, Refusal};
    ///
    /// let answers = Answers::new().jitter(Duration::from_secs(10));
    /// let refusal = Refusal::new(Cause::Limit).retry_after(Duration::from_secs(5));
    /// let answer = answers.refuse(&refusal);
    /// let seconds: u64 = answer.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    /// assert!((5..=15).contains(&seconds));
    /// ```
    pub const fn jitter(mut self, most: Duration) -> Self {
        self.jitter = most;
        self
    }

    /// Sets a function that changes each refusal after it is written: for bodies of your own. It
    /// does not see the answers of gRPC.
    ///
    /// ```
    /// use http::header::CONTENT_TYPE;
    /// use http::HeaderValue;
    /// use tollgate_http::{Answers, Cause, Refusal, RefusalBody};
    ///
    /// let answers = Answers::new().body(RefusalBody::Empty).edit(|refusal, response| {
    ///     let page = format!("<h1>{:?}</h1>", refusal.cause());
    ///     *response.body_mut() = page.into();
    ///     response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
    /// });
    /// let answer = answers.refuse(&Refusal::new(Cause::Banned));
    /// assert_eq!(answer.body(), "<h1>Banned</h1>");
    /// ```
    pub fn edit<F>(mut self, edit: F) -> Self
    where
        F: Fn(&Refusal<'_>, &mut Response<Bytes>) + Send + Sync + 'static,
    {
        self.edit = Some(Arc::new(edit));
        self
    }

    /// Returns whether answers to granted requests have fields.
    #[must_use]
    pub const fn has_fields(&self) -> bool {
        !self.fields.is_off()
    }

    /// Returns whether refusals say more of their limits than the wait: in fields, in a problem,
    /// or by a function that [edits](Self::edit) them. If not, [`Refusal::limits`] does not change
    /// what a refusal says.
    ///
    /// ```
    /// use tollgate_http::{Answers, Fields, RefusalBody};
    ///
    /// assert!(!Answers::new().body(RefusalBody::Text).says_limits());
    /// assert!(Answers::new().body(RefusalBody::Problem).says_limits());
    /// assert!(Answers::new().fields(Fields::LIST).says_limits());
    /// assert!(Answers::new().edit(|_, _| ()).says_limits());
    /// ```
    #[must_use]
    pub const fn says_limits(&self) -> bool {
        self.has_fields() || matches!(self.body, RefusalBody::Problem) || self.edit.is_some()
    }

    /// Writes the fields of an answer to a granted request.
    ///
    /// If an inner layer has written fields, lists get another line. Generations that have one
    /// limit keep the one with the fewest permits left, or the one that refused the request.
    ///
    /// The clock of the system is read only for [`Fields::X_EPOCH`]: [`write_at`](Self::write_at)
    /// takes the time instead.
    pub fn write<'a>(
        &self,
        limits: impl Iterator<Item = LimitState<'a>> + Clone,
        headers: &mut HeaderMap,
    ) {
        if self.has_fields() {
            self.write_at(limits, self.now(), headers);
        }
    }

    /// Writes the fields of an answer to a granted request, at this time.
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    /// use http::HeaderMap;
    /// use tollgate::Quota;
    /// use tollgate_http::{Answers, Fields, LimitState};
    ///
    /// let mut headers = HeaderMap::new();
    /// let limit = LimitState::of_rate("api", Quota::per_hour(5000));
    /// let now = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    /// Answers::new().fields(Fields::X_EPOCH).write_at([limit].into_iter(), now, &mut headers);
    /// assert_eq!(headers["x-ratelimit-remaining"], "5000");
    /// assert_eq!(headers["x-ratelimit-reset"], "1700000000"); // it is whole
    /// ```
    pub fn write_at<'a>(
        &self,
        limits: impl Iterator<Item = LimitState<'a>> + Clone,
        now: SystemTime,
        headers: &mut HeaderMap,
    ) {
        if self.has_fields() {
            generations::write(self.fields, limits, now, headers);
        }
    }

    /// Returns the values of the fields of an answer, to write them when there is an answer.
    ///
    /// ```
    /// use http::HeaderMap;
    /// use tollgate::Quota;
    /// use tollgate_http::{Answers, Fields, LimitState};
    ///
    /// let limit = LimitState::of_rate("api", Quota::per_hour(5000));
    /// let values = Answers::new().fields(Fields::LIST).values([limit].into_iter());
    ///
    /// let mut headers = HeaderMap::new();
    /// values.write(&mut headers);
    /// assert_eq!(headers["ratelimit"], r#""api";r=5000;t=0"#);
    /// ```
    pub fn values<'a>(&self, limits: impl Iterator<Item = LimitState<'a>> + Clone) -> FieldValues {
        match self.has_fields() {
            true => FieldValues::of(self.fields, limits, self.now()),
            false => FieldValues::default(),
        }
    }

    /// Writes the answer to a request that is refused.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_http::{Answers, Cause, Refusal, RefusalBody};
    ///
    /// let refusal = Refusal::new(Cause::Limit).retry_after(Duration::from_millis(1200));
    /// let answer = Answers::new().refuse(&refusal);
    /// assert_eq!(answer.status(), 429);
    /// assert_eq!(answer.headers()["retry-after"], "2");
    /// assert_eq!(answer.body(), "too many requests: retry in 2 s\n");
    /// ```
    #[must_use]
    pub fn refuse(&self, refusal: &Refusal<'_>) -> Response<Bytes> {
        self.refuse_at(refusal, self.now())
    }

    /// Writes the answer to a request that is refused, at this time.
    #[must_use]
    pub fn refuse_at(&self, refusal: &Refusal<'_>, now: SystemTime) -> Response<Bytes> {
        let refusal = &self.with_jitter(*refusal);
        let status = self.status_of(refusal);
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = status;
        self.write_refusal_fields(refusal, now, response.headers_mut());
        self.body.write(refusal, status, &mut response);
        if let Some(edit) = &self.edit {
            edit(refusal, &mut response);
        }
        response
    }

    /// Writes the answer to a call of gRPC that is refused: a response that has only trailers, with
    /// `RetryInfo` if the wait is known.
    ///
    /// Rates, bans and overloads are `RESOURCE_EXHAUSTED`. Lists and missing plans are
    /// `PERMISSION_DENIED`, missing and ambiguous keys `INVALID_ARGUMENT`, and limits that can't
    /// decide `INTERNAL`. Statuses and bodies that were set have no effect.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_http::{Answers, Cause, Refusal};
    ///
    /// let refusal = Refusal::new(Cause::Limit).retry_after(Duration::from_millis(1500));
    /// let answer = Answers::new().refuse_grpc(&refusal);
    /// assert_eq!(answer.status(), 200);
    /// assert_eq!(answer.headers()["grpc-status"], "8");
    /// assert_eq!(answer.headers()["grpc-message"], "too many requests: retry in 2 s");
    /// ```
    #[cfg(feature = "grpc")]
    #[must_use]
    pub fn refuse_grpc(&self, refusal: &Refusal<'_>) -> Response<Bytes> {
        let refusal = &self.with_jitter(*refusal);
        let mut response = Response::new(Bytes::new());
        self.write_refusal_fields(refusal, self.now(), response.headers_mut());
        grpc::write(refusal, response.headers_mut());
        response
    }

    fn write_refusal_fields(
        &self,
        refusal: &Refusal<'_>,
        now: SystemTime,
        headers: &mut HeaderMap,
    ) {
        if let Some(seconds) = retry_after(refusal) {
            insert_number(headers, RETRY_AFTER, seconds);
        }
        self.write_at(refusal.asked().iter().copied(), now, headers);
    }

    /// Returns the status of a refusal.
    #[must_use]
    pub fn status_of(&self, refusal: &Refusal<'_>) -> StatusCode {
        let own = self.statuses.get(refusal.cause() as usize);
        let own = refusal.own_status().or(own.copied().flatten());
        own.unwrap_or_else(|| status::of(refusal.cause()))
    }

    /// Returns a refusal that names a longer wait.
    #[inline]
    fn with_jitter<'a>(&self, refusal: Refusal<'a>) -> Refusal<'a> {
        let has_jitter = !self.jitter.is_zero();
        let Some(wait) = has_jitter.then(|| refusal.wait()).flatten() else {
            return refusal;
        };
        // Each hasher has random keys.
        let random = RandomState::new().build_hasher().finish();
        let part = random as f64 / u64::MAX as f64;
        let more = Duration::try_from_secs_f64(self.jitter.as_secs_f64() * part);
        refusal.retry_after(wait.saturating_add(more.unwrap_or(self.jitter)))
    }

    /// Returns the time, if it is needed.
    fn now(&self) -> SystemTime {
        if self.fields.contains(Fields::X_EPOCH) {
            SystemTime::now()
        } else {
            SystemTime::UNIX_EPOCH
        }
    }
}

/// Returns the seconds that `Retry-After` says: at least 1.
fn retry_after(refusal: &Refusal<'_>) -> Option<u64> {
    refusal.wait().map(|wait| seconds_until(wait).max(1))
}

impl Default for Answers {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers")
            .field("fields", &self.fields)
            .field("body", &self.body)
            .field("statuses", &self.statuses)
            .field("jitter", &self.jitter)
            .field("edits", &self.edit.is_some())
            .finish()
    }
}
