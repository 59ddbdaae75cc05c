//! What needs the token, and what it does.

use serde_json::{Value, json};
use tollgate_policy::Secret;
use tollgate_server::Settings;

use crate::Running;

const TOKEN: &str = "a-token-of-a-test";
const POLICY: &str = "[[rule]]\nname = 'user'\nkey = 'user'\nlimit = '5/d'\nban = { after = 1000, for = '1h' }\n\
                      [[rule]]\nname = 'client'\nkey = ['client-ip', 'method']\nmissing = 'skip'\nlimit = '9/d'";

fn with_token(settings: &mut Settings) {
    settings.admin_token = Some(Secret::new(TOKEN));
}

async fn send(service: &Running, request: &str, token: Option<&str>, body: &str) -> (u16, Value) {
    let (method, path) = request.split_once(' ').unwrap();
    let url = format!("http://{}{path}", service.admin);
    let request = service
        .client
        .request(method.parse().unwrap(), url)
        .body(body.to_owned());
    let request = match token {
        Some(token) => request.header("authorization", token),
        None => request,
    };
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (
        status,
        serde_json::from_str(&text).unwrap_or(Value::String(text)),
    )
}

/// Sends a request with the token.
async fn known(service: &Running, request: &str, body: &str) -> (u16, Value) {
    send(service, request, Some(&format!("Bearer {TOKEN}")), body).await
}

const VERBS: [&str; 9] = [
    "GET /rules",
    "GET /keys",
    "GET /page/policy",
    "POST /page/explain",
    "GET /key?rule=user&value=ann",
    "POST /reload",
    "POST /ban",
    "POST /reset",
    "POST /drain",
];

#[tokio::test]
async fn without_the_token_nothing_changes() {
    let service = Running::start_with(POLICY, with_token).await;
    let wrong = [
        "",
        "Bearer",
        "Bearer ",
        "Bearer a-token-of-a-tes",
        "Bearer a-token-of-a-testt",
        "Basic a-token-of-a-test",
        TOKEN,
    ];
    for request in VERBS {
        for token in [None].into_iter().chain(wrong.map(Some)) {
            let (status, said) = send(&service, request, token, "{\"drain\": true}").await;
            assert_eq!(status, 401, "{request} {token:?} {said}");
        }
    }
    assert_eq!(service.metric("tollgate_admin_refused_total").await, 72);
    assert_eq!(service.metric("tollgate_reloads_total").await, 0);
    assert_eq!(send(&service, "GET /readyz", None, "").await.0, 200);
    service.end().await;
}

#[tokio::test]
async fn if_there_is_no_token_nobody_can_change_anything() {
    let service = Running::start(POLICY).await;
    for request in VERBS {
        let (status, said) = known(&service, request, "{\"drain\": true}").await;
        assert_eq!(status, 403, "{request}");
        let why = said["error"].as_str().unwrap();
        assert!(why.contains("--admin-token-file FILE"), "{why}");
        assert!(why.contains("TOLLGATE_ADMIN_TOKEN"), "{why}");
    }
    service.end().await;
}

#[tokio::test]
async fn a_key_is_looked_at_banned_and_reset() {
    let service = Running::start_with(POLICY, with_token).await;
    let ann = json!({"facts": {"user": "ann"}});
    service.decide(ann.clone()).await;
    let (status, said) = known(&service, "GET /key?rule=user&value=ann", "").await;
    assert_eq!(
        (status, said),
        (200, json!({"limits": [{"limit": "5/d", "remaining": 4}]}))
    );

    let ban = json!({"rule": "user", "values": ["ann"], "for": "1h"});
    let (status, said) = known(&service, "POST /ban", &ban.to_string()).await;
    assert_eq!((status, said), (200, json!({"done": true})));
    assert_eq!(service.decide(ann.clone()).await["cause"], "banned");
    let (_, said) = known(&service, "GET /key?rule=user&value=ann", "").await;
    let banned = said["banned_for_ms"].as_u64().unwrap();
    assert!((1..=3_600_000).contains(&banned), "{said}");
    assert_eq!(said["limits"][0]["remaining"], 0);

    let reset = json!({"rule": "user", "values": ["ann"]}).to_string();
    assert_eq!(
        known(&service, "POST /reset", &reset).await,
        (200, json!({"done": true}))
    );
    assert_eq!(
        known(&service, "POST /reset", &reset).await,
        (200, json!({"done": false}))
    );
    assert_eq!(service.decide(ann).await["limits"][0]["remaining"], 4);
    service.end().await;
}

