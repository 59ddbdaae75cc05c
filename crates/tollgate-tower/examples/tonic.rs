//! A gRPC service with a limit for each client address. A call above the limit ends with
//! RESOURCE_EXHAUSTED, and with RetryInfo that says when to call again.
//!
//! ```text
//! cargo run -p tollgate-tower --features tonic --example tonic
//! ```

use std::error::Error;
use std::time::Duration;

use tokio::net::TcpListener;
use tollgate::{Keyed, Quota};
use tollgate_tower::RateLimitLayer;
use tonic::Code;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;
use tower::Layer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let limits = Keyed::token_bucket(Quota::per_hour(60).burst(3), 100_000)?;
    let limit = RateLimitLayer::by_address(limits).grpc();
    // The service of the crate tonic-health stands for one of your own.
    let (_, service) = tonic_health::server::health_reporter();
    // This limits one service. `Server::builder().layer(limit)` limits all of a server.
    let server = Server::builder().add_service(limit.layer(service));

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));

    let channel = Endpoint::from_shared(url)?.connect().await?;
    let mut client = HealthClient::new(channel);
    for _ in 0..3 {
        client.check(HealthCheckRequest::default()).await?;
    }
    let denied = client.check(HealthCheckRequest::default()).await;
    let status = denied.expect_err("a burst of 3");
    let wait = status
        .get_details_retry_info()
        .and_then(|info| info.retry_delay);
    println!(
        "{:?}: {}, RetryInfo {wait:?}",
        status.code(),
        status.message()
    );
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(wait.is_some_and(|wait| wait <= Duration::from_secs(60)));
    Ok(())
}
