//! Limits that descriptors bring.

use crate::support::{Service, descriptor, request};

const MINUTE: i32 = 2;
const DAY: i32 = 4;

#[tokio::test]
async fn a_descriptor_has_the_limit_that_it_brings() {
    let service = Service::start("rule = []");
    let mut client = service.client();
    let ann = || descriptor([("user", "ann")]).limit(2, DAY);
    let answer = client.ask(request([ann()])).await;
    assert_eq!(answer.left(), [Some(1)]);
    let limit = answer.statuses[0].current_limit.clone().unwrap();
    assert_eq!((limit.requests_per_unit, limit.unit), (2, DAY));
    assert_eq!(&*limit.name, "limit-override");
    assert_eq!(
        answer.header("ratelimit-policy"),
        Some(r#""limit-override";q=2;w=86400"#)
    );
    assert!(client.ask(request([ann()])).await.is_ok());
    let denied = client.ask(request([ann()])).await;
    assert_eq!(denied.left(), [None]);
    assert!(denied.header("retry-after").is_some());
    let bob = descriptor([("user", "bob")]).limit(2, DAY);
    assert!(client.ask(request([bob])).await.is_ok());
    // In another domain it is another key.
    let mut elsewhere = request([ann()]);
    elsewhere.domain = "other".into();
    assert!(client.ask(elsewhere).await.is_ok());
}

#[tokio::test]
async fn a_client_gains_nothing_by_another_limit() {
    let service = Service::start("rule = []");
    let mut client = service.client();
    let mut allowed = 0;
    for round in 0..50 {
        let limit = 1 + round % 10;
        let ann = descriptor([("user", "ann")]).limit(limit, DAY);
        allowed += usize::from(client.ask(request([ann])).await.is_ok());
    }
    assert_eq!(allowed, 10);
}

#[tokio::test]
async fn rules_apply_to_a_descriptor_with_a_limit_too() {
    let policy = "[[rule]]\nname = 'a'\nwhen = { user = true }\nkey = 'user'\nlimit = '1/d'\n\
                  [[rule]]\nname = 'b'\nwhen = { team = true, limit-override = false }\n\
                  key = 'team'\nlimit = '1/d'";
    let service = Service::start(policy);
    let mut client = service.client();
    let ann = || descriptor([("user", "ann")]).limit(9, DAY);
    assert_eq!(client.ask(request([ann()])).await.left(), [Some(0)]);
    let denied = client.ask(request([ann()])).await;
    assert_eq!(denied.left(), [None]);
    // The denied request took nothing from its own limit.
    let other = descriptor([("team", "red")]).limit(3, DAY);
    let both = || request([ann(), other.clone()]);
    for _ in 0..5 {
        assert!(!client.ask(both()).await.is_ok());
    }
    for left in [2, 1, 0] {
        let answer = client.ask(request([other.clone()])).await;
        assert_eq!(answer.left(), [Some(left)]);
    }
}

#[tokio::test]
async fn several_limits_are_taken_all_or_nothing() {
    let service = Service::start("rule = []");
    let mut client = service.client();
    let ann = || descriptor([("user", "ann")]).limit(5, DAY);
    let none = descriptor([("user", "bob")]).limit(0, MINUTE);
    let denied = client.ask(request([ann(), none])).await;
    assert!(!denied.is_ok());
    assert_eq!(denied.statuses[1].limit_remaining, 0);
    assert_eq!(denied.header("retry-after"), None);
    assert_eq!(client.ask(request([ann()])).await.left(), [Some(4)]);
}

#[tokio::test]
async fn hits_of_a_limit_are_looked_at_charged_and_given_back() {
    let service = Service::start("rule = []");
    let mut client = service.client();
    let ann = || descriptor([("user", "ann")]).limit(5, DAY);
    assert_eq!(client.ask(request([ann().hits(0)])).await.left(), [Some(5)]);
    client.ask(request([ann().hits(4).charged()])).await;
    client.ask(request([ann().hits(3).charged()])).await;
    assert_eq!(client.ask(request([ann().hits(0)])).await.left(), [None]);
    client.ask(request([ann().hits(3).refunded()])).await;
    assert_eq!(client.ask(request([ann()])).await.left(), [Some(0)]);
}
