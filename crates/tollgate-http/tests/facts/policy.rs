//! Policies that decide about requests of HTTP.

use http::{HeaderMap, Request, StatusCode};
use tollgate_http::{AnswerFacts, ClientAddress, PathForm, RequestFacts};
use tollgate_policy::{FactName, FactValue, Facts, Outcome, Policy};

use crate::request;

/// The rule that decides about a request, if one does.
fn rule(policy: &Policy, facts: &impl Facts) -> Option<String> {
    let decision = policy.decide(facts);
    let names: Vec<_> = decision
        .asked()
        .map(|asked| asked.rule().to_owned())
        .collect();
    (!names.is_empty()).then(|| names.join("+"))
}

const RULES: &str = r#"
[[rule]]
name  = "login"
when  = { method = "POST", path = "/login" }
limit = "1000/d"

[[rule]]
name  = "file"
when  = { path = "/files/{name}" }
key   = "path:name"
limit = "1000/d"

[[rule]]
name  = "preview"
when  = { host = "*.preview.example.com" }
limit = "1000/d"

[[rule]]
name  = "local"
when  = { client-ip = "10.0.0.0/8" }
limit = "1000/d"

[[rule]]
name  = "keyed"
when  = { header.x-api-key = true }
key   = "header:x-api-key"
limit = "1000/d"

[[rule]]
name  = "feed"
when  = { query.format = ["rss", "atom"] }
limit = "1000/d"

[[rule]]
name  = "session"
when  = { cookie.session = true }
key   = "cookie:session"
limit = "1000/d"
"#;

#[test]
fn rules_find_each_fact() {
    let policy = Policy::from_toml(RULES).unwrap();
    let none: &[(&str, &[u8])] = &[];
    for (method, uri, headers, expected) in [
        ("POST", "/login", none, Some("login")),
        ("POST", "/%6cogin/?next=/", none, Some("login")),
        (
            "POST",
            "http://x.preview.example.com/login",
            none,
            Some("login"),
        ),
        ("GET", "/login", none, None),
        ("POST", "/Login", none, None),
        ("GET", "/files/a%2Fb", none, Some("file")),
        ("GET", "/files/a/b", none, None),
        ("GET", "/files/a%3Fb", none, Some("file")),
        (
            "GET",
            "http://X.Preview.example.com:8443/",
            none,
            Some("preview"),
        ),
        (
            "GET",
            "/",
            &[("host", b"x.preview.example.com:80")],
            Some("preview"),
        ),
        ("GET", "/", &[("x-api-key", b"")], Some("keyed")),
        ("GET", "/", &[("X-Api-Key", b"\xff")], Some("keyed")),
        ("GET", "/?%66ormat=%72ss", none, Some("feed")),
        ("GET", "/?format=html", none, None),
        (
            "GET",
            "/",
            &[("cookie", b"a=b"), ("cookie", b"session=1")],
            Some("session"),
        ),
        ("GET", "/", &[("cookie", b"xsession=1")], None),
    ] {
        let mut request = request(uri, headers);
        *request.method_mut() = method.parse().unwrap();
        let facts = RequestFacts::new(&request);
        assert_eq!(
            rule(&policy, &facts).as_deref(),
            expected,
            "{method} {uri} {headers:?}"
        );
    }
    let request = request("/", &[]);
    let facts = RequestFacts::new(&request).client_ip("::ffff:10.1.2.3".parse().unwrap());
    assert_eq!(rule(&policy, &facts).as_deref(), Some("local"));
    // A program can add facts, and none is made up.
    for name in [
        "user",
        "path:name",
        "response-header:host",
        "response-status",
    ] {
        assert_eq!(facts.fact(&FactName::new(name)), None);
    }
    let with_user = (facts, [("user", "ann")]);
    assert_eq!(
        with_user.fact(&FactName::new("user")),
        Some(FactValue::from("ann"))
    );
}

/// Whatever a router makes of a path, the rule for `/login` is not avoided.
#[test]
fn no_way_to_write_a_path_avoids_its_rule() {
    let policy = Policy::from_toml(RULES).unwrap();
    for (form, paths) in [
        (
            PathForm::Decoded,
            &["/login", "/%6Cogin", "//login/", "/%6c%6f%67%69%6e?x"][..],
        ),
        (
            PathForm::Normalized,
            &[
                "/a/../login",
                "/a/%2e%2e/login",
                "/./login;a=b",
                "/..;/%6cogin/.",
                "/;x/login;",
            ],
        ),
    ] {
        for path in paths {
            let request = Request::post(*path).body(()).unwrap();
            let facts = RequestFacts::new(&request).path_form(form);
            assert_eq!(rule(&policy, &facts).as_deref(), Some("login"), "{path}");
        }
    }
}

#[test]
fn forged_headers_from_an_untrusted_peer_are_one_key() {
    let policy = "[[rule]]\nname = 'address'\nkey = 'client-ip'\nlimit = '2/d'";
    let policy = Policy::from_toml(policy).unwrap();
    let addresses = ClientAddress::peer()
        .trust("10.0.0.0/8")
        .unwrap()
        .x_forwarded_for();
    let allowed = |peer: &str, sent: String| {
        let request = request("/", &[("x-forwarded-for", sent.as_bytes())]);
        let client = addresses.of(peer.parse().unwrap(), request.headers());
        policy
            .decide(&RequestFacts::new(&request).client_ip(client))
            .is_allowed()
    };
    let forged = |it| format!("1.2.{}.{}", it / 256, it % 256);
    assert_eq!(
        (0..10_000)
            .filter(|it| allowed("192.0.2.1", forged(*it)))
            .count(),
        2
    );
    let proxied = |it| format!("{}, 192.0.2.2", forged(it));
    assert_eq!(
        (0..10_000)
            .filter(|it| allowed("10.0.0.1", proxied(*it)))
            .count(),
        2
    );
    // Addresses of one /64, as they are and through a proxy.
    let of_64 = |it| format!("2001:db8::{it:x}");
    assert_eq!(
        (0..10_000)
            .filter(|it| allowed(&of_64(*it), forged(*it)))
            .count(),
        2
    );
    assert_eq!(
        (0..10_000)
            .filter(|it| allowed("10.0.0.1", of_64(*it)))
            .count(),
        0
    );
}

#[test]
fn a_cost_is_settled_by_the_answer() {
    for (cost, left) in [
        ("response-header:x-tokens", 640),
        ("response-bytes", 300),
        ("response-time-ms", 3),
        ("response-status", 200),
    ] {
        let text = format!(
            "[[rule]]\nname = 'cost'\nlimit = '1000/d'\ncost = {{ default = 10, settle = '{cost}' }}"
        );
        let policy = Policy::from_toml(&text).unwrap();
        let request = request("/", &[]);
        let decision = policy.decide(&RequestFacts::new(&request));
        let mut headers = HeaderMap::new();
        headers.append("x-tokens", "640".parse().unwrap());
        let answer = AnswerFacts::new(StatusCode::OK, &headers).bytes(300);
        let answer = answer.time(std::time::Duration::from_micros(2001));
        let _ = decision.finish(Outcome::Success, &answer);
        let after = policy.decide(&RequestFacts::new(&request));
        assert_eq!(after.remaining(), Some(1000 - left - 10), "{cost}");
    }
}
