//! What a server says of its limits: parsers for clients.

mod field_name;
mod ratelimit;
mod structured;
mod times;
mod x_ratelimit;

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};

use self::field_name::FieldName;
use self::ratelimit::Lists;
use self::x_ratelimit::Groups;

/// What a server says of its limits in an answer's fields.
///
/// It reads the fields of drafts 00 to 11, and `X-RateLimit-*` in the forms that are in use:
///
/// | fields | read as |
/// |---|---|
/// | `RateLimit: "a";r=5;t=3`, `RateLimit-Policy: "a";q=9;w=60` | one limit for each name and partition |
/// | `RateLimit: limit=9, remaining=5, reset=3`, `RateLimit-Policy: 9;w=60` | one limit without a name |
/// | `RateLimit-Limit`, `-Remaining`, `-Reset`, `-Used`, also after `X-` or another prefix, and with `Rate-Limit` | one limit for each prefix |
/// | `X-RateLimit-Remaining-Tokens`, `Acme-RateLimit-Tokens-Remaining` | the limit `tokens` |
/// | `X-RateLimit-Reset-After: 1.234` | the reset, in place of `X-RateLimit-Reset` |
/// | `X-RateLimit-Replenish-Rate` and `-Burst-Capacity`, or `-FillRate` and `-Interval-Seconds` | the window and the quota |
/// | `X-RateLimit-Bucket`, `-Resource`, `-Name` | the name |
///
/// A reset in a field of its own is a number of seconds, a date, a time as in RFC 3339, or a time
/// such as `6m0s`. A number from 1e9 on is a time in seconds since 1970, and one from 1e11 on in
/// milliseconds. Dates and times of day are compared with the answer's own `Date`, and if it has
/// none, with `now`.
///
/// In a list, only a malformed member or parameter is ignored. Any other malformed field is
/// ignored. Values are capped: see the constants. A limit that says nothing beyond an earlier one
/// is left out.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use http::{HeaderMap, HeaderValue};
/// use tollgate_client::ServerLimits;
///
/// let mut headers = HeaderMap::new();
/// let policy = HeaderValue::from_static(r#""burst";q=100;w=60, "daily";q=1000;w=86400"#);
/// headers.insert("ratelimit-policy", policy);
/// headers.insert("ratelimit", HeaderValue::from_static(r#""burst";r=0;t=12"#));
/// headers.insert("retry-after", HeaderValue::from_static("12"));
///
/// let said = ServerLimits::read(&headers, SystemTime::now());
/// assert_eq!(said.retry_after, Some(Duration::from_secs(12)));
/// let burst = &said.limits[0];
/// assert_eq!((burst.name.as_str(), burst.quota, burst.remaining), ("burst", Some(100), Some(0)));
/// assert_eq!(said.limits[1].window, Some(Duration::from_secs(86_400)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ServerLimits {
    /// `Retry-After`, in either form: the longest, if there are several.
    pub retry_after: Option<Duration>,
    /// The limits, of any generation of fields.
    pub limits: Vec<ServerLimit>,
}

/// One limit of a server: see [`ServerLimits`].
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use http::{HeaderMap, HeaderValue};
/// use tollgate_client::ServerLimits;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("x-ratelimit-remaining", HeaderValue::from_static("598.0"));
/// headers.insert("x-ratelimit-reset", HeaderValue::from_static("120"));
/// let said = ServerLimits::read(&headers, SystemTime::now());
/// assert_eq!(said.limits[0].remaining, Some(598));
/// assert_eq!(said.limits[0].reset, Some(Duration::from_secs(120)));
/// assert_eq!(said.limits[0].quota, None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ServerLimit {
    /// Its name, empty if the fields have none.
    pub name: String,
    /// How many permits a window has.
    pub quota: Option<u64>,
    /// The length of a window.
    pub window: Option<Duration>,
    /// How many permits are left.
    pub remaining: Option<u64>,
    /// How long until the limit resets.
    pub reset: Option<Duration>,
    /// What it counts.
    pub unit: Unit,
    /// The key of the partition.
    pub partition: Option<Vec<u8>>,
}

