//! Bodies of requests.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

use crate::budget::{Budget, Share};
use crate::json::failure;
use crate::service::Answer;
use crate::settings::Limits;

/// The body of a request.
#[derive(Debug)]
pub(crate) struct Read {
    bytes: Bytes,
    _share: Share,
}

impl Deref for Read {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Why a body is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It has more bytes than these.
    TooLarge(usize),
    /// It ends too early, or is no body.
    Broken,
    /// It has not come within this time.
    TooLate(Duration),
    /// Other requests take all memory that there is for bodies.
    NoMemory,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(most) => write!(f, "a body has at most {most} bytes"),
            Self::Broken => f.write_str("the body can't be read"),
            Self::TooLate(time) => write!(f, "a body must come within {time:?}"),
            Self::NoMemory => {
                f.write_str("other requests take all memory that there is for bodies")
            }
        }
    }
}

impl Unread {
    pub(crate) fn answer(self) -> Answer {
        let status = match self {
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Broken => StatusCode::BAD_REQUEST,
            Self::TooLate(_) => StatusCode::REQUEST_TIMEOUT,
            Self::NoMemory => StatusCode::SERVICE_UNAVAILABLE,
        };
        failure(status, &self)
    }
}

/// Reads the body of a request, if it is small and comes in time.
pub(crate) async fn read(
    limits: &Limits,
    budget: &Arc<Budget>,
    body: Incoming,
) -> Result<Read, Unread> {
    let read = tokio::time::timeout(limits.body_time, collect(limits, budget, body));
    read.await.unwrap_or(Err(Unread::TooLate(limits.body_time)))
}

async fn collect(
    limits: &Limits,
    budget: &Arc<Budget>,
    mut body: Incoming,
) -> Result<Read, Unread> {
    let too_large = Err(Unread::TooLarge(limits.body_bytes));
    let said = usize::try_from(body.size_hint().lower());
    if said.is_ok_and(|said| said > limits.body_bytes) {
        return too_large;
    }
    let mut share = budget.share();
    let (mut first, mut all) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Unread::Broken)?.into_data() else {
            continue;
        };
        let before = first.len() + all.len();
        if data.len() > limits.body_bytes.saturating_sub(before) {
            return too_large;
        }
        if !share.grow(data.len()) {
            return Err(Unread::NoMemory);
        }
        // Most bodies come in one piece, which need not be copied.
        if before == 0 {
            first = data;
        } else {
            all.extend_from_slice(&std::mem::take(&mut first));
            all.extend_from_slice(&data);
        }
    }
    let bytes = match all.is_empty() {
        true => first,
        false => all.freeze(),
    };
    Ok(Read {
        bytes,
        _share: share,
    })
}
