use axum::{Router, http::StatusCode, routing::post};
use tollgate_tower::RateLimitLayer;
use tollgate_tower::tollgate_policy::{Policy, Problems};

const LIMITS: &str = r#"
[[rule]]
name = "login"
when = { method = "POST", path = "/login" }
key  = "client-ip"
ban  = { after = 5, of = "failures", within = "1min", for = "10min" }
"#;

async fn login(password: String) -> StatusCode {
    match password.as_str() {
        "correct" => StatusCode::OK,
        _ => StatusCode::UNAUTHORIZED,
    }
}

pub(crate) fn app() -> Result<Router, Problems> {
    let limit = RateLimitLayer::policy(Policy::from_toml(LIMITS)?);
    Ok(Router::new().route("/login", post(login)).layer(limit))
}
