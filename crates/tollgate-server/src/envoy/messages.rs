//! The messages of Envoy's protocol, as far as they are used: unknown fields are skipped.
//!
//! They are written by hand. The crates that have all of Envoy's messages have thousands, and take
//! longer to build than this whole crate. The numbers are those of `envoy.service.ratelimit.v3`,
//! `envoy.extensions.common.ratelimit.v3` and `envoy.config.core.v3`.

use prost::Message;

/// What Envoy asks.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RateLimitRequest {
    #[prost(string, tag = "1")]
    pub(super) domain: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) descriptors: Vec<RateLimitDescriptor>,
    /// 0 means 1.
    #[prost(uint32, tag = "3")]
    pub(super) hits_addend: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RateLimitDescriptor {
    #[prost(message, repeated, tag = "1")]
    pub(super) entries: Vec<Entry>,
    #[prost(message, optional, tag = "2")]
    pub(super) limit: Option<RateLimitOverride>,
    /// A `google.protobuf.UInt64Value`. 0 means 0.
    #[prost(message, optional, tag = "3")]
    pub(super) hits_addend: Option<u64>,
    #[prost(bool, tag = "4")]
    pub(super) is_negative_hits: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Entry {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

/// A quota that Envoy asks for.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct RateLimitOverride {
    #[prost(uint32, tag = "1")]
    pub(super) requests_per_unit: u32,
    /// A [`Unit`](crate::overrides::Unit).
    #[prost(int32, tag = "2")]
    pub(super) unit: i32,
}

/// What was decided.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RateLimitResponse {
    #[prost(enumeration = "Code", tag = "1")]
    pub(super) overall_code: i32,
    /// One for each descriptor, in their order.
    #[prost(message, repeated, tag = "2")]
    pub(super) statuses: Vec<DescriptorStatus>,
    #[prost(message, repeated, tag = "3")]
    pub(super) response_headers_to_add: Vec<HeaderField>,
    #[prost(bytes = "bytes", tag = "5")]
    pub(super) raw_body: bytes::Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum Code {
    Unknown = 0,
    Ok = 1,
    OverLimit = 2,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DescriptorStatus {
    #[prost(enumeration = "Code", tag = "1")]
    pub(super) code: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) current_limit: Option<RateLimit>,
    #[prost(uint32, tag = "3")]
    pub(super) limit_remaining: u32,
    #[prost(message, optional, tag = "4")]
    pub(super) duration_until_reset: Option<Seconds>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RateLimit {
    #[prost(uint32, tag = "1")]
    pub(super) requests_per_unit: u32,
    /// A [`Unit`](crate::overrides::Unit), or 0.
    #[prost(int32, tag = "2")]
    pub(super) unit: i32,
    #[prost(string, tag = "3")]
    pub(super) name: String,
}

/// A `google.protobuf.Duration` of whole seconds.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Seconds {
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
}

/// A header.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HeaderField {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

/// `grpc.health.v1`: how is a service?
#[derive(Clone, PartialEq, Message)]
pub(super) struct HealthRequest {
    #[prost(string, tag = "1")]
    pub(super) service: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct HealthResponse {
    #[prost(enumeration = "Health", tag = "1")]
    pub(super) status: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum Health {
    Unknown = 0,
    Serving = 1,
    NotServing = 2,
}
