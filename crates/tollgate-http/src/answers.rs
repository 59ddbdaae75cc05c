//! How answers are written.

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};

use crate::{Cause, LimitState, Refusal};

/// Which fields say what a client has left. Several generations can be combined with `|`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Fields(u8);

impl Fields {
    /// None. `Retry-After` is always written on a refusal with a known wait.
    pub const OFF: Self = Self(0);
    /// `RateLimit-Policy` and `RateLimit` as lists, as in drafts 08 to 11.
    pub const LIST: Self = Self(1);
    /// `RateLimit-Policy` and `RateLimit` as in draft 07.
    pub const DICTIONARY: Self = Self(2);
    /// `RateLimit-Limit`, `-Remaining` and `-Reset`, as in drafts 00 to 06.
    pub const TRIPLE: Self = Self(4);
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, with the reset in seconds.
    pub const X_SECONDS: Self = Self(8);
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, with the reset as seconds since 1970.
    pub const X_EPOCH: Self = Self(16);
    /// Those of Spring Cloud Gateway.
    pub const SPRING: Self = Self(32);
}

/// The body of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Body {
    /// One line of text.
    #[default]
    Text,
    /// `application/problem+json`.
    Problem,
    /// No body.
    Empty,
}

/// How answers are written: fields, bodies and statuses.
#[derive(Debug, Clone)]
#[must_use]
pub struct Answers {
    fields: Fields,
    body: Body,
}

impl Answers {
    /// Answers without fields, and with a line of text on a refusal.
    pub const fn new() -> Self {
        todo!()
    }

    /// Sets which fields say what a client has left.
    pub const fn fields(self, fields: Fields) -> Self {
        todo!()
    }

    /// Sets the body of refusals.
    pub const fn body(self, body: Body) -> Self {
        todo!()
    }

    /// Sets the status of refusals for this cause.
    pub fn status(self, cause: Cause, status: StatusCode) -> Self {
        todo!()
    }

    /// Returns whether answers to granted requests have fields.
    #[must_use]
    pub const fn has_fields(&self) -> bool {
        todo!()
    }

    /// Writes the fields of an answer to a granted request.
    pub fn write<'a>(
        &self,
        limits: impl Iterator<Item = LimitState<'a>> + Clone,
        headers: &mut HeaderMap,
    ) {
        todo!()
    }

    /// Writes the answer to a request that is refused.
    #[must_use]
    pub fn refuse(&self, refusal: &Refusal<'_>) -> Response<Bytes> {
        todo!()
    }

    /// Writes the answer to a call of gRPC that is refused.
    #[cfg(feature = "grpc")]
    #[must_use]
    pub fn refuse_grpc(&self, refusal: &Refusal<'_>) -> Response<Bytes> {
        todo!()
    }
}
