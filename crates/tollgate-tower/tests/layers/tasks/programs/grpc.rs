use tollgate_tower::RateLimitLayer;
use tollgate_tower::tollgate::{Keyed, Quota, error::LimiterError};
use tonic::transport::{Server, server::Router};
use tower::Layer;

pub(crate) fn server() -> Result<Router, LimiterError> {
    let limits = Keyed::token_bucket(Quota::per_hour(3), 100_000)?;
    let limit = RateLimitLayer::by_address(limits).grpc();
    let (_, service) = tonic_health::server::health_reporter();
    Ok(Server::builder().add_service(limit.layer(service)))
}