/// What a limit of a server counts: the parameter `qu` of `RateLimit-Policy`.
///
/// ```
/// use std::time::SystemTime;
/// use http::{HeaderMap, HeaderValue};
/// use tollgate_client::{ServerLimits, Unit};
///
/// let mut headers = HeaderMap::new();
/// let policy = HeaderValue::from_static(r#""uploads";q=1000;w=60;qu="content-bytes""#);
/// headers.insert("ratelimit-policy", policy);
/// let said = ServerLimits::read(&headers, SystemTime::now());
/// assert_eq!(said.limits[0].unit, Unit::ContentBytes);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Unit {
    /// Requests, or permits of another kind.
    #[default]
    Requests,
    /// Bytes of contents.
    ContentBytes,
    /// Requests that are served at once.
    ConcurrentRequests,
}

impl ServerLimits {
    /// The longest `Retry-After` and the longest reset: 24 hours. Longer ones are capped.
    pub const MAX_WAIT: Duration = Duration::from_secs(24 * 3600);

    /// The longest window: 366 days. Longer ones are capped.
    pub const MAX_WINDOW: Duration = Duration::from_secs(366 * 24 * 3600);

    /// The largest number of permits, which is the largest number of a structured field. Larger
    /// ones are capped.
    pub const MAX_PERMITS: u64 = 999_999_999_999_999;

    /// The most limits of an answer, and the most members of a list that are read. Others are
    /// ignored.
    pub const MAX_LIMITS: usize = 64;

    /// The longest name and the longest key of a partition in bytes. A limit with a longer name is
    /// ignored, and so is a longer key.
    pub const MAX_NAME: usize = 256;

    /// Reads the fields of an answer.
    #[must_use]
    pub fn read(headers: &HeaderMap, now: SystemTime) -> Self {
        let date = headers.get(DATE).map(|value| value.as_bytes());
        let now = date.and_then(times::date).unwrap_or(now);
        let mut retry_after = None;
        let mut lists = Lists::default();
        let mut groups = Groups::default();
        for (name, value) in headers {
            let value = value.as_bytes();
            if name == RETRY_AFTER {
                retry_after = retry_after.max(times::retry_after(value, now));
                continue;
            }
            match FieldName::of(name.as_str()) {
                Some(FieldName::State) => lists.read_state(value),
                Some(FieldName::Policy) => lists.read_policy(value),
                Some(FieldName::Group(group, kind)) => {
                    groups.read(group, kind, value, now, &mut lists);
                }
                None => {}
            }
        }
        Self {
            retry_after,
            limits: lists.merge(groups.limits()),
        }
    }
}

impl ServerLimit {
    /// Returns whether it says nothing but its name.
    fn is_empty(&self) -> bool {
        self.quota.is_none()
            && self.window.is_none()
            && self.remaining.is_none()
            && self.reset.is_none()
    }

    /// Returns whether `other` says all that this limit says.
    fn is_said_by(&self, other: &Self) -> bool {
        fn agrees<T: PartialEq>(one: Option<&T>, other: Option<&T>) -> bool {
            one.is_none() || one == other
        }
        (self.name.is_empty() || self.name == other.name)
            && agrees(self.quota.as_ref(), other.quota.as_ref())
            && agrees(self.window.as_ref(), other.window.as_ref())
            && agrees(self.remaining.as_ref(), other.remaining.as_ref())
            && agrees(self.reset.as_ref(), other.reset.as_ref())
            && agrees(self.partition.as_ref(), other.partition.as_ref())
    }

    /// Adds what a policy says of this limit.
    fn add_policy(&mut self, policy: &Self) {
        self.quota = self.quota.or(policy.quota);
        self.window = self.window.or(policy.window);
        self.unit = policy.unit;
    }
}
