//! Bodies of requests.

use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;

use crate::service::{Answer, text};
use crate::settings::Limits;

/// Reads the body of a request, if it is small and comes in time.
pub(crate) async fn read(limits: &Limits, body: Incoming) -> Result<Bytes, Answer> {
    let body = Limited::new(body, limits.body_bytes).collect();
    match tokio::time::timeout(limits.body_time, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let message = format!("a body has at most {} bytes", limits.body_bytes);
            Err(text(StatusCode::PAYLOAD_TOO_LARGE, message))
        }
        Ok(Err(_)) => Err(text(StatusCode::BAD_REQUEST, "the body can't be read")),
        Err(_) => {
            let message = format!("a body must come within {:?}", limits.body_time);
            Err(text(StatusCode::REQUEST_TIMEOUT, message))
        }
    }
}
