//! Ten tasks of a service, each as the whole program that a user writes: it works, and is short.

mod programs {
    pub(crate) mod by_address;
    pub(crate) mod client_with_reqwest;
    pub(crate) mod fields_and_problem;
    pub(crate) mod grpc;
    pub(crate) mod key_with_tiers;
    pub(crate) mod login_bans;
    pub(crate) mod policy_with_reload;
    pub(crate) mod redis_for_ten_machines;
    pub(crate) mod shadow;
    pub(crate) mod shedding;
}
mod lines;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::{env, fs, process};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::response::Response;
use http::Request;
use tokio::net::TcpListener;
use tollgate_tower::PeerAddr;
use tonic::transport::Endpoint;
use tonic::transport::server::TcpIncoming;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::ServiceExt;

use crate::private_server::PrivateServer;
use crate::tasks::programs::*;

/// A request from a proxy at 10.0.0.1.
fn request() -> http::request::Builder {
    let proxy: SocketAddr = "10.0.0.1:443".parse().unwrap();
    Request::get("/").extension(PeerAddr(proxy))
}

async fn send(app: &Router, request: http::request::Builder) -> Response {
    let request = request.body(Body::empty()).unwrap();
    app.clone().oneshot(request).await.unwrap()
}

async fn status(app: &Router, request: http::request::Builder) -> u16 {
    send(app, request).await.status().as_u16()
}

#[tokio::test]
async fn a_limit_for_each_address() {
    let app = by_address::app().unwrap();
    let from = |client: &str| request().header("x-forwarded-for", client);
    for expected in [200, 200, 200, 429] {
        assert_eq!(status(&app, from("192.0.2.1")).await, expected);
    }
    assert_eq!(status(&app, from("192.0.2.2")).await, 200);
}

#[tokio::test]
async fn a_limit_for_each_key_by_its_plan() {
    let app = key_with_tiers::app(&["paying"]).unwrap();
    for (key, statuses) in [("free", [200, 429, 429]), ("paying", [200, 200, 200])] {
        for expected in statuses {
            assert_eq!(
                status(&app, request().header("x-api-key", key)).await,
                expected
            );
        }
    }
    assert_eq!(status(&app, request()).await, 400);
}

#[tokio::test]
async fn fields_and_a_problem_body() {
    let app = fields_and_problem::app().unwrap();
    for left in [2, 1, 0] {
        let field = send(&app, request()).await.headers()["ratelimit"].clone();
        let field = field.to_str().unwrap();
        assert!(
            field.starts_with(&format!("\"address\";r={left};t=")),
            "{field}"
        );
    }
    let refused = send(&app, request()).await;
    assert_eq!(
        refused.headers()["content-type"],
        "application/problem+json"
    );
    let body = to_bytes(refused.into_body(), 1000).await.unwrap();
    assert!(body.ends_with(br#""violated-policies":["address"]}"#));
}

#[tokio::test]
async fn a_policy_that_is_reloaded() {
    let file = env::temp_dir().join(format!("tollgate-task-{}.toml", process::id()));
    fs::write(&file, "[[rule]]\nname = 'all'\nlimit = '1000000/s'\n").unwrap();
    let (app, watch) = policy_with_reload::app(&file).unwrap();
    assert_eq!(status(&app, request()).await, 200);
    fs::write(&file, "[[deny]]\nname = 'closed'\nwhen = { path = '/' }\n").unwrap();
    while status(&app, request()).await != 403 {
        tokio::task::yield_now().await;
    }
    drop(watch);
    fs::remove_file(&file).unwrap();
}

#[tokio::test]
async fn a_limit_in_shadow() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let logged = Arc::clone(&log);
    let app = shadow::app(move |path| logged.lock().unwrap().push(path.to_owned())).unwrap();
    for _ in 0..5 {
        assert_eq!(status(&app, request()).await, 200);
    }
    assert_eq!(*log.lock().unwrap(), ["/", "/"]);
}

/// Each machine may grant its share of 3 before the server answers it.
#[tokio::test]
async fn a_limit_on_redis_for_ten_machines() {
    let Some(server) = PrivateServer::start().unwrap() else {
        println!("skipped: redis-server can't be started");
        return;
    };
    let machine = || redis_for_ten_machines::app(&server.url()).unwrap();
    let machines = [machine(), machine()];
    let mut granted = 0;
    let ask = async |turn: usize| {
        let ask = request().header("x-api-key", "alice");
        u32::from(status(&machines[turn % 2], ask).await == 200)
    };
    for turn in 0..100_000 {
        granted += ask(turn).await;
        if granted == 30 {
            break;
        }
    }
    for turn in 0..100 {
        granted += ask(turn).await;
    }
    assert!((30..=36).contains(&granted), "{granted}");
}

#[tokio::test]
async fn a_client_of_reqwest() {
    let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_second(20)).unwrap();
    let limit = tollgate_tower::RateLimitLayer::shared(limiter);
    let limit = limit.fields(tollgate_tower::Fields::LIST);
    let app = Router::new().route("/", axum::routing::get(async || "hello"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = axum::serve(listener, app.layer(limit));
    let server = tokio::spawn(server.into_future());
    let client = client_with_reqwest::client();
    for _ in 0..30 {
        assert_eq!(client.get(&url).send().await.unwrap().status(), 200);
    }
    server.abort();
}

#[tokio::test]
async fn bans_after_wrong_passwords() {
    let app = login_bans::app().unwrap();
    let log_in = async |password: &'static str| {
        let request = request()
            .method("POST")
            .uri("/login")
            .body(Body::from(password));
        let answer = app.clone().oneshot(request.unwrap()).await.unwrap();
        answer.status().as_u16()
    };
    for _ in 0..9 {
        assert_eq!(log_in("correct").await, 200);
    }
    for _ in 0..5 {
        assert_eq!(log_in("guess").await, 401);
    }
    assert_eq!(log_in("correct").await, 429);
}

#[tokio::test(start_paused = true)]
async fn shedding() {
    let app = shedding::app().unwrap();
    let ask = || status(&app, request());
    let answers = tokio::join!(ask(), ask(), ask(), ask());
    assert_eq!(answers, (200, 200, 503, 503));
    assert_eq!(ask().await, 200);
}

#[tokio::test]
async fn a_server_of_grpc() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = grpc::server().unwrap();
    let server = tokio::spawn(router.serve_with_incoming(TcpIncoming::from(listener)));
    let channel = Endpoint::from_shared(url).unwrap().connect().await.unwrap();
    let mut client = HealthClient::new(channel);
    for _ in 0..3 {
        client.check(HealthCheckRequest::default()).await.unwrap();
    }
    let refused = client.check(HealthCheckRequest::default()).await;
    assert_eq!(refused.unwrap_err().code(), tonic::Code::ResourceExhausted);
    server.abort();
}
