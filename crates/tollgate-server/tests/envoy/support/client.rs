//! A client of gRPC.

use std::net::SocketAddr;
use std::time::Duration;

use http::uri::PathAndQuery;
use prost::Message;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use super::messages::{Descriptor, Entry, RateLimitRequest, RateLimitResponse};

pub(crate) const SHOULD_RATE_LIMIT: &str =
    "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// Calls the service.
#[derive(Clone)]
pub(crate) struct Client(Grpc<Channel>);

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        Self(Grpc::new(endpoint.connect_lazy()))
    }

    pub(crate) async fn call<Q, A>(
        &mut self,
        path: &'static str,
        request: Request<Q>,
    ) -> Result<A, Status>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        self.0.ready().await.unwrap();
        let path = PathAndQuery::from_static(path);
        let answer = self.0.unary(request, path, ProstCodec::default()).await?;
        Ok(answer.into_inner())
    }

    pub(crate) async fn try_ask(
        &mut self,
        request: RateLimitRequest,
    ) -> Result<RateLimitResponse, Status> {
        self.call(SHOULD_RATE_LIMIT, Request::new(request)).await
    }

    pub(crate) async fn ask(&mut self, request: RateLimitRequest) -> RateLimitResponse {
        self.try_ask(request).await.unwrap()
    }

    /// Asks as Envoy does that waits for this long.
    pub(crate) async fn ask_within(
        &mut self,
        request: RateLimitRequest,
        timeout: Duration,
    ) -> RateLimitResponse {
        let mut request = Request::new(request);
        request.set_timeout(timeout);
        self.call(SHOULD_RATE_LIMIT, request).await.unwrap()
    }
}

/// A request of the domain `web`.
pub(crate) fn request<const N: usize>(descriptors: [Descriptor; N]) -> RateLimitRequest {
    RateLimitRequest {
        domain: "web".into(),
        descriptors: descriptors.into(),
        hits_addend: 0,
    }
}

pub(crate) fn descriptor<const N: usize>(entries: [(&str, &str); N]) -> Descriptor {
    Descriptor {
        entries: entries.map(entry).into(),
        ..Descriptor::default()
    }
}

pub(crate) fn entry((key, value): (&str, &str)) -> Entry {
    Entry {
        key: key.into(),
        value: value.into(),
    }
}

impl Descriptor {
    pub(crate) fn hits(self, hits: u64) -> Self {
        let hits_addend = Some(hits);
        Self {
            hits_addend,
            ..self
        }
    }

    pub(crate) fn refunded(self) -> Self {
        let is_negative_hits = true;
        Self {
            is_negative_hits,
            ..self
        }
    }

    pub(crate) fn charged(mut self) -> Self {
        self.entries.push(entry(("hits-mode", "charge")));
        self
    }

    pub(crate) fn limit(self, requests_per_unit: u32, unit: i32) -> Self {
        let limit = Some(super::messages::Limit {
            requests_per_unit,
            unit,
        });
        Self { limit, ..self }
    }
}
