//! Calls that are wrong, and those of a health check.

use prost::Message;
use tonic::{Code, Request, Status};

use crate::support::messages::{HealthRequest, HealthResponse};
use crate::support::{RateLimitRequest, RateLimitResponse, Service, descriptor, request};

const SERVICE: &str = "envoy.service.ratelimit.v3.RateLimitService";

/// A message of any bytes.
#[derive(Clone, PartialEq, Message)]
struct Wrong {
    #[prost(uint32, tag = "1")]
    domain: u32,
}

#[tokio::test]
async fn an_error_names_the_field() {
    let service = Service::start("rule = []");
    let mut client = service.client();
    let ann = || descriptor([("user", "ann")]);
    let mut no_domain = request([ann()]);
    no_domain.domain.clear();
    let mut many = request([]);
    many.descriptors = vec![ann(); 101];
    let cases: [(RateLimitRequest, &str); 9] = [
        (
            many,
            "descriptors has 101 elements, but there are at most 100",
        ),
        (no_domain, "domain is empty"),
        (request([]), "descriptors is empty"),
        (
            request([ann(), descriptor([])]),
            "descriptors[1].entries is empty",
        ),
        (
            request([descriptor([("user", "ann"), ("", "a")])]),
            "descriptors[0].entries[1].key is empty",
        ),
        (
            request([ann().limit(5, 9)]),
            "descriptors[0].limit.unit is 9, which is no unit",
        ),
        (
            request([ann().limit(5, 0)]),
            "descriptors[0].limit.unit is 0, which is no unit",
        ),
        (
            request([descriptor([("hits-mode", "later")])]),
            "descriptors[0].entries[0].value is \"later\", not \"charge\"",
        ),
        (
            request([ann().charged().refunded()]),
            "descriptors[0].is_negative_hits is set, but its hits are charged",
        ),
    ];
    for (asked, message) in cases {
        let error = client.try_ask(asked).await.unwrap_err();
        assert_eq!(
            (error.code(), error.message()),
            (Code::InvalidArgument, message)
        );
    }
    let wrong = Request::new(Wrong { domain: 7 });
    let path = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
    let error: Result<RateLimitResponse, Status> = client.call(path, wrong).await;
    let error = error.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(
        error.message().contains("RateLimitRequest.domain"),
        "{error}"
    );
}

#[tokio::test]
async fn a_message_that_is_too_large_is_refused() {
    let service = Service::start_with("rule = []", |settings| settings.limits.body_bytes = 1000);
    let mut client = service.client();
    let large = request([descriptor([("user", &*"a".repeat(2000))])]);
    let error = client.try_ask(large).await.unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted);
    assert_eq!(error.message(), "a body has at most 1000 bytes");
    let small = request([descriptor([("user", &*"a".repeat(900))])]);
    assert!(client.try_ask(small).await.is_ok());
}

#[tokio::test]
async fn another_method_is_unimplemented() {
    let service = Service::start("rule = []");
    let mut client = service.client();
    let path = "/envoy.service.ratelimit.v2.RateLimitService/ShouldRateLimit";
    let asked = Request::new(request([descriptor([("user", "ann")])]));
    let error: Result<RateLimitResponse, Status> = client.call(path, asked).await;
    assert_eq!(error.unwrap_err().code(), Code::Unimplemented);
}

#[tokio::test]
async fn a_health_check_says_that_the_service_serves() {
    let service = Service::start("rule = []");
    let mut client = service.client();
    let mut check = async |service: &str| -> Result<i32, Code> {
        let service = service.to_owned();
        let asked = Request::new(HealthRequest { service });
        let answer = client.call("/grpc.health.v1.Health/Check", asked).await;
        let answer: HealthResponse = answer.map_err(|error| error.code())?;
        Ok(answer.status)
    };
    assert_eq!(check("").await, Ok(1));
    assert_eq!(check(SERVICE).await, Ok(1));
    assert_eq!(check("other").await, Err(Code::NotFound));
}

#[tokio::test]
async fn http_is_answered_on_the_same_address() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let service = Service::start("rule = []");
    let mut stream = tokio::net::TcpStream::connect(service.address)
        .await
        .unwrap();
    let asked = b"GET /healthz HTTP/1.1\r\nhost: a\r\ncontent-type: application/grpc\r\n\
                  connection: close\r\n\r\n";
    stream.write_all(asked).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.ends_with("ok\n"), "{answer}");
}
