//! Which part of the service answers a request.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::ALLOW;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{Either, Full};
use hyper::body::Incoming;

use crate::decide;
use crate::envoy;
use crate::forward::{self, Proxy};
use crate::read::read;
use crate::service::{Answer, Service, text};

/// Answers a request to the address of decisions.
pub(crate) async fn answer(
    service: Arc<Service>,
    peer: IpAddr,
    request: Request<Incoming>,
) -> Response<Either<Full<Bytes>, envoy::Reply>> {
    match envoy::is_call(&request) {
        true => envoy::answer(service, request).await.map(Either::Right),
        // Its future is large, and connections move it several times.
        false => Box::pin(plain(service, peer, request))
            .await
            .map(Either::Left),
    }
}

/// Answers a request of plain HTTP.
async fn plain(service: Arc<Service>, peer: IpAddr, request: Request<Incoming>) -> Answer {
    let (head, body) = request.into_parts();
    let proxy = match head.uri.path() {
        "/decide" | "/finish" | "/undo" if head.method != Method::POST => {
            let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "POST a question in JSON");
            answer
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static("POST"));
            return answer;
        }
        path @ ("/decide" | "/finish" | "/undo") => {
            let body = match read(&service.limits, body).await {
                Ok(body) => body,
                Err(answer) => return answer,
            };
            return match path {
                "/decide" => decide::decide(&service, &body).await,
                "/finish" => decide::finish(&service, &body).await,
                _ => decide::undo(&service, &body).await,
            };
        }
        "/forward" => Proxy::Forwarding,
        "/nginx" => Proxy::Nginx,
        "/healthz" => return text(StatusCode::OK, "ok"),
        "/readyz" => return service.readiness(),
        _ => return text(StatusCode::NOT_FOUND, KNOWN),
    };
    forward::answer(&service, proxy, peer, head).await
}

const KNOWN: &str = "there is /decide, /finish, /undo, /forward, /nginx, /healthz and /readyz";
