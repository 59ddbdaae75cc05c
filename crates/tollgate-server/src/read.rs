//! Bodies of requests.

use std::ops::Deref;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

use crate::budget::{Budget, Share};
use crate::service::{Answer, text};
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

/// Reads the body of a request, if it is small and comes in time.
pub(crate) async fn read(
    limits: &Limits,
    budget: &Arc<Budget>,
    body: Incoming,
) -> Result<Read, Answer> {
    match tokio::time::timeout(limits.body_time, collect(limits, budget, body)).await {
        Ok(read) => read,
        Err(_) => {
            let message = format!("a body must come within {:?}", limits.body_time);
            Err(text(StatusCode::REQUEST_TIMEOUT, message))
        }
    }
}

async fn collect(
    limits: &Limits,
    budget: &Arc<Budget>,
    mut body: Incoming,
) -> Result<Read, Answer> {
    let too_large = || {
        let message = format!("a body has at most {} bytes", limits.body_bytes);
        Err(text(StatusCode::PAYLOAD_TOO_LARGE, message))
    };
    let said = usize::try_from(body.size_hint().lower());
    if said.is_ok_and(|said| said > limits.body_bytes) {
        return too_large();
    }
    let mut share = budget.share();
    let (mut first, mut all) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return Err(text(StatusCode::BAD_REQUEST, "the body can't be read"));
        };
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let before = first.len() + all.len();
        if data.len() > limits.body_bytes.saturating_sub(before) {
            return too_large();
        }
        if !share.grow(data.len()) {
            let message = "other requests take all memory that there is for bodies";
            return Err(text(StatusCode::SERVICE_UNAVAILABLE, message));
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
