//! Questions that a hostile client makes a proxy send, or that a careless proxy sends.

use crate::support::{Reply, Service, exchange};

/// Each rule's name says what was read.
const POLICY: &str = "apply = 'all'\nclient = { path = 'normalized' }\n\
    [[rule]]\nname = 'host'\nwhen = { host = 'a.example' }\nlimit = '9k/h'\n\
    [[rule]]\nname = 'v6'\nwhen = { host = '2001:db8::1' }\nlimit = '9k/h'\n\
    [[rule]]\nname = 'path'\nwhen = { path = '/admin/**' }\nlimit = '9k/h'\n\
    [[rule]]\nname = 'accent'\nwhen = { path = '/caf\u{e9}' }\nlimit = '9k/h'\n\
    [[rule]]\nname = 'query'\nwhen = { query.q = '<b> \"c\"' }\nlimit = '9k/h'\n\
    [[rule]]\nname = 'star'\nwhen = { method = 'OPTIONS' }\nlimit = '9k/h'\n\
    [[rule]]\nname = 'client'\nwhen = { client-ip = '192.0.2.1' }\nlimit = '9k/h'\n\
    [[rule]]\nname = 'client6'\nwhen = { client-ip = '2001:db8::7' }\nlimit = '9k/h'";

/// The rules that a question is asked of, or the status of its refusal.
type Expected = Result<&'static [&'static str], u16>;

const METHOD: &str = "X-Forwarded-Method: GET\r\n";
const URI: &str = "X-Forwarded-Uri: /\r\n";
const HOST: &str = "X-Forwarded-Host: b.example\r\n";
const FOR: &str = "X-Forwarded-For: 203.0.113.1\r\n";

async fn ask(service: &Service, path: &str, lines: &[&str]) -> Reply {
    let lines = lines.concat();
    let request = format!("GET {path} HTTP/1.1\r\nHost: tollgate:4290\r\n{lines}\r\n");
    exchange(service.address, request).await
}

#[tokio::test]
async fn what_a_proxy_must_say_is_said_once() {
    let service = Service::start(POLICY).await;
    let all = [METHOD, URI, HOST, FOR];
    assert_eq!(ask(&service, "/forward", &all).await.status, 200);
    for (place, name) in ["x-forwarded-method", "x-forwarded-uri", "x-forwarded-host"]
        .into_iter()
        .enumerate()
    {
        let others: Vec<_> = (0..4)
            .filter(|other| *other != place)
            .map(|it| all[it])
            .collect();
        let reply = ask(&service, "/forward", &others).await;
        assert_eq!(reply.status, 400);
        assert!(
            reply.body.contains(&format!("{name} is missing")),
            "{reply:?}"
        );
        // The proxy's mistake is no refusal.
        assert_eq!(reply.fields("x-tollgate-status"), [""; 0]);
        let underscores = all[place].replace('-', "_");
        let lines = [&others[..], &[&*underscores]].concat();
        assert_eq!(ask(&service, "/forward", &lines).await.status, 400);
        let twice = [&all[..], &[all[place]]].concat();
        let reply = ask(&service, "/forward", &twice).await;
        assert_eq!(reply.status, 400);
        assert!(
            reply.body.contains(&format!("{name} is there twice")),
            "{reply:?}"
        );
    }
    for lines in [
        &["X-Original-Method: GET\r\n"][..],
        &["X-Original-Uri: /\r\n"],
        &[
            "X-Original-Method: GET\r\n",
            "X-Original-Uri: /\r\n",
            "X-Original-Uri: /\r\n",
        ],
        &all,
    ] {
        assert_eq!(ask(&service, "/nginx", lines).await.status, 400);
    }
}

#[tokio::test]
async fn a_path_is_a_path() {
    let service = Service::start(POLICY).await;
    let cases: [(&str, &str, Expected); 22] = [
        ("GET", "/admin/a", Ok(&["path"])),
        ("GET", "/x/../admin/a?b#c", Ok(&["path"])),
        ("GET", "//admin/a", Ok(&["path"])),
        ("GET", "/%61dmin/a", Ok(&["path"])),
        ("GET", "/admin%2fa", Ok(&[])),
        // A host in the URI is not the host that was asked.
        ("GET", "http://a.example/admin/a", Err(400)),
        ("GET", "//a.example/", Ok(&[])),
        ("GET", "a.example", Err(400)),
        ("GET", "admin/a", Err(400)),
        ("GET", "?q=1", Err(400)),
        ("GET", "", Err(400)),
        ("GET", "*", Ok(&[])),
        ("OPTIONS", "*", Ok(&["star"])),
        ("OPTIONS", "*a", Err(400)),
        ("CONNECT", "/admin/a", Ok(&["path"])),
        ("M-SEARCH", "/", Ok(&[])),
        ("G(T", "/", Err(400)),
        ("", "/", Err(400)),
        // Proxies pass on what a URI must not contain.
        ("GET", "/caf\u{e9}", Ok(&["accent"])),
        ("GET", "/caf%C3%a9", Ok(&["accent"])),
        ("GET", "/?q=<b> \"c\"", Ok(&["query"])),
        ("GET", "/admin/a\\b|{c}^`", Ok(&["path"])),
    ];
    for (method, uri, expected) in cases {
        let method = format!("X-Forwarded-Method: {method}\r\n");
        let target = format!("X-Forwarded-Uri: {uri}\r\n");
        let reply = ask(&service, "/forward", &[&method, &target, HOST, FOR]).await;
        match expected {
            Ok(rules) => assert_eq!((reply.status, &*reply.rules()), (200, rules), "{uri}"),
            Err(status) => assert_eq!(reply.status, status, "{method} {uri}"),
        }
        let target = format!("X-Original-Uri: {uri}\r\n");
        let method = method.replace("Forwarded", "Original");
        let reply = ask(&service, "/nginx", &[&method, &target, FOR]).await;
        match expected {
            Ok(rules) => assert_eq!((reply.status, &*reply.rules()), (200, rules), "{uri}"),
            Err(status) => {
                // nginx can pass it on.
                assert_eq!(reply.status, 403, "{method} {uri}");
                assert_eq!(reply.field("x-tollgate-status"), status.to_string());
            }
        }
    }
}

