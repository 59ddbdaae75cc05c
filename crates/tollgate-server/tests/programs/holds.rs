//! Decisions that are held until their request ends.

use serde_json::{Value, json};

use crate::Running;

fn hold(facts: &Value) -> Value {
    json!({"facts": facts, "hold": true})
}

async fn token(service: &Running, facts: &Value) -> String {
    let said = service.decide(hold(facts)).await;
    said["token"]
        .as_str()
        .unwrap_or_else(|| panic!("{said}"))
        .to_owned()
}

#[tokio::test]
async fn the_outcome_decides_what_counts() {
    let policy = "[[rule]]\nname = 'login'\nkey = 'user'\nlimit = '2/d'\ncount = 'failures'";
    let service = Running::start(policy).await;
    let ann = json!({"user": "ann"});
    for _ in 0..5 {
        let token = token(&service, &ann).await;
        let ask = json!({"token": token, "outcome": "success"});
        let (status, said) = service.post("/finish", ask.to_string()).await;
        assert_eq!((status, said), (200, json!({"returned": 1, "charged": 0})));
    }
    for _ in 0..2 {
        let token = token(&service, &ann).await;
        let ask = json!({"token": token, "status": 401});
        let (status, said) = service.post("/finish", ask.to_string()).await;
        assert_eq!((status, said), (200, json!({"returned": 0, "charged": 0})));
    }
    assert_eq!(service.decide(hold(&ann)).await["allowed"], false);
    service.end().await;
}

#[tokio::test]
async fn the_answer_settles_the_cost() {
    let policy = "[[rule]]\nname = 'chat'\nkey = 'user'\nlimit = '1000/d'\n\
                  cost = { default = 100, settle = 'used' }";
    let service = Running::start(policy).await;
    let ann = json!({"user": "ann"});
    // Each question takes 100, and its answer says how much was used.
    for (used, returned, charged, left) in [(30, 70, 0, 970), (250, 0, 150, 720)] {
        let token = token(&service, &ann).await;
        let ask = json!({"token": token, "facts": {"used": used}});
        let (_, said) = service.post("/finish", ask.to_string()).await;
        assert_eq!(said, json!({"returned": returned, "charged": charged}));
        let said = service.decide(hold(&ann)).await;
        assert_eq!(said["limits"][0]["remaining"], left - 100);
        let ask = json!({"token": said["token"]});
        service.post("/undo", ask.to_string()).await;
    }
    service.end().await;
}

#[tokio::test]
async fn a_token_ends_its_decision_once() {
    let service = Running::start("[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '3/d'").await;
    let ann = json!({"user": "ann"});
    let token = token(&service, &ann).await;
    assert_eq!(token.len(), 32);
    let ask = json!({"token": token}).to_string();
    let (status, said) = service.post("/undo", ask.clone()).await;
    assert_eq!((status, said), (200, json!({"returned": 1, "charged": 0})));
    for path in ["/undo", "/finish"] {
        let (status, said) = service.post(path, ask.clone()).await;
        assert_eq!(status, 404);
        assert_eq!(
            said["error"],
            "token is not known: it was used, or its time is over"
        );
    }
    assert_eq!(
        service.decide(json!({"facts": ann})).await["limits"][0]["remaining"],
        2
    );
    service.end().await;
}

#[tokio::test]
async fn a_place_is_taken_while_its_decision_is_held() {
    let service =
        Running::start("[[rule]]\nname = 'a'\nkey = 'user'\nlimit = 'concurrency 1'").await;
    let ann = json!({"user": "ann"});
    let token = token(&service, &ann).await;
    let denied = service.decide(hold(&ann)).await;
    assert_eq!(
        (&denied["cause"], denied.get("token")),
        (&json!("overload"), None)
    );
    service
        .post("/finish", json!({"token": token}).to_string())
        .await;
    // Without `hold`, the place is free at once.
    for _ in 0..3 {
        assert_eq!(service.decide(json!({"facts": ann})).await["allowed"], true);
    }
    service.end().await;
}

#[tokio::test]
async fn a_decision_that_finds_no_room_takes_nothing() {
    let policy = "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = '5/d'";
    let service = Running::start_with(policy, |settings| settings.most_held = 2).await;
    let ann = json!({"user": "ann"});
    let said = service.decide(json!(vec![hold(&ann); 4])).await;
    for (said, has_room) in said
        .as_array()
        .unwrap()
        .iter()
        .zip([true, true, false, false])
    {
        assert_eq!(said.get("token").is_some(), has_room);
        assert_eq!(said["allowed"], has_room);
    }
    assert_eq!(
        (&said[2]["cause"], &said[2]["status"]),
        (&json!("too-many-held"), &json!(503))
    );
    assert_eq!(
        service.decide(json!({"facts": ann})).await["limits"][0]["remaining"],
        2
    );
    assert!(service.metrics().await.contains("tollgate_held 2\n"));
    service.end().await;
}

#[tokio::test]
async fn a_decision_without_a_limit_is_not_held() {
    let policy = "[[allow]]\nname = 'staff'\nwhen = { user = 'root' }\n\
                  [[rule]]\nname = 'a'\nkey = 'user'\nlimit = '5/d'";
    let service = Running::start_with(policy, |settings| settings.most_held = 1).await;
    for _ in 0..3 {
        let said = service.decide(hold(&json!({"user": "root"}))).await;
        assert_eq!((&said["allowed"], said.get("token")), (&json!(true), None));
    }
    token(&service, &json!({"user": "ann"})).await;
    service.decide(hold(&json!({"user": "ann"}))).await;
    assert_eq!(service.metric("tollgate_held_refused_total").await, 1);
    // A decision that was not held was not allowed.
    let allowed = "tollgate_requests_total{rule=\"a\",decision=\"allowed\"} 1\n";
    assert!(service.metrics().await.contains(allowed));
    service.end().await;
}
