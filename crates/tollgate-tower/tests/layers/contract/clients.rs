//! What a policy's file says of clients comes before what the program says, wherever the layer
//! reads a request.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use http::{HeaderName, Request};
use tollgate_policy::{LivePolicy, Policy};
use tollgate_tower::{ByPolicy, ClientAddress, PathForm, PeerAddr, RateLimitLayer};
use tower::ServiceExt;

const RULE: &str = "[[rule]]\nname = 'login'\nwhen = { path = '/login' }\nkey = 'client-ip'\n\
                    limit = '1/d'\n";
const FILE: &str = "[client]\ntrust = '10.0.0.0/28'\nheader = 'x-forwarded-for'\n\
                    path = 'normalized'\n";

fn live(client: &str) -> Arc<LivePolicy> {
    let policy = Policy::from_toml(&format!("{client}{RULE}"));
    Arc::new(LivePolicy::new(policy.expect("a policy")))
}

fn server(layer: RateLimitLayer<ByPolicy>) -> Router {
    let page = async || "a page";
    Router::new().fallback(page).layer(layer)
}

/// Sends a request of a client through the proxy. Returns the status of the answer.
async fn send(server: &Router, client: &str, path: &str) -> u16 {
    let proxy = PeerAddr(([10, 0, 0, 2], 40_000).into());
    let request = Request::get(path)
        .extension(proxy)
        .header("x-forwarded-for", client)
        .header("x-real-ip", "192.0.2.99")
        .body(Body::empty())
        .unwrap();
    let answer = server.clone().oneshot(request).await.unwrap();
    answer.status().as_u16()
}

#[tokio::test]
async fn the_file_says_who_the_client_is_and_how_a_path_is_read() {
    let server = server(RateLimitLayer::policy(live(FILE)));
    for (client, path, status) in [
        ("192.0.2.1", "/login", 200),
        ("192.0.2.2", "/login", 200),
        ("192.0.2.1", "/login", 429),
        ("192.0.2.3, 192.0.2.2", "/a/../login", 429),
    ] {
        assert_eq!(send(&server, client, path).await, status, "{client} {path}");
    }
}

#[tokio::test]
async fn what_the_file_does_not_say_is_left_to_the_program() {
    let by_real_ip = || {
        let address = ClientAddress::peer().trust("10.0.0.2").unwrap();
        address.header(HeaderName::from_static("x-real-ip"))
    };
    let layer = |client: &str| {
        let layer = RateLimitLayer::policy(live(client)).path_form(PathForm::Normalized);
        server(layer.client_address(by_real_ip()))
    };
    // All clients have the address of `x-real-ip`, unless the file says otherwise.
    for (file, statuses) in [
        ("", [200, 429, 429]),
        ("client = { path = 'decoded' }\n", [200, 429, 200]),
        (
            "client = { hops = 1, header = 'x-forwarded-for' }\n",
            [200, 200, 429],
        ),
        ("client = { trust = [] }\n", [200, 429, 429]),
    ] {
        let server = layer(file);
        let requests = [
            ("192.0.2.1", "/login"),
            ("192.0.2.2", "/login"),
            ("192.0.2.2", "/a/../login"),
        ];
        for ((client, path), status) in requests.into_iter().zip(statuses) {
            assert_eq!(send(&server, client, path).await, status, "{file}{client}");
        }
    }
}

#[tokio::test]
async fn each_function_of_the_program_sees_the_same_facts() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let look = |who: &'static str| {
        let seen = Arc::clone(&seen);
        move |address: Option<IpAddr>, path: &str| {
            let line = format!("{who} {} {path}", address.expect("an address"));
            seen.lock().unwrap().push(line);
        }
    };
    let (exempt, shadow, told) = (look("exempt"), look("shadow"), look("told"));
    let layer = RateLimitLayer::policy(live(FILE))
        .exempt_if(move |facts| {
            exempt(facts.client_address(), &facts.path());
            false
        })
        .shadow_if(move |facts| {
            shadow(facts.client_address(), &facts.path());
            false
        })
        .on_decision(move |facts, _| told(facts.client_address(), &facts.path()));
    let server = server(layer);
    assert_eq!(send(&server, "192.0.2.1", "/a//login").await, 200);
    let seen = seen.lock().unwrap();
    let expected = ["exempt", "shadow", "told"].map(|who| format!("{who} 192.0.2.1 /a/login"));
    assert_eq!(*seen, expected);
}

#[tokio::test]
async fn a_reload_changes_who_is_trusted() {
    let live = live("client = { trust = [] }\n");
    let server = server(RateLimitLayer::policy(Arc::clone(&live)));
    assert_eq!(send(&server, "192.0.2.1", "/login").await, 200);
    assert_eq!(send(&server, "192.0.2.2", "/login").await, 429, "one proxy");
    let reloaded = live.reload_toml(&format!("{FILE}{RULE}")).unwrap();
    assert_eq!(reloaded.rules().len(), 1);
    assert_eq!(send(&server, "192.0.2.1", "/login").await, 200);
    assert_eq!(send(&server, "192.0.2.1", "/login").await, 429);
    assert_eq!(
        send(&server, "10.0.0.2", "/login").await,
        429,
        "the proxy's"
    );
    assert!(live.reload_toml("client = { hops = 1 }").is_err());
    assert_eq!(send(&server, "192.0.2.1", "/login").await, 429);
}

#[tokio::test]
async fn a_program_that_makes_something_else_of_the_settings_harms_no_layer() {
    let live = live(FILE);
    assert_eq!(live.current().client_as(|_| "mine"), Some(&"mine"));
    let server = server(RateLimitLayer::policy(Arc::clone(&live)));
    assert_eq!(send(&server, "192.0.2.1", "/login").await, 200);
    assert_eq!(send(&server, "192.0.2.2", "/login").await, 200);
    assert_eq!(live.current().client_as(|_| 5), None);
}
