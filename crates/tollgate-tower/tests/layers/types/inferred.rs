//! No function that makes a layer needs a type to be named.

use std::sync::Arc;

use http::{Request, Response};
use tollgate::{Counted, Limiter, Quota, Sharded, SlottedWindow};
use tollgate_tower::RateLimitLayer;
use tower::{Layer, ServiceExt, service_fn};

async fn page(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    Ok(Response::default())
}

#[tokio::test]
async fn a_limiter_of_any_type() {
    let quota = Quota::per_hour(100);
    let sharded = Sharded::token_bucket(quota).expect("a limiter");
    let window = SlottedWindow::new(quota, 60).expect("a limiter");
    let counted = Counted::new(Limiter::token_bucket(quota).expect("a limiter"));
    let shared = Arc::new(Sharded::token_bucket(quota).expect("a limiter"));
    let window_of_all = Arc::new(SlottedWindow::new(quota, 60).expect("a limiter"));
    macro_rules! each {
        ($($limiter:expr),*) => {$(
            let layer = RateLimitLayer::shared_with_quota($limiter, Some(quota));
            let answer = layer.layer(service_fn(page)).oneshot(Request::new(())).await;
            assert_eq!(answer.expect("an answer").status(), 200);
        )*};
    }
    each!(
        sharded,
        window,
        counted,
        Arc::clone(&shared),
        Arc::clone(&window_of_all)
    );
    assert_eq!((shared.available(), window_of_all.available()), (99, 99));
    let layer = RateLimitLayer::shared_with_quota(shared, None);
    let answer = layer
        .layer(service_fn(page))
        .oneshot(Request::new(()))
        .await;
    assert_eq!(answer.expect("an answer").status(), 200);
}
