//! The bodies of refusals.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};

use super::names::Names;
use super::retry_after;
use crate::{Cause, Refusal};

// The compiler checks them once, and not again for each refusal.
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");

/// The body of a refusal.
///
/// ```
/// use tollgate_http::{Answers, Cause, Refusal, RefusalBody};
///
/// let answers = Answers::new().body(RefusalBody::Problem);
/// let answer = answers.refuse(&Refusal::new(Cause::Limit).rule("daily"));
/// assert_eq!(answer.headers()["content-type"], "application/problem+json");
/// assert!(answer.body().ends_with(br#""status":429,"violated-policies":["daily"]}"#));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum RefusalBody {
    /// One line of text.
    #[default]
    Text,
    /// `application/problem+json`, as RFC 9457 has it. Rates, overloads and bans have the types of
    /// the draft for `RateLimit` fields. The body names the limits that deny the request.
    Problem,
    /// No body.
    Empty,
}

impl RefusalBody {
    /// Writes the body and its type.
    pub(super) fn write(
        self,
        refusal: &Refusal<'_>,
        status: StatusCode,
        response: &mut Response<Bytes>,
    ) {
        let (body, kind) = match self {
            Self::Text => (text(refusal, "\n"), TEXT),
            Self::Problem => (problem(refusal, status), PROBLEM),
            Self::Empty => return,
        };
        *response.body_mut() = body.into();
        response.headers_mut().insert(CONTENT_TYPE, kind);
    }
}

/// Says in one line why a request is refused. One allocation has room for all of it.
pub(super) fn text(refusal: &Refusal<'_>, end: &str) -> String {
    let why = match refusal.cause() {
        Cause::Limit => "too many requests",
        Cause::Overload => "too many requests at once",
        Cause::Unavailable => "the rate limit can't be checked",
        Cause::Banned => "blocked after too many requests",
        Cause::Listed => "not allowed",
        Cause::MissingKey => "the request lacks the key of its rate limit",
        Cause::Ambiguous => "the request repeats a value that its rate limit depends on",
        Cause::NoPlan => "no plan of the rate limit covers the request",
        Cause::TooLarge => "the request asks for more than its rate limit can grant",
        Cause::Misconfigured => "the rate limit is misconfigured",
    };
    match retry_after(refusal) {
        Some(seconds) => {
            let mut digits = itoa::Buffer::new();
            [why, ": retry in ", digits.format(seconds), " s", end].concat()
        }
        None => [why, end].concat(),
    }
}

/// Writes a problem of RFC 9457.
fn problem(refusal: &Refusal<'_>, status: StatusCode) -> String {
    let registered = match refusal.cause() {
        Cause::Limit | Cause::TooLarge => Some(("quota-exceeded", "Quota Exceeded")),
        Cause::Overload => Some(("temporary-reduced-capacity", "Temporary Reduced Capacity")),
        Cause::Banned => Some(("abnormal-usage-detected", "Abnormal Usage Detected")),
        _ => None,
    };
    let code = status.as_str();
    let Some((kind, title)) = registered else {
        // Without a type, the title is that of the status.
        let title = status.canonical_reason().unwrap_or("Refused");
        return format!(r#"{{"type":"about:blank","title":"{title}","status":{code}}}"#);
    };
    let registry = "https://iana.org/assignments/http-problem-types";
    let names = violated(refusal);
    format!(
        r#"{{"type":"{registry}#{kind}","title":"{title}","status":{code},"violated-policies":[{names}]}}"#
    )
}

/// Returns the names of the limits that deny the request, in quotes, separated by commas. They are
/// written as in fields, since a string of a structured field is a string of JSON too.
fn violated(refusal: &Refusal<'_>) -> String {
    let limits = refusal.asked();
    let names = if limits.iter().any(|limit| limit.denies()) {
        Names::of(limits.iter().copied())
    } else {
        Names::of_texts(refusal.rule_name().into_iter())
    };
    let denies = |index: usize| limits.get(index).is_none_or(|limit| limit.denies());
    let mut list = String::new();
    for (index, name) in names.iter().enumerate() {
        if denies(index) {
            if !list.is_empty() {
                list.push(',');
            }
            list.push_str(&String::from_utf8_lossy(name));
        }
    }
    list
}
