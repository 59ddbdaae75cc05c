//! Descriptors are decided together, and each has a status.

use crate::support::messages::RateLimit;
use crate::support::{Code, Service, descriptor, request};

const POLICY: &str = r#"
[[rule]]
name  = "user"
when  = { domain = "web", user = true }
key   = "user"
limit = "2/h"

[[rule]]
name  = "tenant"
when  = { domain = "web", tenant = true }
key   = "tenant"
limit = "5/20s"

[[rule]]
name  = "address"
when  = { client-ip = "10.0.0.0/8" }
limit = "1/d"

[[rule]]
name  = "login"
when  = { method = "POST", path = "/login" }
limit = "1/d"

[[rule]]
name  = "queries"
when  = { search = true }
key   = "term"
limit = "1/d"
"#;

#[tokio::test]
async fn a_denied_request_takes_nothing_and_says_which_descriptor_denies() {
    let service = Service::start(POLICY);
    let mut client = service.client();
    let both = || {
        request([
            descriptor([("user", "ann")]),
            descriptor([("tenant", "acme")]),
        ])
    };
    assert_eq!(client.ask(both()).await.left(), [Some(1), Some(4)]);
    assert_eq!(client.ask(both()).await.left(), [Some(0), Some(3)]);
    for _ in 0..5 {
        let denied = client.ask(both()).await;
        assert!(!denied.is_ok());
        // Of the tenant nothing is taken, however often it is asked.
        assert_eq!(denied.left(), [None, Some(3)]);
    }
    let of_bob = request([
        descriptor([("tenant", "acme")]),
        descriptor([("user", "bob")]),
    ]);
    assert_eq!(client.ask(of_bob).await.left(), [Some(2), Some(1)]);
}

#[tokio::test]
async fn statuses_have_the_limit_and_the_time_in_whole_seconds() {
    let service = Service::start(POLICY);
    let mut client = service.client();
    let asked = request([
        descriptor([("tenant", "acme")]),
        descriptor([("color", "blue")]),
        descriptor([("user", "ann")]),
    ]);
    let answer = client.ask(asked.clone()).await;
    let [tenant, none, user] = &*answer.statuses else {
        panic!("{answer:?}");
    };
    let limit = |requests_per_unit, unit, name: &str| RateLimit {
        requests_per_unit,
        unit,
        name: name.into(),
    };
    // 5 in 20 seconds are 15 a minute.
    assert_eq!(tenant.current_limit, Some(limit(15, 2, "tenant")));
    assert_eq!(user.current_limit, Some(limit(2, 3, "user")));
    assert_eq!((none.code(), &none.current_limit), (Code::Ok, &None));
    // One of 5 permits comes back in 4 seconds, or a moment less.
    let reset = tenant.duration_until_reset.unwrap();
    assert_eq!((reset.seconds, reset.nanos), (4, 0));
    assert_eq!(user.duration_until_reset.unwrap().seconds, 1800);
    assert_eq!(
        answer.header("ratelimit-policy"),
        Some(r#""tenant";q=5;w=20, "user";q=2;w=3600"#)
    );
    assert!(answer.header("ratelimit").unwrap().contains("\"user\";r=1"));
    assert_eq!(answer.header("retry-after"), None);

    client.ask(asked.clone()).await;
    let denied = client.ask(asked).await;
    assert_eq!(denied.left(), [Some(3), Some(u32::MAX), None]);
    let wait: i64 = denied.header("retry-after").unwrap().parse().unwrap();
    let reset = denied.statuses[2].duration_until_reset.unwrap();
    assert_eq!(wait, reset.seconds);
    assert!(wait <= 1800);
    assert!(denied.header("ratelimit").unwrap().contains("\"user\";r=0"));
    let text = String::from_utf8(denied.raw_body).unwrap();
    assert!(text.starts_with("too many requests"), "{text}");
}

#[tokio::test]
async fn descriptors_with_the_same_key_share_a_limit_and_its_status() {
    let service = Service::start(POLICY);
    let mut client = service.client();
    let twice = request([
        descriptor([("user", "ann"), ("tenant", "a")]),
        descriptor([("user", "ann")]).hits(2),
    ]);
    assert_eq!(client.ask(twice.clone()).await.left(), [Some(0); 2]);
    assert_eq!(client.ask(twice).await.left(), [None; 2]);
}

#[tokio::test]
async fn entries_of_envoy_are_the_facts_that_rules_read() {
    let service = Service::start(POLICY);
    let mut client = service.client();
    for (address, left) in [
        ("10.1.2.3", Some(0)),
        ("10.9.9.9", None),
        ("192.0.2.1", Some(u32::MAX)),
    ] {
        let asked = request([descriptor([("remote_address", address)])]);
        assert_eq!(client.ask(asked).await.left(), [left], "{address}");
    }
    // Envoy's path has a query, which a client could use to avoid the rule.
    for (path, left) in [
        ("/login?a=1", Some(0)),
        ("//login#a", None),
        ("/%6cogin", None),
    ] {
        let asked = request([descriptor([("method", "POST"), ("path", path)])]);
        assert_eq!(client.ask(asked).await.left(), [left], "{path}");
    }
}

#[tokio::test]
async fn no_entry_takes_the_place_of_the_domain_or_the_hits() {
    let service = Service::start(POLICY);
    let mut client = service.client();
    let entries = [("user", "ann"), ("domain", "other"), ("hits-addend", "0")];
    let asked = request([descriptor(entries)]);
    assert_eq!(client.ask(asked.clone()).await.left(), [Some(1)]);
    let mut other = asked;
    other.domain = "other".into();
    other.descriptors[0].entries[1].value = "web".into();
    assert_eq!(client.ask(other).await.left(), [Some(u32::MAX)]);
}

#[tokio::test]
async fn a_descriptor_that_lacks_the_key_of_its_rule_is_denied_alone() {
    let service = Service::start(POLICY);
    let mut client = service.client();
    let asked = request([
        descriptor([("user", "ann")]),
        descriptor([("search", "yes")]),
    ]);
    let denied = client.ask(asked).await;
    assert!(!denied.is_ok());
    assert_eq!(denied.statuses[0].code(), Code::Ok);
    assert_eq!(denied.statuses[1].code(), Code::OverLimit);
    let ann = request([descriptor([("user", "ann")])]);
    assert_eq!(client.ask(ann).await.left(), [Some(1)]);
}

#[tokio::test]
async fn requests_at_once_get_no_more_than_the_limit() {
    let service = Service::start("[[rule]]\nname = 'all'\nlimit = '100/d'");
    let asks = (0..8).map(|_| {
        let mut client = service.client();
        tokio::spawn(async move {
            let mut allowed = 0;
            for _ in 0..50 {
                let asked = request([descriptor([("user", "ann")])]);
                allowed += usize::from(client.ask(asked).await.is_ok());
            }
            allowed
        })
    });
    let mut allowed = 0;
    for ask in asks.collect::<Vec<_>>() {
        allowed += ask.await.unwrap();
    }
    assert_eq!(allowed, 100);
}
