//! Client addresses: forged headers are one key, and so is a network of IPv6.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use http::{Extensions, Request, Response};
use http_body_util::{BodyExt, Empty};
use tollgate::{Keyed, ManualClock, Quota, TokenBucket};
use tollgate_http::ClientAddress;
use tollgate_tower::RateLimitLayer;
use tower::{Layer, Service};

use crate::sockets::client::{Client, VERSIONS};
use crate::sockets::server::Server;

type Table = Arc<Keyed<TokenBucket, ManualClock>>;

fn table(quota: Quota) -> Table {
    let bucket = TokenBucket::new(quota).unwrap();
    Arc::new(Keyed::with_clock(bucket, 100_000, ManualClock::new()).unwrap())
}

async fn serve(table: &Table, address: ClientAddress) -> Server {
    let layer = RateLimitLayer::by_address(Arc::clone(table)).client_address(address);
    Server::axum(
        Router::new()
            .route("/", get(|| async { "a page" }))
            .layer(layer),
    )
    .await
}

/// The peer is not trusted, whatever it says about itself.
#[tokio::test]
async fn ten_thousand_forged_addresses_are_one_key() {
    let addresses = [
        ClientAddress::peer(),
        ClientAddress::peer()
            .trust("192.0.2.0/24")
            .unwrap()
            .x_forwarded_for(),
    ];
    for (version, address) in VERSIONS.into_iter().zip(addresses) {
        let table = table(Quota::per_hour(7));
        let server = serve(&table, address).await;
        let mut client = Client::connect(server.address, version).await;
        let mut admitted = 0;
        for number in 0..5000_u32 {
            let forged = IpAddr::from(number.wrapping_mul(2_654_435_761).to_be_bytes());
            let request = client
                .get("/")
                .header("x-forwarded-for", forged.to_string());
            let request = request
                .header("forwarded", format!("for={forged}"))
                .header("x-real-ip", forged.to_string())
                .header("cf-connecting-ip", forged.to_string());
            let answer = client.send(request).await.unwrap();
            admitted += usize::from(answer.status() == 200);
            answer.into_body().collect().await.unwrap();
        }
        assert_eq!((admitted, table.len()), (7, 1));
        let peer = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(table.key(&peer).available(), 0);
        drop(client);
        server.stop().await;
    }
}

/// The lines of a header are one list, and it is read from its end.
#[tokio::test]
async fn several_header_lines_are_counted_from_the_right() {
    let address = ClientAddress::peer().trust("127.0.0.0/8").unwrap();
    let address = address.trust("10.0.0.0/8").unwrap().x_forwarded_for();
    for version in VERSIONS {
        let table = table(Quota::per_hour(1));
        let server = serve(&table, address.clone()).await;
        let mut client = Client::connect(server.address, version).await;
        // The last address that no proxy has.
        let cases: [(&[&str], u8, u16); 7] = [
            (&["198.51.100.1", "203.0.113.1"], 1, 200),
            (&["198.51.100.2, 203.0.113.1"], 1, 429),
            (&["198.51.100.3", "203.0.113.1, 10.0.0.3"], 1, 429),
            (&["203.0.113.1", "203.0.113.2", "10.0.0.3"], 2, 200),
            (
                &["203.0.113.3, ::ffff:203.0.113.2", "10.0.0.3,10.0.0.4"],
                2,
                429,
            ),
            (
                &[
                    "203.0.113.1",
                    "10.0.0.1",
                    "203.0.113.3",
                    "10.0.0.2",
                    "10.0.0.3",
                ],
                3,
                200,
            ),
            (&["203.0.113.1", "203.0.113.3:4711", "10.0.0.2:80"], 3, 429),
        ];
        for (lines, last, status) in cases {
            let mut request = client.get("/");
            for line in lines {
                request = request.header("x-forwarded-for", *line);
            }
            let answer = client.send(request).await.unwrap();
            assert_eq!(answer.status(), status, "{lines:?}");
            answer.into_body().collect().await.unwrap();
            let last = IpAddr::from([203, 0, 113, last]);
            assert_eq!(table.key(&last).available(), 0, "{lines:?}");
        }
        assert_eq!(table.len(), 3);
        drop(client);
        server.stop().await;
    }
}

/// Answers with nothing.
#[derive(Debug, Clone)]
struct Nothing;

impl Service<Request<()>> for Nothing {
    type Response = Response<Empty<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(Ok(Response::new(Empty::new())))
    }
}

thread_local! {
    static NEXT: Cell<u64> = const { Cell::new(0) };
}

/// Another address of 2001:db8:1:2::/64 each time.
fn next_of_network(_: &Extensions) -> Option<IpAddr> {
    let number = NEXT.replace(NEXT.get() + 1);
    let interface = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let network = u128::from(0x2001_0db8_0001_0002_u64) << 64;
    Some(Ipv6Addr::from_bits(network | u128::from(interface)).into())
}

#[test]
fn a_million_addresses_of_a_network_are_one_key() {
    let table = table(Quota::per_hour(1000));
    let layer = RateLimitLayer::by_address(Arc::clone(&table)).peer(next_of_network);
    let mut service = layer.layer(Nothing);
    let mut context = Context::from_waker(Waker::noop());
    let mut admitted = 0;
    for _ in 0..1_000_000 {
        assert!(service.poll_ready(&mut context).is_ready());
        let mut answer = std::pin::pin!(service.call(Request::new(())));
        let Poll::Ready(Ok(answer)) = answer.as_mut().poll(&mut context) else {
            panic!("it is decided at once");
        };
        admitted += usize::from(answer.status() == 200);
    }
    assert_eq!((admitted, table.len()), (1000, 1));
    let network: IpAddr = "2001:db8:1:2::".parse().unwrap();
    assert_eq!(table.key(&network).available(), 0);
}
