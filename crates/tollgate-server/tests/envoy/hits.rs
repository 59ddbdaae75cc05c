//! Hits are taken, looked at, charged and given back.

use crate::support::{Service, descriptor, request};

const POLICY: &str = r#"
[[rule]]
name  = "fixed"
when  = { kind = "fixed" }
limit = "10/d"
cost  = 3

[[rule]]
name  = "user"
when  = { user = true }
key   = "user"
limit = "10/d"

[[rule]]
name  = "tenant"
when  = { tenant = true }
key   = "tenant"
limit = "3/d"
"#;

#[tokio::test]
async fn hits_of_the_descriptor_come_before_those_of_the_request() {
    let service = Service::start(POLICY);
    let mut client = service.client();
    let ann = || descriptor([("user", "ann")]);
    let mut asked = request([ann()]);
    assert_eq!(client.ask(asked.clone()).await.left(), [Some(9)]);
    asked.hits_addend = 3;
    assert_eq!(client.ask(asked.clone()).await.left(), [Some(6)]);
    asked.descriptors = vec![ann().hits(4)];
    assert_eq!(client.ask(asked.clone()).await.left(), [Some(2)]);
    // All of the hits, or none.
    assert_eq!(client.ask(asked.clone()).await.left(), [None]);
    asked.descriptors = vec![ann().hits(2)];
    assert_eq!(client.ask(asked).await.left(), [Some(0)]);
}

#[tokio::test]
async fn a_rule_with_a_cost_says_itself_what_is_taken() {
    let service = Service::start(POLICY);
    let mut client = service.client();
    let asked = |hits| request([descriptor([("kind", "fixed")]).hits(hits)]);
    assert_eq!(client.ask(asked(9)).await.left(), [Some(7)]);
    assert_eq!(client.ask(asked(0)).await.left(), [Some(7)]);
}

#[tokio::test]
async fn no_hits_only_look() {
    let service = Service::start(POLICY);
    let mut client = service.client();
    let look = || request([descriptor([("user", "ann")]).hits(0)]);
    for _ in 0..20 {
        assert_eq!(client.ask(look()).await.left(), [Some(10)]);
    }
    let all = request([descriptor([("user", "ann")]).hits(10)]);
    assert!(client.ask(all).await.is_ok());
    let denied = client.ask(look()).await;
    assert_eq!(denied.left(), [None]);
    // The next permit comes in a tenth of a day.
    let wait: u64 = denied.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=8640).contains(&wait), "{wait}");
    // What only looks denies all the same, and the others take nothing.
    let mixed = request([
        descriptor([("tenant", "acme")]),
        descriptor([("user", "ann")]).hits(0),
    ]);
    assert_eq!(client.ask(mixed).await.left(), [Some(3), None]);
}

#[tokio::test]
async fn charged_hits_are_taken_even_if_they_are_too_many() {
    let service = Service::start(POLICY);
    let mut client = service.client();
    let tenant = || descriptor([("tenant", "acme")]);
    for hits in [3, 2] {
        let charge = request([tenant().hits(hits).charged()]);
        assert!(client.ask(charge).await.is_ok());
        assert_eq!(client.ask(request([tenant()])).await.left(), [None]);
    }
    // A debt of two is paid, and one permit is left.
    let refund = request([tenant().hits(3).refunded()]);
    assert!(client.ask(refund).await.is_ok());
    assert_eq!(client.ask(request([tenant()])).await.left(), [Some(0)]);
    // A denied request charges nothing.
    let denied = request([tenant(), descriptor([("user", "bob")]).hits(9).charged()]);
    assert!(!client.ask(denied).await.is_ok());
    let bob = request([descriptor([("user", "bob")])]);
    assert_eq!(client.ask(bob).await.left(), [Some(9)]);
}

#[tokio::test]
async fn negative_hits_give_back_no_more_than_was_taken() {
    let service = Service::start(POLICY);
    let mut client = service.client();
    let ann = || descriptor([("user", "ann")]);
    assert_eq!(client.ask(request([ann().hits(4)])).await.left(), [Some(6)]);
    let refund = |hits| request([ann().hits(hits).refunded()]);
    assert!(client.ask(refund(3)).await.is_ok());
    assert_eq!(client.ask(request([ann().hits(0)])).await.left(), [Some(9)]);
    for _ in 0..3 {
        assert!(client.ask(refund(u64::MAX)).await.is_ok());
    }
    assert_eq!(
        client.ask(request([ann().hits(0)])).await.left(),
        [Some(10)]
    );
}

#[tokio::test]
async fn a_huge_charge_stops_a_key_for_no_longer_than_its_limit_takes_to_fill() {
    let policy = "[[rule]]\nname = 'user'\nkey = 'user'\nlimit = '100/s'";
    let service = Service::start(policy);
    let mut client = service.client();
    let ann = || descriptor([("user", "ann")]);
    let charge = request([ann().hits(u64::MAX).charged()]);
    assert!(client.ask(charge).await.is_ok());
    let denied = client.ask(request([ann()])).await;
    let wait: u64 = denied.header("retry-after").unwrap().parse().unwrap();
    assert!(wait <= 3600, "{wait}");
}