#[tokio::test]
async fn errors_name_what_is_wrong() {
    let service = Running::start_with(POLICY, with_token).await;
    let cases = [
        (
            "GET /key",
            "",
            400,
            json!({"error": "missing parameter `rule`", "field": "rule"}),
        ),
        (
            "GET /key?rul=user",
            "",
            400,
            json!({
                "error": "unknown parameter `rul`; known: rule, value",
                "field": "rul",
                "known": ["rule", "value"],
            }),
        ),
        (
            "GET /key?rule=usr&value=ann",
            "",
            404,
            json!({
                "error": "rule \"usr\" is not in the policy; did you mean `user`? Known: user, client",
                "field": "rule",
                "known": ["user", "client"],
            }),
        ),
        (
            "GET /key?rule=client&value=192.0.2.1",
            "",
            422,
            json!({
                "error": "rule \"client\" needs 2 values: client-ip, method; the number given is 1",
                "field": "values",
                "known": ["client-ip", "method"],
            }),
        ),
        (
            "POST /ban",
            r#"{"rule": "client", "values": ["localhost", "GET"], "for": "1s"}"#,
            422,
            json!({
                "error": "client-ip is \"localhost\", but must be an address",
                "field": "values",
                "known": ["client-ip"],
            }),
        ),
        (
            "POST /ban",
            r#"{"rule": "user", "values": ["ann"]}"#,
            400,
            json!({"error": "missing field `for`", "field": "for"}),
        ),
        (
            "POST /ban",
            r#"{"rule": "user", "values": ["ann"], "for": 600}"#,
            400,
            json!({
                "error": "`for` is 600, but must be a length of time, such as \"10m\": a number, \
                          and ms, s, m, h or d",
                "field": "for",
            }),
        ),
        (
            "POST /reset",
            r#"{"rule": "user", "values": "ann"}"#,
            400,
            json!({"error": "`values` is \"ann\", but must be a list of texts", "field": "values"}),
        ),
        (
            "POST /reset",
            r#"{"rule": "user", "values": ["ann"], "for": "1s"}"#,
            400,
            json!({
                "error": "unknown field `for`; known: rule, values",
                "field": "for",
                "known": ["rule", "values"],
            }),
        ),
        (
            "POST /drain",
            "1",
            400,
            json!({"error": "invalid type: integer `1`, expected a map at line 1 column 1"}),
        ),
        (
            "POST /drain",
            r#"{"drain": "yes"}"#,
            400,
            json!({"error": "`drain` is \"yes\", but must be true or false", "field": "drain"}),
        ),
        (
            "GET /drain",
            "",
            405,
            json!({"error": "/drain needs the method POST"}),
        ),
        (
            "GET /nothing",
            "",
            404,
            json!({
                "error": "unknown path `/nothing`; known: /, /metrics, /healthz, /readyz, /keys, /rules, \
                          /key, /reload, /ban, /reset, /drain",
                "field": "/nothing",
                "known": ["/", "/metrics", "/healthz", "/readyz", "/keys", "/rules", "/key", "/reload", "/ban",
                          "/reset", "/drain"],
            }),
        ),
    ];
    for (request, body, status, error) in cases {
        let said = known(&service, request, body).await;
        assert_eq!(said, (status, error), "{request} {body}");
    }
    service.end().await;
}

#[tokio::test]
async fn load_balancers_are_told_to_send_elsewhere() {
    let service = Running::start_with(POLICY, with_token).await;
    for (drain, ready) in [(true, 503), (false, 200)] {
        let body = json!({"drain": drain});
        assert_eq!(
            known(&service, "POST /drain", &body.to_string()).await,
            (200, body)
        );
        assert_eq!(send(&service, "GET /readyz", None, "").await.0, ready);
        assert_eq!(send(&service, "GET /healthz", None, "").await.0, 200);
        let said = service.decide(json!({"facts": {"user": "ann"}})).await;
        assert_eq!(said["allowed"], true);
        assert_eq!(service.metric("tollgate_draining").await, u64::from(drain));
    }
    let drained = (200, json!({"drain": true}));
    assert_eq!(known(&service, "POST /drain", "").await, drained);
    service.end().await;
}

#[tokio::test]
async fn the_rules_are_listed() {
    let service = Running::start_with(POLICY, with_token).await;
    let (status, said) = known(&service, "GET /rules", "").await;
    let rules = json!([
        {"name": "user", "key": ["user"], "limits": ["5/d"], "shadow": false, "store": "memory"},
        {"name": "client", "key": ["client-ip", "method"], "limits": ["9/d"], "shadow": false, "store": "memory"},
    ]);
    assert_eq!((status, said), (200, rules));
    service.end().await;
}

#[tokio::test]
async fn a_reload_says_what_became_of_each_rule() {
    let service = Running::start_with(POLICY, with_token).await;
    std::fs::write(service.file.path(), POLICY.replace("'5/d'", "'50/d'")).unwrap();
    let (status, said) = known(&service, "POST /reload", "").await;
    assert_eq!(status, 200, "{said}");
    assert_eq!(
        said["rules"][0],
        json!({"rule": "user", "state": "migrated"})
    );
    assert_eq!(said["rules"][1], json!({"rule": "client", "state": "kept"}));

    std::fs::write(
        service.file.path(),
        "[[rule]]\nname = 'a'\nlimit = '5/fortnight'",
    )
    .unwrap();
    let (status, said) = known(&service, "POST /reload", "").await;
    assert_eq!(status, 422);
    assert!(said.to_string().contains("fortnight"), "{said}");
    std::fs::remove_file(service.file.path()).unwrap();
    let (status, said) = known(&service, "POST /reload", "").await;
    assert_eq!(status, 422);
    assert!(
        said["error"].as_str().unwrap().starts_with("can't read"),
        "{said}"
    );
    assert_eq!(service.metric("tollgate_reloads_total").await, 1);
    assert_eq!(service.metric("tollgate_reloads_failed_total").await, 2);
    assert_eq!(service.metric("tollgate_rules").await, 2);
    let since = service.metric("tollgate_start_timestamp_seconds").await;
    let reloaded = service.metric("tollgate_reload_timestamp_seconds").await;
    assert!(
        1_700_000_000 < since && since <= reloaded,
        "{since} {reloaded}"
    );
    service.end().await;
}
