//! A table with plans: each request has the plan that the program says, and never another one.

use http::{HeaderName, Request, Response};
use tollgate::{Keyed, ManualClock, Quota, TokenBucket};
use tollgate_tower::{Admission, ByHeader, Fields, MissingKey, RateLimitLayer, RequestFacts};
use tower::{Layer, ServiceExt, service_fn};

async fn page(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    Ok(Response::default())
}

/// A table whose plans grant 1 and 3 permits an hour.
fn table() -> Keyed<TokenBucket, ManualClock> {
    let plans = [1, 3].map(|n| TokenBucket::new(Quota::per_hour(n)).unwrap());
    Keyed::with_plans(plans, 100, ManualClock::new()).unwrap()
}

fn by_user() -> ByHeader {
    ByHeader(HeaderName::from_static("x-user"))
}

fn plan(facts: &RequestFacts<'_>) -> Option<usize> {
    facts.header("x-plan").ok()??.parse().ok()
}

/// Returns the status of the answer to a request with these headers, and what it says of the limit.
async fn ask(
    layer: &RateLimitLayer<impl Admission>,
    headers: &[(&str, &str)],
) -> (u16, Option<String>) {
    let mut request = Request::new(());
    for (name, value) in headers {
        let name: HeaderName = name.parse().unwrap();
        request.headers_mut().append(name, value.parse().unwrap());
    }
    let answer = layer
        .layer(service_fn(page))
        .oneshot(request)
        .await
        .unwrap();
    let policy = answer.headers().get("ratelimit-policy");
    let policy = policy.map(|value| value.to_str().unwrap().to_owned());
    (answer.status().as_u16(), policy)
}

#[tokio::test]
async fn a_request_has_the_quota_of_its_plan() {
    let layer = RateLimitLayer::by_key(table(), by_user()).plan(plan);
    let layer = layer.fields(Fields::LIST);
    for (user, plan, quota) in [("ann", "0", 1), ("bob", "1", 3)] {
        let said = Some(format!("\"default\";q={quota};w=3600"));
        let headers = [("x-user", user), ("x-plan", plan)];
        for _ in 0..quota {
            assert_eq!(ask(&layer, &headers).await, (200, said.clone()));
        }
        assert_eq!(ask(&layer, &headers).await, (429, said));
    }
}

#[tokio::test]
async fn a_request_without_a_plan_is_refused() {
    let layer = RateLimitLayer::by_key(table(), by_user()).plan(plan);
    let layer = layer.fields(Fields::LIST);
    for plan in [None, Some("2"), Some("256"), Some("18446744073709551615")] {
        let plan = plan.map(|plan| ("x-plan", plan));
        let headers: Vec<_> = [("x-user", "ann")].into_iter().chain(plan).collect();
        assert_eq!(ask(&layer, &headers).await, (403, None), "{plan:?}");
    }
    assert_eq!(
        ask(&layer, &[("x-user", "ann"), ("x-plan", "0")]).await.0,
        200
    );
}

#[tokio::test]
async fn a_table_with_plans_serves_nobody_until_the_program_says_who_has_which() {
    let layer = RateLimitLayer::by_key(table(), by_user());
    assert_eq!(ask(&layer, &[("x-user", "ann")]).await.0, 403);
    let one = Keyed::token_bucket(Quota::per_hour(1), 100).unwrap();
    let layer = RateLimitLayer::by_key(one, by_user());
    assert_eq!(ask(&layer, &[("x-user", "ann")]).await.0, 200);
}

#[tokio::test]
async fn requests_without_a_key_share_the_first_plan() {
    let layer = RateLimitLayer::by_key(table(), by_user()).plan(plan);
    let layer = layer.missing(MissingKey::Share);
    assert_eq!(ask(&layer, &[("x-plan", "1")]).await.0, 200);
    assert_eq!(ask(&layer, &[("x-plan", "1")]).await.0, 429);
}

#[tokio::test]
async fn an_override_goes_before_the_plan() {
    let table = table().with_overrides(10).unwrap();
    let own = TokenBucket::new(Quota::per_hour(2)).unwrap();
    table.key("ann").set_override(own).unwrap();
    let layer = RateLimitLayer::by_key(table, by_user()).plan(plan);
    let layer = layer.fields(Fields::LIST);
    let said = Some("\"default\";q=2;w=3600".to_owned());
    let headers = [("x-user", "ann"), ("x-plan", "0")];
    assert_eq!(ask(&layer, &headers).await, (200, said.clone()));
    assert_eq!(ask(&layer, &headers).await, (200, said.clone()));
    assert_eq!(ask(&layer, &headers).await, (429, said));
}

#[tokio::test]
async fn a_request_without_a_plan_is_refused_whatever_it_costs_and_whoever_sends_it() {
    let own = TokenBucket::new(Quota::per_hour(2)).unwrap();
    let table = table().with_overrides(10).unwrap();
    table.key("ann").set_override(own).unwrap();
    let layer = RateLimitLayer::by_key(table, by_user()).plan(plan);
    for user in ["ann", "bob"] {
        assert_eq!(ask(&layer.clone(), &[("x-user", user)]).await.0, 403);
        let free = layer.clone().cost(|_| 0);
        assert_eq!(ask(&free, &[("x-user", user)]).await.0, 403);
    }
}
