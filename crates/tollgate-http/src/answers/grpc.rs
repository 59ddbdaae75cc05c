//! Answers of gRPC.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};
use prost::Message;

use super::bodies::text;
use super::value::Value;
use crate::{Cause, Refusal};

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// The bytes of a message that are escaped. Those above 127 are too.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

/// The longest duration of Protocol Buffers in seconds: 10 000 years.
const MAX_SECONDS: u64 = 315_576_000_000;

/// google.rpc.Status.
#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

/// google.protobuf.Any.
#[derive(Clone, PartialEq, Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// google.rpc.RetryInfo.
#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<Delay>,
}

/// google.protobuf.Duration.
#[derive(Clone, PartialEq, Message)]
struct Delay {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

/// Writes the trailers of a refused call. Its answer has nothing else.
pub(super) fn write(refusal: &Refusal<'_>, headers: &mut HeaderMap) {
    let code = code(refusal.cause());
    let message = text(refusal, "");
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(STATUS, HeaderValue::from(code.unsigned_abs()));
    let mut value = Value::default();
    for part in percent_encode(message.as_bytes(), ESCAPED) {
        value.text(part);
    }
    value.insert(headers, MESSAGE);
    if let Some(wait) = refusal.wait() {
        let status = Status {
            code,
            message,
            details: vec![retry_info(wait)],
        };
        let mut value = Value::default();
        value.text(STANDARD_NO_PAD.encode(status.encode_to_vec()));
        value.insert(headers, DETAILS);
    }
}

/// Returns the code of a status.
const fn code(cause: Cause) -> i32 {
    match cause {
        // RESOURCE_EXHAUSTED
        Cause::Limit | Cause::Banned | Cause::Overload | Cause::TooLarge => 8,
        // PERMISSION_DENIED
        Cause::Listed | Cause::NoPlan => 7,
        // INVALID_ARGUMENT
        Cause::MissingKey | Cause::Ambiguous => 3,
        // UNAVAILABLE
        Cause::Unavailable => 14,
        // INTERNAL
        Cause::Misconfigured => 13,
    }
}

fn retry_info(wait: Duration) -> Any {
    let wait = wait.min(Duration::from_secs(MAX_SECONDS));
    let delay = Delay {
        seconds: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(wait.subsec_nanos()).unwrap_or(i32::MAX),
    };
    let info = RetryInfo {
        retry_delay: Some(delay),
    };
    Any {
        type_url: "type.googleapis.com/google.rpc.RetryInfo".to_owned(),
        value: info.encode_to_vec(),
    }
}
