//! What the guide shows is what the service does.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tollgate_policy::Secret;

use crate::Running;

const GUIDE: &str = include_str!("../../docs/RUNNING.md");
const TOKEN: &str = "a-token-of-a-test";

async fn start() -> Running {
    let folder = tempfile::TempDir::new().unwrap();
    Running::start_with("", |settings| {
        settings.policy = None;
        settings.admin_token = Some(Secret::new(TOKEN));
        let state = tollgate_server::StateSettings::new(folder.path().join("state"));
        settings.state = Some(state);
    })
    .await
}

/// Sends a request as curl does, and returns the status and the answer.
async fn send(service: &Running, path: &str, body: Option<&str>) -> (u16, Value) {
    let url = format!("http://{}{path}", service.admin);
    let request = match body {
        Some(body) => service.client.post(url).body(body.to_owned()),
        None => service.client.get(url),
    };
    let answer = request.bearer_auth(TOKEN).send().await.unwrap();
    let status = answer.status().as_u16();
    (status, answer.json().await.unwrap())
}

#[tokio::test]
async fn each_line_of_administration_works() {
    let service = start().await;
    let lines = GUIDE.lines().filter_map(|line| line.strip_prefix("admin "));
    let mut sent = 0;
    for line in lines {
        let (path, body) = match line.split_once(" -d '") {
            Some((path, body)) => (path, body.strip_suffix('\'')),
            None => (line, None),
        };
        let (status, said) = send(&service, path.trim_matches('\''), body).await;
        assert_eq!(status, 200, "{line} {said}");
        sent += 1;
    }
    assert_eq!(sent, 8);

    let (_, error) = GUIDE.split_once("\n```json\n{\"error\"").unwrap();
    let error = format!("{{\"error\"{}", error.split("\n```").next().unwrap());
    let error: Value = serde_json::from_str(&error).unwrap();
    let ask = json!({"rule": "clint", "values": ["192.0.2.1"]}).to_string();
    assert_eq!(send(&service, "/reset", Some(&ask)).await, (404, error));
    service.end().await;
}

/// The metrics of a store and of leases are there only with a store.
#[tokio::test]
async fn each_metric_is_listed() {
    let service = start().await;
    let metrics = service.metrics().await;
    let known: BTreeSet<_> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .filter_map(|line| line.split(' ').next())
        .collect();
    let names = |text: &'static str| text.split('`').filter(|it| it.starts_with("tollgate_"));
    let (_, list) = GUIDE.split_once("\n## Metrics\n").unwrap();
    let (list, _) = list.split_once("\n## ").unwrap();
    let listed: BTreeSet<_> = names(list).filter(|it| !it.contains(' ')).collect();
    for name in &listed {
        assert!(
            known.contains(name)
                || name.starts_with("tollgate_store_")
                || name.starts_with("tollgate_lease_"),
            "{name}"
        );
    }
    // Those of tables have a rule, and are in the guide to statistics.
    let own = known.iter().filter(|name| {
        let of_rule = format!("\n{name}{{rule=");
        !metrics.contains(&of_rule)
    });
    let missing: Vec<_> = own.filter(|name| !listed.contains(**name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    service.end().await;
}
