//! What holds for each proxy.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Instant;

use reqwest::{Client, ClientBuilder, StatusCode};
use tokio::task::JoinSet;

use super::{Kind, Site, exchange, guide};

/// The policy of the guide.
pub(crate) fn policy() -> &'static str {
    guide::block("toml")
}

fn client(set: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Client {
    set(Client::builder().no_proxy()).build().unwrap()
}

/// Several clients with connections of their own send many requests. No more are served than the
/// limit's bound allows, no fewer than its burst, and all others are refused.
pub(crate) async fn no_more_pass_than_the_limit_allows(kind: Kind, is_http2: bool) {
    const BURST: usize = 20;
    let policy =
        format!("[[rule]]\nname = 'client'\nkey = 'client-ip'\nlimit = '60/min burst {BURST}'");
    let Some(site) = Site::start(&policy, kind).await else {
        return;
    };
    let url = format!("http://{}/items?page=2", site.proxy.address);
    let site_has_fields = site.has_fields;
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let client = client(|it| match is_http2 {
            true => it.http2_prior_knowledge(),
            false => it.http1_only(),
        });
        let url = url.clone();
        tasks.spawn(async move {
            let mut allowed = 0;
            for _ in 0..40 {
                let answer = client.get(&url).send().await.unwrap();
                let is_allowed = answer.status() == StatusCode::OK;
                allowed += usize::from(is_allowed);
                if !is_allowed {
                    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
                    assert_eq!(answer.headers()["retry-after"], "1");
                }
                let policy = answer.headers().get("ratelimit-policy");
                let policy = policy.map(|policy| policy.to_str().unwrap());
                // Traefik passes the fields of a refusal alone.
                let is_passed = !is_allowed || site_has_fields;
                let expected = is_passed.then_some("\"client\";q=20;w=20");
                assert_eq!(policy, expected);
                answer.bytes().await.unwrap();
            }
            allowed
        });
    }
    let allowed: usize = tasks.join_all().await.into_iter().sum();
    // A permit a second, and one for the second that has begun.
    let bound = BURST + usize::try_from(start.elapsed().as_secs()).unwrap() + 1;
    assert!((BURST..=bound).contains(&allowed), "{allowed} of {bound}");
    assert_eq!(site.app.served(), allowed);
}

/// The fields say what is left and when to come back. A client that comes then is not too early.
pub(crate) async fn fields_reach_the_client(kind: Kind) {
    let Some(site) = Site::start(policy(), kind).await else {
        return;
    };
    let start = Instant::now();
    for left in (0..5).rev() {
        let reply = site.ask("POST", "/login", "").await;
        assert_eq!(
            (reply.status, reply.rules()),
            (200, vec!["login"]),
            "{reply:?}"
        );
        assert!(
            reply
                .field("ratelimit")
                .starts_with(&format!("\"login\";r={left};"))
        );
        assert_eq!(reply.fields("retry-after"), [""; 0]);
    }
    let reply = site.ask("POST", "/login", "").await;
    // The first permit of five in an hour comes back 12 minutes after it was taken.
    let wait: u64 = reply.field("retry-after").parse().unwrap();
    assert!(
        start.elapsed().as_secs() + wait >= 720 && wait <= 720,
        "{reply:?}"
    );
    assert_eq!(reply.status, 429);
    assert_eq!(reply.field("ratelimit"), format!("\"login\";r=0;t={wait}"));
    assert_eq!(reply.rules(), ["login"]);
    assert_eq!(site.app.served(), 5);
    // Another rule has permits left.
    assert_eq!(site.get("/login").await.rules(), ["client"]);
}

/// A client with another address has a limit of its own.
pub(crate) async fn each_address_has_its_own_limit(kind: Kind) {
    let Some(site) = Site::start(policy(), kind).await else {
        return;
    };
    for last in 1..=3 {
        let address = IpAddr::from(Ipv4Addr::new(127, 0, 0, last));
        let client = client(|it| it.local_address(address));
        let url = format!("http://{}/login", site.proxy.address);
        let mut statuses = Vec::new();
        for _ in 0..6 {
            let answer = client.post(&url).send().await.unwrap();
            statuses.push(answer.status().as_u16());
        }
        assert_eq!(statuses, [200, 200, 200, 200, 200, 429], "from {address}");
    }
}