#[tokio::test]
async fn a_host_is_one_host() {
    let service = Service::start(POLICY).await;
    let cases: [(&str, Expected); 10] = [
        ("a.example", Ok(&["host"])),
        ("A.Example:8080", Ok(&["host"])),
        ("b.example", Ok(&[])),
        ("", Ok(&[])),
        ("[2001:db8::1]:80", Ok(&["v6"])),
        ("b.example, a.example", Err(400)),
        ("user@a.example", Err(400)),
        ("a.example/b", Err(400)),
        ("a.example b", Err(400)),
        ("http://a.example", Err(400)),
    ];
    for (host, expected) in cases {
        let line = format!("X-Forwarded-Host: {host}\r\n");
        let reply = ask(&service, "/forward", &[METHOD, URI, &line, FOR]).await;
        match expected {
            Ok(rules) => assert_eq!((reply.status, &*reply.rules()), (200, rules), "{host}"),
            Err(status) => assert_eq!(reply.status, status, "{host}"),
        }
    }
}

#[tokio::test]
async fn the_client_is_the_last_address() {
    let service = Service::start(POLICY).await;
    let cases: [(&str, &[&str]); 9] = [
        ("X-Forwarded-For: 192.0.2.1\r\n", &["client"]),
        (
            "X-Forwarded-For: 203.0.113.9, 192.0.2.1:4711\r\n",
            &["client"],
        ),
        (
            "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 203.0.113.9\r\n",
            &[],
        ),
        (
            "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: 192.0.2.1\r\n",
            &["client"],
        ),
        ("X-Forwarded-For: ::ffff:192.0.2.1\r\n", &["client"]),
        ("X-Forwarded-For: 2001:db8::7\r\n", &["client6"]),
        ("X-Forwarded-For: [2001:db8::7]:4711\r\n", &["client6"]),
        ("X-Forwarded-For: 192.0.2.1, \r\n", &[]),
        ("X_Forwarded_For: 192.0.2.1\r\n", &[]),
    ];
    for (line, rules) in cases {
        let reply = ask(&service, "/forward", &[METHOD, URI, HOST, line]).await;
        assert_eq!((reply.status, &*reply.rules()), (200, rules), "{line}");
    }
}

#[tokio::test]
async fn the_question_itself_may_be_old_or_long() {
    let service = Service::start(POLICY).await;
    let lines = [METHOD, URI, "X-Forwarded-Host: a.example\r\n", FOR].concat();
    for head in [
        "GET /forward HTTP/1.0\r\n",
        "POST /forward?x HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\nConnection: close\r\n",
        // A URI with a host, as a proxy sends it to another proxy.
        "GET http://other.example/forward HTTP/1.1\r\nHost: t\r\n",
    ] {
        let reply = exchange(service.address, format!("{head}{lines}\r\n")).await;
        assert_eq!((reply.status, reply.rules()), (200, vec!["host"]), "{head}");
    }
    let long = format!("X-Long: {}\r\n", "x".repeat(40_000));
    assert_eq!(
        ask(&service, "/forward", &[&lines, &long]).await.status,
        431
    );
    // All of it is escaped, which makes it too long for a URI.
    let uri = format!("X-Forwarded-Uri: /{}\r\n", "<".repeat(30_000));
    let reply = ask(&service, "/forward", &[METHOD, &uri, HOST, FOR]).await;
    assert_eq!(
        (reply.status, reply.field("x-tollgate-status")),
        (400, "400")
    );
}

#[tokio::test]
async fn a_proxy_does_not_tell_the_end_of_a_request() {
    let policy = "[[rule]]\nname = 'places'\nwhen = { path = '/places' }\nlimit = 'concurrency 1'\n\
        [[rule]]\nname = 'failures'\nwhen = { path = '/failures' }\nlimit = '2/h'\n\
        count = 'failures'\n\
        [[rule]]\nname = 'successes'\nwhen = { path = '/successes' }\nlimit = '2/h'\n\
        count = 'successes'\n\
        [[rule]]\nname = 'settled'\nwhen = { path = '/settled' }\nlimit = '10/h'\n\
        cost = { default = 5, settle = 'response-header:x-used' }\n\
        [[rule]]\nname = 'banned'\nwhen = { path = '/banned' }\nkey = 'client-ip'\n\
        ban = { after = 2, of = 'failures' }";
    let service = Service::start(policy).await;
    let cases = [
        ("/places", 9),
        ("/failures", 2),
        ("/successes", 2),
        ("/settled", 2),
        ("/banned", 2),
    ];
    for (path, allowed) in cases {
        let uri = format!("X-Forwarded-Uri: {path}\r\n");
        let mut passed = 0;
        for _ in 0..9 {
            let reply = ask(&service, "/forward", &[METHOD, &uri, HOST, FOR]).await;
            passed += usize::from(reply.status == 200);
        }
        assert_eq!(passed, allowed, "{path}");
    }
}
