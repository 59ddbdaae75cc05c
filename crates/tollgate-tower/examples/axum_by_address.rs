//! axum with a limit for each client address, behind a proxy, and with `RateLimit` fields.
//!
//! ```text
//! cargo run -p tollgate-tower --features axum --example axum_by_address
//! ```

use std::error::Error;
use std::net::SocketAddr;

use axum::{Router, http::HeaderMap, routing::get};
use tokio::net::TcpListener;
use tollgate::{Keyed, Quota};
use tollgate_tower::{ClientAddress, Fields, RateLimitLayer};

type Failed = Box<dyn Error + Send + Sync>;

fn app() -> Result<Router, Failed> {
    // 10 requests at once, and one more each minute. The table has room for 100 000 addresses.
    let limits = Keyed::token_bucket(Quota::per_hour(60).burst(10), 100_000)?;
    // The proxy runs on this machine. If it were not trusted, its address would be the only key.
    let addresses = ClientAddress::peer().trust("127.0.0.0/8")?;
    let limit = RateLimitLayer::by_address(limits)
        .client_address(addresses.x_forwarded_for())
        .fields(Fields::LIST)
        .name("address");
    let router = Router::new().route("/", get(async || "hello\n"));
    Ok(router.layer(limit))
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let proxy = Proxy {
        url: format!("http://{}/", listener.local_addr()?),
        client: reqwest::Client::new(),
    };
    // The layer needs the address of the connection's other end.
    let service = app()?.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });

    for _ in 0..10 {
        assert_eq!(proxy.request_of("192.0.2.7").await?.0, 200);
    }
    let (status, headers) = proxy.request_of("192.0.2.7").await?;
    println!("{status}");
    for name in ["retry-after", "ratelimit-policy", "ratelimit"] {
        println!("{name}: {}", headers[name].to_str()?);
    }
    assert_eq!(status, 429);
    assert_eq!(headers["ratelimit-policy"], r#""address";q=10;w=600"#);

    // Another address has a limit of its own. The addresses of one /64 of IPv6 share one.
    assert_eq!(proxy.request_of("192.0.2.8").await?.0, 200);
    for host in 0..10 {
        assert_eq!(proxy.request_of(&format!("2001:db8::{host}")).await?.0, 200);
    }
    assert_eq!(proxy.request_of("2001:db8::99").await?.0, 429);
    Ok(())
}

struct Proxy {
    url: String,
    client: reqwest::Client,
}

impl Proxy {
    /// Passes on the request of a client that invents an address before its own.
    async fn request_of(&self, client: &str) -> Result<(u16, HeaderMap), reqwest::Error> {
        let forwarded = format!("198.51.100.1, {client}");
        let request = self.client.get(&self.url);
        let answer = request.header("x-forwarded-for", forwarded).send().await?;
        Ok((answer.status().as_u16(), answer.headers().clone()))
    }
}