/// What a client says of itself does not change who it is, nor what it asks for.
pub(crate) async fn a_client_cant_forge_a_question(kind: Kind) {
    let Some(site) = Site::start(policy(), kind).await else {
        return;
    };
    for (place, lines) in FORGERIES.into_iter().enumerate() {
        let reply = site.ask("POST", "/login", lines).await;
        let expected = if place < 5 { 200 } else { 429 };
        assert_eq!(
            (reply.status, reply.rules()),
            (expected, vec!["login"]),
            "{lines}"
        );
    }
}

/// What a client may say of itself, and of its request.
pub(crate) const FORGERIES: [&str; 12] = [
    "",
    "X-Forwarded-For: 192.0.2.1\r\n",
    "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.2\r\n",
    "x_forwarded_for: 192.0.2.3\r\nX-Real-IP: 192.0.2.3\r\nForwarded: for=192.0.2.3\r\n",
    "X-Original-Method: GET\r\nX-Forwarded-Method: GET\r\n",
    // These are beyond the limit.
    "X-Original-Uri: /free\r\nX-Forwarded-Uri: /free\r\nX-Original-Url: /free\r\n",
    "X-Forwarded-Uri: /free\r\nX-Forwarded-Uri: /free\r\n",
    "X-Original-Uri: /free\r\nX-Original-Uri: /free\r\n",
    "X-Forwarded-Host: other.example\r\n",
    "Connection: x-forwarded-for, x-forwarded-uri, x-original-uri, x-original-method\r\n",
    "X-Forwarded-For: 192.0.2.4, \r\n",
    "X-Forwarded-For: unknown\r\nX-Tollgate-Status: 200\r\n",
];

/// Rules read methods, paths, queries, hosts and headers as the client sent them.
pub(crate) async fn rules_read_the_request(kind: Kind) {
    let policy = "apply = 'all'\nclient = { path = 'normalized' }\n\
        [[rule]]\nname = 'method'\nwhen = { method = 'DELETE' }\nlimit = '99/h'\n\
        [[rule]]\nname = 'path'\nwhen = { path = '/login' }\nlimit = '99/h'\n\
        [[rule]]\nname = 'query'\nwhen = { query.page = 'a b' }\nlimit = '99/h'\n\
        [[rule]]\nname = 'host'\nwhen = { host = 'site.example' }\nlimit = '99/h'\n\
        [[rule]]\nname = 'header'\nwhen = { header.x-api-key = 'k1' }\nlimit = '99/h'\n\
        [[rule]]\nname = 'cookie'\nwhen = { cookie.session = 's1' }\nlimit = '99/h'";
    let Some(site) = Site::start(policy, kind).await else {
        return;
    };
    let cases = [
        ("GET", "/", "", vec!["host"]),
        ("DELETE", "/", "", vec!["method", "host"]),
        ("GET", "/%6cogin", "", vec!["path", "host"]),
        ("GET", "/a/../login", "", vec!["path", "host"]),
        ("GET", "//login", "", vec!["path", "host"]),
        ("GET", "/?x=1&page=a+b", "", vec!["query", "host"]),
        ("GET", "/?page=a%20b", "", vec!["query", "host"]),
        ("GET", "/", "X-Api-Key: k1\r\n", vec!["host", "header"]),
        (
            "GET",
            "/",
            "Cookie: a=b; session=s1\r\n",
            vec!["host", "cookie"],
        ),
        ("HEAD", "/login", "", vec!["path", "host"]),
    ];
    for (method, target, lines, rules) in cases {
        let reply = site.ask(method, target, lines).await;
        assert_eq!(
            (reply.status, reply.rules()),
            (200, rules),
            "{method} {target} {lines}"
        );
    }
}

/// A body reaches the program, and does not disturb the question.
pub(crate) async fn bodies_reach_the_program(kind: Kind) {
    let Some(site) = Site::start(policy(), kind).await else {
        return;
    };
    let client = client(|it| it.pool_max_idle_per_host(1));
    let url = format!("http://{}/items", site.proxy.address);
    for size in [0, 1, 100_000] {
        let answer = client
            .post(&url)
            .body("x".repeat(size))
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 200);
        let text = answer.text().await.unwrap();
        assert_eq!(text, format!("POST /items with {size} bytes"));
    }
    let chunked = "POST /items HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\
                   Connection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let reply = exchange(site.proxy.address, chunked).await;
    assert_eq!(
        (reply.status, &*reply.body),
        (200, "POST /items with 3 bytes")
    );
}

