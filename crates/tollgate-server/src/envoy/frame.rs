//! One call of gRPC: a message in a frame comes in, and a message and its status go out.
//!
//! ```text
//! frame:     0 1 2 3 4 5 ...
//!            │ └──┬──┘ └─ the message
//!            │    └ its length, the highest byte first
//!            └ 1 if the message is compressed
//! ```
//!
//! This is written by hand. A call with one message each way needs little of a gRPC library, and
//! the smallest one brings nine crates more.

use std::convert::Infallible;
use std::fmt::Write;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use hyper::body::{Body, Frame, SizeHint};
use prost::Message;

use crate::read::Unread;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// The bytes before a message.
const PREFIX: usize = 5;

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) code: StatusOfCall,
    pub(super) message: String,
}

/// The status of a call, by its number in gRPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusOfCall {
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    ResourceExhausted = 8,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
}

impl Status {
    pub(super) fn new(code: StatusOfCall, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusOfCall::InvalidArgument, message)
    }
}

impl From<Unread> for Status {
    fn from(unread: Unread) -> Self {
        let code = match unread {
            Unread::TooLarge(_) | Unread::NoMemory => StatusOfCall::ResourceExhausted,
            Unread::Broken => StatusOfCall::InvalidArgument,
            Unread::TooLate(_) => StatusOfCall::DeadlineExceeded,
        };
        Self::new(code, unread.to_string())
    }
}

/// Decodes a frame that has the only message of a call.
pub(super) fn decode<M: Message + Default>(mut frame: impl Buf) -> Result<M, Status> {
    let (Ok(compressed), Ok(length)) = (frame.try_get_u8(), frame.try_get_u32()) else {
        return Err(Status::invalid("the call has no message"));
    };
    if compressed != 0 {
        let message = "messages must not be compressed";
        return Err(Status::new(StatusOfCall::Unimplemented, message));
    }
    if usize::try_from(length) != Ok(frame.remaining()) {
        let message = format!(
            "the message should have {length} bytes, but {} came",
            frame.remaining()
        );
        return Err(Status::invalid(message));
    }
    // The error names the field.
    M::decode(frame).map_err(|error| Status::invalid(error.to_string()))
}

/// Says a message.
pub(super) fn answer(message: &impl Message) -> Response<Reply> {
    let length = message.encoded_len();
    let mut frame = BytesMut::with_capacity(length.saturating_add(PREFIX));
    frame.put_u8(0);
    frame.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    // There is room for it.
    let _ = message.encode(&mut frame);
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
    response(Reply {
        data: Some(frame.freeze()),
        trailers: Some(trailers),
    })
}

/// Says why there is no message: an answer of headers alone.
pub(super) fn refuse(status: &Status) -> Response<Reply> {
    let mut response = response(Reply::default());
    let headers = response.headers_mut();
    headers.insert(GRPC_STATUS, HeaderValue::from(status.code as u16));
    if let Ok(message) = HeaderValue::from_str(&escaped(&status.message)) {
        headers.insert(GRPC_MESSAGE, message);
    }
    response
}

fn response(body: Reply) -> Response<Reply> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response
}

/// Escapes what a `grpc-message` can't have.
fn escaped(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    for byte in message.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => out.push(char::from(byte)),
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

/// The body of an answer.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    data: Option<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = self.data.take().map(Frame::data);
        let frame = data.or_else(|| self.trailers.take().map(Frame::trailers));
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let length = self.data.as_ref().map_or(0, Bytes::len);
        SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX))
    }
}

/// Returns how long the caller of a call waits, by its header `grpc-timeout`.
pub(super) fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let unit = text.len().checked_sub(1)?;
    let (digits, unit) = text.split_at_checked(unit)?;
    // The protocol has at most eight digits.
    let n: u32 = digits.parse().ok()?;
    let n = u64::from(n);
    Some(match unit {
        "H" => Duration::from_secs(n.saturating_mul(3600)),
        "M" => Duration::from_secs(n.saturating_mul(60)),
        "S" => Duration::from_secs(n),
        "m" => Duration::from_millis(n),
        "u" => Duration::from_micros(n),
        "n" => Duration::from_nanos(n),
        _ => return None,
    })
}
