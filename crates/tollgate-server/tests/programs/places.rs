//! Places of a concurrency are free when nobody says that their request ends.

use std::time::Duration;

use serde_json::{Value, json};

use crate::Running;
use crate::redis_server::on_each_server;

fn ann() -> Value {
    json!({"facts": {"user": "ann"}})
}

/// Asks until the only place is free. A store is told behind the answer's back.
async fn until_free(service: &Running) {
    while service.decide(ann()).await["allowed"] != true {
        tokio::task::yield_now().await;
    }
}

#[test]
fn a_place_on_a_server_is_free_without_a_hold_and_after_one() {
    on_each_server(|mut private| {
        private.start(false);
        let policy = format!(
            "[store]\nredis = '{}'\nbudget = '20s'\nfallback = 'closed'\n\
             [[rule]]\nname = 'a'\nkey = 'user'\nlimit = 'concurrency 1 lease 1h'",
            private.url()
        );
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let service = Running::start_with(&policy, |settings| {
                settings.hold_for = Duration::from_millis(50);
            })
            .await;
            for _ in 0..5 {
                until_free(&service).await;
            }
            // A hold that nobody ends is over after its time, also while others hold.
            let other = json!({"facts": {"user": "bob"}, "hold": true});
            for _ in 0..3 {
                let mut hold = ann();
                hold["hold"] = json!(true);
                while service.decide(hold.clone()).await["allowed"] != true {
                    service.decide(other.clone()).await;
                }
            }
            service.end().await;
        });
    });
}

#[tokio::test]
async fn a_place_that_one_question_frees_is_there_for_the_next() {
    let service =
        Running::start("[[rule]]\nname = 'a'\nkey = 'user'\nlimit = 'concurrency 1'").await;
    let said = service.decide(json!([ann(), ann(), ann()])).await;
    assert!(
        said.as_array()
            .unwrap()
            .iter()
            .all(|it| it["allowed"] == true),
        "{said}"
    );
    service.end().await;
}