/// Each refusal has the status that the service chose, and the program's own are its own.
pub(crate) async fn statuses_reach_the_client(kind: Kind) {
    let policy = "[[deny]]\nname = 'robots'\nwhen = { header.user-agent = 'robot' }\n\
        [[rule]]\nname = 'busy'\nwhen = { path = '/busy' }\nlimit = '0'\nstatus = 503\n\
        [[rule]]\nname = 'key'\nwhen = { path = '/key' }\nkey = 'header:x-api-key'\nlimit = '1/h'";
    let Some(site) = Site::start(policy, kind).await else {
        return;
    };
    let twice = "X-Api-Key: k1\r\nX-Api-Key: k2\r\n";
    let cases = [
        ("/", "", 200),
        ("/", "User-Agent: robot\r\n", 403),
        ("/busy", "", 503),
        ("/key", "", 400),
        ("/key", twice, 400),
        ("/key", "X-Api-Key: k1\r\n", 200),
        ("/key", "X-Api-Key: k1\r\n", 429),
        ("/forbidden", "", 403),
    ];
    for (target, lines, status) in cases {
        let reply = site.ask("GET", target, lines).await;
        assert_eq!(reply.status, status, "{target} {lines}: {reply:?}");
        let is_own = target == "/forbidden";
        assert_eq!(reply.fields("x-app").len(), usize::from(is_own));
        assert_eq!(reply.body == "its own 403", is_own);
    }
    assert_eq!(site.app.served(), 3);
}

/// Without the service, a proxy that fails closed answers with this status, and one that fails open
/// passes all requests on. It asks again when the service is back.
pub(crate) async fn the_service_goes_and_comes_back(kind: Kind, while_down: u16) {
    let Some(mut site) = Site::start(policy(), kind).await else {
        return;
    };
    assert_eq!(site.ask("POST", "/login", "").await.rules(), ["login"]);
    site.service.end().await;
    for _ in 0..2 {
        let reply = site.ask("POST", "/login", "").await;
        assert_eq!(
            (reply.status, reply.rules()),
            (while_down, vec![]),
            "{reply:?}"
        );
    }
    site.service = super::Service::start_at(policy(), site.service.address).await;
    let reply = site.ask("POST", "/login", "").await;
    assert_eq!((reply.status, reply.rules()), (200, vec!["login"]));
}

/// A client can't make the service fail to answer, and so pass a proxy that fails open.
pub(crate) async fn no_request_passes_as_if_the_service_were_down(kind: Kind) {
    let Some(site) = Site::start("[[rule]]\nname = 'none'\nlimit = '0'", kind).await else {
        return;
    };
    let many: String = (0..150).map(|n| format!("X-Line-{n}: 1\r\n")).collect();
    let long = format!("X-Long: {}\r\n", "x".repeat(7_000));
    let path = format!("/{}", "%ff".repeat(2_500));
    let cases = [
        ("GET", "/", many.as_str()),
        ("GET", "/", &long.repeat(4)),
        ("GET", &path, &long.repeat(3)),
        ("GET", "/<a>|{b}^`", ""),
        ("GET", "/caf\u{e9}", ""),
        ("GET", "/%", ""),
        ("GET", "/#fragment", ""),
        ("OPTIONS", "*", ""),
        ("GET", "http://other.example/free", ""),
        ("GET", "http://other.example", ""),
        ("CONNECT", "other.example:80", ""),
        ("M-SEARCH", "/", ""),
        ("get", "/", ""),
        ("GET", "free", ""),
        ("GET", "/", "Expect: 100-continue\r\n"),
        ("GET", "/", "Upgrade: websocket\r\n"),
    ];
    for (method, target, lines) in cases {
        let reply = site.ask(method, target, lines).await;
        let shown = &lines[..lines.len().min(30)];
        // Caddy answers `OPTIONS *` itself.
        assert_eq!(site.app.served(), 0, "{method} {target} {shown}: {reply:?}");
    }
    let address: SocketAddr = site.proxy.address;
    let old = [
        "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: a\r\n\r\n",
    ];
    for request in old {
        let reply = exchange(address, request).await;
        assert_eq!(site.app.served(), 0, "{request}: {reply:?}");
    }
}
