//! The guide's questions are answered as it says.

use serde_json::{Value, json};

use crate::Running;

const GUIDE: &str = include_str!("../../docs/SERVICE.md");

/// Returns the blocks of this language, in their order.
fn blocks(language: &str) -> Vec<&'static str> {
    let begin = format!("\n```{language}\n");
    let parts = GUIDE.split(&begin).skip(1);
    parts
        .map(|part| part.split("\n```").next().unwrap())
        .collect()
}

fn parse(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

fn keys(said: &Value) -> Vec<&String> {
    let limit = &said["limits"][0];
    [said, limit]
        .iter()
        .flat_map(|it| it.as_object().unwrap().keys())
        .collect()
}

#[tokio::test]
async fn the_guide_shows_what_is_said() {
    let service = Running::start_with("", |settings| settings.policy = None).await;
    let curl = blocks("sh")
        .into_iter()
        .find(|block| block.contains("/decide"))
        .unwrap();
    let (_, body) = curl.split_once("-d '").unwrap();
    let body = body.trim_end_matches('\'');
    let [allowed, denied, list, together, error] = blocks("json")[..] else {
        panic!("there are other blocks");
    };
    let (status, said) = service.post("/decide", body).await;
    assert_eq!((status, said), (200, parse(allowed)));

    let ask = parse(body);
    let said = service.decide(json!(vec![ask; 200])).await;
    let denied = parse(denied);
    assert_eq!(said[199]["allowed"], denied["allowed"]);
    assert_eq!(keys(&said[199]), keys(&denied));
    assert_eq!(said[199]["limits"][0]["remaining"], 0);

    let (status, said) = service.post("/decide", list).await;
    assert_eq!((status, said.as_array().unwrap().len()), (200, 2));
    assert_eq!(service.post("/decide", together).await.0, 200);
    let (status, said) = service.post("/decide", r#"{"facts": {"user": 1.5}}"#).await;
    assert_eq!((status, said), (400, parse(error)));
    service.end().await;
}

#[test]
fn the_guide_names_each_field_and_cause() {
    let fields = [
        "allowed",
        "rule",
        "cause",
        "status",
        "retry_after_ms",
        "wait_ms",
        "limits",
    ];
    for name in fields
        .into_iter()
        .chain(["would_deny", "exempted_by", "fallback", "token"])
    {
        assert!(GUIDE.contains(&format!("| `{name}` |")), "{name}");
    }
}
