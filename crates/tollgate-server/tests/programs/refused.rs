//! Questions that can't be read, and say why.

use crate::Running;

const POLICY: &str = "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '5/d'";

#[tokio::test]
async fn an_error_names_the_field() {
    let service = Running::start(POLICY).await;
    let cases = [
        (
            "/decide",
            "",
            "EOF while parsing a value at line 1 column 0",
        ),
        ("/decide", "{}", "missing field `facts` at line 1 column 2"),
        (
            "/decide",
            r#"{"fact": {}}"#,
            "unknown field `fact`, expected `facts` or `hold` at line 1 column 7",
        ),
        (
            "/decide",
            r#"{"facts": {"user": 1.5}}"#,
            "fact `user`: invalid type: floating point `1.5`, expected a text, a whole number, \
             or a list of them at line 1 column 22",
        ),
        (
            "/decide",
            r#"{"facts": {"user": {"name": "ann"}}}"#,
            "fact `user`: invalid type: map, expected a text, a whole number, or a list of them \
             at line 1 column 20",
        ),
        (
            "/decide",
            r#"{"facts": 3}"#,
            "invalid type: integer `3`, expected an object of facts, or a list of such objects \
             that are decided together at line 1 column 11",
        ),
        (
            "/decide",
            "3",
            "invalid type: integer `3`, expected an object such as {\"facts\": {\"client-ip\": \
             \"192.0.2.1\"}}, or a list of them at line 1 column 1",
        ),
        (
            "/decide",
            r#"{"facts": {}} x"#,
            "trailing characters at line 1 column 15",
        ),
        ("/finish", "{}", "missing field `token` at line 1 column 2"),
        (
            "/finish",
            r#"{"token": "t", "outcome": "good"}"#,
            "unknown variant `good`, expected one of `success`, `failure`, `neither`, \
             `unanswered` at line 1 column 32",
        ),
        (
            "/undo",
            r#"{"token": 5}"#,
            "invalid type: integer `5`, expected a string at line 1 column 11",
        ),
    ];
    for (path, body, message) in cases {
        let (status, said) = service.post(path, body).await;
        assert_eq!(
            (status, said["error"].as_str()),
            (400, Some(message)),
            "{path} {body}"
        );
    }
    service.end().await;
}

#[tokio::test]
async fn bodies_are_bounded() {
    let service = Running::start_with(POLICY, |it| it.limits.body_bytes = 1000).await;
    let (status, said) = service.post("/decide", "x".repeat(1001)).await;
    assert_eq!(
        (status, said["error"].as_str()),
        (413, Some("a body has at most 1000 bytes"))
    );
    let most = format!("{:>1000}", r#"{"facts": {"user": "ann"}}"#);
    assert_eq!(service.post("/decide", most).await.0, 200);
    service.end().await;
}

#[tokio::test]
async fn other_paths_and_methods_are_told_what_there_is() {
    let service = Running::start(POLICY).await;
    let (status, said) = service.post("/", "").await;
    assert_eq!(status, 404);
    assert!(
        said["error"].as_str().unwrap().contains("/decide"),
        "{said}"
    );
    let url = format!("http://{}/decide", service.address);
    let response = service.client.get(url).send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["allow"]),
        (405, &"POST".parse().unwrap())
    );
    service.end().await;
}

/// A page in somebody's browser could use up another client's permits.
#[tokio::test]
async fn pages_in_browsers_may_not_ask() {
    let service = Running::start(POLICY).await;
    for header in ["origin", "sec-fetch-site"] {
        let url = format!("http://{}/decide", service.address);
        let request = service
            .client
            .post(url)
            .header(header, "null")
            .body("{\"facts\": {}}");
        assert_eq!(request.send().await.unwrap().status().as_u16(), 403);
    }
    service.end().await;
}
