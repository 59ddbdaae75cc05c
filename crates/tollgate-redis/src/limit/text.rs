//! Limits as text: `sliding-window 1000/min`.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use tollgate::Quota;
use tollgate::error::ParseQuotaError;

use crate::limit::Limit;
use crate::limit::error::LimitError;
use crate::limit::kind::{Bucket, Kind, Shape, Slots, Window};

const NAMES: &str = "`token-bucket`, `gcra`, `leaky-meter`, `leaky-queue`, `fixed-window`, \
                     `sliding-window`, `sliding-log` and `concurrency`";

impl FromStr for Limit {
    type Err = ParseLimitError;

    fn from_str(whole: &str) -> Result<Self, ParseLimitError> {
        let text = whole.trim();
        let quota = |part| parse_at(whole, "", part);
        let (name, rest) = match text.split_once(char::is_whitespace) {
            Some((name, rest)) if !text.starts_with(|first: char| first.is_ascii_digit()) => {
                (name, rest.trim())
            }
            _ if text.starts_with(|first: char| first.is_ascii_digit()) => ("token-bucket", text),
            _ => (text, text.get(text.len()..).unwrap_or("")),
        };
        Ok(match name {
            "token-bucket" | "gcra" | "leaky-meter" => Self::token_bucket(quota(rest)?)?,
            "leaky-queue" => match option(rest, "free") {
                Some((rest, free)) => Self::leaky_queue(quota(rest)?, number("free", free)?)?,
                None => Self::leaky_queue(quota(rest)?, 0)?,
            },
            "fixed-window" => match word(rest, "first-hit") {
                Some(rest) => Self::first_hit_window(quota(rest)?)?,
                None => Self::fixed_window(quota(word(rest, "utc").unwrap_or(rest))?)?,
            },
            "sliding-window" => Self::sliding_window(quota(word(rest, "utc").unwrap_or(rest))?)?,
            "sliding-log" => Self::sliding_log(quota(rest)?)?,
            "concurrency" => {
                let (limit, lease) = option(rest, "lease").ok_or(ParseLimitError::NoLease)?;
                // A time as quotas have it: `10s`.
                let lease = parse_at(whole, "1/", lease)?.period();
                Self::concurrency(number("limit", limit)?, lease)?
            }
            _ => return Err(ParseLimitError::UnknownAlgorithm { name: name.into() }),
        })
    }
}

/// Splits `... name value`.
fn option<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let (rest, value) = text.rsplit_once(char::is_whitespace)?;
    Some((word(rest, name)?, value))
}

/// Removes the last word, if it is this one.
fn word<'a>(text: &'a str, last: &str) -> Option<&'a str> {
    let rest = text.strip_suffix(last)?;
    let ends = rest.ends_with(char::is_whitespace);
    ends.then(|| rest.trim_end())
}

fn number(field: &'static str, text: &str) -> Result<u64, ParseLimitError> {
    let text = text.trim();
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let bad = || ParseLimitError::NoNumber {
        field,
        found: text.into(),
    };
    match text.parse() {
        Ok(number) if is_plain => Ok(number),
        _ => Err(bad()),
    }
}

/// Parses a quota: `before`, then a part of the text. Spaces in front keep the part's offset, so
/// that errors point to it.
fn parse_at(text: &str, before: &str, part: &str) -> Result<Quota, ParseQuotaError> {
    let at = part.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    let width = at.min(text.len());
    format!("{before:>width$}{part}").parse()
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quota = self.quota;
        match self.kind {
            Kind::Bucket(Bucket { free: None, .. }) => write!(f, "token-bucket {quota}"),
            Kind::Bucket(Bucket { free: Some(0), .. }) => write!(f, "leaky-queue {quota}"),
            Kind::Bucket(Bucket {
                free: Some(free), ..
            }) => write!(f, "leaky-queue {quota} free {free}"),
            Kind::Window(Window { shape, .. }) => match shape {
                Shape::Aligned => write!(f, "fixed-window {quota} utc"),
                Shape::FirstHit => write!(f, "fixed-window {quota} first-hit"),
                Shape::Slides => write!(f, "sliding-window {quota} utc"),
            },
            Kind::Log(_) => write!(f, "sliding-log {quota}"),
            Kind::Slots(Slots { limit, .. }) => {
                let lease = Quota::per(1, quota.period()).to_string();
                let lease = lease.split_once('/').map_or("", |(_, lease)| lease);
                write!(f, "concurrency {limit} lease {lease}")
            }
        }
    }
}

/// The error of parsing a [`Limit`] from text.
///
/// ```
/// use tollgate_redis::{Limit, ParseLimitError};
///
/// let error = "concurrency 5".parse::<Limit>().unwrap_err();
/// assert_eq!(error, ParseLimitError::NoLease);
/// assert_eq!(error.to_string(), "lease is missing, as in `concurrency 5 lease 60s`");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseLimitError {
    /// No algorithm has this name.
    UnknownAlgorithm {
        /// The name.
        name: String,
    },
    /// The quota or a time can't be parsed.
    Quota(ParseQuotaError),
    /// A number can't be parsed.
    NoNumber {
        /// `"free"` or `"limit"`.
        field: &'static str,
        /// The text in its place.
        found: String,
    },
    /// A limit on concurrency has no lease.
    NoLease,
    /// The text was parsed, but a server can't decide the limit.
    Limit(LimitError),
}

impl fmt::Display for ParseLimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownAlgorithm { name } => {
                write!(f, "algorithm is {name:?}, but must be one of {NAMES}")
            }
            Self::Quota(error) => error.fmt(f),
            Self::NoNumber { field, found } => {
                write!(f, "{field} is {found:?}, but must be a whole number")
            }
            Self::NoLease => f.write_str("lease is missing, as in `concurrency 5 lease 60s`"),
            Self::Limit(error) => error.fmt(f),
        }
    }
}

impl Error for ParseLimitError {}

impl From<ParseQuotaError> for ParseLimitError {
    fn from(error: ParseQuotaError) -> Self {
        Self::Quota(error)
    }
}

impl From<LimitError> for ParseLimitError {
    fn from(error: LimitError) -> Self {
        Self::Limit(error)
    }
}
