//! Envoy's rate limit service: gRPC on the same address as HTTP.

mod decide;
mod descriptor;
mod frame;
#[cfg(fuzzing)]
pub mod fuzzing;
mod messages;
mod say;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{Method, Request, Response, Version};
use hyper::body::Incoming;

pub(crate) use self::frame::Reply;
use self::frame::{Status, StatusOfCall};
use self::messages::{Health, HealthRequest, HealthResponse};
use crate::read::read;
use crate::service::Service;

const RATE_LIMIT_SERVICE: &str = "envoy.service.ratelimit.v3.RateLimitService";

/// Returns whether a request is a call of gRPC.
pub(crate) fn is_call(request: &Request<Incoming>) -> bool {
    let kind = request.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.as_bytes().strip_prefix(b"application/grpc"));
    // There are also application/grpc-web and application/grpc+json.
    let is_proto = kind.is_some_and(|rest| {
        rest.is_empty() || rest.starts_with(b";") || rest.starts_with(b"+proto")
    });
    is_proto && request.version() == Version::HTTP_2
}

/// Answers a call.
pub(crate) async fn answer(service: Arc<Service>, request: Request<Incoming>) -> Response<Reply> {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    let answer = match head.method == Method::POST && [DECIDE, CHECK].contains(&path) {
        true => {
            let patience = frame::timeout(&head.headers);
            called(&service, path, patience, body).await
        }
        false => Err(Status::new(StatusOfCall::Unimplemented, KNOWN)),
    };
    answer.unwrap_or_else(|status| frame::refuse(&status))
}

const DECIDE: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const CHECK: &str = "/grpc.health.v1.Health/Check";

async fn called(
    service: &Arc<Service>,
    path: &str,
    patience: Option<Duration>,
    body: Incoming,
) -> Result<Response<Reply>, Status> {
    let body = read(&service.limits, &service.budget, body).await?;
    if path == CHECK {
        let health = health(service, &frame::decode(&*body)?)?;
        return Ok(frame::answer(&health));
    }
    let request = frame::decode(&*body)?;
    let answer = decide::decide(service, &request, patience).await?;
    Ok(frame::answer(&answer))
}

const KNOWN: &str = "there is envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit and \
                     grpc.health.v1.Health/Check";

/// Says whether a service should get calls: this one, or the one that is asked for by its name.
fn health(service: &Service, request: &HealthRequest) -> Result<HealthResponse, Status> {
    if !["", RATE_LIMIT_SERVICE].contains(&&*request.service) {
        let message = format!("service is {:?}, which is not here", request.service);
        return Err(Status::new(StatusOfCall::NotFound, message));
    }
    let health = match service.drains.load(Relaxed) {
        false => Health::Serving,
        true => Health::NotServing,
    };
    Ok(HealthResponse {
        status: health.into(),
    })
}
