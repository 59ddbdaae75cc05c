//! Which part of the service answers a request.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::Either::{Left, Right};
use http::header::{ALLOW, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{Either, Full};
use hyper::body::Incoming;

use crate::decide;
use crate::envoy;
use crate::forward::{self, Proxy};
use crate::json::failure;
use crate::read::read;
use crate::service::{Answer, Answering, Service, later, now, text};

/// What is said over plain HTTP, or to a call of gRPC.
type Body = Either<Full<Bytes>, envoy::Reply>;

/// Answers a request to the address of decisions.
pub(crate) fn answer(
    service: &Arc<Service>,
    peer: IpAddr,
    request: Request<Incoming>,
) -> impl Future<Output = Response<Body>> + Send + use<> {
    match envoy::is_call(&request) {
        true => {
            let answer = envoy::answer(Arc::clone(service), request);
            Left(Box::pin(answer.map(|answer| answer.map(Body::Right))))
        }
        false => Right(plain(service, peer, request).map(|answer| answer.map(Body::Left))),
    }
}

/// Answers a request of plain HTTP.
fn plain(service: &Arc<Service>, peer: IpAddr, request: Request<Incoming>) -> Answering {
    let (head, body) = request.into_parts();
    let proxy = match head.uri.path() {
        "/decide" | "/finish" | "/undo" if head.method != Method::POST => {
            let mut answer = failure(StatusCode::METHOD_NOT_ALLOWED, "the method must be POST");
            answer
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static("POST"));
            return now(answer);
        }
        // A page in a browser must not ask for the person who looks at it.
        "/decide" | "/finish" | "/undo" if is_of_browser(&head.headers) => {
            return now(failure(
                StatusCode::FORBIDDEN,
                "no page in a browser may ask",
            ));
        }
        "/decide" | "/finish" | "/undo" => {
            let service = Arc::clone(service);
            return later(async move { asked(&service, head.uri.path(), body).await });
        }
        "/forward" => Proxy::Forwarding,
        "/nginx" => Proxy::Nginx,
        "/healthz" => return now(text(StatusCode::OK, "ok")),
        "/readyz" => return now(service.readiness()),
        _ => return now(failure(StatusCode::NOT_FOUND, KNOWN)),
    };
    forward::answer(service, proxy, peer, head)
}

/// Answers a program.
async fn asked(service: &Service, path: &str, body: Incoming) -> Answer {
    let body = match read(&service.limits, &service.budget, body).await {
        Ok(body) => body,
        Err(unread) => return unread.answer(),
    };
    match path {
        "/decide" => decide::decide(service, &body).await,
        "/finish" => decide::finish(service, &body).await,
        _ => decide::undo(service, &body).await,
    }
}

const KNOWN: &str = "there is /decide, /finish, /undo, /forward, /nginx, /healthz and /readyz";

/// Returns whether a browser sends a request for a page.
fn is_of_browser(headers: &HeaderMap) -> bool {
    headers.contains_key(ORIGIN) || headers.contains_key(SEC_FETCH_SITE)
}

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
