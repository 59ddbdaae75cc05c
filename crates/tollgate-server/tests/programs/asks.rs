//! Questions and their answers.

use serde_json::{Value, json};
use tollgate_server::Settings;

use crate::Running;

/// A rule whose limit does not refill while a test runs.
const USER: &str = "[[rule]]\nname = 'user'\nkey = 'user'\nlimit = '2/d'\n";

fn ann() -> Value {
    json!({"facts": {"user": "ann"}})
}

#[tokio::test]
async fn a_limit_grants_its_permits_and_then_denies() {
    let service = Running::start(USER).await;
    let said = service.decide(ann()).await;
    let limit = &said["limits"][0];
    assert_eq!(said["allowed"], true);
    assert_eq!(
        (&limit["rule"], &limit["quota"]),
        (&json!("user"), &json!(2))
    );
    assert_eq!(
        (&limit["remaining"], &limit["cost"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(limit["window_ms"], 86_400_000);
    service.decide(ann()).await;

    let said = service.decide(ann()).await;
    assert_eq!(
        (&said["allowed"], &said["rule"]),
        (&json!(false), &json!("user"))
    );
    assert_eq!(
        (&said["cause"], &said["status"]),
        (&json!("limit"), &json!(429))
    );
    // A permit comes each half of a day.
    let wait = said["retry_after_ms"].as_u64().unwrap();
    assert!((1..=43_200_000).contains(&wait), "{wait}");
    let bob = service.decide(json!({"facts": {"user": "bob"}})).await;
    assert_eq!(bob["allowed"], true);
    service.end().await;
}

#[tokio::test]
async fn the_questions_of_a_list_are_decided_one_by_one_in_their_order() {
    let service = Running::start(USER).await;
    let said = service
        .decide(json!([ann(), {"facts": {"user": "bob"}}, ann(), ann()]))
        .await;
    let allowed: Vec<_> = said
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["allowed"])
        .collect();
    assert_eq!(allowed, [true, true, true, false]);
    assert_eq!(service.decide(json!([])).await, json!([]));
    service.end().await;
}

#[tokio::test]
async fn sets_of_facts_are_decided_together() {
    let policy =
        format!("{USER}[[rule]]\nname = 'tenant'\nkey = 'tenant'\nmissing = 'skip'\nlimit = '9/d'");
    let policy = policy.replace("limit = '2/d'", "missing = 'skip'\nlimit = '2/d'");
    let service = Running::start(&policy).await;
    let both = json!({"facts": [{"user": "ann"}, {"tenant": "acme"}]});
    for expected in [true, true, false] {
        assert_eq!(service.decide(both.clone()).await["allowed"], expected);
    }
    // The one that was denied took nothing from the tenant.
    let tenant = service.decide(json!({"facts": {"tenant": "acme"}})).await;
    assert_eq!(tenant["limits"][0]["remaining"], 6);
    service.end().await;
}

#[tokio::test]
async fn facts_are_texts_numbers_lists_or_null() {
    let policy = "[[rule]]\nname = 'bytes'\nkey = 'user'\nlimit = '100/d'\ncost = 'bytes'";
    let service = Running::start(policy).await;
    let said = service
        .decide(json!({"facts": {"user": "ann", "bytes": 30}}))
        .await;
    assert_eq!(said["limits"][0]["remaining"], 70);
    let said = service
        .decide(json!({"facts": {"user": "ann", "bytes": "30"}}))
        .await;
    assert_eq!(said["limits"][0]["remaining"], 40);
    // Values that differ are ambiguous; null is no value.
    let said = service
        .decide(json!({"facts": {"user": ["ann", "bob"], "bytes": 1}}))
        .await;
    assert_eq!(
        (&said["cause"], &said["status"]),
        (&json!("ambiguous"), &json!(400))
    );
    let said = service
        .decide(json!({"facts": {"user": ["ann", "ann"], "bytes": 1}}))
        .await;
    assert_eq!(said["allowed"], true);
    let said = service.decide(json!({"facts": {"user": null}})).await;
    assert_eq!(said["cause"], "missing-key");
    // A name that is there twice has two values.
    let (_, said) = service
        .post("/decide", r#"{"facts": {"user": "ann", "user": "bob"}}"#)
        .await;
    assert_eq!(said["cause"], "ambiguous");
    service.end().await;
}

/// As rules see the requests of proxies, so that a program's client can't go around a rule either.
#[tokio::test]
async fn paths_have_the_form_that_the_file_says() {
    let rule = "[[rule]]\nname = 'login'\nwhen = { path = '/login' }\nlimit = '9/d'";
    let normalized = format!("client = {{ path = 'normalized' }}\n{rule}");
    let rules = async |service: &Running, path: &str| {
        let said = service.decide(json!({"facts": {"path": path}})).await;
        said["limits"].as_array().unwrap().len()
    };
    let (plain, strict) = (
        Running::start(rule).await,
        Running::start(&normalized).await,
    );
    for (path, by_default, by_file) in [
        ("/login", 1, 1),
        ("/login?next=/", 1, 1),
        ("/%6cogin", 1, 1),
        ("/a/../login", 0, 1),
        ("//login", 1, 1),
        ("/logout", 0, 0),
    ] {
        let found = (rules(&plain, path).await, rules(&strict, path).await);
        assert_eq!(found, (by_default, by_file), "{path}");
    }
    plain.end().await;
    strict.end().await;
}

#[tokio::test]
async fn headers_have_both_names_that_policies_have() {
    let policy = "[[rule]]\nname = 'a'\nkey = 'header:x-api-key'\nlimit = '9/d'";
    let service = Running::start(policy).await;
    for name in ["header:x-api-key", "header.x-api-key", "header.X-Api-Key"] {
        let said = service.decide(json!({"facts": {name: "k1"}})).await;
        assert_eq!(said["allowed"], true, "{name}");
    }
    service.end().await;
}

#[tokio::test]
async fn lists_shadows_and_waits_are_said() {
    let policy = "\
        [[deny]]\nname = 'bad'\nwhen = { user = 'eve' }\n\
        [[allow]]\nname = 'staff'\nwhen = { user = 'root' }\n\
        [[rule]]\nname = 'soon'\nkey = 'user'\nlimit = '1/d'\nshadow = true\n\
        [[rule]]\nname = 'queue'\nkey = 'user'\nlimit = 'leaky-queue 1/h burst 5'";
    let service = Running::start(policy).await;
    let said = service.decide(json!({"facts": {"user": "eve"}})).await;
    assert_eq!(
        (&said["rule"], &said["cause"]),
        (&json!("bad"), &json!("listed"))
    );
    let said = service.decide(json!({"facts": {"user": "root"}})).await;
    assert_eq!(
        (&said["allowed"], &said["exempted_by"]),
        (&json!(true), &json!("staff"))
    );

    let first = service.decide(ann()).await;
    assert_eq!(
        (first.get("wait_ms"), first.get("would_deny")),
        (None, None)
    );
    let second = service.decide(ann()).await;
    assert_eq!(second["would_deny"], json!(["soon"]));
    let wait = second["wait_ms"].as_u64().unwrap();
    assert!((1..=3_600_000).contains(&wait), "{wait}");
    service.end().await;
}

#[tokio::test]
async fn the_built_in_policy_limits_each_client() {
    let service = Running::start_with("", |settings: &mut Settings| settings.policy = None).await;
    let ask = json!({"facts": {"client-ip": "192.0.2.1"}});
    let limit = &service.decide(ask).await["limits"][0];
    assert_eq!(
        (&limit["rule"], &limit["quota"]),
        (&json!("client"), &json!(100))
    );
    assert_eq!(
        (&limit["window_ms"], &limit["remaining"]),
        (&json!(60_000), &json!(99))
    );
    service.end().await;
}

#[tokio::test]
async fn metrics_count_by_rule_and_not_by_key() {
    let service = Running::start(USER).await;
    for user in 0..50 {
        let facts = json!({"facts": {"user": format!("user-{user}")}});
        service.decide(json!([facts, facts, facts])).await;
    }
    let text = service.metrics().await;
    let line = |decision: &str, n: u32| {
        format!("tollgate_requests_total{{rule=\"user\",decision=\"{decision}\"}} {n}\n")
    };
    assert!(text.contains(&line("allowed", 100)), "{text}");
    assert!(text.contains(&line("denied", 50)), "{text}");
    assert!(
        text.contains("tollgate_tracked{rule=\"user\",table=\"0\"} 50\n"),
        "{text}"
    );
    assert!(!text.contains("user-1"), "{text}");
    // Each metric is described once.
    let mut described: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("# TYPE"))
        .collect();
    let lines = described.len();
    described.sort_unstable();
    described.dedup();
    assert_eq!(described.len(), lines);
    service.end().await;
}
