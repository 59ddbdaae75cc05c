//! The client's address: the connection's, and behind proxies.

use axum::body::Body;
use axum::http::Request;
use governor::middleware::NoOpMiddleware;
use tollgate::{Limiter, Quota};
use tollgate_http::ClientAddress;
use tollgate_tower::RateLimitLayer;
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;
use tower_governor::key_extractor::{
    GlobalKeyExtractor, KeyExtractor, PeerIpKeyExtractor, SmartIpKeyExtractor,
};

use crate::support::{Result, behind, from, statuses, still, with};

/// One request an hour for each key.
fn one() -> GovernorConfigBuilder<PeerIpKeyExtractor, NoOpMiddleware> {
    let builder = GovernorConfigBuilder::const_default();
    builder.const_per_second(3600).const_burst_size(1)
}

/// Returns the statuses of requests with tower_governor.
async fn theirs<K>(
    mut builder: GovernorConfigBuilder<K, NoOpMiddleware>,
    requests: Vec<Request<Body>>,
) -> Result<Vec<u16>>
where
    K: KeyExtractor<Key: Send + Sync + 'static> + Send + Sync + 'static,
{
    let config = builder.finish().ok_or("zero")?;
    let service = behind(GovernorLayer::new(config));
    Ok(statuses(&service, requests).await)
}

/// Returns the statuses of requests with tollgate-tower, at one request an hour for each address.
async fn ours(proxies: ClientAddress, requests: Vec<Request<Body>>) -> Result<Vec<u16>> {
    let table = still(Quota::per_hour(1))?;
    let service = behind(RateLimitLayer::by_address(table).client_address(proxies));
    Ok(statuses(&service, requests).await)
}

fn trusted() -> Result<ClientAddress> {
    Ok(ClientAddress::peer().trust("10.0.0.0/8")?.x_forwarded_for())
}

fn granted(statuses: &[u16]) -> usize {
    statuses.iter().filter(|status| **status == 200).count()
}

#[tokio::test]
async fn each_peer_has_a_limit() -> Result {
    let requests = || ["192.0.2.1", "192.0.2.1", "192.0.2.2"].map(from).into();
    let expected = [200, 429, 200];
    assert_eq!(
        theirs(one().key_extractor(PeerIpKeyExtractor), requests()).await?,
        expected
    );
    let table = still(Quota::per_hour(1))?;
    let service = behind(RateLimitLayer::by_address(table));
    let requests: Vec<_> = requests();
    assert_eq!(statuses(&service, requests).await, expected);
    Ok(())
}

#[tokio::test]
async fn all_requests_can_share_a_limit() -> Result {
    let requests = || ["192.0.2.1", "192.0.2.2"].map(from).into();
    assert_eq!(
        theirs(one().key_extractor(GlobalKeyExtractor), requests()).await?,
        [200, 429]
    );
    let quota = Quota::per_hour(1);
    let service = behind(RateLimitLayer::shared(Limiter::token_bucket(quota)?));
    let requests: Vec<_> = requests();
    assert_eq!(statuses(&service, requests).await, [200, 429]);
    Ok(())
}

#[tokio::test]
async fn a_client_can_not_choose_its_key_by_a_header() -> Result {
    let names = ["x-forwarded-for", "x-real-ip", "forwarded"];
    for name in names {
        let requests = || {
            let value = |n| match name {
                "forwarded" => format!("for=198.51.100.{n}"),
                _ => format!("198.51.100.{n}"),
            };
            let requests = (0..100).map(|n| with("192.0.2.1", name, &value(n)));
            requests.collect::<Vec<_>>()
        };
        assert_eq!(
            granted(&theirs(one().key_extractor(SmartIpKeyExtractor), requests()).await?),
            100,
            "{name}"
        );
        assert_eq!(granted(&ours(trusted()?, requests()).await?), 1, "{name}");
        assert_eq!(
            granted(&ours(ClientAddress::peer(), requests()).await?),
            1,
            "{name}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn behind_a_proxy_the_address_that_the_proxy_saw_counts() -> Result {
    // The client sends an entry, and the proxy appends the client's address.
    let forged = || {
        let value = |n| format!("198.51.100.{n}, 203.0.113.9");
        let requests = (0..100).map(|n| with("10.0.0.2", "x-forwarded-for", &value(n)));
        requests.collect::<Vec<_>>()
    };
    assert_eq!(
        granted(&theirs(one().key_extractor(SmartIpKeyExtractor), forged()).await?),
        100
    );
    assert_eq!(granted(&ours(trusted()?, forged()).await?), 1);

    // The proxy adds a line of its own.
    let lines = || {
        let request = |n| {
            let mut request = with("10.0.0.2", "x-forwarded-for", &format!("198.51.100.{n}"));
            let seen = "203.0.113.9".parse().expect("a value");
            request.headers_mut().append("x-forwarded-for", seen);
            request
        };
        (0..100).map(request).collect::<Vec<_>>()
    };
    assert_eq!(
        granted(&theirs(one().key_extractor(SmartIpKeyExtractor), lines()).await?),
        100
    );
    assert_eq!(granted(&ours(trusted()?, lines()).await?), 1);

    // Clients behind the proxy differ in both.
    let honest = || {
        let seen = ["203.0.113.8", "203.0.113.9", "203.0.113.8"];
        seen.map(|seen| with("10.0.0.2", "x-forwarded-for", seen))
            .into()
    };
    assert_eq!(
        theirs(one().key_extractor(SmartIpKeyExtractor), honest()).await?,
        [200, 200, 429]
    );
    assert_eq!(ours(trusted()?, honest()).await?, [200, 200, 429]);
    Ok(())
}

#[tokio::test]
async fn a_network_of_ipv6_is_one_client() -> Result {
    let requests = || {
        let requests = (0..100).map(|n| from(&format!("2001:db8::{n:x}")));
        requests.collect::<Vec<_>>()
    };
    assert_eq!(
        granted(&theirs(one().key_extractor(PeerIpKeyExtractor), requests()).await?),
        100
    );
    assert_eq!(granted(&ours(ClientAddress::peer(), requests()).await?), 1);

    let same = || ["192.0.2.1", "::ffff:192.0.2.1"].map(from).into();
    assert_eq!(
        theirs(one().key_extractor(PeerIpKeyExtractor), same()).await?,
        [200, 200]
    );
    assert_eq!(ours(ClientAddress::peer(), same()).await?, [200, 429]);
    Ok(())
}
