//! A login form. Wrong passwords count, right ones do not, and an address that fails again and
//! again is banned.
//!
//! ```text
//! cargo run -p tollgate-tower --features axum,policy --example login
//! ```

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use axum::{Router, http::StatusCode, routing::post};
use tokio::net::TcpListener;
use tollgate::ManualClock;
use tollgate_policy::Policy;
use tollgate_tower::RateLimitLayer;

type Failed = Box<dyn Error + Send + Sync>;

const LIMITS: &str = r#"
[[rule]]
name = "login"
when = { method = "POST", path = "/login" }
key  = "client-ip"
ban  = { after = 5, of = "failures", within = "1min", for = "10min" } # failures: 401, 403, 422
"#;

async fn login(form: String) -> (StatusCode, &'static str) {
    match form.as_str() {
        "user=ann&password=correct" => (StatusCode::OK, "welcome\n"),
        _ => (StatusCode::UNAUTHORIZED, "wrong password\n"),
    }
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let clock = ManualClock::new(); // the time of this example; without it, the system's clock
    let policy = Policy::builder().clock(clock.clone()).build_toml(LIMITS)?;
    let limit = RateLimitLayer::policy(policy);
    let router = Router::new().route("/login", post(login)).layer(limit);

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/login", listener.local_addr()?);
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });

    let client = reqwest::Client::new();
    let log_in = async |password: &str| {
        let form = format!("user=ann&password={password}");
        let answer = client.post(&url).body(form).send().await?;
        let status = answer.status().as_u16();
        println!("{password}: {status} {}", answer.text().await?.trim_end());
        Ok::<_, reqwest::Error>(status)
    };
    for _ in 0..6 {
        assert_eq!(log_in("correct").await?, 200); // it does not count
    }
    for _ in 0..5 {
        assert_eq!(log_in("guess").await?, 401); // the fifth time bans the address
    }
    assert_eq!(log_in("correct").await?, 429);
    clock.advance(Duration::from_secs(599));
    assert_eq!(log_in("correct").await?, 429);
    clock.advance(Duration::from_secs(1));
    assert_eq!(log_in("correct").await?, 200);
    Ok(())
}
