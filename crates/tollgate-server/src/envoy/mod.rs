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
    let method = match (request.method(), request.uri().path()) {
        (&Method::POST, SHOULD_RATE_LIMIT) => Some(Called::ShouldRateLimit),
        (&Method::POST, "/grpc.health.v1.Health/Check") => Some(Called::Health),
        _ => None,
    };
    let patience = frame::timeout(request.headers());
    let body = request.into_body();
    let answer = match method {
        Some(Called::ShouldRateLimit) => should_rate_limit(&service, body, patience).await,
        Some(Called::Health) => {
            let request = message(&service, body).await;
            let answer = request.and_then(|request| health(&service, &request));
            answer.map(|answer| frame::answer(&answer))
        }
        None => Err(Status::new(StatusOfCall::Unimplemented, KNOWN)),
    };
    answer.unwrap_or_else(|status| frame::refuse(&status))
}

/// Reads the only message of a call.
async fn message<M: prost::Message + Default>(
    service: &Service,
    body: Incoming,
) -> Result<M, Status> {
    let body = read(&service.limits, &service.budget, body).await?;
    frame::decode(&*body)
}

const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

enum Called {
    ShouldRateLimit,
    Health,
}

async fn should_rate_limit(
    service: &Service,
    body: Incoming,
    patience: Option<Duration>,
) -> Result<Response<Reply>, Status> {
    let request = message(service, body).await?;
    let (answer, delay) = decide::decide(service, &request, patience).await?;
    if !delay.is_zero() {
        // If Envoy leaves, others may wait behind this request: its permits stay taken.
        Box::pin(tokio::time::sleep(delay)).await;
    }
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
